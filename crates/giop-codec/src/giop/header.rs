//! The twelve-byte header of every GIOP message.

use crate::{ByteOrder, Version};

/// The flag bit that tells that more fragments of this message follow (GIOP 1.1 and later).
const MORE_FRAGMENTS: u8 = 0x02;

/// The type of a GIOP message, with its number on the wire.
///
/// Source clause: "GIOP Message Formats / GIOP Message Header".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageType {
    /// A call, from client to server.
    Request = 0,
    /// The reply to a Request.
    Reply = 1,
    /// The client no longer awaits a reply.
    CancelRequest = 2,
    /// The client asks where an object is.
    LocateRequest = 3,
    /// The reply to a LocateRequest.
    LocateReply = 4,
    /// The sender closes the connection in an orderly way. Requests without a reply were not processed.
    CloseConnection = 5,
    /// The sender cannot parse a message that it received.
    MessageError = 6,
    /// A further fragment of a message (GIOP 1.1 and later).
    Fragment = 7,
}

impl MessageType {
    /// Returns the type with this number, or `None` if it is greater than 7.
    pub const fn from_wire(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Request,
            1 => Self::Reply,
            2 => Self::CancelRequest,
            3 => Self::LocateRequest,
            4 => Self::LocateReply,
            5 => Self::CloseConnection,
            6 => Self::MessageError,
            7 => Self::Fragment,
            _ => return None,
        })
    }

    /// Returns whether a message of this type may continue in fragments in this version.
    pub const fn may_fragment(self, version: Version) -> bool {
        match version {
            Version::V1_0 => false,
            Version::V1_1 => matches!(self, Self::Request | Self::Reply | Self::Fragment),
            Version::V1_2 => {
                !matches!(self, Self::CancelRequest | Self::CloseConnection | Self::MessageError)
            }
        }
    }
}

/// The message header: version, byte order, fragment flag, type and size.
///
/// This type does not limit the size of a message, but connections do.
/// Source clause: "GIOP Message Formats / GIOP Message Header".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The version of this message. Messages of one connection may have different versions.
    pub version: Version,
    /// The byte order of `size` and of everything after the header.
    pub order: ByteOrder,
    /// Whether fragments of this message follow. Never set in GIOP 1.0.
    pub more_fragments: bool,
    /// The type of the message.
    pub kind: MessageType,
    /// Number of bytes after the header.
    pub size: u32,
}

impl MessageHeader {
    /// The length of the header in bytes.
    pub const LEN: usize = 12;
    /// The offset of `size` in the header.
    pub const SIZE_AT: usize = 8;
    /// The first four bytes of every message.
    pub const MAGIC: [u8; 4] = *b"GIOP";

    /// Creates a header of an unfragmented message. The size is 0 and must be set later.
    pub const fn new(version: Version, order: ByteOrder, kind: MessageType) -> Self {
        Self { version, order, more_fragments: false, kind, size: 0 }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [g, i, o, p] = Self::MAGIC;
        let flag = if self.more_fragments && self.version > Version::V1_0 { MORE_FRAGMENTS } else { 0 };
        let [a, b, c, d] = match self.order {
            ByteOrder::Big => self.size.to_be_bytes(),
            ByteOrder::Little => self.size.to_le_bytes(),
        };
        [g, i, o, p, 1, self.version.minor(), self.order.flag() | flag, self.kind as u8, a, b, c, d]
    }

    /// Reads a header.
    ///
    /// Flag bits other than 0 and 1 are ignored, because some peers set them. In GIOP 1.0, where the flags
    /// are a boolean, bit 1 is ignored as well.
    ///
    /// # Errors
    /// The bytes do not begin with `GIOP`, the version is not 1.0 to 1.2, the type is greater than 7, or the
    /// type is `Fragment` in GIOP 1.0. The receiver of such a header must send MessageError in its highest
    /// version and close the connection.
    #[inline]
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, HeaderError> {
        let [g, i, o, p, major, minor, flags, kind, a, b, c, d] = *bytes;
        if [g, i, o, p] != Self::MAGIC {
            return Err(HeaderError::Magic([g, i, o, p]));
        }
        let version = match (major, Version::from_minor(minor)) {
            (1, Some(version)) => version,
            _ => return Err(HeaderError::Version { major, minor }),
        };
        let kind = match MessageType::from_wire(kind) {
            Some(MessageType::Fragment) if version == Version::V1_0 => {
                return Err(HeaderError::FragmentIn1_0);
            }
            Some(kind) => kind,
            None => return Err(HeaderError::Type(kind)),
        };
        let order = ByteOrder::from_flag(flags);
        let size = match order {
            ByteOrder::Big => u32::from_be_bytes([a, b, c, d]),
            ByteOrder::Little => u32::from_le_bytes([a, b, c, d]),
        };
        let more_fragments = version > Version::V1_0 && flags & MORE_FRAGMENTS != 0;
        Ok(Self { version, order, more_fragments, kind, size })
    }
}

/// The reason why twelve bytes are not a GIOP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The first four bytes are not `GIOP`.
    #[error("{}", wrong_magic(.0))]
    Magic([u8; 4]),
    /// The version is not supported by zorb.
    #[error("GIOP {major}.{minor} is not supported (1.0 to 1.2 are)")]
    Version {
        /// The major number that was received.
        major: u8,
        /// The minor number that was received.
        minor: u8,
    },
    /// The message type does not exist.
    #[error("GIOP message type {0} does not exist (0 to 7 do)")]
    Type(u8),
    /// The type is `Fragment` in GIOP 1.0, which does not support fragments.
    #[error("the peer sent a Fragment in GIOP 1.0, which does not support fragments")]
    FragmentIn1_0,
}

fn wrong_magic(magic: &[u8; 4]) -> String {
    match magic {
        [0x16, 3, ..] => {
            "the peer sent a TLS handshake to a port for plain IIOP: let the client use a reference that this \
             server published, or listen on ssliop:// too"
                .to_owned()
        }
        other => format!("message starts with \"{}\" instead of \"GIOP\"", other.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: giop.header.version, giop.header.byte_order, giop.header.more_fragments, giop.header.type
    // clause: giop.header.size
    #[test]
    fn every_combination_round_trips() {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for order in [ByteOrder::Big, ByteOrder::Little] {
                for kind in (0..=7).filter_map(MessageType::from_wire) {
                    for more_fragments in [false, true] {
                        let header =
                            MessageHeader { version, order, more_fragments, kind, size: 0x0102_0304 };
                        let decoded = MessageHeader::decode(&header.encode());
                        if version == Version::V1_0 && kind == MessageType::Fragment {
                            assert_eq!(decoded, Err(HeaderError::FragmentIn1_0));
                        } else {
                            let more_fragments = more_fragments && version > Version::V1_0;
                            assert_eq!(decoded, Ok(MessageHeader { more_fragments, ..header }));
                        }
                    }
                }
            }
        }
    }

    // clause: giop.header.magic, giop.header.version, giop.header.type
    #[test]
    fn refuses_what_is_not_giop_and_says_why() {
        let decode = |text: &[u8; 12]| MessageHeader::decode(text).map_err(|e| e.to_string());
        assert_eq!(decode(b"HTTP/1.1 200"), Err("message starts with \"HTTP\" instead of \"GIOP\"".into()));
        assert_eq!(
            decode(b"GIOP\x02\0\0\0\0\0\0\0"),
            Err("GIOP 2.0 is not supported (1.0 to 1.2 are)".into())
        );
        assert_eq!(
            decode(b"GIOP\x01\x03\0\0\0\0\0\0"),
            Err("GIOP 1.3 is not supported (1.0 to 1.2 are)".into())
        );
        assert_eq!(
            decode(b"GIOP\x01\x02\0\x09\0\0\0\0"),
            Err("GIOP message type 9 does not exist (0 to 7 do)".into())
        );
    }

    // clause: giop.header.reserved_flags
    #[test]
    fn ignores_unknown_flag_bits() {
        let header = MessageHeader::decode(b"GIOP\x01\x02\x81\0\x05\0\0\0");
        assert_eq!(header.map(|h| (h.order, h.more_fragments, h.size)), Ok((ByteOrder::Little, false, 5)));
        let old = MessageHeader::decode(b"GIOP\x01\x00\x02\0\0\0\0\x05");
        assert_eq!(old.map(|h| (h.order, h.more_fragments, h.size)), Ok((ByteOrder::Big, false, 5)));
    }
}
