//! GIOP messages: headers, service contexts and bodies of the eight message types in versions 1.0, 1.1 and
//! 1.2.
//!
//! To write a message, call [`put_message_header`] and the `encode` method of a header type. If there is a
//! body, call [`begin_body`] and write the values. Then call [`finish_message`]. To read a message, call
//! [`MessageHeader::decode`] and [`Message::decode`], or decode the whole message as [`RequestMessage`] or
//! [`ReplyMessage`]. Headers borrow from the message, so a request whose target is an object key is decoded
//! without an allocation.

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
pub use blocks::{BlockList, MAX_BLOCK_HEAD_BYTES, MAX_BLOCKS, MIN_BLOCK_BYTES, insert_block_list};
pub use context::{ContextId, ServiceContext, ServiceContextRef, ServiceContexts, ServiceContextsIter};
pub use header::{HeaderError, MessageHeader, MessageType};
pub use locate::{LocateReplyHeader, LocateRequestHeader, LocateStatus};
pub use message::{
    CancelRequest, FragmentHeader, Message, announce_message_size, begin_body, enter_body, finish_message,
    put_message_header,
};
pub use owned::{ReplyMessage, RequestMessage};
pub use reply::{ReplyHeader, ReplyHeaderLayout, ReplyStatus, put_exception_reply};
pub use request::{RequestHeader, RequestHeaderLayout, RequestTemplate, ResponseFlags, response_flags_word};
pub use target::{AddressingDisposition, RequestId, TargetAddress, TargetError, TargetReference};

pub use crate::ior::ObjectKey;

/// The maximum number of service contexts in a message. A message with more is rejected with `MARSHAL`.
pub const MAX_SERVICE_CONTEXTS: usize = 64;
/// The maximum length of an object key. A request with a longer key is rejected with `OBJECT_NOT_EXIST`.
pub const MAX_OBJECT_KEY_BYTES: usize = 64 * 1024;
/// The maximum length of an operation name. A request with a longer name is rejected with `MARSHAL`.
pub const MAX_OPERATION_NAME_BYTES: usize = 1024;
