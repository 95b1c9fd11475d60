//! Atomics for the runtime's code in place of those of `std`.
//!
//! loom treats a sequentially consistent access as acquire and release only, and would report orders that no
//! machine produces. Its fences are exact. Therefore each such access here has a fence: after a store, and
//! before a load. Processors without sequentially consistent accesses use the same fences.

pub use loom::sync::atomic::Ordering;
use loom::sync::atomic::fence;

macro_rules! atomic {
    ($name:ident, $number:ty) => {
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        impl $name {
            pub fn new(value: $number) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            pub fn load(&self, order: Ordering) -> $number {
                before(order);
                self.0.load(weaker(order, Ordering::Acquire))
            }

            pub fn store(&self, value: $number, order: Ordering) {
                self.0.store(value, weaker(order, Ordering::Release));
                behind(order);
            }

            pub fn fetch_add(&self, value: $number, order: Ordering) -> $number {
                self.change(order, |atomic, order| atomic.fetch_add(value, order))
            }

            pub fn fetch_sub(&self, value: $number, order: Ordering) -> $number {
                self.change(order, |atomic, order| atomic.fetch_sub(value, order))
            }

            pub fn fetch_or(&self, value: $number, order: Ordering) -> $number {
                self.change(order, |atomic, order| atomic.fetch_or(value, order))
            }

            pub fn compare_exchange(
                &self,
                expected: $number,
                value: $number,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$number, $number> {
                let failed = weaker(failed, Ordering::Acquire);
                self.change(order, |atomic, order| atomic.compare_exchange(expected, value, order, failed))
            }

            fn change<R>(
                &self,
                order: Ordering,
                f: impl FnOnce(&loom::sync::atomic::$name, Ordering) -> R,
            ) -> R {
                before(order);
                let result = f(&self.0, weaker(order, Ordering::AcqRel));
                behind(order);
                result
            }
        }
    };
}

atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);

fn before(order: Ordering) {
    if order == Ordering::SeqCst {
        fence(Ordering::SeqCst);
    }
}

use before as behind;

fn weaker(order: Ordering, weaker: Ordering) -> Ordering {
    if order == Ordering::SeqCst { weaker } else { order }
}
