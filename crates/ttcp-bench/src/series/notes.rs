//! What a server notes of the messages that come.

use serde::Serialize;

/// The most messages that are noted: a client has fewer.
const MOST: usize = 1 << 16;

/// A message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Arrival {
    /// When it was sent, as it says.
    pub(crate) sent: u64,
    /// When the server had it.
    pub(crate) arrived: u64,
    /// Its number, as it says.
    pub(crate) number: u32,
}

/// What came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    /// Each, in the order in which they came.
    pub(crate) all: Vec<Arrival>,
    /// How many had other contents than the pattern.
    pub(crate) bad: u32,
}

/// The notes of a server.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    elements: u32,
    seen: Arrivals,
}

impl Notes {
    /// Forgets all; from here on messages are to have so many elements of the pattern (0: anything).
    pub(crate) fn begin(&mut self, elements: u32) {
        self.elements = elements;
        self.seen.bad = 0;
        self.seen.all.clear();
        // So that noting allocates nothing while times are taken.
        self.seen.all.reserve(super::LONGEST as usize);
    }

    /// Notes a message; `right` looks whether it has so many elements of the pattern.
    pub(crate) fn note(&mut self, arrival: Arrival, right: impl FnOnce(usize) -> bool) {
        if self.seen.all.len() < MOST {
            self.seen.all.push(arrival);
        }
        if self.elements > 0 && !right(self.elements as usize) {
            self.seen.bad += 1;
        }
    }

    /// What came since the beginning.
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
