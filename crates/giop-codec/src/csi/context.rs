//! The content of the security service context of requests and replies.

use bytes::Bytes;

use super::identity::IdentityToken;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::giop::{ContextId, ServiceContext, ServiceContextRef};
use crate::ior::{put_octets, read_list, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The maximum number of authorization elements in a context. A context with more is rejected with `MARSHAL`.
pub const MAX_AUTHORIZATION_ELEMENTS: usize = 64;
/// The maximum length of a token. A longer token is rejected with `MARSHAL`.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// A message about the caller's identity. A request [establishes](Self::Establish) a context or
/// [refers](Self::InContext) to one. The reply [accepts](Self::Complete) or [rejects](Self::Error) it.
///
/// Source clause: "Common Secure Interoperability / The Security Attribute Service Context Element Protocol"
/// (`CSI::SASContextBody`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SasContext {
    /// In a request: establishes a context with the identity of the caller.
    Establish(EstablishContext),
    /// In a reply: the server accepted the context.
    Complete {
        /// The client's number of the context.
        client_context_id: u64,
        /// Whether the server stores the context, so that the client may refer to it.
        stateful: bool,
        /// The final token of the authentication mechanism, which is empty for GSSUP.
        final_token: Bytes,
    },
    /// In a reply with `NO_PERMISSION`: the server rejected the context.
    Error {
        /// The client's number of the context.
        client_context_id: u64,
        /// The reason.
        failure: ContextFailure,
        /// The error token of the mechanism, such as a [`LoginError`](super::gssup::LoginError).
        error_token: Bytes,
    },
    /// In a request: refers to the existing context with this number.
    InContext {
        /// The client's number of the context.
        client_context_id: u64,
        /// Whether the server may discard the context.
        may_discard: bool,
    },
}

/// The identity of the caller (`CSI::EstablishContext`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EstablishContext {
    /// The client's number of the context, or 0 if the context is valid only for this request.
    pub client_context_id: u64,
    /// Rights of the caller that an authority has certified.
    pub authorization: Vec<AuthorizationElement>,
    /// The identity on whose behalf the client calls.
    pub identity: IdentityToken,
    /// The client's own identity, as a token of the mechanism in the reference. It may be empty.
    pub authentication: Bytes,
}

/// A certified right (`CSI::AuthorizationElement`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationElement {
    /// The kind of the contents. `0x4f4d0001` stands for an X.509 attribute certificate with its chain.
    pub kind: u32,
    /// The contents.
    pub contents: Bytes,
}

/// The reason why the server rejected a context, as a major and a minor status.
///
/// Source clause: "Common Secure Interoperability / ContextError Values and Exceptions".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextFailure {
    /// The class of the failure.
    pub major: i32,
    /// The case within its class.
    pub minor: i32,
}

impl ContextFailure {
    /// The user, password or certificate is invalid, or the client may not assert the identity.
    pub const INVALID_EVIDENCE: Self = Self { major: 1, minor: 1 };
    /// The server does not accept the mechanism or the form of identity.
    pub const INVALID_MECHANISM: Self = Self { major: 2, minor: 1 };
    /// The request conflicts with the server's policy.
    pub const POLICY_CONFLICT: Self = Self { major: 3, minor: 1 };
    /// There is no context with this number.
    pub const NO_CONTEXT: Self = Self { major: 4, minor: 1 };
}

impl SasContext {
    /// Returns the service context to send.
    ///
    /// # Errors
    /// A part has no encoding; see [`EncodeErrorKind`](crate::EncodeErrorKind).
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::SECURITY_ATTRIBUTE_SERVICE, self)
    }

    /// Reads a received service context. Returns `None` if it has another id.
    ///
    /// # Errors
    /// The data is malformed or exceeds a limit.
    pub fn from_service_context(context: &ServiceContextRef<'_>) -> Result<Option<Self>, DecodeError> {
        (context.id == ContextId::SECURITY_ATTRIBUTE_SERVICE).then(|| context.value()).transpose()
    }
}

impl CdrEncode for SasContext {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            Self::Establish(context) => {
                e.put_i16(0);
                e.put_u64(context.client_context_id);
                e.put_len(context.authorization.len())?;
                for element in &context.authorization {
                    e.put_u32(element.kind);
                    put_octets(e, &element.contents)?;
                }
                context.identity.encode(e)?;
                put_octets(e, &context.authentication)
            }
            Self::Complete { client_context_id, stateful, final_token } => {
                e.put_i16(1);
                e.put_u64(*client_context_id);
                e.put_bool(*stateful);
                put_octets(e, final_token)
            }
            Self::Error { client_context_id, failure, error_token } => {
                e.put_i16(4);
                e.put_u64(*client_context_id);
                e.put_i32(failure.major);
                e.put_i32(failure.minor);
                put_octets(e, error_token)
            }
            Self::InContext { client_context_id, may_discard } => {
                e.put_i16(5);
                e.put_u64(*client_context_id);
                e.put_bool(*may_discard);
                Ok(())
            }
        }
    }
}

impl CdrDecode for SasContext {
    const MIN_SIZE: usize = 11;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind = d.read_i16()?;
        if ![0, 1, 4, 5].contains(&kind) {
            return Err(d.error(DecodeErrorKind::Malformed));
        }
        let client_context_id = d.read_u64()?;
        Ok(match kind {
            0 => {
                let authorization = read_list(d, 8, MAX_AUTHORIZATION_ELEMENTS, |d| {
                    let kind = d.read_u32()?;
                    Ok(AuthorizationElement { kind, contents: read_octets_within(d, MAX_TOKEN_BYTES)? })
                })?;
                let identity = IdentityToken::decode(d)?;
                let authentication = read_octets_within(d, MAX_TOKEN_BYTES)?;
                Self::Establish(EstablishContext {
                    client_context_id,
                    authorization,
                    identity,
                    authentication,
                })
            }
            1 => Self::Complete {
                client_context_id,
                stateful: d.read_bool()?,
                final_token: read_octets_within(d, MAX_TOKEN_BYTES)?,
            },
            4 => {
                let failure = ContextFailure { major: d.read_i32()?, minor: d.read_i32()? };
                Self::Error {
                    client_context_id,
                    failure,
                    error_token: read_octets_within(d, MAX_TOKEN_BYTES)?,
                }
            }
            _ => Self::InContext { client_context_id, may_discard: d.read_bool()? },
        })
    }
}
