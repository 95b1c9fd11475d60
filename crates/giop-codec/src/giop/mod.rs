//! GIOP messages: headers, service contexts and bodies of the eight message types in versions 1.0, 1.1 and
//! 1.2.
//!
//! To write a message, call [`put_message_header`], one of the `encode` methods, for a body [`begin_body`]
//! and the values, then [`finish_message`]. To read a message, call [`MessageHeader::decode`] and
//! [`Message::decode`], or decode the whole message as [`RequestMessage`] or [`ReplyMessage`]. Headers borrow
//! from the message: a request whose target is an object key is decoded without an allocation.

mod bidir;
mod blocks;
mod context;
mod header;
mod locate;
mod message;
mod owned;
mod reply;
mod request;
mod target;

pub use bidir::{BiDirIiopServiceContext, ListenPoint, MAX_LISTEN_POINTS};
pub use blocks::{BlockList, MAX_BLOCK_HEAD_BYTES, MAX_BLOCKS, MIN_BLOCK_BYTES, announce_blocks};
pub use context::{ContextId, ServiceContext, ServiceContextRef, ServiceContexts, ServiceContextsIter};
pub use header::{HeaderError, MessageHeader, MessageType};
pub use locate::{LocateReplyHeader, LocateRequestHeader, LocateStatus};
pub use message::{
    CancelRequest, FragmentHeader, Message, announce_message, begin_body, enter_body, finish_message,
    put_message_header,
};
pub use owned::{ReplyMessage, RequestMessage};
pub use reply::{ReplyHeader, ReplyHeaderLayout, ReplyStatus, put_exception_reply};
pub use request::{RequestHeader, RequestHeaderLayout, RequestTemplate, ResponseFlags, response_word};
pub use target::{AddressingDisposition, RequestId, TargetAddress, TargetError, TargetReference};

pub use crate::ior::ObjectKey;

/// The maximum number of service contexts in a message; more is `MARSHAL`.
pub const MAX_SERVICE_CONTEXTS: usize = 64;
/// The maximum length of an object key in bytes; longer is `OBJECT_NOT_EXIST`.
pub const MAX_OBJECT_KEY_BYTES: usize = 64 * 1024;
/// The maximum length of an operation name in bytes; longer is `MARSHAL`.
pub const MAX_OPERATION_NAME_BYTES: usize = 1024;
