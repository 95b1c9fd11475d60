//! Streamed encoding: an [`Outlet`] receives the encoded bytes of a message after each piece of a long run.
//!
//! A message begins with its length, so its values are encoded twice. The first pass
//! ([`Encoder::measure_runs`]) skips long runs and only counts their bytes. The second pass
//! ([`Encoder::flow_to`]) encodes everything and hands it to the outlet piece by piece.
//!
//! A piece stays in the second-level cache until the kernel copies it, and its memory is reused for the next
//! piece. A run of megabytes that is encoded as a whole would have been evicted from that cache before it is
//! written.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;

use super::encoder::Encoder;
use super::fixed::write_strided;
use super::layout::FixedLayout;
use super::text::CodeSets;
use crate::{ByteOrder, Version};

/// Minimum length in bytes of a run of structs that is encoded in pieces, if streaming is enabled.
pub const LONG_RUN: usize = 512 * 1024;

/// Bytes of a piece. It fits the second-level cache together with its source and the kernel's copy.
pub const PIECE: usize = 256 * 1024;

/// A destination for the bytes of an incomplete message.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Takes all encoded bytes out of the encoder, by [`Encoder::drain_into`]. Bytes that it leaves are
    /// dropped. `message` is the number that was passed to [`Encoder::flow_to`].
    ///
    /// Returns `false` if the bytes cannot be sent immediately. Pieces then have no benefit, and the rest of
    /// the run is encoded at once.
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
    /// Sent in pieces.
    Out(Arc<dyn Outlet>, u64),
}

impl Encoder {
    /// Makes the encoder skip long runs of structs from here on: they only advance the
    /// [`position`](Encoder::position). Those in encapsulations and values are not skipped, because their
    /// lengths are written after them. Ends with [`measured_runs`](Encoder::measured_runs).
    #[inline]
    pub fn measure_runs(&mut self) {
        self.flow = LongRuns::Measured(0);
    }

    /// Ends [`measure_runs`](Encoder::measure_runs) and returns the number of runs that were skipped. If
    /// there are any, the message is incomplete: [`rewind`](Encoder::rewind) it.
    #[inline]
    pub fn measured_runs(&mut self) -> u32 {
        match std::mem::take(&mut self.flow) {
            LongRuns::Measured(runs) => runs,
            LongRuns::None | LongRuns::Out(..) => 0,
        }
    }

    /// Empties the encoder and continues a message after its first `offset` bytes. Encoded bytes leave
    /// through `outlet` after each piece of a long run. The bytes after the last piece stay in the encoder.
    /// `message` identifies the message for the outlet.
    ///
    /// Places in the head, and [marks](Encoder::mark), are invalid after each piece. The next
    /// [`reset`](Encoder::reset) releases the outlet.
    pub fn flow_to(
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
        self.flow = LongRuns::Out(outlet, message);
    }

    /// Returns whether values of value types, which may refer to each other, were written.
    #[inline]
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Skips a run of `len` bytes, or encodes it in pieces, if that is enabled. Returns whether it did. All
    /// elements start at the phase at which elements end.
    pub(super) fn put_long<T: FixedLayout>(&mut self, items: &[T], stride: usize, len: usize) -> bool {
        if len < LONG_RUN || self.enclosed || self.values.is_some() {
            return false;
        }
        let (outlet, message) = match &mut self.flow {
            LongRuns::None => return false,
            LongRuns::Measured(runs) => {
                *runs = runs.saturating_add(1);
                self.base = self.base.wrapping_add(len);
                return true;
            }
            LongRuns::Out(outlet, message) => (outlet.clone(), *message),
        };
        let most = (PIECE / stride).max(1);
        let (mut rest, mut leaves) = (items, true);
        loop {
            // Avoid a short last piece, because it would cost a separate write.
            let count = if leaves && rest.len() > most + most / 2 { most } else { rest.len() };
            let (piece, behind) = rest.split_at(count);
            // All pieces request the same block size, and all rests that of a whole run, so that each one
            // reuses the memory of the previous one.
            let octets = piece.len() * stride;
            let room = if leaves { (PIECE + PIECE / 2).max(octets) } else { len };
            let kept = self.free_block(room);
            let keep = kept.is_some();
            let mut block = kept.unwrap_or_else(|| BytesMut::zeroed(octets));
            write_strided(block.get_mut(..octets).unwrap_or_default(), piece, self.is_foreign());
            let block = block.freeze();
            self.push_chunk(block.slice(..octets), false);
            if keep {
                self.blocks.push(block);
            }
            if behind.is_empty() {
                // The last piece is sent with the bytes that follow the run.
                return true;
            }
            rest = behind;
            leaves &= self.give(&*outlet, message);
        }
    }

    /// Lets the outlet take the encoded bytes. Returns whether they can be sent immediately.
    fn give(&mut self, outlet: &dyn Outlet, message: u64) -> bool {
        let (position, given) = (self.position(), self.len());
        let leaves = outlet.take(message, self);
        self.head.clear();
        self.chunks.clear();
        (self.base, self.chunk_octets, self.given) = (position, 0, given);
        leaves
    }
}
