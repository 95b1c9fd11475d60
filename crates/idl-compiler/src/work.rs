//! Counts of the compiler's work. With them tests show, without a clock, that work grows as the text does.

use std::cell::Cell;

/// Work of the compiler on the current thread.
///
/// The counts depend on texts and options alone: the same text costs the same steps each time.
///
/// ```
/// use idl_compiler::{Source, Work, compile};
///
/// let before = Work::so_far();
/// let model = compile(Source::text("a.idl", "struct S { long a; };"));
/// let work = Work::so_far().since(before);
/// assert!(model.is_ok() && work.tokens >= 7 && work.steps < 20 * work.tokens);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Tokens after the preprocessor. Those of the body of a template module count once more for each instance, and those of the
    /// IDL that components, homes, events and ports stand for count as if it had been written.
    pub tokens: u64,
    /// Operations, attributes and members that interfaces, value types and structs inherit, and the bases that they inherit from. Each
    /// has Rust of its own in what derives from it.
    pub inherited: u64,
    /// Definitions, names, scopes, bases, members and types that were looked at, and pieces of Rust that were written.
    pub steps: u64,
}

thread_local! {
    static TOKENS: Cell<u64> = const { Cell::new(0) };
    static INHERITED: Cell<u64> = const { Cell::new(0) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

impl Work {
    /// The work of this thread since it started.
    pub fn so_far() -> Work {
        Work { tokens: TOKENS.get(), inherited: INHERITED.get(), steps: STEPS.get() }
    }

    /// The work between an earlier moment and this one.
    pub fn since(self, earlier: Work) -> Work {
        Work {
            tokens: self.tokens.wrapping_sub(earlier.tokens),
            inherited: self.inherited.wrapping_sub(earlier.inherited),
            steps: self.steps.wrapping_sub(earlier.steps),
        }
    }
}

/// Counts a step.
#[inline]
pub(crate) fn step() {
    steps(1);
}

/// Counts several steps.
#[inline]
pub(crate) fn steps(count: usize) {
    STEPS.set(STEPS.get().wrapping_add(count as u64));
}

/// Counts tokens of a text.
pub(crate) fn tokens(count: usize) {
    TOKENS.set(TOKENS.get().wrapping_add(count as u64));
}

/// Counts what a definition inherits.
pub(crate) fn inherited(count: usize) {
    INHERITED.set(INHERITED.get().wrapping_add(count as u64));
}
