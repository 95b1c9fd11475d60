//! Checks of arguments before a call.

use super::{CompletionStatus, SystemException};
use crate::cdr::BoundedContent;
use crate::{EncodeError, EncodeErrorKind};

/// Checks the length of an argument of a call before it is sent as a bounded value.
///
/// # Errors
/// `BAD_PARAM`, completion No, if it is longer than `bound`. The reason names the argument, its length and
/// the bound.
pub fn check_argument<S: BoundedContent + ?Sized>(
    content: &S,
    bound: usize,
    argument: &str,
) -> Result<(), SystemException> {
    let length = content.bounded_len();
    if length > bound { Err(too_long(argument, length, S::UNIT, bound)) } else { Ok(()) }
}

#[cold]
fn too_long(argument: &str, length: usize, unit: &str, bound: usize) -> SystemException {
    let reason = format!("argument `{argument}`: {length} {unit}, bound {bound}");
    EncodeError::from(EncodeErrorKind::BoundExceeded).system(CompletionStatus::No).with_reason(reason)
}
