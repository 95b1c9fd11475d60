//! The requests in flight on many connections, counted together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests a connection takes at a time: one that serves a request after the other takes none.
const PORTION: usize = 16;

/// The requests that the connections of an endpoint may have in flight together. The first of each connection is not among them: it is
/// always served, so that every connection moves on, and connections have a limit of their own.
#[derive(Debug)]
pub struct Load {
    taken: AtomicUsize,
    most: usize,
}

/// A connection's part of a [`Load`].
#[derive(Debug)]
pub(crate) struct Share {
    load: Arc<Load>,
    taken: usize,
}

impl Load {
    /// So many requests.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { taken: AtomicUsize::new(0), most }
    }

    /// How many of them connections have taken: those in flight, but for the first of each, and up to 32 a connection that it keeps
    /// for its next ones.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Share {
    /// None of it.
    pub(crate) fn new(load: Arc<Load>) -> Self {
        Self { load, taken: 0 }
    }

    /// How many requests may be in flight.
    pub(crate) fn granted(&self) -> usize {
        self.taken + 1
    }

    /// Takes some more, up to `most` in all. Says whether there were any.
    pub(crate) fn grow(&mut self, most: usize) -> bool {
        let want = PORTION.min(most.saturating_sub(self.granted()));
        let mut got = 0;
        let take = |taken: usize| {
            got = want.min(self.load.most.saturating_sub(taken));
            (got > 0).then_some(taken + got)
        };
        let grown = self.load.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if grown {
            self.taken += got;
        }
        grown
    }

    /// Gives back what so many requests do not need.
    pub(crate) fn shrink(&mut self, to: usize) {
        let spare = self.taken.saturating_sub(to.saturating_sub(1));
        self.load.taken.fetch_sub(spare, Ordering::Relaxed);
        self.taken -= spare;
    }

    /// Whether it has so much to spare that others should have it.
    #[inline]
    pub(crate) fn is_ample(&self, in_flight: usize) -> bool {
        self.taken > in_flight + 2 * PORTION
    }

    #[cfg(test)]
    fn taken(&self) -> usize {
        self.taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_take_no_more_than_there_is_and_give_all_back() {
        let load = Arc::new(Load::new(40));
        let (mut one, mut other) = (Share::new(Arc::clone(&load)), Share::new(Arc::clone(&load)));
        assert!(one.grow(256) && one.grow(256));
        assert!(other.grow(256), "what is left");
        assert_eq!((one.taken(), other.taken(), load.taken()), (32, 8, 40));
        assert!(!one.grow(256) && !other.grow(256));
        one.shrink(5);
        assert_eq!((one.granted(), load.taken()), (5, 12));
        assert!(other.grow(10), "up to its own limit");
        assert!(!other.grow(10));
        assert_eq!((other.granted(), load.taken()), (10, 13));
        drop((one, other));
        assert_eq!(load.taken(), 0);
    }
}
