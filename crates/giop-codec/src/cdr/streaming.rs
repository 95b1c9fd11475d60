//! Streamed encoding: a message with long runs of structs is sent while it is encoded. An [`Outlet`] receives
//! the encoded bytes after each piece of such a run. Numbers in the foreign byte order count as structs.
//!
//! A message begins with its length. Its values are therefore encoded twice. In the first pass
//! ([`Encoder::begin_measuring_runs`]), the bytes of long runs are counted instead of encoded. In the second
//! ([`Encoder::stream_to`]), everything is encoded.
//!
//! A piece stays in the second-level cache until the kernel copies it, and its memory is reused for the next
//! piece. A run of megabytes that is encoded as a whole would be evicted from that cache before it is sent.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;

use super::encoder::Encoder;
use super::fixed::write_strided;
use super::layout::FixedLayout;
use super::text::CodeSets;
use crate::{ByteOrder, Version};

/// Minimum length in bytes of a run of structs that is encoded in pieces, if streaming is enabled.
pub const MIN_STREAMED_RUN_BYTES: usize = 512 * 1024;

/// Size of a piece. A piece, its elements in memory and the kernel's copy fit the second-level cache.
pub const PIECE_BYTES: usize = 256 * 1024;

/// A destination for the bytes of an incomplete message.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Takes all encoded bytes out of the encoder by [`Encoder::drain_into`]. Bytes that are not taken are
    /// dropped. `message` is the number that was passed to [`Encoder::stream_to`].
    ///
    /// Returns `false` if the bytes cannot be sent immediately. The rest of the run is then encoded as a
    /// whole, because further pieces would have no benefit.
    fn take(&self, message: u64, encoder: &mut Encoder) -> bool;
}

/// How an [`Encoder`] treats long runs of structs.
#[derive(Debug, Default)]
pub(super) enum LongRuns {
    /// They are encoded like short runs.
    #[default]
    Ordinary,
    /// They are skipped. The number counts the skipped runs.
    Measured(u32),
    /// They are sent in pieces. The number identifies the message to the outlet.
    Streamed(Arc<dyn Outlet>, u64),
}

impl Encoder {
    /// Makes the encoder skip long runs of structs until [`end_measuring_runs`](Encoder::end_measuring_runs).
    /// A skipped run advances the [`position`](Encoder::position), but is not encoded. Runs in
    /// encapsulations, or after an instance of a value type, are not skipped.
    #[inline]
    pub fn begin_measuring_runs(&mut self) {
        self.long_runs = LongRuns::Measured(0);
    }

    /// Ends [`begin_measuring_runs`](Encoder::begin_measuring_runs) and returns the number of skipped runs.
    /// If it is not 0, the message is incomplete: [`rewind`](Encoder::rewind) it.
    #[inline]
    pub fn end_measuring_runs(&mut self) -> u32 {
        match std::mem::take(&mut self.long_runs) {
            LongRuns::Measured(runs) => runs,
            LongRuns::Ordinary | LongRuns::Streamed(..) => 0,
        }
    }

    /// Empties the encoder and continues a message after its first `offset` bytes. After each piece of a long
    /// run except the last, `outlet` receives the encoded bytes and the number `message`. The last piece and
    /// the bytes after it stay in the encoder.
    ///
    /// Each piece invalidates indexes into the head and [marks](Encoder::mark). The next
    /// [`reset`](Encoder::reset) releases the outlet.
    pub fn stream_to(
        &mut self,
        order: ByteOrder,
        version: Version,
        code_sets: CodeSets,
        offset: usize,
        outlet: Arc<dyn Outlet>,
        message: u64,
    ) {
        self.reset(order, version);
        self.set_code_sets(code_sets);
        self.base = offset;
        self.long_runs = LongRuns::Streamed(outlet, message);
    }

    /// Returns whether instances of value types were written.
    #[inline]
    #[must_use]
    pub fn has_value_types(&self) -> bool {
        self.values.is_some()
    }

    /// Skips a run of `len` bytes or encodes it in pieces, and returns `true`. Does nothing and returns
    /// `false` if neither is enabled, if the run is short or in an encapsulation, or after an instance of a
    /// value type. The encoder must be at the phase (offset modulo 8) at which elements end, so that all
    /// elements start there.
    pub(super) fn put_long_run<T: FixedLayout>(&mut self, items: &[T], stride: usize, len: usize) -> bool {
        if len < MIN_STREAMED_RUN_BYTES || self.is_in_encapsulation || self.values.is_some() {
            return false;
        }
        let (outlet, message) = match &mut self.long_runs {
            LongRuns::Ordinary => return false,
            LongRuns::Measured(runs) => {
                *runs = runs.saturating_add(1);
                self.base = self.base.wrapping_add(len);
                return true;
            }
            LongRuns::Streamed(outlet, message) => (outlet.clone(), *message),
        };
        let max_count = (PIECE_BYTES / stride).max(1);
        let (mut rest, mut is_sent_immediately) = (items, true);
        loop {
            // Avoid a short last piece, because it would cost a separate write.
            let is_last = !is_sent_immediately || rest.len() <= max_count + max_count / 2;
            let (piece, next) = rest.split_at(if is_last { rest.len() } else { max_count });
            // Requests of equal sizes reuse the memory of earlier blocks. All pieces therefore request one
            // size, and a rest that cannot be sent immediately requests the size of the whole run.
            let bytes = piece.len() * stride;
            let block_bytes =
                if is_sent_immediately { (PIECE_BYTES + PIECE_BYTES / 2).max(bytes) } else { len };
            let free_block = self.take_free_block(block_bytes);
            let is_reusable = free_block.is_some();
            let mut block = free_block.unwrap_or_else(|| BytesMut::zeroed(bytes));
            write_strided(block.get_mut(..bytes).unwrap_or_default(), piece, self.is_foreign_order());
            let block = block.freeze();
            self.push_chunk(block.slice(..bytes), false);
            if is_reusable {
                self.blocks.push(block);
            }
            if next.is_empty() {
                // The last piece is sent with the bytes that follow the run.
                return true;
            }
            rest = next;
            let (position, len) = (self.position(), self.len());
            is_sent_immediately &= outlet.take(message, self);
            self.head.clear();
            self.chunks.clear();
            (self.base, self.chunk_bytes, self.drained_bytes) = (position, 0, len);
        }
    }
}
