//! A client of the Interface Repositories of other programs, which fetches descriptions of interfaces.

use std::sync::Arc;

use orb_runtime::dynamic::{
    AttributeInfo, DynError, DynamicException, DynamicReply, Interface, Mode, OperationInfo, ParamInfo,
    Request, Value,
};
use orb_runtime::types::{TcKind, TypeCode};
use orb_runtime::{ObjectRef, Printable, Reference, SystemException, SystemExceptionKind};

use super::describe::look_up;
use super::repository_interface;

/// The reason why a description cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The call to the object or its repository failed. A server without a repository raises INTF_REPOS.
    #[error(transparent)]
    Call(#[from] DynamicException),
    /// The call cannot be made, or its result has another type.
    #[error(transparent)]
    System(#[from] SystemException),
    /// The repository has no definition with this repository id.
    #[error("the interface repository has no `{}`", Printable::new(.0))]
    Unknown(Box<str>),
    /// The result cannot be read as a description.
    #[error("the interface repository returned an invalid description")]
    Description(#[from] DynError),
    /// The result does not have the type with this name in the module CORBA.
    #[error("the interface repository did not return a `CORBA::{}`", Printable::new(.0))]
    UnexpectedType(Box<str>),
}

/// Returns the interface of an object from its server's Interface Repository (`get_interface`, then
/// `describe_ext_interface`, or `describe_interface` if that is not implemented). It includes the operations
/// and attributes of its bases.
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
#[doc(alias = "get_interface")]
pub async fn interface_of(object: &impl Reference) -> Result<Arc<Interface>, FetchError> {
    let reply = Request::new(object, "_interface").returns(TypeCode::OBJECT).invoke().await?;
    let definition: Option<ObjectRef> = reply.get()?;
    let unknown = || FetchError::Unknown(object.as_object().ior().type_id.as_str().into());
    describe(&definition.ok_or_else(unknown)?).await
}

/// Returns the interface with this id in a repository.
///
/// # Errors
/// [`FetchError`].
///
/// # Cancel safety
/// Nothing is lost.
#[doc(alias = "lookup_id")]
pub async fn look_up_interface(
    repository: &impl Reference,
    repository_id: &str,
) -> Result<Arc<Interface>, FetchError> {
    let found = look_up(repository, repository_id).await?;
    describe(&found.ok_or_else(|| FetchError::Unknown(repository_id.into()))?).await
}

/// Returns the interface of a definition, with exceptions of attributes if the repository has them.
async fn describe(definition: &ObjectRef) -> Result<Arc<Interface>, FetchError> {
    let operations =
        [("InterfaceAttrExtension", "describe_ext_interface"), ("InterfaceDef", "describe_interface")];
    let (answer, extended) = call_extended_or_plain(definition, operations).await?;
    let described = answer.result.to_dynamic()?;
    let text = |path: &str| -> Result<Box<str>, FetchError> { Ok(as_text(described.at(path)?.1)) };
    let (id, name) = (text("id")?, text("name")?);
    let operation_infos = list(described.at("operations")?.1).into_iter().map(operation).collect();
    let attributes =
        list(described.at("attributes")?.1).into_iter().map(|one| attribute(one, extended)).collect();
    let bases = list(described.at("base_interfaces")?.1).into_iter().map(as_text);
    let base = |id: Box<str>| {
        let name = id.rsplit(['/', ':']).nth(1).unwrap_or_default();
        Arc::new(Interface::new((TcKind::ObjRef, &id, name), Vec::new(), Vec::new(), Vec::new()))
    };
    let kind = as_code(described.at("type")?.1).kind();
    Ok(Arc::new(Interface::new((kind, &id, &name), bases.map(base).collect(), operation_infos, attributes)))
}

/// Calls the operation `extended` of a definition. If it is not implemented, calls `plain` instead. Each is
/// given by interface and name. Returns the reply, and whether it is the reply of `extended`.
pub(super) async fn call_extended_or_plain(
    definition: &ObjectRef,
    [extended, plain]: [(&str, &str); 2],
) -> Result<(DynamicReply, bool), FetchError> {
    let ask = |(interface, operation): (&str, &str)| -> Result<Request, SystemException> {
        Request::of(definition, &*repository_interface(interface)?, operation)
    };
    match ask(extended)?.invoke().await {
        Ok(answer) => Ok((answer, true)),
        Err(DynamicException::System(error))
            if matches!(error.kind, SystemExceptionKind::BadOperation | SystemExceptionKind::NoImplement) =>
        {
            Ok((ask(plain)?.invoke().await?, false))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Items(items) => items.into_values(),
        _ => Vec::new(),
    }
}

pub(super) fn members<const N: usize>(value: Value) -> [Value; N] {
    let mut members = match value {
        Value::Struct(members) => members.into_vec(),
        _ => Vec::new(),
    };
    members.resize(N, Value::Void);
    // There are exactly N members after the resize.
    members.try_into().unwrap_or_else(|_| std::array::from_fn(|_| Value::Void))
}

pub(super) fn as_text(value: Value) -> Box<str> {
    match value {
        Value::String(text) => text,
        _ => Box::default(),
    }
}

pub(super) fn as_code(value: Value) -> TypeCode {
    match value {
        Value::TypeCode(code) => *code,
        _ => TypeCode::default(),
    }
}

/// Returns whether a mode is `OP_NORMAL` or `ATTR_NORMAL`, so neither oneway nor readonly.
fn is_normal_mode(mode: &Value) -> bool {
    *mode == Value::Enum(0)
}

/// Returns the types of the exceptions in a sequence of `ExceptionDescription`.
pub(super) fn exceptions(value: Value) -> Vec<TypeCode> {
    list(value).into_iter().map(members::<5>).map(|[.., code]| as_code(code)).collect()
}

pub(super) fn operation(value: Value) -> OperationInfo {
    let [name, id, _, _, result, mode, contexts, params, raises] = members(value);
    let param = |value| {
        let [name, code, _, mode] = members(value);
        let mode = match mode {
            Value::Enum(1) => Mode::Out,
            Value::Enum(2) => Mode::InOut,
            _ => Mode::In,
        };
        ParamInfo { name: as_text(name), mode, code: as_code(code) }
    };
    OperationInfo {
        id: as_text(id),
        name: as_text(name),
        oneway: !is_normal_mode(&mode),
        result: as_code(result),
        params: list(params).into_iter().map(param).collect(),
        raises: exceptions(raises),
        contexts: list(contexts).into_iter().map(as_text).collect(),
    }
}

pub(super) fn attribute(value: Value, extended: bool) -> AttributeInfo {
    let [name, id, _, _, code, mode, get, set] = members(value);
    AttributeInfo {
        id: as_text(id),
        name: as_text(name),
        readonly: !is_normal_mode(&mode),
        code: as_code(code),
        get_raises: if extended { exceptions(get) } else { Vec::new() },
        set_raises: if extended { exceptions(set) } else { Vec::new() },
    }
}
