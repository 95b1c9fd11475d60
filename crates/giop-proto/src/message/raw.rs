//! Bodies of messages as they came, to be passed on.

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::{ByteOrder, Version};

use super::{Arguments, Body, IncomingRequest, Reply};
use crate::fragments::Pieces;

/// The arguments of a request or the results of a reply as octets, views of the message: what whoever passes them on needs to know
/// of them. They mean the same in another message of the same byte order, version and code sets, where they begin at the same [`phase`](Self::phase).
#[derive(Debug, Clone)]
pub struct RawBody {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    phase: u8,
    fragmented: bool,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    octets: Bytes,
    /// It is all the elements of a sequence.
    block: bool,
}

impl RawBody {
    fn of(body: &Body) -> Self {
        let mut raw = Self {
            order: body.order,
            version: body.version,
            code_sets: body.code_sets,
            phase: (body.at % 8) as u8,
            fragmented: matches!(body.pieces.as_deref(), Some(Pieces::Fragments(_))),
            parts: Vec::with_capacity(1),
        };
        let mut header = body.at as usize;
        let mut push = |octets: Bytes, block| {
            let skipped = header.min(octets.len());
            header -= skipped;
            if skipped < octets.len() {
                raw.parts.push(Part { octets: octets.slice(skipped..), block });
            }
        };
        match body.pieces.as_deref() {
            Some(Pieces::Segments(segments)) => {
                segments.shared(&body.message).for_each(|(octets, block)| push(octets, block));
            }
            _ => push(body.message.clone(), false),
        }
        if raw.is_empty() {
            // Without padding before it.
            raw.phase = 0;
        }
        raw
    }

    /// The byte order that its values are in.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The GIOP version whose rules its values follow.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The code sets that its text is in.
    #[must_use]
    pub fn code_sets(&self) -> CodeSets {
        self.code_sets
    }

    /// Where it begins, modulo 8, counted from the first octet of the message: 0 in GIOP 1.2, and where there is none.
    #[must_use]
    pub fn phase(&self) -> usize {
        self.phase.into()
    }

    /// Whether it came in GIOP 1.1 fragments whose values may be aligned each by itself: see [`Reply::pieces`]. Such a body can not be
    /// passed on.
    #[must_use]
    pub fn is_fragmented(&self) -> bool {
        self.fragmented
    }

    /// How many octets it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.octets.len()).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Its octets in order: one piece, but where blocks came to buffers of their own.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().map(|part| &part.octets)
    }

    /// Puts it into another message. From the encoder's chunk threshold on nothing is copied.
    pub fn put(&self, e: &mut Encoder) {
        for Part { octets, block } in &self.parts {
            match block {
                true => e.put_shared_ref(octets),
                false => e.put_shared_part(octets.clone()),
            }
        }
    }
}

impl IncomingRequest {
    /// The arguments as they came; none behind [`take_arguments`](Self::take_arguments).
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Arguments {
    /// The arguments as they came.
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}

impl Reply {
    /// The results, or the exception, as they came.
    #[must_use]
    pub fn raw_body(&self) -> RawBody {
        RawBody::of(&self.body)
    }
}
