//! Counters of the compiler's work, with which tests check that it does not grow faster than the text.

use std::cell::Cell;

/// The work of the compiler on the current thread.
///
/// The counts depend only on the texts and the options.
///
/// ```
/// use idl_compiler::{Source, Work, compile};
///
/// let before = Work::of_current_thread();
/// let model = compile(Source::text("a.idl", "struct S { long a; };"));
/// let work = Work::of_current_thread().since(before);
/// assert!(model.is_ok() && work.tokens >= 7 && work.steps < 20 * work.tokens);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Tokens after preprocessing. The tokens of a template module's body count again for each instance. The
    /// declarations that components, homes, event types and ports imply count as if they were in the text.
    pub tokens: u64,
    /// Inherited operations, attributes and members of interfaces, value types and structs, and the direct
    /// and indirect bases of these. Rust code is generated for each of them in each derived definition.
    pub inherited: u64,
    /// Definitions, names, scopes, bases, members and types that were visited, and pieces of Rust that were
    /// written.
    pub steps: u64,
}

thread_local! {
    static TOKENS: Cell<u64> = const { Cell::new(0) };
    static INHERITED: Cell<u64> = const { Cell::new(0) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

impl Work {
    /// Returns the work of this thread since it started.
    pub fn of_current_thread() -> Work {
        Work { tokens: TOKENS.get(), inherited: INHERITED.get(), steps: STEPS.get() }
    }

    /// Returns the work since an earlier measurement.
    pub fn since(self, earlier: Work) -> Work {
        Work {
            tokens: self.tokens.wrapping_sub(earlier.tokens),
            inherited: self.inherited.wrapping_sub(earlier.inherited),
            steps: self.steps.wrapping_sub(earlier.steps),
        }
    }
}

#[inline]
pub(crate) fn count_step() {
    count_steps(1);
}

#[inline]
pub(crate) fn count_steps(count: usize) {
    STEPS.set(STEPS.get().wrapping_add(count as u64));
}

pub(crate) fn count_tokens(count: usize) {
    TOKENS.set(TOKENS.get().wrapping_add(count as u64));
}

pub(crate) fn count_inherited(count: usize) {
    INHERITED.set(INHERITED.get().wrapping_add(count as u64));
}
