//! The values of received anys, stored without being decoded.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Any, CheckedValue, Form, without_alloc_limit};
use crate::cdr::{Context, DecodeLimits, Decoder, Encoder, InvalidText};
use crate::program::Contents;
use crate::typecode::TypeCode;
use crate::walk::{StreamProperties, copy_value, skip_in_any};
use crate::{DecodeError, EncodeError};

/// The minimum size in bytes of a value that is a view of its message. A view of less would keep the memory
/// of a whole message alive for little data.
const MIN_VIEW_BYTES: usize = 4096;

/// A value as received, whose text and ordinals were not checked.
pub(super) struct ReceivedValue {
    /// The encoded value, including the padding before its first aligned part.
    pub(super) bytes: Bytes,
    /// The offset of the first byte in its message, modulo 8.
    phase: usize,
    stream: StreamProperties,
    limits: DecodeLimits,
    contents: Contents,
    /// The context, if it is needed to decode references or text in the value.
    context: Option<Arc<dyn Context>>,
    /// The completely checked copy of the value. It is made when an operation first needs it.
    checked: OnceLock<Result<CheckedValue, DecodeError>>,
}

impl ReceivedValue {
    /// Takes the bytes of a value. Returns `None`, with the decoder at its original position, if the value
    /// must be copied instead. This is the case if it contains value types, which may refer to values outside
    /// of the any. It is also the case if a fragment or chunk boundary divides the value.
    pub(super) fn take(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Option<ReceivedValue>, DecodeError> {
        let bookmark = d.bookmark();
        let Some(contents) = d.nested(|d| skip_in_any(code, d))? else {
            d.return_to(bookmark);
            return Ok(None);
        };
        let Some(bytes) = d.join_bytes_since(bookmark)? else { return Ok(None) };
        // The two words are the reference counts of the `Arc`.
        d.charge(size_of::<ReceivedValue>() + 2 * size_of::<usize>())?;
        let bytes = if bytes.len() < MIN_VIEW_BYTES {
            d.charge(bytes.len())?;
            Bytes::copy_from_slice(bytes)
        } else {
            d.share_just_read(bytes)?
        };
        let (remaining, usual) = (bookmark.limits(), DecodeLimits::for_data(bytes.len()));
        let limits =
            DecodeLimits { depth: remaining.depth.max(usual.depth), alloc: remaining.alloc.max(usual.alloc) };
        // If the context permits invalid text, it is also needed to decode a value that may contain text.
        let may_accept_invalid_text = || {
            (contents.has_text || contents.has_wide_text || contents.has_anys)
                && d.invalid_text_policy() != InvalidText::Refuse
        };
        let context =
            if contents.has_references || may_accept_invalid_text() { d.shared_context() } else { None };
        let (phase, stream, checked) = (bookmark.phase(), StreamProperties::of(d), OnceLock::new());
        Ok(Some(ReceivedValue { bytes, phase, stream, limits, contents, context, checked }))
    }

    pub(super) fn decoder(&self) -> Decoder<'_> {
        let mut d = self.stream.decoder(&self.bytes).with_phase(self.phase);
        d.set_limits(self.limits);
        d.with_shared_context(self.context.as_ref())
    }

    pub(super) fn checked(&self, code: &TypeCode) -> Result<&CheckedValue, DecodeError> {
        self.checked
            .get_or_init(|| CheckedValue::read(code, &mut self.decoder()))
            .as_ref()
            .map_err(|error| *error)
    }

    fn needs_no_conversion_for(&self, e: &Encoder) -> bool {
        let (from, to, contents) = (self.stream.code_sets, e.code_sets(), self.contents);
        let align = usize::from(contents.align.max(1));
        e.order() == self.stream.order
            && e.position() % align == self.phase % align
            && (!contents.has_wide_text || e.version() == self.stream.version && to.wchar == from.wchar)
            && (!contents.has_text
                || to.char == from.char
                || to.char.has_ascii() && from.char.has_ascii() && self.bytes.is_ascii())
    }

    /// Writes the value. Shares the received bytes if conversion for `e` would not change them.
    pub(super) fn encode(&self, code: &TypeCode, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Some(context) = &self.context {
            e.record_shared_context(context);
        }
        if self.needs_no_conversion_for(e) {
            e.put_shared_part(self.bytes.clone());
            return Ok(());
        }
        copy_value(code, &mut without_alloc_limit(self.decoder()), e)?;
        Ok(())
    }

    /// Returns whether `other` has the same bytes, in the same byte order, version, code sets and alignment.
    pub(super) fn has_same_bytes(&self, other: &ReceivedValue) -> bool {
        (self.phase, self.stream) == (other.phase, other.stream) && self.bytes == other.bytes
    }
}

impl Any {
    /// Returns a decoder of the value, or `None` if the value was checked completely.
    pub(crate) fn decoder_if_unchecked(&self) -> Option<Decoder<'_>> {
        match &self.form {
            Form::Received(received) if !matches!(received.checked.get(), Some(Ok(_))) => {
                Some(received.decoder())
            }
            Form::Checked(_) | Form::Received(_) => None,
        }
    }

    /// Returns whether the value is stored as received, and no operation has needed a checked copy of it.
    /// Such a value is forwarded unchanged to a peer with the same byte order, version and code sets, if its
    /// alignment in the new message is the same.
    pub fn is_as_received(&self) -> bool {
        matches!(&self.form, Form::Received(received) if received.checked.get().is_none())
    }
}
