//! [`ValueInfo`]: a value type as data.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, OperationInfo};
use orb_runtime::types::{TypeCode, ValueModifier};

/// A value type as data, from IDL that is read at run time, or from an Interface Repository.
///
/// The type code contains its state, its truncatable base, and whether it is abstract or custom.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// The repository id.
    pub id: Box<str>,
    /// The name, without that of the scope.
    pub name: Box<str>,
    /// The type code, with the state of the type itself and its concrete base.
    pub code: TypeCode,
    /// The repository ids of the abstract bases, in order.
    pub abstract_bases: Vec<Box<str>>,
    /// The repository ids of the supported interfaces, in order.
    pub supports: Vec<Box<str>>,
    /// The operations, in order.
    pub operations: Vec<Arc<OperationInfo>>,
    /// The attributes, in order.
    pub attributes: Vec<AttributeInfo>,
    /// The initializers (`factory`), in order.
    pub initializers: Vec<InitializerInfo>,
}

/// A `factory` of a value type.
#[derive(Clone, Debug, PartialEq)]
pub struct InitializerInfo {
    /// The name.
    pub name: Box<str>,
    /// The names and types of the parameters, which are all `in`.
    pub params: Vec<(Box<str>, TypeCode)>,
    /// The exceptions in its `raises` clause.
    pub raises: Vec<TypeCode>,
}

impl ValueInfo {
    /// Creates a description that contains only what a type code contains.
    pub(crate) fn of_code(code: &TypeCode) -> ValueInfo {
        ValueInfo {
            id: code.id().unwrap_or_default().into(),
            name: code.name().unwrap_or_default().into(),
            code: code.clone(),
            abstract_bases: Vec::new(),
            supports: Vec::new(),
            operations: Vec::new(),
            attributes: Vec::new(),
            initializers: Vec::new(),
        }
    }

    /// Returns whether the type is abstract, custom, truncatable, or none of these.
    pub fn modifier(&self) -> ValueModifier {
        self.code.type_modifier().unwrap_or_default()
    }

    /// Returns the type of the stateful base, if there is one.
    pub fn concrete_base(&self) -> Option<TypeCode> {
        self.code.concrete_base_type().ok().flatten()
    }
}
