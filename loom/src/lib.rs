//! Common code of the models: the runtime's own request counter on loom's atomics, and loom versions of the
//! types around it.
//!
//! `crates/orb-runtime/src/servant/request_counter.rs` is included unchanged. tokio's `Notify`, arc-swap's
//! slots and a POA's gate are reduced to the minimum: the models prove the order of steps between them, not
//! those crates.

pub mod atomic;
#[path = "../../crates/orb-runtime/src/servant/request_counter.rs"]
#[expect(dead_code, reason = "the runtime's")]
mod count;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex, RwLock};

pub use self::atomic::{AtomicU8, AtomicU32, Ordering};
use self::count::RequestCount;

/// An activated object.
pub struct Object {
    pub generation: u32,
    count: RequestCount,
    gate: Arc<Gate>,
    /// Accessed by requests (shared), and by a thread that has waited for them (exclusive): loom reports a
    /// violation.
    servant: UnsafeCell<()>,
}

/// The gate of a POA: whether requests may start, and the threads that wait for the last of them.
pub struct Gate {
    open: AtomicU8,
    idle: Notify,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Served,
    /// The object was not in the map.
    Gone,
    /// The gate was closed.
    Refused,
}

impl Gate {
    pub fn open() -> Arc<Self> {
        Arc::new(Self { open: AtomicU8::new(1), idle: Notify::default() })
    }

    /// Closes the gate, like a manager that starts to hold or discard requests.
    pub fn close(&self) {
        self.open.store(0, Ordering::SeqCst);
    }

    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst) != 0
    }

    /// Returns the number of notifications that the last request has ended.
    pub fn told(&self) -> usize {
        *self.idle.told.lock().unwrap()
    }
}

impl Object {
    pub fn new(generation: u32, gate: &Arc<Gate>) -> Arc<Self> {
        Arc::new(Self {
            generation,
            count: RequestCount::new(),
            gate: Arc::clone(gate),
            servant: UnsafeCell::new(()),
        })
    }

    /// A request: enters, checks the gate, runs, leaves.
    pub fn request(&self) -> Request {
        let result = match self.enter() {
            false => Request::Gone,
            true if !self.gate.is_open() => Request::Refused,
            true => {
                self.run();
                Request::Served
            }
        };
        self.leave();
        result
    }

    /// An incorrect order of steps: the gate first, then the counter.
    pub fn hasty_request(&self) {
        if self.gate.is_open() {
            if self.enter() {
                self.run();
            }
            self.leave();
        }
    }

    /// A request that calls its own object while it runs.
    pub fn request_again(&self) -> Request {
        let result = match self.enter() {
            false => Request::Gone,
            true => {
                let entered = self.enter();
                if !entered {
                    self.leave();
                    assert!(self.count.enter_nested(), "the object has not ended while this one runs");
                }
                self.run();
                self.leave();
                self.run();
                Request::Served
            }
        };
        self.leave();
        result
    }

    pub fn enter(&self) -> bool {
        self.count.enter()
    }

    pub fn run(&self) {
        self.servant.with(|_| ());
    }

    pub fn leave(&self) {
        if self.count.leave() {
            self.gate.idle.notify_waiters();
        }
    }

    /// Takes the object out of service.
    pub fn retire(&self) -> bool {
        self.count.mark_deactivated()
    }

    pub fn is_busy(&self) -> bool {
        self.count.is_busy()
    }

    /// Waits until no request is running, and returns whether it had to wait. The steps are those of the
    /// runtime, which awaits where this blocks.
    pub fn idle(&self) -> bool {
        let mut waited = false;
        loop {
            let notified = self.gate.idle.notified();
            if !self.count.watch() {
                self.count.unwatch();
                return waited;
            }
            waited = true;
            self.gate.idle.wait(notified);
        }
    }

    /// Accesses the servant exclusively, which is only allowed after waiting.
    pub fn finish(&self) {
        self.servant.with_mut(|_| ());
    }
}

/// The used subset of tokio's `Notify`: a waiter that registered before the notification receives it.
#[derive(Default)]
pub struct Notify {
    told: Mutex<usize>,
    changed: Condvar,
}

impl Notify {
    pub fn notified(&self) -> usize {
        *self.told.lock().unwrap()
    }

    pub fn wait(&self, since: usize) {
        let mut told = self.told.lock().unwrap();
        while *told == since {
            told = self.changed.wait(told).unwrap();
        }
    }

    pub fn notify_waiters(&self) {
        *self.told.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// The table of objects by index and generation. An `RwLock` replaces the `ArcSwapOption`.
pub struct Slots {
    slots: Vec<(RwLock<Option<Arc<Object>>>, AtomicU32)>,
    free: Mutex<Vec<usize>>,
}

impl Slots {
    pub fn new(len: usize) -> Self {
        let slot = || (RwLock::new(None), AtomicU32::new(0));
        Self { slots: (0..len).map(|_| slot()).collect(), free: Mutex::new((0..len).rev().collect()) }
    }

    /// Returns index and generation of a new object; `None` if the table is full, where the runtime would
    /// extend it.
    pub fn activate(&self, gate: &Arc<Gate>) -> Option<(usize, Arc<Object>)> {
        let index = self.free.lock().unwrap().pop()?;
        let (slot, generation) = &self.slots[index];
        let object = Object::new(generation.fetch_add(1, Ordering::Relaxed) + 1, gate);
        *slot.write().unwrap() = Some(Arc::clone(&object));
        Some((index, object))
    }

    pub fn find(&self, index: usize, generation: u32) -> Option<Arc<Object>> {
        let found = self.slots[index].0.read().unwrap();
        found.as_ref().filter(|object| object.generation == generation).cloned()
    }

    /// Deactivates the object. Returns whether this call did it.
    pub fn deactivate(&self, index: usize, object: &Object) -> bool {
        if !object.retire() {
            return false;
        }
        *self.slots[index].0.write().unwrap() = None;
        self.free.lock().unwrap().push(index);
        true
    }
}
