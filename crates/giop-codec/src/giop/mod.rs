//! GIOP messages: headers, service contexts and bodies of the eight message types in versions 1.0, 1.1 and 1.2.
//!
//! A message is written as [`put_message_header`], one of the `encode` methods, for a body [`begin_body`] and the values, then
//! [`finish_message`]; it is read by [`MessageHeader::decode`] and [`Message::decode`], or kept as a whole by
//! [`RequestMessage`] and [`ReplyMessage`]. Decoding borrows: a request without odd addressing costs no allocation.

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
pub use blocks::{BlockList, MAX_BLOCK_HEAD, MAX_BLOCKS, MIN_BLOCK, announce_blocks};
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
pub use target::{AddressingDisposition, ObjectKey, RequestId, TargetAddress, TargetError, TargetReference};

/// Most service contexts that a message may have; more is `MARSHAL`.
pub const MAX_SERVICE_CONTEXTS: usize = 64;
/// Longest object key in octets; longer is `OBJECT_NOT_EXIST`.
pub const MAX_OBJECT_KEY: usize = 64 * 1024;
/// Longest operation name in octets; longer is `MARSHAL`.
pub const MAX_OPERATION: usize = 1024;
