//! Received anys, whose bytes were not decoded yet.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Any, Form, StoredValue};
use crate::cdr::{CodeSets, Context, DecodeLimits, Decoder, Encoder, InvalidText};
use crate::program::Contents;
use crate::typecode::TypeCode;
use crate::walk::{copy_value, go_over_any};
use crate::{ByteOrder, DecodeError, EncodeError, Version};

/// Minimum bytes of a value that is a view of its message. A smaller view would keep the memory of a whole
/// message alive for little data.
const VIEW: usize = 4096;

/// A value in its received byte order, phase, version and code sets. Only its counts and lengths were
/// checked.
pub(super) struct ReceivedValue {
    /// The bytes, with the padding before the first one that is aligned.
    pub(super) octets: Bytes,
    /// Phase of the first byte.
    phase: usize,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    limits: DecodeLimits,
    contents: Contents,
    /// The context that references in the value need when they are decoded.
    pub(super) context: Option<Arc<dyn Context>>,
    /// The value in the local form, once that was requested.
    stored: OnceLock<Result<StoredValue, DecodeError>>,
}

impl ReceivedValue {
    /// Skips a value, and keeps its received form. Returns `None`, with the decoder at its original position,
    /// if it contains values of value types, which may refer to others outside, or if it is not contiguous.
    pub(super) fn take(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Option<ReceivedValue>, DecodeError> {
        let bookmark = d.bookmark();
        let contents = match d.nested(|d| go_over_any(code, d)) {
            Ok(Some(contents)) => contents,
            Ok(None) => {
                d.return_to(bookmark);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(octets) = d.joined_since(bookmark)? else { return Ok(None) };
        // Includes the reference counts of the `Arc`.
        d.charge(size_of::<ReceivedValue>() + 2 * size_of::<usize>())?;
        let octets = if octets.len() < VIEW {
            d.charge(octets.len())?;
            Bytes::copy_from_slice(octets)
        } else {
            d.share_before(octets)?
        };
        let (left, usual) = (bookmark.limits(), DecodeLimits::for_data(octets.len()));
        let limits = DecodeLimits { depth: left.depth.max(usual.depth), alloc: left.alloc.max(usual.alloc) };
        let recovers =
            || (contents.text || contents.wide || contents.anys) && d.invalid_text() != InvalidText::Refuse;
        let context = if contents.references || recovers() { d.keep_context() } else { None };
        Ok(Some(ReceivedValue {
            octets,
            phase: bookmark.phase(),
            order: d.order(),
            version: d.version(),
            code_sets: d.code_sets(),
            limits,
            contents,
            context,
            stored: OnceLock::new(),
        }))
    }

    pub(super) fn decoder(&self) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(&self.octets, self.order, self.version).shifted(self.phase);
        d.set_code_sets(self.code_sets);
        d.set_limits(self.limits);
        d.with_kept_context(self.context.as_ref())
    }

    /// Returns the value in the local form, checked. Created once.
    pub(super) fn stored(&self, code: &TypeCode) -> Result<&StoredValue, DecodeError> {
        self.stored
            .get_or_init(|| StoredValue::read(code, &mut self.decoder()))
            .as_ref()
            .map_err(|error| *error)
    }

    /// Returns whether no other form of the value was requested.
    pub(super) fn is_untouched(&self) -> bool {
        self.stored.get().is_none()
    }

    /// Returns whether `e` would write exactly the received bytes.
    fn is_as_written_by(&self, e: &Encoder) -> bool {
        let (here, there, seen) = (self.code_sets, e.code_sets(), self.contents);
        let align = usize::from(seen.align.max(1));
        e.order() == self.order
            && e.position() % align == self.phase % align
            && (!seen.wide || e.version() == self.version && there.wchar == here.wchar)
            && (!seen.text
                || there.char == here.char
                || there.char.has_ascii() && here.char.has_ascii() && self.octets.is_ascii())
    }

    /// Writes the value: the received bytes if the properties of the streams are the same, otherwise a copy.
    pub(super) fn encode(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Some(context) = &self.context {
            e.note_kept_context(context);
        }
        if self.is_as_written_by(e) {
            e.put_shared_part(self.octets.clone());
            return Ok(());
        }
        let mut d = self.decoder();
        // The value was within the limits on receipt.
        d.set_limits(DecodeLimits { alloc: usize::MAX, ..d.limits() });
        copy_value(code, &mut d, e)?;
        Ok(())
    }

    /// Returns whether both have the same bytes with the same meaning.
    pub(super) fn same(&self, other: &ReceivedValue) -> bool {
        let form = |it: &ReceivedValue| (it.phase, it.order, it.version, it.code_sets);
        form(self) == form(other) && self.octets == other.octets
    }
}

impl fmt::Debug for ReceivedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Received({} octets)", self.octets.len())
    }
}

impl Any {
    /// Returns a decoder of the value, unless all of the value was checked.
    pub(crate) fn unchecked(&self) -> Option<Decoder<'_>> {
        match &self.form {
            Form::Received(received) if !matches!(received.stored.get(), Some(Ok(_))) => {
                Some(received.decoder())
            }
            Form::Stored(_) | Form::Received(_) => None,
        }
    }

    /// Returns whether the value is kept in its received form, and no other form was requested. It was then
    /// neither decoded nor copied, and is forwarded unchanged to peers of the same byte order and code sets.
    pub fn is_as_received(&self) -> bool {
        matches!(&self.form, Form::Received(received) if received.is_untouched())
    }
}
