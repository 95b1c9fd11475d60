//! [`ValueInfo`]: a value type as data.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, OperationInfo};
use orb_runtime::types::{TypeCode, ValueModifier};

/// A value type as data, from IDL that is read at run time, or from an Interface Repository.
///
/// Its type code contains its state, what it can be truncated to, and whether it is abstract or custom.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueInfo {
    /// Repository id.
    pub id: Box<str>,
    /// Its name, without that of its modules.
    pub name: Box<str>,
    /// Its type, with its own state and its concrete base.
    pub code: TypeCode,
    /// The repository ids of the abstract value types that it is derived from, in order.
    pub abstract_bases: Vec<Box<str>>,
    /// The repository ids of the interfaces that it supports, in order.
    pub supports: Vec<Box<str>>,
    /// Its operations, in order.
    pub operations: Vec<Arc<OperationInfo>>,
    /// Its attributes, in order.
    pub attributes: Vec<AttributeInfo>,
    /// Its initializers (`factory`), in order.
    pub initializers: Vec<InitializerInfo>,
}

/// A `factory` of a value type.
#[derive(Clone, Debug, PartialEq)]
pub struct InitializerInfo {
    /// Its name.
    pub name: Box<str>,
    /// The names and types of its parameters, which are all `in`.
    pub params: Vec<(Box<str>, TypeCode)>,
    /// The exceptions that it raises.
    pub raises: Vec<TypeCode>,
}

impl ValueInfo {
    /// Creates it from a type code, without operations, attributes, abstract bases, supported interfaces and
    /// initializers.
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

    /// Returns whether it is abstract, custom, truncatable, or none of these.
    pub fn modifier(&self) -> ValueModifier {
        self.code.type_modifier().unwrap_or_default()
    }

    /// Returns the type of its stateful base, if there is one.
    pub fn concrete_base(&self) -> Option<TypeCode> {
        self.code.concrete_base_type().ok().flatten()
    }
}
