//! Message bodies in encoded form, for forwarding.

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::{ByteOrder, Version};

use super::{Arguments, Body, IncomingRequest, Reply};
use crate::frame::MessageLayout;

/// The arguments of a request or the results of a reply as encoded bytes, which are views of the message,
/// with the properties needed for forwarding. They have the same meaning in another message of the same byte
/// order, version and code sets, if they start at the same [`phase`](Self::phase).
#[derive(Debug, Clone)]
pub struct RawBody {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    phase: u8,
    fragmented: bool,
    parts: Vec<BodyPart>,
}

#[derive(Debug, Clone)]
struct BodyPart {
    octets: Bytes,
    /// True if it is all the elements of a sequence.
    block: bool,
}

impl RawBody {
    fn of(body: &Body) -> Self {
        let mut raw = Self {
            order: body.order,
            version: body.version,
            code_sets: body.code_sets,
            phase: (body.at % 8) as u8,
            fragmented: matches!(body.pieces.as_deref(), Some(MessageLayout::Fragments(_))),
            parts: Vec::with_capacity(1),
        };
        let mut header = body.at as usize;
        let mut push = |octets: Bytes, block| {
            let skipped = header.min(octets.len());
            header -= skipped;
            if skipped < octets.len() {
                raw.parts.push(BodyPart { octets: octets.slice(skipped..), block });
            }
        };
        match body.pieces.as_deref() {
            Some(MessageLayout::Segments(segments)) => {
                segments.shared(&body.message).for_each(|(octets, block)| push(octets, block));
            }
            _ => push(body.message.clone(), false),
        }
        if raw.is_empty() {
            // An empty body has no padding before it.
            raw.phase = 0;
        }
        raw
    }

    /// Returns the byte order of its values.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the GIOP version whose rules its values follow.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the code sets of its text.
    #[must_use]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Returns its offset from the start of the message, modulo 8. 0 in GIOP 1.2, and if it is empty.
    #[must_use]
    pub fn phase(&self) -> usize {
        self.phase.into()
    }

    /// Returns whether it was received in GIOP 1.1 fragments whose values may be aligned separately: see
    /// [`Reply::pieces`]. Such a body cannot be forwarded.
    #[must_use]
    pub fn is_fragmented(&self) -> bool {
        self.fragmented
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.octets.len()).sum()
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns its bytes in order. They are one piece, unless blocks were received into buffers of their own.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().map(|part| &part.octets)
    }

    /// Appends it to another message. Parts of at least the encoder's chunk threshold are not copied.
    pub fn put(&self, e: &mut Encoder) {
        for BodyPart { octets, block } in &self.parts {
            match block {
                true => e.put_shared_ref(octets),
                false => e.put_shared_part(octets.clone()),
            }
        }
    }
}

impl IncomingRequest {
    /// Returns the encoded arguments. Empty after [`take_arguments`](Self::take_arguments).
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Arguments {
    /// Returns the encoded arguments.
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Reply {
    /// Returns the encoded results or exception.
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}
