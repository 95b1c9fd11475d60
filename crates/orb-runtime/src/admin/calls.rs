//! Calls counted by their operations, with how long they took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Operations that are counted apart. Further ones are counted together: names come from the network.
const MOST: usize = 1024;

/// What the rest is called.
const REST: &str = "(others)";

/// Bounds of how long calls take, in powers of two microseconds, from 1 us to 8.4 s; there is one bucket more.
pub(crate) const BOUNDS: usize = 24;

/// What an ORB with an admin endpoint counts of each operation.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Of its own servants.
    pub(crate) served: Table,
    /// Of objects elsewhere.
    pub(crate) made: Table,
}

/// Figures by interface and operation.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: papaya::HashMap<Box<str>, papaya::HashMap<Box<str>, Arc<Row>>>,
    len: AtomicUsize,
}

/// The figures of an operation.
#[derive(Debug, Default)]
pub(crate) struct Row {
    calls: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BOUNDS + 1],
}

/// What a row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) interface: Box<str>,
    pub(crate) operation: Box<str>,
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    /// What all of them took together, in microseconds.
    pub(crate) micros: u64,
    /// How many took up to 1, 2, 4 .. us and more than the one before; the last had no bound.
    pub(crate) buckets: [u64; BOUNDS + 1],
}

/// A call that is under way, or was counted.
pub(crate) struct Tally {
    calls: Arc<Calls>,
    side: Side,
    row: Place,
    begun: Instant,
    failed: AtomicBool,
    /// No servant has such an operation: its name is somebody's invention.
    unknown: AtomicBool,
    over: AtomicBool,
}

/// Which table a call is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Served,
    Made,
}

enum Place {
    Known(Arc<Row>),
    /// The first of its kind.
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
            failed: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// It ends with an exception, or not at all.
    pub(crate) fn fail(&self, unknown: bool) {
        self.failed.store(true, Ordering::Relaxed);
        self.unknown.store(unknown, Ordering::Relaxed);
    }

    /// It is over. Counts it once.
    pub(crate) fn count(&self) {
        if self.over.swap(true, Ordering::Relaxed) {
            return;
        }
        let table = self.calls.table(self.side);
        let failed = self.failed.load(Ordering::Relaxed);
        let row = match &self.row {
            Place::Known(row) => Arc::clone(row),
            Place::New(..) if self.unknown.load(Ordering::Relaxed) => table.make(REST, REST),
            Place::New(interface, operation) => table.make(interface, operation),
        };
        row.add(self.begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX), failed);
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

    /// The row of an operation; beyond [`MOST`] that of all others.
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

    /// All rows, by their names.
    pub(crate) fn figures(&self) -> Vec<Figures> {
        let mut all = Vec::new();
        for (interface, operations) in &self.rows.pin() {
            for (operation, row) in &operations.pin() {
                all.push(row.figures(interface, operation));
            }
        }
        all.sort_by(|a, b| (&a.interface, &a.operation).cmp(&(&b.interface, &b.operation)));
        all
    }
}

impl Row {
    fn add(&self, micros: u64, failed: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failures.fetch_add(failed.into(), Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        let at = (micros.max(1).next_power_of_two().trailing_zeros() as usize).min(BOUNDS);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn figures(&self, interface: &str, operation: &str) -> Figures {
        Figures {
            interface: interface.into(),
            operation: operation.into(),
            calls: self.calls.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            micros: self.micros.load(Ordering::Relaxed),
            buckets: std::array::from_fn(|at| {
                self.buckets.get(at).map_or(0, |bucket| bucket.load(Ordering::Relaxed))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_operation_and_by_how_long_they_took() {
        let row = Row::default();
        for micros in [0, 1, 2, 3, 4, 5, u64::MAX / 2] {
            row.add(micros, micros == 5);
        }
        let figures = row.figures("a", "b");
        assert_eq!((figures.calls, figures.failures), (7, 1));
        assert_eq!(figures.buckets[..4], [2, 1, 2, 1], "0 and 1, 2, 3 and 4, 5");
        assert_eq!(figures.buckets[BOUNDS], 1);
    }

    #[test]
    fn a_call_is_counted_once() {
        let calls = Arc::new(Calls::default());
        let tally = Tally::begin(&calls, Side::Served, "I", "op");
        tally.fail(false);
        tally.count();
        tally.count();
        let figures = calls.served.figures();
        assert_eq!((figures.len(), figures[0].calls, figures[0].failures), (1, 1, 1));
        assert_eq!(calls.made.figures(), []);
    }

    #[test]
    fn names_that_nobody_has_or_that_are_too_many_are_counted_together() {
        let calls = Arc::new(Calls::default());
        for at in 0..10 {
            let tally = Tally::begin(&calls, Side::Served, "I", &format!("unknown {at}"));
            tally.fail(true);
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
