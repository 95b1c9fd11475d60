//! Conversions of encoding and decoding errors into system exceptions.

use super::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

impl EncodeError {
    /// Converts to the system exception for the caller, with this error as its source.
    ///
    /// Arguments of a request fail to encode before anything is sent: `COMPLETED_NO`. Results fail after the
    /// servant has run: `COMPLETED_YES`. Where the minor code differs between requests and replies,
    /// `completed` selects it.
    #[cold]
    pub fn system(self, completed: CompletionStatus) -> SystemException {
        let request = completed != CompletionStatus::Yes;
        let (kind, minor) = match self.kind {
            EncodeErrorKind::CharNotInCodeSet => CHAR_NOT_IN_CODE_SET,
            EncodeErrorKind::NoCodeSet => NOTHING_IN_COMMON,
            EncodeErrorKind::EmbeddedNul | EncodeErrorKind::BoundExceeded | EncodeErrorKind::NoEndpoint => {
                (SystemExceptionKind::BadParam, MinorCode::NONE)
            }
            EncodeErrorKind::IllegalDiscriminator => {
                (SystemExceptionKind::BadParam, minor::BAD_PARAM_DISCRIMINATOR)
            }
            EncodeErrorKind::WideInGiop10 => wide_in_giop_1_0(request),
            EncodeErrorKind::NoWideCodeSet => no_wide_code_set(request),
            EncodeErrorKind::LocalObject => (SystemExceptionKind::Marshal, minor::MARSHAL_LOCAL_OBJECT),
            EncodeErrorKind::IncompleteTypeCode => {
                (SystemExceptionKind::BadTypecode, minor::BAD_TYPECODE_INCOMPLETE)
            }
            EncodeErrorKind::TooLong
            | EncodeErrorKind::DepthLimit
            | EncodeErrorKind::CustomState
            | EncodeErrorKind::Unrepresentable => (SystemExceptionKind::Marshal, MinorCode::NONE),
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
    /// except for kinds that name another one.
    ///
    /// Arguments of a request fail to decode before the servant is called: `COMPLETED_NO`. Results fail after
    /// it has run: `COMPLETED_YES`. Where the minor code differs between requests and replies, `completed`
    /// selects it.
    #[cold]
    pub fn system(self, completed: CompletionStatus) -> SystemException {
        let request = completed != CompletionStatus::Yes;
        let (kind, minor) = match self.kind {
            DecodeErrorKind::CharNotInCodeSet
            | DecodeErrorKind::InvalidText
            | DecodeErrorKind::InvalidWideText => CHAR_NOT_IN_CODE_SET,
            DecodeErrorKind::WideInGiop10 => wide_in_giop_1_0(request),
            // The side that decodes a request encodes its reply.
            DecodeErrorKind::NoWideCodeSet => no_wide_code_set(!request),
            DecodeErrorKind::NoCodeSet => NOTHING_IN_COMMON,
            DecodeErrorKind::NilReference => (SystemExceptionKind::InvObjref, MinorCode::NONE),
            DecodeErrorKind::NoValueFactory => {
                (SystemExceptionKind::Marshal, minor::MARSHAL_NO_VALUE_FACTORY)
            }
            DecodeErrorKind::NoOrb => (SystemExceptionKind::Initialize, MinorCode::NONE),
            DecodeErrorKind::LocalObject => (SystemExceptionKind::Marshal, minor::MARSHAL_LOCAL_OBJECT),
            _ => (SystemExceptionKind::Marshal, MinorCode::NONE),
        };
        SystemException::new(kind, minor, completed).with_source(self)
    }
}

const CHAR_NOT_IN_CODE_SET: (SystemExceptionKind, MinorCode) =
    (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER);

const NOTHING_IN_COMMON: (SystemExceptionKind, MinorCode) =
    (SystemExceptionKind::CodesetIncompatible, minor::CODESET_INCOMPATIBLE_NEGOTIATION);

const fn wide_in_giop_1_0(request: bool) -> (SystemExceptionKind, MinorCode) {
    let minor = if request { minor::MARSHAL_WCHAR_SENT_1_0 } else { minor::MARSHAL_WCHAR_RETURNED_1_0 };
    (SystemExceptionKind::Marshal, minor)
}

/// Returns the exception for a missing wide code set: the client raises `INV_OBJREF` for the server's, the
/// server `BAD_PARAM` for the client's.
const fn no_wide_code_set(client: bool) -> (SystemExceptionKind, MinorCode) {
    if client {
        (SystemExceptionKind::InvObjref, minor::INV_OBJREF_NO_WCHAR)
    } else {
        (SystemExceptionKind::BadParam, minor::BAD_PARAM_NO_WCHAR_CODE_SET)
    }
}
