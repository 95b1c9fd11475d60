//! Messages that leave while they are encoded: what is there goes to an [`Outlet`] whenever a piece of a long run is.
//!
//! A message begins with its length, so its values are encoded twice. The first pass ([`Encoder::measure_runs`]) passes long runs
//! over and only counts their octets. The second one ([`Encoder::flow_to`]) encodes everything, and gives it away piece by piece. A
//! piece stays in the second-level cache until the kernel copies it, and its memory serves the next one; a run of megabytes
//! that is encoded first and written then comes from farther away.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;

use super::encoder::Encoder;
use super::fixed::write_strided;
use super::layout::FixedLayout;
use super::text::CodeSets;
use crate::{ByteOrder, Version};

/// Runs of structs from this length on, in octets, are encoded in pieces where that is asked for.
pub const LONG_RUN: usize = 512 * 1024;

/// Octets of a piece: it stays in the second-level cache beside what it is made of and what the kernel makes of it.
pub const PIECE: usize = 256 * 1024;

/// Where the octets of a message go that is not whole yet.
pub trait Outlet: fmt::Debug + Send + Sync {
    /// Takes all octets that the encoder has, by [`Encoder::drain_into`]. What it leaves is dropped. `message` is what
    /// [`Encoder::flow_to`] was told.
    ///
    /// `false`: they can not leave at once, so that pieces gain nothing, and the rest of the run is encoded at once.
    fn take(&self, message: u64, encoder: &mut Encoder) -> bool;
}

/// How an [`Encoder`] treats long runs.
#[derive(Debug, Default)]
pub(super) enum Flow {
    /// As all others.
    #[default]
    None,
    /// They are passed over. So many were.
    Measured(u32),
    /// They leave in pieces.
    Out(Arc<dyn Outlet>, u64),
}

impl Encoder {
    /// From here on long runs of structs are passed over: they count for the [`position`](Encoder::position), and that is all. Those
    /// in encapsulations and values are not, since their lengths are written behind them. Ends with
    /// [`measured_runs`](Encoder::measured_runs).
    #[inline]
    pub fn measure_runs(&mut self) {
        self.flow = Flow::Measured(0);
    }

    /// Ends [`measure_runs`](Encoder::measure_runs), and says how many runs were passed over. If there are some, the message is not whole:
    /// [`rewind`](Encoder::rewind) it.
    #[inline]
    pub fn measured_runs(&mut self) -> u32 {
        match std::mem::take(&mut self.flow) {
            Flow::Measured(runs) => runs,
            Flow::None | Flow::Out(..) => 0,
        }
    }

    /// Empties the encoder, to go on with a message behind its first `offset` octets; what is put leaves through `outlet` whenever a piece
    /// of a long run is encoded. What is put last stays in the encoder. `message`: which one it is, for the outlet.
    ///
    /// Places in the head, and [marks](Encoder::mark), end with each piece. The outlet is let go of by the next
    /// [`reset`](Encoder::reset).
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
        self.flow = Flow::Out(outlet, message);
    }

    /// Whether value types were put, which refer to each other.
    #[inline]
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Passes over a run of `len` octets, or encodes it in pieces, if that is asked for: all elements are at the phase at which elements
    /// end.
    pub(super) fn put_long<T: FixedLayout>(&mut self, items: &[T], stride: usize, len: usize) -> bool {
        if len < LONG_RUN || self.enclosed || self.values.is_some() {
            return false;
        }
        let (outlet, message) = match &mut self.flow {
            Flow::None => return false,
            Flow::Measured(runs) => {
                *runs = runs.saturating_add(1);
                self.base = self.base.wrapping_add(len);
                return true;
            }
            Flow::Out(outlet, message) => (outlet.clone(), *message),
        };
        let most = (PIECE / stride).max(1);
        let (mut rest, mut leaves) = (items, true);
        loop {
            // No short one at the end: it would cost a write of its own.
            let count = if leaves && rest.len() > most + most / 2 { most } else { rest.len() };
            let (piece, behind) = rest.split_at(count);
            // Pieces have the same room, and rests that of a whole run: so each finds the memory of the one before.
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
                // It leaves with what follows.
                return true;
            }
            rest = behind;
            leaves &= self.give(&*outlet, message);
        }
    }

    /// Gives away what is encoded.
    fn give(&mut self, outlet: &dyn Outlet, message: u64) -> bool {
        let (position, given) = (self.position(), self.len());
        let leaves = outlet.take(message, self);
        self.head.clear();
        self.chunks.clear();
        (self.base, self.chunk_octets, self.given) = (position, 0, given);
        leaves
    }
}
