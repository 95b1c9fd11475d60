//! CDR, GIOP messages, IORs and code sets for the zorb ORB.

mod order;

pub use order::{ByteOrder, Version};

/// GIOP messages.
pub mod giop {
    mod header;

    pub use header::{HeaderError, MessageHeader, MessageType};

    /// The number that pairs a reply with its request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct RequestId(pub u32);
}
