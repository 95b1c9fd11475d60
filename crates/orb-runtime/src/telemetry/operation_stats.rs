//! Counters and latencies of the calls of each operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::telemetry::latency::{Latencies, LatencyCounts};

/// The maximum number of rows. Further operations share one, because peers can invent any number of names.
const MAX_ROWS: usize = 1024;
const SHARED_ROW: &str = "(others)";

/// The counters of all operations, in an ORB with an admin endpoint.
#[derive(Debug, Default)]
pub(crate) struct OperationStats {
    /// Calls that servants of this ORB received.
    pub(crate) served: Table,
    /// Calls that this ORB sent as a client.
    pub(crate) made: Table,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The rows by interface and operation.
    rows: papaya::HashMap<Box<str>, papaya::HashMap<Box<str>, Arc<Row>>>,
    len: AtomicUsize,
}

#[derive(Debug, Default)]
pub(crate) struct Row {
    user_exceptions: AtomicU64,
    failures: AtomicU64,
    latencies: Latencies,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowSnapshot {
    pub(crate) interface: Box<str>,
    pub(crate) operation: Box<str>,
    pub(crate) calls: u64,
    /// The number of calls that ended with a user exception. They do not count as failures.
    pub(crate) user_exceptions: u64,
    pub(crate) failures: u64,
    pub(crate) total_nanos: u64,
    pub(crate) longest_nanos: u64,
    pub(crate) latencies: LatencyCounts,
}

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) failures: u64,
    pub(crate) latencies: LatencyCounts,
}

/// A call that is counted when it ends.
pub(crate) struct CountedCall {
    stats: Arc<OperationStats>,
    side: Side,
    row: RowRef,
    started: Instant,
    end: AtomicU8,
    is_counted: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CallEnd {
    Results = 0,
    UserException = 1,
    /// The call raised a system exception, or was aborted.
    Failure = 2,
    /// The call raised `BAD_OPERATION`. The peer may have invented the name of the operation.
    BadOperation = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Served,
    Made,
}

enum RowRef {
    Known(Arc<Row>),
    /// The interface and the name of an operation that has no row yet.
    New(Box<str>, Box<str>),
}

impl CountedCall {
    pub(crate) fn begin(stats: &Arc<OperationStats>, side: Side, interface: &str, operation: &str) -> Self {
        let row = match stats.table(side).get(interface, operation) {
            Some(row) => RowRef::Known(row),
            None => RowRef::New(interface.into(), operation.into()),
        };
        Self {
            stats: Arc::clone(stats),
            side,
            row,
            started: Instant::now(),
            end: AtomicU8::new(CallEnd::Results as u8),
            is_counted: AtomicBool::new(false),
        }
    }

    /// Records how the call ends: the last record counts. By default, the call ends with results.
    pub(crate) fn set_end(&self, end: CallEnd) {
        self.end.store(end as u8, Ordering::Relaxed);
    }

    /// Counts the call, which has ended. Further calls of this method have no effect.
    pub(crate) fn count(&self) {
        if self.is_counted.swap(true, Ordering::Relaxed) {
            return;
        }
        let table = self.stats.table(self.side);
        let end = CallEnd::of(self.end.load(Ordering::Relaxed));
        let row = match &self.row {
            RowRef::Known(row) => Arc::clone(row),
            RowRef::New(..) if end == CallEnd::BadOperation => table.get_or_insert(SHARED_ROW, SHARED_ROW),
            RowRef::New(interface, operation) => table.get_or_insert(interface, operation),
        };
        row.add(self.started.elapsed().as_nanos().try_into().unwrap_or(u64::MAX), end);
    }
}

impl CallEnd {
    fn of(number: u8) -> Self {
        let all = [Self::Results, Self::UserException, Self::Failure];
        all.into_iter().find(|end| *end as u8 == number).unwrap_or(Self::BadOperation)
    }
}

impl OperationStats {
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

    /// Returns the row of an operation, creating it if necessary, or the shared row if the table is full.
    fn get_or_insert(&self, interface: &str, operation: &str) -> Arc<Row> {
        let (mut interface, mut operation) = (interface, operation);
        if self.len.load(Ordering::Relaxed) >= MAX_ROWS && self.get(interface, operation).is_none() {
            (interface, operation) = (SHARED_ROW, SHARED_ROW);
        }
        let rows = self.rows.pin();
        let operations = rows.get_or_insert_with(interface.into(), Default::default).pin();
        let mut is_new = false;
        let row = operations.get_or_insert_with(operation.into(), || {
            is_new = true;
            Arc::default()
        });
        let row = Arc::clone(row);
        if is_new {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
        row
    }

    /// Returns snapshots of all rows, sorted by name.
    pub(crate) fn snapshots(&self) -> Vec<RowSnapshot> {
        let mut all = Vec::new();
        self.for_each(|interface, operation, row| all.push(row.snapshot(interface, operation)));
        all.sort_by(|a, b| (&a.interface, &a.operation).cmp(&(&b.interface, &b.operation)));
        all
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.for_each(|_, _, row| {
            totals.failures += row.failures.load(Ordering::Relaxed);
            totals.latencies.add(&row.latencies);
        });
        totals
    }

    fn for_each(&self, mut f: impl FnMut(&str, &str, &Row)) {
        for (interface, operations) in &self.rows.pin() {
            for (operation, row) in &operations.pin() {
                f(interface, operation, row);
            }
        }
    }
}

impl Row {
    fn add(&self, nanos: u64, end: CallEnd) {
        self.latencies.record(nanos);
        let counter = match end {
            CallEnd::Results => return,
            CallEnd::UserException => &self.user_exceptions,
            CallEnd::Failure | CallEnd::BadOperation => &self.failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn snapshot(&self, interface: &str, operation: &str) -> RowSnapshot {
        let latencies = self.latencies.counts();
        RowSnapshot {
            interface: interface.into(),
            operation: operation.into(),
            calls: latencies.total(),
            user_exceptions: self.user_exceptions.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            total_nanos: self.latencies.total_nanos(),
            longest_nanos: self.latencies.longest_nanos(),
            latencies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_how_they_end() {
        let row = Row::default();
        for (nanos, end) in [
            (1000, CallEnd::Results),
            (2000, CallEnd::UserException),
            (3000, CallEnd::Failure),
            (4000, CallEnd::BadOperation),
            (5000, CallEnd::UserException),
        ] {
            row.add(nanos, end);
        }
        let figures = row.snapshot("a", "b");
        assert_eq!((figures.calls, figures.user_exceptions, figures.failures), (5, 2, 2));
        assert_eq!((figures.total_nanos, figures.longest_nanos), (15_000, 5000));
    }

    #[test]
    fn a_call_is_counted_once_by_its_last_end() {
        let calls = Arc::new(OperationStats::default());
        let counted_call = CountedCall::begin(&calls, Side::Served, "I", "op");
        // For example a user exception that cannot be encoded.
        counted_call.set_end(CallEnd::UserException);
        counted_call.set_end(CallEnd::Failure);
        counted_call.count();
        counted_call.count();
        let figures = calls.served.snapshots();
        assert_eq!((figures.len(), figures[0].calls), (1, 1));
        assert_eq!((figures[0].user_exceptions, figures[0].failures), (0, 1));
        assert_eq!(calls.made.snapshots(), []);
    }

    #[test]
    fn totals_are_the_sums_of_all_rows() {
        let calls = Arc::new(OperationStats::default());
        for operation in ["a", "b", "b"] {
            let counted_call = CountedCall::begin(&calls, Side::Made, "I", operation);
            counted_call.set_end(if operation == "a" { CallEnd::Failure } else { CallEnd::UserException });
            counted_call.count();
        }
        let totals = calls.made.totals();
        assert_eq!((totals.latencies.total(), totals.failures), (3, 1));
        assert_eq!(calls.served.totals().latencies.total(), 0);
    }

    #[test]
    fn unknown_and_excess_operation_names_are_counted_together() {
        let calls = Arc::new(OperationStats::default());
        for at in 0..10 {
            let counted_call = CountedCall::begin(&calls, Side::Served, "I", &format!("unknown {at}"));
            counted_call.set_end(CallEnd::BadOperation);
            counted_call.count();
        }
        assert_eq!(calls.served.snapshots().len(), 1);
        for at in 0..MAX_ROWS + 10 {
            CountedCall::begin(&calls, Side::Served, "I", &at.to_string()).count();
        }
        let figures = calls.served.snapshots();
        assert!(figures.len() <= MAX_ROWS + 1);
        assert_eq!(figures.iter().map(|row| row.calls).sum::<u64>(), 20 + MAX_ROWS as u64);
    }
}
