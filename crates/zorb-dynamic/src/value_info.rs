//! [`ValueInfo`]: the description of a value type.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, OperationInfo};
use orb_runtime::types::{TypeCode, ValueModifier};

/// The description of a value type, from IDL that is read at run time, or from an Interface Repository.
///
/// The state and the concrete base of the value type are in its type code.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// The repository id.
    pub id: Box<str>,
    /// The name, without the scope.
    pub name: Box<str>,
    /// The type code, which contains the type's own state, its concrete base and its modifier.
    pub code: TypeCode,
    /// The repository ids of the abstract bases, in the order of declaration.
    pub abstract_bases: Vec<Box<str>>,
    /// The repository ids of the supported interfaces, in the order of declaration.
    pub supports: Vec<Box<str>>,
    /// The operations, in the order of declaration.
    pub operations: Vec<Arc<OperationInfo>>,
    /// The attributes, in the order of declaration.
    pub attributes: Vec<AttributeInfo>,
    /// The initializers (`factory`), in the order of declaration.
    pub initializers: Vec<InitializerInfo>,
}

/// A `factory` of a value type.
#[derive(Clone, Debug, PartialEq)]
pub struct InitializerInfo {
    /// The name.
    pub name: Box<str>,
    /// The names and types of the parameters. All parameters are `in`.
    pub params: Vec<(Box<str>, TypeCode)>,
    /// The exceptions in its `raises` clause.
    pub raises: Vec<TypeCode>,
}

impl ValueInfo {
    /// Creates a description from a type code alone. The rest, such as the operations, is empty.
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

    /// Returns the type of the concrete base, which has state, if there is one.
    pub fn concrete_base(&self) -> Option<TypeCode> {
        self.code.concrete_base_type().ok().flatten()
    }
}
