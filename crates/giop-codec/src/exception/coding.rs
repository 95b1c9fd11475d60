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
    /// `completed` is No for the arguments of a request, which fail to encode before they are sent, and Yes
    /// for results, which fail after the servant has run. It also selects the minor code where requests and
    /// replies have different ones.
    #[cold]
    pub fn system(self, completed: CompletionStatus) -> SystemException {
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
            | EncodeErrorKind::CustomState
            | EncodeErrorKind::Unrepresentable => (Marshal, MinorCode::NONE),
        };
        SystemException::new(kind, minor, completed).with_source(self)
    }
}

impl From<EncodeError> for SystemException {
    /// Converts an error in the arguments of a request: `COMPLETED_NO`.
    fn from(error: EncodeError) -> SystemException {
        error.system(CompletionStatus::No)
    }
}

impl DecodeError {
    /// Converts to the system exception for the caller, with this error as its source. It is `MARSHAL`,
    /// except for kinds whose documentation has another one. `completed` as for [`EncodeError::system`].
    #[cold]
    pub fn system(self, completed: CompletionStatus) -> SystemException {
        let in_request = completed != CompletionStatus::Yes;
        let (kind, minor) = match self.kind {
            DecodeErrorKind::CharNotInCodeSet
            | DecodeErrorKind::InvalidText
            | DecodeErrorKind::InvalidWideText => CHAR_NOT_IN_CODE_SET,
            DecodeErrorKind::WideInGiop10 => wide_in_giop_1_0(in_request),
            // The side that decodes a request encodes its reply.
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

/// The encoder of a request lacks the server's wide code set, which the reference should list. The encoder of
/// a reply lacks the client's, which the client should have announced.
const fn no_wide_code_set(encodes_request: bool) -> (SystemExceptionKind, MinorCode) {
    if encodes_request {
        (InvObjref, minor::INV_OBJREF_NO_WCHAR)
    } else {
        (BadParam, minor::BAD_PARAM_NO_WCHAR_CODE_SET)
    }
}

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
