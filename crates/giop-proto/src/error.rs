//! What can go wrong with a connection and with a call on it, and the one table from there to completion status
//! and system exception.

use std::error::Error;
use std::fmt;
use std::io;

use giop_codec::DecodeError;
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{HeaderError, MessageType};

use crate::hits::Limit;

/// Something that a peer sent and GIOP or a limit of this side forbids. It is answered by MessageError, and the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The twelve octets where a message header must stand are none.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A message over the limit that can not be skipped.
    #[error(
        "a message of {size} bytes came, and this side takes at most {limit}: allow more by `Limits::max_message_size`"
    )]
    TooLarge {
        /// The octets announced or received.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
    /// What stands behind the message header does not decode.
    #[error("{} header does not decode: {error}", name(*kind))]
    Malformed {
        /// The type of the message.
        kind: MessageType,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A message that this side of the connection must not get.
    #[error("{} came to a side that takes none", name(*.0))]
    Unexpected(MessageType),
    /// The `more fragments` flag on a message that may not be fragmented.
    #[error("{} must not be fragmented", name(*.0))]
    NotFragmentable(MessageType),
    /// A fragment that continues no message, or another message before the last fragment (GIOP 1.1).
    #[error("fragments of a GIOP 1.1 message do not follow each other")]
    FragmentOrder,
    /// A fragment whose version or byte order is not that of its message.
    #[error("fragment differs from its message in version or byte order")]
    FragmentMismatch,
    /// Too many incomplete messages.
    #[error("more than {limit} messages came in fragments at a time: allow more by `Limits::max_fragmented`")]
    TooManyFragmented {
        /// The limit in force.
        limit: usize,
    },
    /// Too many octets in incomplete messages.
    #[error(
        "fragments of more than {limit} bytes came before their messages were whole: allow more by `Limits::max_fragment_memory`"
    )]
    FragmentMemory {
        /// The limit in force.
        limit: usize,
    },
}

impl ProtocolError {
    /// The limit of this side that was hit, if it is one: then the peer did nothing that GIOP forbids.
    #[must_use]
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

/// An error of the operating system, small enough to be copied to every call that it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// Its kind.
    pub kind: io::ErrorKind,
    /// The system's number, where it came from there.
    pub os_code: Option<i32>,
}

/// The peer accepts nothing of this side, and says so before anything else: it has executed nothing. Inside of an
/// [`io::Error`] it is told from other failures of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(
    /// Why, in words.
    pub &'static str,
);

/// Which timer a peer was too slow for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPeer {
    /// The first message header after the connection was accepted.
    FirstHeader,
    /// The rest of a message.
    Message,
    /// Taking what is queued for it.
    Write,
    /// Taking replies, while others wait for the memory that they take.
    Crowded,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer sent CloseConnection: it has executed nothing that it has not answered.
    PeerClosed,
    /// The peer sent MessageError: it could make nothing of what it got.
    PeerMessageError,
    /// The stream ended without CloseConnection.
    Eof,
    /// Reading or writing failed.
    Io(IoFailure),
    /// The peer accepted nothing.
    Refused(Refused),
    /// This side closed.
    Local,
    /// Nothing happened for the idle timeout.
    Idle,
    /// So many calls in a row timed out while not a byte came from the peer.
    Unanswered(u32),
    /// The peer broke the protocol or a limit.
    Protocol(ProtocolError),
    /// The peer was too slow.
    SlowPeer(SlowPeer),
    /// The peer sent requests that had to be refused and left so many octets of refusals unread.
    Unread(usize),
    /// The peer sent more CancelRequests, LocateRequests and stray messages than this many a second.
    Flood(u32),
}

/// How much of a request had left when its call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No octet.
    Nothing,
    /// Some of it: the peer can not have dispatched it.
    Partly,
    /// All of it.
    Whole,
}

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// Its deadline passed.
    Timeout,
    /// The peer closed in good order: it did not execute the request.
    Closed,
    /// The connection was lost.
    Lost(IoFailure),
    /// The peer accepted nothing, not even the connection.
    Refused(Refused),
    /// The peer sent something that ended the connection.
    Protocol(ProtocolError),
    /// The header of the reply does not decode.
    BadReply(DecodeError),
    /// The peer answered by MessageError.
    PeerError,
    /// This side closed the connection.
    LocalClose,
    /// All ids of the connection are waiting for replies.
    TooManyCalls,
}

/// A call that failed, and how far its request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError {
    /// What happened.
    pub kind: CallErrorKind,
    /// What had been sent.
    pub sent: Sent,
}

impl CallError {
    /// The error of this kind among the causes of a system exception, or of another error: the first one, if any.
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

    /// The limit of this side that ended the call, if one did.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        match &self.kind {
            CallErrorKind::Protocol(error) => error.limit(),
            CallErrorKind::BadReply(error) => Limit::of_decoding(error),
            _ => None,
        }
    }

    /// Whether the operation was executed ("Completion status").
    ///
    /// A request not written whole, or one that the peer left unanswered by closing in good order, was not; one whose
    /// reply came, but does not decode, was; of all others nobody can tell.
    #[must_use]
    pub fn completed(&self) -> CompletionStatus {
        match (self.kind, self.sent) {
            (CallErrorKind::BadReply(_), _) => CompletionStatus::Yes,
            (CallErrorKind::Closed | CallErrorKind::Refused(_), _) | (_, Sent::Nothing | Sent::Partly) => {
                CompletionStatus::No
            }
            (_, Sent::Whole) => CompletionStatus::Maybe,
        }
    }

    /// Whether the same request may be sent again, on another connection, without a risk that it is executed twice.
    #[must_use]
    pub fn retryable(&self) -> bool {
        let hopeless = matches!(
            self.kind,
            CallErrorKind::Timeout | CallErrorKind::TooManyCalls | CallErrorKind::Refused(_)
        );
        self.completed() == CompletionStatus::No && !hopeless
    }

    /// The system exception for the caller, with this error as its cause.
    #[cold]
    #[must_use]
    pub fn into_system_exception(self) -> SystemException {
        use SystemExceptionKind::{CommFailure, ImpLimit, Marshal, NoPermission, Timeout, Transient};
        let (kind, minor) = match (self.kind, self.sent) {
            (CallErrorKind::Timeout, Sent::Whole) => (Timeout, minor::TIMEOUT_REPLY_END),
            (CallErrorKind::Timeout, _) => (Timeout, minor::TIMEOUT_REQUEST_END),
            (CallErrorKind::BadReply(_), _) => (Marshal, MinorCode::NONE),
            (CallErrorKind::TooManyCalls, _) => (Transient, minor::TRANSIENT_DISCARDED),
            (CallErrorKind::Protocol(error), _) if error.limit().is_some() => (ImpLimit, MinorCode::NONE),
            (CallErrorKind::Refused(_), _) => (NoPermission, MinorCode::NONE),
            (CallErrorKind::Closed, _) | (_, Sent::Nothing) => (Transient, MinorCode::NONE),
            (_, Sent::Partly | Sent::Whole) => (CommFailure, MinorCode::NONE),
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
    /// What a call that still waited is told.
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
            Self::PeerMessageError => f.write_str("the peer answered by MessageError"),
            Self::Eof => f.write_str("the peer closed the connection without CloseConnection"),
            Self::Io(failure) => write!(f, "the connection failed: {failure}"),
            Self::Refused(refused) => write!(f, "the peer refused the connection: {refused}"),
            Self::Local => f.write_str("the connection was closed on this side"),
            Self::Idle => f.write_str("the connection was idle: `Limits::idle_timeout` keeps it longer"),
            Self::Unanswered(calls) => write!(
                f,
                "{calls} calls in a row timed out while nothing came from the peer: `Limits::max_unanswered` allows more"
            ),
            Self::Protocol(error) => write!(f, "{}{error}", blame(error)),
            Self::SlowPeer(SlowPeer::FirstHeader) => {
                f.write_str("no message came in time: `Limits::first_header_timeout` waits longer")
            }
            Self::SlowPeer(SlowPeer::Message) => f.write_str(
                "the rest of a message did not come in time: `Limits::message_timeout` and `Limits::min_message_rate` decide",
            ),
            Self::SlowPeer(SlowPeer::Write) => {
                f.write_str("the peer took nothing of what was sent: `Limits::write_timeout` waits longer")
            }
            Self::SlowPeer(SlowPeer::Crowded) => f.write_str(
                "the peer took its replies too slowly while all connections had too many queued: `OrbBuilder::pool_cap` allows more",
            ),
            Self::Unread(limit) => {
                write!(f, "the peer left {limit} octets of refusals unread: raise it by `Limits::max_backlog`")
            }
            Self::Flood(limit) => write!(
                f,
                "the peer sent over {limit} cancel, locate and stray messages in a second: raise it by `Limits::max_control_rate`"
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
            CallErrorKind::Protocol(error) => write!(f, "{}{error}", blame(error))?,
            CallErrorKind::BadReply(error) => write!(f, "the reply's header does not decode: {error}")?,
            CallErrorKind::PeerError => f.write_str("the peer answered by MessageError")?,
            CallErrorKind::LocalClose => f.write_str("the connection is closed on this side")?,
            CallErrorKind::TooManyCalls => f.write_str("too many calls wait on this connection")?,
        }
        f.write_str(match self.sent {
            Sent::Nothing => " before any of the request was sent",
            Sent::Partly => " when part of the request was sent",
            Sent::Whole => " after the request was sent",
        })
    }
}

impl Error for CallError {}

/// What an error of a message begins with: over a limit of this side the peer did nothing wrong.
fn blame(error: &ProtocolError) -> &'static str {
    if error.limit().is_some() { "" } else { "the peer broke the protocol: " }
}

/// The OMG's name of a message type.
fn name(kind: MessageType) -> &'static str {
    match kind {
        MessageType::Request => "Request",
        MessageType::Reply => "Reply",
        MessageType::CancelRequest => "CancelRequest",
        MessageType::LocateRequest => "LocateRequest",
        MessageType::LocateReply => "LocateReply",
        MessageType::CloseConnection => "CloseConnection",
        MessageType::MessageError => "MessageError",
        MessageType::Fragment => "Fragment",
    }
}
