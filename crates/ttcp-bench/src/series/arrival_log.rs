//! The record that the server of the test `series` keeps of received messages.

use serde::Serialize;

/// Maximum number of recorded messages. The clients of the test send fewer.
const MAX_RECORDED_MESSAGES: usize = 1 << 16;

/// A received message. Times are in nanoseconds, on the clock that client and server share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Arrival {
    /// When the client began to send the message. The message contains this time.
    pub(crate) sent: u64,
    /// When the server had decoded the message.
    pub(crate) arrived: u64,
    pub(crate) number: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub(crate) all: Vec<Arrival>,
    /// Number of messages with wrong contents.
    pub(crate) wrong_count: u32,
}

#[derive(Debug, Default)]
pub(crate) struct ArrivalLog {
    /// Number of elements that each message must have. If it is 0, contents are not checked.
    elements: u32,
    arrivals: Arrivals,
}

impl ArrivalLog {
    /// Discards the recorded messages. Further ones must have `elements` elements, unless it is 0.
    pub(crate) fn begin(&mut self, elements: u32) {
        self.elements = elements;
        self.arrivals.wrong_count = 0;
        self.arrivals.all.clear();
        // Avoids allocations while times are taken.
        self.arrivals.all.reserve(crate::work::MAX_MESSAGES as usize);
    }

    /// Records a message. `has_elements` gets a number of elements, and returns whether the message consists
    /// of that many elements of the test pattern.
    pub(crate) fn record(&mut self, arrival: Arrival, has_elements: impl FnOnce(usize) -> bool) {
        if self.arrivals.all.len() < MAX_RECORDED_MESSAGES {
            self.arrivals.all.push(arrival);
        }
        if self.elements > 0 && !has_elements(self.elements as usize) {
            self.arrivals.wrong_count += 1;
        }
    }

    pub(crate) fn arrivals(&self) -> Arrivals {
        self.arrivals.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_checked_unless_zero_elements_are_configured() {
        let mut log = ArrivalLog::default();
        let arrival = |number| Arrival { sent: 1, arrived: 2, number };
        log.begin(8);
        log.record(arrival(0), |elements| elements == 8);
        log.record(arrival(1), |elements| elements == 9);
        assert_eq!(log.arrivals(), Arrivals { all: vec![arrival(0), arrival(1)], wrong_count: 1 });
        log.begin(0);
        log.record(arrival(0), |_| false);
        assert_eq!(log.arrivals(), Arrivals { all: vec![arrival(0)], wrong_count: 0 });
    }
}
