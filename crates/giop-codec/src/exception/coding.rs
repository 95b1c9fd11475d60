//! Conversions of encoding and decoding errors into system exceptions.

use super::SystemExceptionKind::{
    BadParam, BadTypecode, CodesetIncompatible, DataConversion, Initialize, InvObjref, Marshal,
};
use super::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::cdr::BoundedContent;
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

impl EncodeError {
    /// Converts to the system exception for the caller, with this error as its source.
    ///
    /// `completed` must be `No` for the arguments of a request, which are encoded before the operation runs,
    /// and `Yes` for results, which are encoded after it. The argument also selects the minor code if it
    /// differs between requests and replies.
    #[cold]
    pub fn to_system_exception(self, completed: CompletionStatus) -> SystemException {
        let in_request = completed != CompletionStatus::Yes;
        let (kind, minor) = match self.kind {
            EncodeErrorKind::CharNotInCodeSet => CHAR_NOT_IN_CODE_SET,
            EncodeErrorKind::NoCodeSet => NO_COMMON_CODE_SET,
            EncodeErrorKind::EmbeddedNul | EncodeErrorKind::BoundExceeded | EncodeErrorKind::NoEndpoint => {
                (BadParam, MinorCode::NONE)
            }
            EncodeErrorKind::IllegalDiscriminator => (BadParam, minor::BAD_PARAM_DISCRIMINATOR),
            EncodeErrorKind::WideInGiop10 => wide_in_giop_1_0(in_request),
            EncodeErrorKind::NoWideCodeSet => no_wide_code_set(in_request),
            EncodeErrorKind::LocalObject => (Marshal, minor::MARSHAL_LOCAL_OBJECT),
            EncodeErrorKind::IncompleteTypeCode => (BadTypecode, minor::BAD_TYPECODE_INCOMPLETE),
            EncodeErrorKind::TooLong
            | EncodeErrorKind::DepthLimit
            | EncodeErrorKind::UnconvertibleCustomState
            | EncodeErrorKind::Unrepresentable => (Marshal, MinorCode::NONE),
        };
        SystemException::new(kind, minor, completed).with_source(self)
    }
}

impl From<EncodeError> for SystemException {
    /// Converts an error in the arguments of a request, with `COMPLETED_NO`.
    fn from(error: EncodeError) -> SystemException {
        error.to_system_exception(CompletionStatus::No)
    }
}

impl DecodeError {
    /// Converts to the system exception for the caller, with this error as its source. It is `MARSHAL` unless
    /// the kind's documentation names another one.
    /// `completed` has the same meaning as in [`EncodeError::to_system_exception`].
    #[cold]
    pub fn to_system_exception(self, completed: CompletionStatus) -> SystemException {
        let in_request = completed != CompletionStatus::Yes;
        let (kind, minor) = match self.kind {
            DecodeErrorKind::CharNotInCodeSet
            | DecodeErrorKind::InvalidText
            | DecodeErrorKind::InvalidWideText => CHAR_NOT_IN_CODE_SET,
            DecodeErrorKind::WideInGiop10 => wide_in_giop_1_0(in_request),
            // The side that decodes a request would encode a reply, so the exception is that of a reply.
            DecodeErrorKind::NoWideCodeSet => no_wide_code_set(!in_request),
            DecodeErrorKind::NoCodeSet => NO_COMMON_CODE_SET,
            DecodeErrorKind::NilReference => (InvObjref, MinorCode::NONE),
            DecodeErrorKind::NoValueFactory => (Marshal, minor::MARSHAL_NO_VALUE_FACTORY),
            DecodeErrorKind::NoOrb => (Initialize, MinorCode::NONE),
            DecodeErrorKind::LocalObject => (Marshal, minor::MARSHAL_LOCAL_OBJECT),
            _ => (Marshal, MinorCode::NONE),
        };
        SystemException::new(kind, minor, completed).with_source(self)
    }
}

const CHAR_NOT_IN_CODE_SET: (SystemExceptionKind, MinorCode) =
    (DataConversion, minor::DATA_CONVERSION_CHARACTER);

const NO_COMMON_CODE_SET: (SystemExceptionKind, MinorCode) =
    (CodesetIncompatible, minor::CODESET_INCOMPATIBLE_NEGOTIATION);

const fn wide_in_giop_1_0(in_request: bool) -> (SystemExceptionKind, MinorCode) {
    let minor = if in_request { minor::MARSHAL_WCHAR_SENT_1_0 } else { minor::MARSHAL_WCHAR_RETURNED_1_0 };
    (Marshal, minor)
}

/// For a request, the exception tells that the reference does not list the server's wide code set. For a
/// reply, it tells that the client has not announced its wide code set.
const fn no_wide_code_set(encodes_request: bool) -> (SystemExceptionKind, MinorCode) {
    if encodes_request {
        (InvObjref, minor::INV_OBJREF_NO_WCHAR)
    } else {
        (BadParam, minor::BAD_PARAM_NO_WCHAR_CODE_SET)
    }
}

/// Checks the length of an argument that is to be sent as a bounded type.
///
/// # Errors
/// `BAD_PARAM` with `COMPLETED_NO` if the argument is longer than `bound`. The reason names the argument.
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
    let reason = format!("argument `{argument}` has {length} {unit}, but its bound is {bound}");
    EncodeError::from(EncodeErrorKind::BoundExceeded)
        .to_system_exception(CompletionStatus::No)
        .with_reason(reason)
}
