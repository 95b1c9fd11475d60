//! Streamed encoding: an [`Outlet`] receives the encoded bytes of a message after each piece of a long run of
//! structs.
//!
//! A message begins with its length. Its values are therefore encoded twice: [`Encoder::measure_runs`] only
//! counts the bytes of long runs, and [`Encoder::stream_to`] encodes everything.
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

/// Size of a piece in bytes. It fits the second-level cache together with its source and the kernel's copy.
pub const PIECE: usize = 256 * 1024;

/// A destination for the bytes of an incomplete message.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Takes all encoded bytes out of the encoder by [`Encoder::drain_into`]. Bytes that are not taken are
    /// dropped. `message` is the number that was passed to [`Encoder::stream_to`].
    ///
    /// Returns `false` if the bytes cannot be sent immediately. Pieces then have no benefit, and the rest of
    /// the run is encoded as a whole.
    fn take(&self, message: u64, encoder: &mut Encoder) -> bool;
}

/// The treatment of long runs by an [`Encoder`].
#[derive(Debug, Default)]
pub(super) enum LongRuns {
    /// Encoded like all others.
    #[default]
    None,
    /// Skipped. Holds the number of skipped runs.
    Measured(u32),
    /// Sent in pieces, with this number of the message.
    Out(Arc<dyn Outlet>, u64),
}

impl Encoder {
    /// Makes the encoder skip long runs of structs until [`measured_runs`](Encoder::measured_runs). Skipped
    /// runs only advance the [`position`](Encoder::position). Runs in encapsulations and values are not
    /// skipped, because the lengths of these are written after them.
    #[inline]
    pub fn measure_runs(&mut self) {
        self.long_runs = LongRuns::Measured(0);
    }

    /// Ends [`measure_runs`](Encoder::measure_runs) and returns the number of runs that were skipped. If
    /// there are any, the message is incomplete: [`rewind`](Encoder::rewind) it.
    #[inline]
    pub fn measured_runs(&mut self) -> u32 {
        match std::mem::take(&mut self.long_runs) {
            LongRuns::Measured(runs) => runs,
            LongRuns::None | LongRuns::Out(..) => 0,
        }
    }

    /// Empties the encoder and continues a message after its first `offset` bytes. After each piece of a long
    /// run except the last, `outlet` receives the encoded bytes and the number `message`. The bytes after
    /// that stay in the encoder.
    ///
    /// Indexes into the head and [marks](Encoder::mark) are invalid after each piece. The next
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
        self.long_runs = LongRuns::Out(outlet, message);
    }

    /// Returns whether values of value types were written.
    #[inline]
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Skips a run of `len` bytes or encodes it in pieces, and returns `true`. Does nothing and returns
    /// `false` if neither is enabled. All elements start at the phase at which elements end.
    pub(super) fn put_long<T: FixedLayout>(&mut self, items: &[T], stride: usize, len: usize) -> bool {
        if len < MIN_STREAMED_RUN_BYTES || self.is_in_encapsulation || self.values.is_some() {
            return false;
        }
        let (outlet, message) = match &mut self.long_runs {
            LongRuns::None => return false,
            LongRuns::Measured(runs) => {
                *runs = runs.saturating_add(1);
                self.base = self.base.wrapping_add(len);
                return true;
            }
            LongRuns::Out(outlet, message) => (outlet.clone(), *message),
        };
        let max_count = (PIECE / stride).max(1);
        let (mut rest, mut is_sent_immediately) = (items, true);
        loop {
            // Avoid a short last piece, because it would cost a separate write.
            let is_last = !is_sent_immediately || rest.len() <= max_count + max_count / 2;
            let (piece, next) = rest.split_at(if is_last { rest.len() } else { max_count });
            // All pieces request blocks of one size, and a long rest that of a whole run, so that each reuses
            // the memory of the previous one.
            let bytes = piece.len() * stride;
            let block_bytes = if is_sent_immediately { (PIECE + PIECE / 2).max(bytes) } else { len };
            let free_block = self.free_block(block_bytes);
            let is_reusable = free_block.is_some();
            let mut block = free_block.unwrap_or_else(|| BytesMut::zeroed(bytes));
            write_strided(block.get_mut(..bytes).unwrap_or_default(), piece, self.is_foreign());
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
