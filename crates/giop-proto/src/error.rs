//! The errors of a connection and of its calls, each with its completion status and system exception.

use std::error::Error;
use std::fmt;
use std::io;

use giop_codec::DecodeError;
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{HeaderError, MessageType};

use crate::hits::Limit;

/// Input that violates GIOP or a limit of this side. The peer gets MessageError, and the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The twelve bytes at the position of a message header are not a valid header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A message that exceeds the size limit and cannot be skipped.
    #[error(
        "a message of {size} bytes exceeds the limit of this side, {limit}: raise it by `Limits::max_message_size`"
    )]
    TooLarge {
        /// The number of bytes announced or received.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The data after the message header does not decode.
    #[error("{kind:?} header does not decode: {error}")]
    Malformed {
        /// The type of the message.
        kind: MessageType,
        /// The decoding error.
        error: DecodeError,
    },
    /// A message type that this side of the connection must not receive.
    #[error("this side accepts no {0:?}")]
    Unexpected(MessageType),
    /// The `more fragments` flag on a message type that must not be fragmented.
    #[error("{0:?} must not be fragmented")]
    NotFragmentable(MessageType),
    /// A fragment that continues no message, or another message before the last fragment (GIOP 1.1).
    #[error("the fragments of a GIOP 1.1 message are not consecutive")]
    FragmentOrder,
    /// A fragment whose version or byte order is not that of its message.
    #[error("a fragment differs from its message in version or byte order")]
    FragmentMismatch,
    /// Too many incomplete messages.
    #[error("more than {limit} messages are incomplete: raise the limit by `Limits::max_fragmented`")]
    TooManyFragmented {
        /// The limit in force.
        limit: usize,
    },
    /// Too many bytes in incomplete messages.
    #[error("incomplete messages exceed {limit} bytes: raise the limit by `Limits::max_fragment_memory`")]
    FragmentMemory {
        /// The limit in force.
        limit: usize,
    },
}

impl ProtocolError {
    /// Returns the limit of this side that was exceeded, if any. The peer did not violate GIOP then.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooLarge { .. } => Some(Limit::MessageSize),
            Self::TooManyFragmented { .. } => Some(Limit::Fragmented),
            Self::FragmentMemory { .. } => Some(Limit::FragmentMemory),
            Self::Malformed { error, .. } => Limit::of_decoding(error),
            _ => None,
        }
    }
}

/// An error of the operating system. It can be copied into the error of each call that it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// The kind of the error.
    pub kind: io::ErrorKind,
    /// The system's error number, if the error came from the system.
    pub os_code: Option<i32>,
}

/// The peer refused this side before any message was exchanged, so that it executed nothing. As the inner
/// error of an [`io::Error`], it distinguishes a refusal from other failures of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerRefusal(
    /// The reason, in words.
    pub &'static str,
);

/// The action for which a peer took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPeer {
    /// Sending the first message header after the connection was accepted.
    FirstHeader,
    /// Sending the rest of a message.
    Message,
    /// Accepting the data that is queued for it.
    Write,
    /// Accepting replies whose memory other connections need.
    QueuedReplies,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer sent CloseConnection: it has executed no request that it has not answered.
    PeerClosed,
    /// The peer sent MessageError: it did not understand a message.
    PeerMessageError,
    /// The stream ended without CloseConnection.
    Eof,
    /// Reading or writing failed.
    Io(IoFailure),
    /// The peer refused the connection.
    Refused(PeerRefusal),
    /// This side closed the connection.
    Local,
    /// The connection was idle for the idle timeout.
    Idle,
    /// This number of consecutive calls timed out without any byte from the peer.
    Unanswered(u32),
    /// The peer violated the protocol or a limit.
    Protocol(ProtocolError),
    /// The peer was too slow.
    SlowPeer(SlowPeer),
    /// The peer left the answers to refused requests unread: more bytes than this limit.
    Unread(usize),
    /// The peer sent more than this number of CancelRequests, LocateRequests and stray messages in a second.
    Flood(u32),
}

/// The part of a request that was sent when its call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentPart {
    /// No byte.
    Nothing,
    /// A part of it: the peer cannot have dispatched it.
    Partly,
    /// All of it.
    Whole,
}

/// The reason why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The deadline of the call passed.
    Timeout,
    /// The peer sent CloseConnection without an answer to the request: it did not execute the request.
    Closed,
    /// The connection was lost.
    Lost(IoFailure),
    /// The peer refused the connection.
    Refused(PeerRefusal),
    /// The peer sent something that ended the connection.
    Protocol(ProtocolError),
    /// The header of the reply does not decode.
    BadReply(DecodeError),
    /// The peer answered with MessageError.
    PeerError,
    /// This side closed the connection.
    LocalClose,
    /// All request ids of the connection are in use.
    TooManyCalls,
}

/// A failed call, with the part of its request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The reason.
    pub kind: CallErrorKind,
    /// The part of the request that was sent.
    pub sent: SentPart,
}

impl CallError {
    pub(crate) fn unsent(kind: CallErrorKind) -> Self {
        Self { kind, sent: SentPart::Nothing }
    }

    /// Returns the first error of this type among the causes of a system exception or of another error.
    #[must_use]
    pub fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns the limit of this side that ended the call, if any.
    pub fn limit(&self) -> Option<Limit> {
        match &self.kind {
            CallErrorKind::Protocol(error) => error.limit(),
            CallErrorKind::BadReply(error) => Limit::of_decoding(error),
            _ => None,
        }
    }

    /// Returns whether the operation was executed ("Completion status").
    ///
    /// * `COMPLETED_NO`: the request was not written completely, or the peer closed in good order without
    ///   answering it.
    /// * `COMPLETED_YES`: the reply was received, but does not decode.
    /// * `COMPLETED_MAYBE`: all other cases.
    pub fn completed(&self) -> CompletionStatus {
        match (self.kind, self.sent) {
            (CallErrorKind::BadReply(_), _) => CompletionStatus::Yes,
            (CallErrorKind::Closed | CallErrorKind::Refused(_), _)
            | (_, SentPart::Nothing | SentPart::Partly) => CompletionStatus::No,
            (_, SentPart::Whole) => CompletionStatus::Maybe,
        }
    }

    /// Returns whether the request may be sent over another connection without being executed twice.
    pub fn retryable(&self) -> bool {
        let hopeless = matches!(
            self.kind,
            CallErrorKind::Timeout | CallErrorKind::TooManyCalls | CallErrorKind::Refused(_)
        );
        self.completed() == CompletionStatus::No && !hopeless
    }

    /// Returns the system exception for the caller, with this error as its cause.
    #[cold]
    #[must_use]
    pub fn into_system_exception(self) -> SystemException {
        use SystemExceptionKind::{CommFailure, ImpLimit, Marshal, NoPermission, Timeout, Transient};
        let (kind, minor) = match (self.kind, self.sent) {
            (CallErrorKind::Timeout, SentPart::Whole) => (Timeout, minor::TIMEOUT_REPLY_END),
            (CallErrorKind::Timeout, _) => (Timeout, minor::TIMEOUT_REQUEST_END),
            (CallErrorKind::BadReply(_), _) => (Marshal, MinorCode::NONE),
            (CallErrorKind::TooManyCalls, _) => (Transient, minor::TRANSIENT_DISCARDED),
            (CallErrorKind::Protocol(error), _) if error.limit().is_some() => (ImpLimit, MinorCode::NONE),
            (CallErrorKind::Refused(_), _) => (NoPermission, MinorCode::NONE),
            (CallErrorKind::Closed, _) | (_, SentPart::Nothing) => (Transient, MinorCode::NONE),
            (_, SentPart::Partly | SentPart::Whole) => (CommFailure, MinorCode::NONE),
        };
        SystemException::new(kind, minor, self.completed()).with_source(self)
    }
}

impl From<CallError> for SystemException {
    fn from(error: CallError) -> Self {
        error.into_system_exception()
    }
}

impl CloseReason {
    /// Returns the error of the calls that are pending when the connection ends.
    pub(crate) fn call_error(self) -> CallErrorKind {
        match self {
            Self::PeerClosed => CallErrorKind::Closed,
            Self::PeerMessageError => CallErrorKind::PeerError,
            Self::Eof => CallErrorKind::Lost(io::ErrorKind::UnexpectedEof.into()),
            Self::Io(failure) => CallErrorKind::Lost(failure),
            Self::Refused(refused) => CallErrorKind::Refused(refused),
            Self::SlowPeer(_) => CallErrorKind::Lost(io::ErrorKind::TimedOut.into()),
            Self::Local | Self::Idle | Self::Unanswered(_) | Self::Unread(_) | Self::Flood(_) => {
                CallErrorKind::LocalClose
            }
            Self::Protocol(error) => CallErrorKind::Protocol(error),
        }
    }
}

impl From<&io::Error> for IoFailure {
    fn from(error: &io::Error) -> Self {
        Self { kind: error.kind(), os_code: error.raw_os_error() }
    }
}

impl From<io::ErrorKind> for IoFailure {
    fn from(kind: io::ErrorKind) -> Self {
        Self { kind, os_code: None }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.os_code {
            Some(code) => io::Error::from_raw_os_error(code).fmt(f),
            None => self.kind.fmt(f),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerClosed => f.write_str("the peer closed the connection in good order"),
            Self::PeerMessageError => f.write_str("the peer answered with MessageError"),
            Self::Eof => f.write_str("the peer closed the connection without CloseConnection"),
            Self::Io(failure) => write!(f, "the connection failed: {failure}"),
            Self::Refused(refused) => write!(f, "the peer refused the connection: {refused}"),
            Self::Local => f.write_str("the connection was closed on this side"),
            Self::Idle => f.write_str("the connection was idle: raise the limit by `Limits::idle_timeout`"),
            Self::Unanswered(calls) => write!(
                f,
                "{calls} consecutive calls timed out without any byte from the peer: raise the limit by `Limits::max_unanswered`"
            ),
            Self::Protocol(error) => write!(f, "{}{error}", fault_prefix(error)),
            Self::SlowPeer(SlowPeer::FirstHeader) => {
                f.write_str("no message was received in time: raise `Limits::first_header_timeout`")
            }
            Self::SlowPeer(SlowPeer::Message) => f.write_str(
                "the rest of a message was not received in time: raise `Limits::message_timeout` or lower `Limits::min_message_rate`",
            ),
            Self::SlowPeer(SlowPeer::Write) => {
                f.write_str("the peer accepted too little of the data queued for it: raise `Limits::write_timeout`")
            }
            Self::SlowPeer(SlowPeer::QueuedReplies) => f.write_str(
                "the peer accepted its replies too slowly while all connections had too many queued: raise `OrbBuilder::max_receive_memory`",
            ),
            Self::Unread(limit) => {
                write!(f, "the peer left over {limit} bytes of refusals unread: raise the limit by `Limits::max_backlog`")
            }
            Self::Flood(limit) => write!(
                f,
                "the peer sent over {limit} cancel, locate and stray messages in a second: raise the limit by `Limits::max_control_rate`"
            ),
        }
    }
}

impl Error for CloseReason {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CallErrorKind::Timeout => f.write_str("the deadline passed")?,
            CallErrorKind::Closed => f.write_str("the peer closed the connection in good order")?,
            CallErrorKind::Lost(failure) => write!(f, "the connection was lost: {failure}")?,
            CallErrorKind::Refused(refused) => write!(f, "the peer refused the connection: {refused}")?,
            CallErrorKind::Protocol(error) => write!(f, "{}{error}", fault_prefix(error))?,
            CallErrorKind::BadReply(error) => write!(f, "the reply's header does not decode: {error}")?,
            CallErrorKind::PeerError => f.write_str("the peer answered with MessageError")?,
            CallErrorKind::LocalClose => f.write_str("the connection is closed on this side")?,
            CallErrorKind::TooManyCalls => f.write_str("too many calls are pending on this connection")?,
        }
        f.write_str(match self.sent {
            SentPart::Nothing => " before any of the request was sent",
            SentPart::Partly => " when part of the request was sent",
            SentPart::Whole => " after the request was sent",
        })
    }
}

impl Error for CallError {}

/// Returns the prefix for a protocol error. Empty for an exceeded limit: the peer is not at fault then.
fn fault_prefix(error: &ProtocolError) -> &'static str {
    if error.limit().is_some() { "" } else { "the peer broke the protocol: " }
}
