//! The values of received anys, which are not decoded yet.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Any, CheckedValue, Form, without_alloc_limit};
use crate::cdr::{Context, DecodeLimits, Decoder, Encoder, InvalidText};
use crate::program::Contents;
use crate::typecode::TypeCode;
use crate::walk::{StreamProperties, copy_value, skip_in_any};
use crate::{DecodeError, EncodeError};

/// The minimum size in bytes of a value that is a view of its message. A smaller view would keep the memory
/// of a whole message alive for little data.
const MIN_VIEW_SIZE: usize = 4096;

/// A value as received. Only its counts and lengths were checked.
pub(super) struct ReceivedValue {
    /// The bytes, including the padding before the first aligned part.
    pub(super) bytes: Bytes,
    /// The position of the first byte modulo 8 in its message.
    phase: usize,
    stream: StreamProperties,
    limits: DecodeLimits,
    contents: Contents,
    /// The context that references in the value need when they are decoded.
    context: Option<Arc<dyn Context>>,
    /// The value after a complete check, which is made on the first request of another form.
    checked: OnceLock<Result<CheckedValue, DecodeError>>,
}

impl ReceivedValue {
    /// Takes the bytes of a value. Returns `None`, with the decoder at its original position, if the value
    /// contains values of value types, which may refer to others outside, or if it is not contiguous.
    pub(super) fn take(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Option<ReceivedValue>, DecodeError> {
        let bookmark = d.bookmark();
        let Some(contents) = d.nested(|d| skip_in_any(code, d))? else {
            d.return_to(bookmark);
            return Ok(None);
        };
        let Some(bytes) = d.joined_since(bookmark)? else { return Ok(None) };
        // Includes the reference counts of the `Arc`.
        d.charge(size_of::<ReceivedValue>() + 2 * size_of::<usize>())?;
        let bytes = if bytes.len() < MIN_VIEW_SIZE {
            d.charge(bytes.len())?;
            Bytes::copy_from_slice(bytes)
        } else {
            d.share_before(bytes)?
        };
        let (remaining, usual) = (bookmark.limits(), DecodeLimits::for_data(bytes.len()));
        let limits =
            DecodeLimits { depth: remaining.depth.max(usual.depth), alloc: remaining.alloc.max(usual.alloc) };
        // The context also determines how invalid text is treated.
        let may_have_invalid_text =
            || (contents.text || contents.wide || contents.anys) && d.invalid_text() != InvalidText::Refuse;
        let context = if contents.references || may_have_invalid_text() { d.keep_context() } else { None };
        let (phase, stream, checked) = (bookmark.phase(), StreamProperties::of(d), OnceLock::new());
        Ok(Some(ReceivedValue { bytes, phase, stream, limits, contents, context, checked }))
    }

    pub(super) fn decoder(&self) -> Decoder<'_> {
        let mut d = self.stream.decoder(&self.bytes).shifted(self.phase);
        d.set_limits(self.limits);
        d.with_shared_context(self.context.as_ref())
    }

    pub(super) fn checked(&self, code: &TypeCode) -> Result<&CheckedValue, DecodeError> {
        self.checked
            .get_or_init(|| CheckedValue::read(code, &mut self.decoder()))
            .as_ref()
            .map_err(|error| *error)
    }

    fn is_as_written_by(&self, e: &Encoder) -> bool {
        let (from, to, contents) = (self.stream.code_sets, e.code_sets(), self.contents);
        let align = usize::from(contents.align.max(1));
        e.order() == self.stream.order
            && e.position() % align == self.phase % align
            && (!contents.wide || e.version() == self.stream.version && to.wchar == from.wchar)
            && (!contents.text
                || to.char == from.char
                || to.char.has_ascii() && from.char.has_ascii() && self.bytes.is_ascii())
    }

    /// Writes the value: the received bytes if `e` would write the same, otherwise a copy.
    pub(super) fn encode(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Some(context) = &self.context {
            e.record_shared_context(context);
        }
        if self.is_as_written_by(e) {
            e.put_shared_part(self.bytes.clone());
            return Ok(());
        }
        copy_value(code, &mut without_alloc_limit(self.decoder()), e)?;
        Ok(())
    }

    /// Returns whether both have the same bytes with the same meaning.
    pub(super) fn has_same_bytes(&self, other: &ReceivedValue) -> bool {
        (self.phase, self.stream) == (other.phase, other.stream) && self.bytes == other.bytes
    }
}

impl Any {
    /// Returns a decoder of the value, unless all of the value was checked.
    pub(crate) fn decoder_if_unchecked(&self) -> Option<Decoder<'_>> {
        match &self.form {
            Form::Received(received) if !matches!(received.checked.get(), Some(Ok(_))) => {
                Some(received.decoder())
            }
            Form::Checked(_) | Form::Received(_) => None,
        }
    }

    /// Returns whether the value is stored as received, and no other form was requested. It was then not
    /// decoded. It is forwarded unchanged to a peer of the same byte order, version and code sets if its
    /// alignment in the new message is the same.
    pub fn is_as_received(&self) -> bool {
        matches!(&self.form, Form::Received(received) if received.checked.get().is_none())
    }
}
