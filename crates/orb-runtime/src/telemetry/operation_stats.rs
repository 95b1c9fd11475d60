//! Counters and latencies of calls by operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::telemetry::latency::{Counts, Latencies};

/// Maximum number of operations with a row of their own. Further ones share a row, because names come from
/// the network.
const MOST: usize = 1024;

/// The name of the row for all other operations.
const REST: &str = "(others)";

/// The counters of each operation, in an ORB with an admin endpoint.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Calls of this ORB's servants.
    pub(crate) served: Table,
    /// Calls to objects elsewhere.
    pub(crate) made: Table,
}

/// Rows by interface and operation.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: papaya::HashMap<Box<str>, papaya::HashMap<Box<str>, Arc<Row>>>,
    len: AtomicUsize,
}

/// The counters of an operation, 2 KiB in size.
#[derive(Debug, Default)]
pub(crate) struct Row {
    user_exceptions: AtomicU64,
    failures: AtomicU64,
    latencies: Latencies,
}

/// A snapshot of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) interface: Box<str>,
    pub(crate) operation: Box<str>,
    /// Calls that have ended, however they ended.
    pub(crate) calls: u64,
    /// Those that raised an exception of their `raises` clause: an answer, not a failure.
    pub(crate) user_exceptions: u64,
    /// Calls that ended with a system exception or were aborted.
    pub(crate) failures: u64,
    /// The total duration, in nanoseconds.
    pub(crate) nanos: u64,
    /// The longest duration, in nanoseconds.
    pub(crate) longest: u64,
    pub(crate) counts: Counts,
}

/// The sums of all rows of a table.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) failures: u64,
    pub(crate) counts: Counts,
}

/// A call that is running or has been counted.
pub(crate) struct Tally {
    calls: Arc<Calls>,
    side: Side,
    row: Place,
    begun: Instant,
    ending: AtomicU8,
    over: AtomicBool,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ending {
    Results = 0,
    UserException = 1,
    /// A system exception, or no outcome at all.
    Failure = 2,
    /// A failure because no servant has the operation. The peer may have invented its name.
    Unknown = 3,
}

/// The table in which a call is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Served,
    Made,
}

enum Place {
    Known(Arc<Row>),
    /// The first call of the operation, with interface and operation.
    New(Box<str>, Box<str>),
}

impl Tally {
    pub(crate) fn begin(calls: &Arc<Calls>, side: Side, interface: &str, operation: &str) -> Self {
        let row = match calls.table(side).get(interface, operation) {
            Some(row) => Place::Known(row),
            None => Place::New(interface.into(), operation.into()),
        };
        Self {
            calls: Arc::clone(calls),
            side,
            row,
            begun: Instant::now(),
            ending: AtomicU8::new(Ending::Results as u8),
            over: AtomicBool::new(false),
        }
    }

    /// Sets an outcome other than results.
    pub(crate) fn ends(&self, ending: Ending) {
        self.ending.store(ending as u8, Ordering::Relaxed);
    }

    /// Counts the call when it ends. Further calls of this have no effect.
    pub(crate) fn count(&self) {
        if self.over.swap(true, Ordering::Relaxed) {
            return;
        }
        let table = self.calls.table(self.side);
        let ending = Ending::of(self.ending.load(Ordering::Relaxed));
        let row = match &self.row {
            Place::Known(row) => Arc::clone(row),
            Place::New(..) if ending == Ending::Unknown => table.make(REST, REST),
            Place::New(interface, operation) => table.make(interface, operation),
        };
        row.add(self.begun.elapsed().as_nanos().try_into().unwrap_or(u64::MAX), ending);
    }
}

impl Ending {
    fn of(number: u8) -> Self {
        let all = [Self::Results, Self::UserException, Self::Failure];
        all.into_iter().find(|ending| *ending as u8 == number).unwrap_or(Self::Unknown)
    }
}

impl Calls {
    pub(crate) fn table(&self, side: Side) -> &Table {
        match side {
            Side::Served => &self.served,
            Side::Made => &self.made,
        }
    }
}

impl Table {
    fn get(&self, interface: &str, operation: &str) -> Option<Arc<Row>> {
        self.rows.pin().get(interface)?.pin().get(operation).map(Arc::clone)
    }

    /// Returns the row of an operation, or the shared row if there are already [`MOST`].
    fn make(&self, interface: &str, operation: &str) -> Arc<Row> {
        let (mut interface, mut operation) = (interface, operation);
        if self.len.load(Ordering::Relaxed) >= MOST && self.get(interface, operation).is_none() {
            (interface, operation) = (REST, REST);
        }
        let rows = self.rows.pin();
        let operations = rows.get_or_insert_with(interface.into(), Default::default).pin();
        let mut made = false;
        let row = operations.get_or_insert_with(operation.into(), || {
            made = true;
            Arc::default()
        });
        let row = Arc::clone(row);
        if made {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
        row
    }

    /// Returns snapshots of all rows, sorted by name.
    pub(crate) fn figures(&self) -> Vec<Figures> {
        let mut all = Vec::new();
        self.each(|interface, operation, row| all.push(row.figures(interface, operation)));
        all.sort_by(|a, b| (&a.interface, &a.operation).cmp(&(&b.interface, &b.operation)));
        all
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.each(|_, _, row| {
            totals.failures += row.failures.load(Ordering::Relaxed);
            totals.counts.add(&row.latencies);
        });
        totals
    }

    fn each(&self, mut f: impl FnMut(&str, &str, &Row)) {
        for (interface, operations) in &self.rows.pin() {
            for (operation, row) in &operations.pin() {
                f(interface, operation, row);
            }
        }
    }
}

impl Row {
    fn add(&self, nanos: u64, ending: Ending) {
        self.latencies.record(nanos);
        match ending {
            Ending::Results => {}
            Ending::UserException => {
                self.user_exceptions.fetch_add(1, Ordering::Relaxed);
            }
            Ending::Failure | Ending::Unknown => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn figures(&self, interface: &str, operation: &str) -> Figures {
        let counts = self.latencies.counts();
        Figures {
            interface: interface.into(),
            operation: operation.into(),
            calls: counts.total(),
            user_exceptions: self.user_exceptions.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            nanos: self.latencies.nanos(),
            longest: self.latencies.longest(),
            counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_how_they_end() {
        let row = Row::default();
        for (nanos, ending) in [
            (1000, Ending::Results),
            (2000, Ending::UserException),
            (3000, Ending::Failure),
            (4000, Ending::Unknown),
            (5000, Ending::UserException),
        ] {
            row.add(nanos, ending);
        }
        let figures = row.figures("a", "b");
        assert_eq!((figures.calls, figures.user_exceptions, figures.failures), (5, 2, 2));
        assert_eq!((figures.nanos, figures.longest), (15_000, 5000));
    }

    #[test]
    fn a_call_is_counted_once_by_its_last_ending() {
        let calls = Arc::new(Calls::default());
        let tally = Tally::begin(&calls, Side::Served, "I", "op");
        // For example a user exception that cannot be encoded.
        tally.ends(Ending::UserException);
        tally.ends(Ending::Failure);
        tally.count();
        tally.count();
        let figures = calls.served.figures();
        assert_eq!((figures.len(), figures[0].calls), (1, 1));
        assert_eq!((figures[0].user_exceptions, figures[0].failures), (0, 1));
        assert_eq!(calls.made.figures(), []);
    }

    #[test]
    fn rows_add_up() {
        let calls = Arc::new(Calls::default());
        for operation in ["a", "b", "b"] {
            let tally = Tally::begin(&calls, Side::Made, "I", operation);
            tally.ends(if operation == "a" { Ending::Failure } else { Ending::UserException });
            tally.count();
        }
        let totals = calls.made.totals();
        assert_eq!((totals.counts.total(), totals.failures), (3, 1));
        assert_eq!(calls.served.totals().counts.total(), 0);
    }

    #[test]
    fn unknown_and_excess_operation_names_are_counted_together() {
        let calls = Arc::new(Calls::default());
        for at in 0..10 {
            let tally = Tally::begin(&calls, Side::Served, "I", &format!("unknown {at}"));
            tally.ends(Ending::Unknown);
            tally.count();
        }
        assert_eq!(calls.served.figures().len(), 1);
        for at in 0..MOST + 10 {
            Tally::begin(&calls, Side::Served, "I", &at.to_string()).count();
        }
        let figures = calls.served.figures();
        assert!(figures.len() <= MOST + 1);
        assert_eq!(figures.iter().map(|row| row.calls).sum::<u64>(), 20 + MOST as u64);
    }
}
