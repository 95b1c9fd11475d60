//! Calls and servants of interfaces that are unknown at compile time: the Dynamic Invocation Interface
//! ([`Request`]) and the Dynamic Skeleton Interface ([`DynServant`]).
//!
//! Arguments and results are [`Any`]s. Their types come from an [`Interface`], or the program declares them
//! for each call.

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

fn is_reference(code: &TypeCode) -> bool {
    match code.kind() {
        TcKind::ObjRef | TcKind::Component | TcKind::Home => true,
        TcKind::Alias => is_reference(&code.unaliased()),
        _ => false,
    }
}

/// Returns BAD_PARAM unless the value may be passed as the type. `what` names the value in the error text.
fn check_type(
    what: impl FnOnce() -> String,
    value: &Any,
    expected: &TypeCode,
    completed: CompletionStatus,
) -> Result<(), SystemException> {
    let code = value.type_code();
    // References of all types have the same encoding.
    if is_reference(code) && is_reference(expected) || expected.equivalent(code) {
        return Ok(());
    }
    let text = format!("{} has type `{expected}`, but its value has type `{code}`", what());
    Err(bad_param(text, completed))
}

#[cold]
fn bad_param(text: String, completed: CompletionStatus) -> SystemException {
    SystemException::bad_param().completed(completed).with_reason(text)
}
