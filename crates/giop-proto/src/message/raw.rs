//! Message bodies in encoded form, for forwarding.

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::{ByteOrder, Version};

use super::{Arguments, Body, IncomingRequest, Reply};
use crate::frame::MessageLayout;

/// The arguments of a request, or the results or exception of a reply, as encoded bytes, with the properties
/// that are needed to forward them. The bytes have the same meaning in another message if its byte order,
/// version and code sets are the same, and they [start at the same offset modulo 8](Self::start_modulo_8).
#[derive(Debug, Clone)]
pub struct RawBody {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    start_modulo_8: u8,
    is_fragmented: bool,
    parts: Vec<BodyPart>,
}

#[derive(Debug, Clone)]
struct BodyPart {
    bytes: Bytes,
    /// True if the part consists of all elements of a sequence.
    is_block: bool,
}

impl RawBody {
    fn of(body: &Body) -> Self {
        let mut raw = Self {
            order: body.order,
            version: body.version,
            code_sets: body.code_sets,
            start_modulo_8: (body.at % 8) as u8,
            is_fragmented: matches!(body.layout.as_deref(), Some(MessageLayout::Fragments(_))),
            parts: Vec::with_capacity(1),
        };
        let mut header = body.at as usize;
        let mut push = |bytes: Bytes, is_block| {
            let skipped = header.min(bytes.len());
            header -= skipped;
            if skipped < bytes.len() {
                raw.parts.push(BodyPart { bytes: bytes.slice(skipped..), is_block });
            }
        };
        match body.layout.as_deref() {
            Some(MessageLayout::Segments(segments)) => {
                segments.shared_pieces(&body.message).for_each(|(bytes, is_block)| push(bytes, is_block));
            }
            _ => push(body.message.clone(), false),
        }
        if raw.is_empty() {
            // An empty body has no padding before it.
            raw.start_modulo_8 = 0;
        }
        raw
    }

    /// Returns the byte order of the values.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the GIOP version that the encoding follows.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the code sets of text.
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Returns the offset, modulo 8, of the body in its message; 0 in GIOP 1.2 and for an empty body.
    pub fn start_modulo_8(&self) -> usize {
        self.start_modulo_8.into()
    }

    /// Returns whether the body was received in GIOP 1.1 fragments whose values may be aligned separately:
    /// see [`Reply::fragment_offsets`]. Such a body cannot be forwarded.
    pub fn is_fragmented(&self) -> bool {
        self.is_fragmented
    }

    /// Returns the length of the body in bytes.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.bytes.len()).sum()
    }

    /// Returns whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the bytes in order: one part, unless blocks of bulk data have buffers of their own.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().map(|part| &part.bytes)
    }

    /// Appends the body to another message. Copies only parts below the encoder's chunk threshold.
    pub fn put(&self, e: &mut Encoder) {
        for BodyPart { bytes, is_block } in &self.parts {
            match is_block {
                true => e.put_shared_ref(bytes),
                false => e.put_shared_part(bytes.clone()),
            }
        }
    }
}

impl IncomingRequest {
    /// Returns the encoded arguments. Empty after [`take_arguments`](Self::take_arguments).
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Arguments {
    /// Returns the encoded arguments.
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Reply {
    /// Returns the encoded results or exception.
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}
