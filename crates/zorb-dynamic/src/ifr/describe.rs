//! A client of the Interface Repositories of other programs, which fetches descriptions of definitions.

use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, Dynamic, OperationInfo, Request, Value};
use orb_runtime::types::{Any, TcKind, TypeCode, Visibility};
use orb_runtime::{ObjectRef, Reference, SystemException};

use crate::value_info::{InitializerInfo, ValueInfo};

use super::fetch::{
    FetchError, as_code, as_text, attribute, call_extended_or_plain, exceptions, list, members, operation,
};
use super::kind::{DK_ALL, Kind};
use super::{repository_interface, repository_type};

/// A repository's description of one definition.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedDefinition {
    /// The repository id.
    pub id: Box<str>,
    /// The name, without the scope.
    pub name: Box<str>,
    /// The repository id of the scope. Empty for definitions at file level.
    pub defined_in: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The properties that depend on the kind of the definition.
    pub details: DefinitionDetails,
}

/// The kind of a definition, with the properties of this kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DefinitionDetails {
    /// `module`.
    Module,
    /// `interface`: the kind, and the ids of the bases. [`look_up_interface`](crate::look_up_interface) also
    /// returns the operations and attributes.
    Interface(TcKind, Vec<Box<str>>),
    /// An operation of an interface or value type.
    Operation(OperationInfo),
    /// An attribute of an interface or value type. Its lists of exceptions are empty, because only
    /// [`look_up_interface`](crate::look_up_interface) and [`look_up_value`] return exceptions of attributes.
    Attribute(AttributeInfo),
    /// `const`.
    Constant(Dynamic),
    /// `exception`.
    Exception(TypeCode),
    /// `struct`, `union`, `enum`, `typedef`, `native`, or a value box: see [`TypeCode::kind`].
    Type(TypeCode),
    /// `valuetype`. [`look_up_value`] also returns the state, operations, attributes and initializers.
    Value {
        /// The id of the concrete base, which has state. Empty if there is none.
        base: Box<str>,
        /// The ids of the abstract bases.
        abstract_bases: Vec<Box<str>>,
        /// The ids of the supported interfaces.
        supports: Vec<Box<str>>,
    },
    /// A member of a value type's state.
    ValueMember(TypeCode, Visibility),
}

/// Returns the definition with this id in a repository, or `None` if there is none. [`describe_definition`]
/// describes the definition, and [`describe_contents`] its contents.
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
#[doc(alias = "lookup_id")]
pub async fn look_up(
    repository: &impl Reference,
    repository_id: &str,
) -> Result<Option<ObjectRef>, FetchError> {
    let request = Request::new(repository, "lookup_id").input("search_id", repository_id)?;
    Ok(request.returns(TypeCode::OBJECT).invoke().await?.get()?)
}

/// Returns the description of a definition (`Contained::describe`).
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
#[doc(alias = "describe")]
pub async fn describe_definition(definition: &impl Reference) -> Result<DescribedDefinition, FetchError> {
    let request = Request::of(definition, &*repository_interface("Contained")?, "describe")?;
    let [kind, value] = members(request.invoke().await?.result.to_dynamic()?.value);
    decode_description(&kind, value)
}

/// Returns the descriptions of up to `max_count` definitions in `scope`, in the repository's order. `scope`
/// is a module, an interface, or the repository itself, for example. Inherited definitions are not included.
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
#[doc(alias = "contents")]
pub async fn describe_contents(
    scope: &impl Reference,
    max_count: u32,
) -> Result<Vec<DescribedDefinition>, FetchError> {
    let mut request = Request::of(scope, &*repository_interface("Container")?, "describe_contents")?
        .with("exclude_inherited", true)?
        .with("max_returned_objs", i32::try_from(max_count).unwrap_or(i32::MAX))?;
    let (code, value) = (repository_type("DefinitionKind")?, Value::Enum(DK_ALL));
    let all = Any::from_dynamic(&Dynamic { code, value, graph: Default::default() });
    request.set("limit_type", all.map_err(SystemException::from)?)?;
    let described = |one| {
        let [_, kind, value] = members(one);
        decode_description(&kind, value)
    };
    let answer = request.invoke().await?.result.to_dynamic()?;
    list(answer.value).into_iter().take(max_count as usize).map(described).collect()
}

/// Returns the value type with this id in a repository. It includes the operations and attributes of its
/// bases and of the interfaces that it supports.
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
pub async fn look_up_value(
    repository: &impl Reference,
    repository_id: &str,
) -> Result<Arc<ValueInfo>, FetchError> {
    let unknown = || FetchError::Unknown(repository_id.into());
    let definition = look_up(repository, repository_id).await?.ok_or_else(unknown)?;
    let operations = [("ExtValueDef", "describe_ext_value"), ("ValueDef", "describe_value")];
    let (answer, extended) = call_extended_or_plain(&definition, operations).await?;
    let [name, id, _, _, _, _, operations, attributes, _, initializers, supports, bases, _, _, code] =
        members(answer.result.to_dynamic()?.value);
    let attribute = |one| attribute(one, extended);
    Ok(Arc::new(ValueInfo {
        id: as_text(id),
        name: as_text(name),
        code: as_code(code),
        abstract_bases: texts(bases),
        supports: texts(supports),
        operations: list(operations).into_iter().map(operation).map(Arc::new).collect(),
        attributes: list(attributes).into_iter().map(attribute).collect(),
        initializers: list(initializers).into_iter().map(|one| initializer(one, extended)).collect(),
    }))
}

fn initializer(value: Value, extended: bool) -> InitializerInfo {
    let (params, raises, name) = match extended {
        true => members(value).into(),
        false => {
            let [params, name] = members(value);
            (params, Value::Void, name)
        }
    };
    let param = |param| {
        let [name, code, _] = members(param);
        (as_text(name), as_code(code))
    };
    InitializerInfo {
        name: as_text(name),
        params: list(params).into_iter().map(param).collect(),
        raises: exceptions(raises),
    }
}

fn texts(value: Value) -> Vec<Box<str>> {
    list(value).into_iter().map(as_text).collect()
}

/// Decodes a definition's description. It is given as a `DefinitionKind` and an `any` with the description.
fn decode_description(kind: &Value, value: Value) -> Result<DescribedDefinition, FetchError> {
    let kind = match kind {
        Value::Enum(number) => Kind::ALL.iter().copied().find(|kind| *kind as u32 == *number),
        _ => None,
    };
    let name = kind.map_or("", Kind::description_struct);
    let unexpected = || FetchError::UnexpectedType(name.into());
    let (Some(kind), Value::Any(any)) = (kind, value) else { return Err(unexpected()) };
    if name.is_empty() || !any.type_code().equivalent(&repository_type(name)?) {
        return Err(unexpected());
    }
    let value = any.to_dynamic()?.value;
    let Value::Struct(parts) = &value else { return Err(unexpected()) };
    let part = |index: usize| parts.get(index).cloned().unwrap_or(Value::Void);
    // Descriptions of value types have two flags before the scope.
    let scope = if kind == Kind::Value { 4 } else { 2 };
    let (name, id) = (as_text(part(0)), as_text(part(1)));
    let (defined_in, version) = (as_text(part(scope)), as_text(part(scope + 1)));
    let details = match kind {
        Kind::Module => DefinitionDetails::Module,
        Kind::Interface => DefinitionDetails::Interface(TcKind::ObjRef, texts(part(4))),
        Kind::AbstractInterface => DefinitionDetails::Interface(TcKind::AbstractInterface, texts(part(4))),
        Kind::LocalInterface => DefinitionDetails::Interface(TcKind::LocalInterface, texts(part(4))),
        Kind::Operation => DefinitionDetails::Operation(operation(value)),
        Kind::Attribute => DefinitionDetails::Attribute(attribute(value, false)),
        Kind::Constant => {
            let Value::Any(constant) = part(5) else { return Err(unexpected()) };
            DefinitionDetails::Constant(constant.to_dynamic()?)
        }
        Kind::Exception => DefinitionDetails::Exception(as_code(part(4))),
        Kind::Value => DefinitionDetails::Value {
            base: as_text(part(9)),
            abstract_bases: texts(part(7)),
            supports: texts(part(6)),
        },
        Kind::ValueMember => {
            let access = match part(6) {
                Value::Short(0) => Visibility::Private,
                _ => Visibility::Public,
            };
            DefinitionDetails::ValueMember(as_code(part(4)), access)
        }
        _ => DefinitionDetails::Type(as_code(part(4))),
    };
    Ok(DescribedDefinition { id, name, defined_in, version, details })
}
