//! A server's record of received messages.

use serde::Serialize;

/// Maximum number of recorded messages; clients send fewer.
const MOST: usize = 1 << 16;

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Arrival {
    /// Its sending time, as it states.
    pub(crate) sent: u64,
    /// When the server had it.
    pub(crate) arrived: u64,
    /// Its number, as it states.
    pub(crate) number: u32,
}

/// The received messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    /// The messages in the order of arrival.
    pub(crate) all: Vec<Arrival>,
    /// How many differed from the pattern.
    pub(crate) bad: u32,
}

/// The record of a server.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    elements: u32,
    seen: Arrivals,
}

impl Notes {
    /// Discards the record. From now on, messages must have `elements` elements of the pattern (0: any
    /// contents).
    pub(crate) fn begin(&mut self, elements: u32) {
        self.elements = elements;
        self.seen.bad = 0;
        self.seen.all.clear();
        // Avoids allocations while times are taken.
        self.seen.all.reserve(crate::work::MAX_MESSAGES as usize);
    }

    /// Records a message; `right` checks whether it has that many elements of the pattern.
    pub(crate) fn note(&mut self, arrival: Arrival, right: impl FnOnce(usize) -> bool) {
        if self.seen.all.len() < MOST {
            self.seen.all.push(arrival);
        }
        if self.elements > 0 && !right(self.elements as usize) {
            self.seen.bad += 1;
        }
    }

    /// Returns the record since [`begin`](Self::begin).
    pub(crate) fn arrivals(&self) -> Arrivals {
        self.seen.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_looked_at_where_that_is_wanted() {
        let mut notes = Notes::default();
        let arrival = |number| Arrival { sent: 1, arrived: 2, number };
        notes.begin(8);
        notes.note(arrival(0), |elements| elements == 8);
        notes.note(arrival(1), |elements| elements == 9);
        assert_eq!(notes.arrivals(), Arrivals { all: vec![arrival(0), arrival(1)], bad: 1 });
        notes.begin(0);
        notes.note(arrival(0), |_| false);
        assert_eq!(notes.arrivals(), Arrivals { all: vec![arrival(0)], bad: 0 });
    }
}
