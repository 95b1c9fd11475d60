//! The ladder: engines that encode and decode values, in steps from an interpreter of type codes, as in the
//! first ORBs with IIOP, to compiled stubs. Each step is the previous step with one change, as described in
//! the literature.
//!
//! | step | | change |
//! |---|---|---|
//! | 0 | `original` | none: a traversal of the type code's bytes with a callback for each value |
//! | 1 | `inlined` | small routines are inlined |
//! | 2 | `merged` | sizes are computed once, and traversal and callbacks are one routine |
//! | 3 | `receiver` | the receiver is split into small routines, and error handling is out of line |
//! | 4 | `sender` | the sender is split, too |
//! | 5 | `typed` | consecutive numbers are checked, swapped and copied in one loop |
//! | 6 | `program` | zorb's interpreter: a type code is compiled once to a flat program |
//! | 7 | `compiled` | compiled stubs |
//!
//! A step that reuses code of another step compiles the same file again. Therefore each step has machine code
//! of its own, whose size can be determined (`size`). All steps are compiled twice: for measurements, and
//! with counted calls.

pub(crate) mod base;
pub mod case;
mod compiled;
#[path = "steps.rs"]
mod counted;
#[path = "steps.rs"]
mod measured;
pub mod measurement;
mod program;
mod raw;
mod size;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use serde::Serialize;
use zorb::Bytes;

use base::{CallCounts, NoCounting};
use case::Case;

/// A step of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// 0: the original control flow
    Original,
    /// 1: small routines inlined
    Inlined,
    /// 2: sizes precomputed, traversal and callbacks merged
    Merged,
    /// 3: the receiver split
    Receiver,
    /// 4: the sender split
    Sender,
    /// 5: consecutive numbers in one loop
    Typed,
    /// 6: a flat program
    Program,
    /// 7: compiled stubs
    Compiled,
    /// The baseline: bytes are copied unchanged, as by sockets
    Raw,
}

/// Decodes and encodes values of one type, and stores the current value. Methods fail if the bytes or the
/// memory do not contain a value of the type.
pub(crate) trait Engine {
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()>;

    fn release(&mut self) -> anyhow::Result<()>;

    fn send(&mut self) -> anyhow::Result<()>;

    fn sent(&mut self) -> Vec<u8>;

    /// Returns the stored elements in C's memory layout; `None` if the engine does not store elements.
    fn memory(&mut self) -> Option<Vec<u8>>;

    /// Returns the number of buffers in use; 0 if the engine has no buffers.
    #[cfg(test)]
    fn used_buffers(&self) -> usize {
        0
    }

    /// Replaces the stored value by a copy. Stubs and programs do nothing, because their values are reference
    /// counted.
    fn copy(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Step {
    pub(crate) const ALL: [Step; 8] = [
        Step::Original,
        Step::Inlined,
        Step::Merged,
        Step::Receiver,
        Step::Sender,
        Step::Typed,
        Step::Program,
        Step::Compiled,
    ];

    pub(crate) fn number(self) -> usize {
        self as usize
    }

    /// Returns the title in tables, such as `3 receiver split`.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Step::Original => "0 original",
            Step::Inlined => "1 inlined",
            Step::Merged => "2 precomputed, merged",
            Step::Receiver => "3 receiver split",
            Step::Sender => "4 sender split",
            Step::Typed => "5 typed sequences",
            Step::Program => "6 flat program",
            Step::Compiled => "7 compiled stubs",
            Step::Raw => "raw",
        }
    }

    pub(crate) fn engine(self, case: &Case) -> anyhow::Result<Box<dyn Engine>> {
        match self {
            Step::Program => Ok(Box::new(program::Interpreter::new(case))),
            Step::Compiled => Ok(compiled::engine(case)),
            Step::Raw => Ok(Box::<raw::RawCopier>::default()),
            step => measured::engine::<NoCounting>(step, &case.code, case.swaps()),
        }
    }

    /// Returns the engine with counted calls; `None` for steps whose calls are not counted.
    pub(crate) fn counted(self, case: &Case) -> anyhow::Result<Option<Box<dyn Engine>>> {
        match self {
            Step::Program | Step::Compiled | Step::Raw => Ok(None),
            step => counted::engine::<CallCounts>(step, &case.code, case.swaps()).map(Some),
        }
    }
}
