//! Calls and servants of interfaces that are unknown at compile time: the Dynamic Invocation Interface
//! ([`Request`]) and the Dynamic Skeleton Interface ([`DynServant`]).
//!
//! Arguments and results are [`Any`]s. Their types come from an [`Interface`], or are passed with each call.

mod bridge;
mod cache;
mod error;
#[cfg(feature = "serde")]
mod json;
mod named;
mod offload;
mod request;
mod servant;
mod server_request;
pub(crate) mod source;

use giop_codec::any::Any;
pub use giop_codec::dynamic::*;
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::typecode::{TcKind, TypeCode};
pub use giop_codec::value::ValueTypes;

pub use bridge::Bridge;
pub use error::DynamicException;
pub use named::{NVList, NamedValue};
pub use request::{DynamicReply, Request};
pub use servant::DynServant;
pub use server_request::ServerRequest;
pub use source::InterfaceSource;

/// Returns whether a value may be passed where the type `wanted` is expected. All references have the same
/// encoding.
fn fits(value: &TypeCode, wanted: &TypeCode) -> bool {
    is_reference(value) && is_reference(wanted) || wanted.equivalent(value)
}

fn is_reference(code: &TypeCode) -> bool {
    match code.kind() {
        TcKind::ObjRef | TcKind::Component | TcKind::Home => true,
        TcKind::Alias => is_reference(&code.unaliased()),
        _ => false,
    }
}

/// Raises BAD_PARAM unless the value is of the type.
fn check_type(
    what: impl FnOnce() -> String,
    value: &Any,
    wanted: &TypeCode,
    completed: CompletionStatus,
) -> Result<(), SystemException> {
    if fits(value.type_code(), wanted) {
        return Ok(());
    }
    let text = format!("{} is of type `{wanted}`, and the value of type `{}`", what(), value.type_code());
    Err(bad_param(text, completed))
}

#[cold]
fn bad_param(text: String, completed: CompletionStatus) -> SystemException {
    SystemException::bad_param().completed(completed).with_reason(text)
}
