//! The errors of a connection and of its calls, each with its completion status and system exception.

use std::error::Error;
use std::fmt;
use std::io;

use giop_codec::DecodeError;
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{HeaderError, MessageType};

use crate::hits::Limit;

/// Input that violates GIOP or a limit of this side. The connection is closed with MessageError.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The twelve bytes at the position of a message header are not a valid header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A message exceeds the size limit.
    #[error("a message of {size} bytes exceeds the limit of {limit} bytes: raise `Limits::max_message_size`")]
    TooLarge {
        /// The number of bytes that were announced or received.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The data after the message header does not decode.
    #[error("the header of a {kind:?} message does not decode: {error}")]
    Malformed {
        /// The type of the message.
        kind: MessageType,
        /// The decoding error.
        error: DecodeError,
    },
    /// A message of a type that this side does not accept.
    #[error("a {0:?} message was received, but this side does not accept it")]
    Unexpected(MessageType),
    /// The `more fragments` flag is set in a message whose type must not be fragmented.
    #[error("a {0:?} message must not be fragmented")]
    NotFragmentable(MessageType),
    /// A GIOP 1.1 fragment continues no message, or two fragmented messages with the same id overlap.
    #[error("a fragment continues no message, or two fragmented messages with the same id overlap")]
    FragmentOrder,
    /// The version or byte order of a fragment differs from that of its message.
    #[error("a fragment differs from its message in version or byte order")]
    FragmentMismatch,
    /// Too many messages are incomplete.
    #[error("more than {limit} messages are incomplete: raise `Limits::max_fragmented`")]
    TooManyFragmented {
        /// The limit in force.
        limit: usize,
    },
    /// The incomplete messages have too many bytes.
    #[error("the incomplete messages exceed {limit} bytes: raise `Limits::max_fragment_memory`")]
    FragmentMemory {
        /// The limit in force.
        limit: usize,
    },
}

impl ProtocolError {
    /// Returns the limit of this side that was exceeded. `None` means that the peer violated GIOP.
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

/// An input or output error that can be copied into the error of each call that it makes fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// The kind of the error.
    pub kind: io::ErrorKind,
    /// The error number of the operating system, if the error came from it.
    pub os_code: Option<i32>,
}

/// A refusal of the connection by the peer, before any message was exchanged. The peer has executed nothing.
/// As the inner error of an [`io::Error`], it distinguishes a refusal from other failures to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerRefusal(
    /// The reason, in words.
    pub &'static str,
);

/// The action for which a peer took too long, so that the connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPeer {
    /// Sending the first message header after the connection was accepted.
    FirstHeader,
    /// Sending the rest of a message.
    Message,
    /// Accepting the data that is queued for it.
    Write,
    /// Accepting replies, while other connections need the memory that they occupy.
    QueuedReplies,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer sent CloseConnection. It has executed no request that it has not answered.
    PeerClosed,
    /// The peer sent MessageError, because it did not understand a message.
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
    /// The peer left more than this number of bytes of answers to refused requests unread.
    Unread(usize),
    /// The peer sent more than this number of control or unexpected messages in a second.
    Flood(u32),
}

/// The part of a request that was sent when its call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentPart {
    /// Nothing was sent.
    Nothing,
    /// A part of the request was sent. The peer cannot have executed it.
    Partly,
    /// The whole request was sent.
    Whole,
}

/// The reason why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The deadline of the call passed.
    Timeout,
    /// The peer sent CloseConnection without an answer to the request. It did not execute the request.
    Closed,
    /// The connection was lost.
    Lost(IoFailure),
    /// The peer refused the connection.
    Refused(PeerRefusal),
    /// The peer sent something that violates GIOP or a limit of this side.
    Protocol(ProtocolError),
    /// The header of the reply does not decode.
    BadReply(DecodeError),
    /// The peer sent MessageError.
    PeerError,
    /// This side closed the connection.
    LocalClose,
    /// All request ids of the connection are in use.
    TooManyCalls,
}

/// A failed call, with the part of its request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The reason why the call failed.
    pub kind: CallErrorKind,
    /// The part of the request that was sent.
    pub sent: SentPart,
}

impl CallError {
    pub(crate) fn unsent(kind: CallErrorKind) -> Self {
        Self { kind, sent: SentPart::Nothing }
    }

    /// Returns the first error of this type in the chain of sources that begins with `error`.
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

    /// Returns the limit of this side that made the call fail, if any. A timeout does not count.
    pub fn limit(&self) -> Option<Limit> {
        match &self.kind {
            CallErrorKind::Protocol(error) => error.limit(),
            CallErrorKind::BadReply(error) => Limit::of_decoding(error),
            _ => None,
        }
    }

    /// Returns whether the operation was executed ("Completion status").
    ///
    /// * `COMPLETED_NO`: at most a part of the request was sent, or the peer refused the connection or sent
    ///   CloseConnection without an answer.
    /// * `COMPLETED_YES`: a reply was received, but its header does not decode.
    /// * `COMPLETED_MAYBE`: all other cases.
    pub fn completed(&self) -> CompletionStatus {
        match (self.kind, self.sent) {
            (CallErrorKind::BadReply(_), _) => CompletionStatus::Yes,
            (CallErrorKind::Closed | CallErrorKind::Refused(_), _)
            | (_, SentPart::Nothing | SentPart::Partly) => CompletionStatus::No,
            (_, SentPart::Whole) => CompletionStatus::Maybe,
        }
    }

    /// Returns whether the request may be sent over another connection, because it was not executed.
    pub fn is_retryable(&self) -> bool {
        let is_hopeless = matches!(
            self.kind,
            CallErrorKind::Timeout | CallErrorKind::TooManyCalls | CallErrorKind::Refused(_)
        );
        self.completed() == CompletionStatus::No && !is_hopeless
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
            Self::PeerClosed => f.write_str("the peer closed the connection with CloseConnection"),
            Self::PeerMessageError => f.write_str("the peer sent MessageError"),
            Self::Eof => f.write_str("the peer closed the connection without CloseConnection"),
            Self::Io(failure) => write!(f, "the connection failed: {failure}"),
            Self::Refused(refused) => write!(f, "the peer refused the connection: {refused}"),
            Self::Local => f.write_str("this side closed the connection"),
            Self::Idle => f.write_str("the connection was idle for too long: raise `Limits::idle_timeout`"),
            Self::Unanswered(calls) => write!(
                f,
                "consecutive calls ({calls}) timed out without any byte from the peer: raise `Limits::max_unanswered`"
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
                write!(f, "the peer left more than {limit} bytes of refusals unread: raise `Limits::max_backlog`")
            }
            Self::Flood(limit) => write!(
                f,
                "the peer sent more than {limit} CancelRequests, LocateRequests and unexpected messages in a second: raise `Limits::max_control_rate`"
            ),
        }
    }
}

impl Error for CloseReason {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CallErrorKind::Timeout => f.write_str("the deadline passed")?,
            CallErrorKind::Closed => f.write_str("the peer closed the connection with CloseConnection")?,
            CallErrorKind::Lost(failure) => write!(f, "the connection was lost: {failure}")?,
            CallErrorKind::Refused(refused) => write!(f, "the peer refused the connection: {refused}")?,
            CallErrorKind::Protocol(error) => write!(f, "{}{error}", fault_prefix(error))?,
            CallErrorKind::BadReply(error) => write!(f, "the header of the reply does not decode: {error}")?,
            CallErrorKind::PeerError => f.write_str("the peer sent MessageError")?,
            CallErrorKind::LocalClose => f.write_str("this side closed the connection")?,
            CallErrorKind::TooManyCalls => f.write_str("too many calls are pending on this connection")?,
        }
        f.write_str(match self.sent {
            SentPart::Nothing => " before any of the request was sent",
            SentPart::Partly => " after a part of the request was sent",
            SentPart::Whole => " after the request was sent",
        })
    }
}

impl Error for CallError {}

/// Returns the text before a protocol error, which is empty if a limit was exceeded.
fn fault_prefix(error: &ProtocolError) -> &'static str {
    if error.limit().is_some() { "" } else { "the peer violated the protocol: " }
}
