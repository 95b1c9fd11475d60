//! The ladder: engines that encode and decode values, in steps from an interpreter of type codes, as in the
//! first ORBs with IIOP, to compiled stubs. Each of the steps 1 to 5 adds the change in its row to the
//! previous step. The literature describes steps 0 to 4, and proposes step 5.
//!
//! | step | | change |
//! |---|---|---|
//! | 0 | `original` | none: a traversal of the type code's bytes with a callback for each value |
//! | 1 | `inlined` | small routines are inlined |
//! | 2 | `merged` | sizes are computed once, and traversal and callbacks are one routine |
//! | 3 | `receiver` | the receiver is split into small routines, and error handling is out of line |
//! | 4 | `sender` | the sender is also split into small routines |
//! | 5 | `typed` | consecutive numbers are checked, swapped and copied in one loop |
//! | 6 | `program` | zorb's interpreter: a type code is compiled once to a flat program |
//! | 7 | `compiled` | compiled stubs |
//!
//! A step that reuses code of another step compiles the same file again. Therefore each step has machine code
//! of its own, which `size` measures. Steps 0 to 5 are compiled twice: for measurements, and to count calls.

pub(crate) mod base;
pub mod case;
mod compiled;
pub mod measurement;
mod program;
mod raw;
mod size;
#[path = "steps.rs"]
mod steps_for_counting;
#[path = "steps.rs"]
mod steps_for_timing;
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
    /// 1: small routines are inlined
    Inlined,
    /// 2: sizes are precomputed, traversal and callbacks are merged
    Merged,
    /// 3: the receiver is split into small routines
    #[value(name = "receiver")]
    #[serde(rename = "receiver")]
    ReceiverSplit,
    /// 4: the sender is split into small routines
    #[value(name = "sender")]
    #[serde(rename = "sender")]
    SenderSplit,
    /// 5: consecutive numbers are handled in one loop
    Typed,
    /// 6: type codes are compiled to a flat program
    Program,
    /// 7: stubs are compiled
    Compiled,
    /// The baseline: bytes are copied unchanged, like over sockets
    Raw,
}

/// Decodes and encodes values of one type, and stores the current value. Methods fail if the bytes or the
/// memory do not contain a value of the type.
pub(crate) trait Engine {
    /// Decodes a value and stores it.
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()>;

    /// Frees the stored value.
    fn release(&mut self) -> anyhow::Result<()>;

    /// Encodes the stored value.
    fn send(&mut self) -> anyhow::Result<()>;

    /// Returns the bytes of the last encoding.
    fn sent_bytes(&mut self) -> Vec<u8>;

    /// Returns the stored elements in C's memory layout; `None` if the engine does not store elements.
    fn memory(&mut self) -> Option<Vec<u8>>;

    /// Returns the number of buffers in use; 0 if the engine has no buffers.
    #[cfg(test)]
    fn used_buffers(&self) -> usize {
        0
    }

    /// Replaces the stored value with a deep copy. By default does nothing: not all steps have deep copies.
    fn copy(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Step {
    pub(crate) const ALL: [Step; 8] = [
        Step::Original,
        Step::Inlined,
        Step::Merged,
        Step::ReceiverSplit,
        Step::SenderSplit,
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
            Step::ReceiverSplit => "3 receiver split",
            Step::SenderSplit => "4 sender split",
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
            step => steps_for_timing::engine::<NoCounting>(step, &case.code, case.swaps_bytes()),
        }
    }

    /// Returns the engine that counts calls; `None` for steps whose calls cannot be counted.
    pub(crate) fn counting_engine(self, case: &Case) -> anyhow::Result<Option<Box<dyn Engine>>> {
        match self {
            Step::Program | Step::Compiled | Step::Raw => Ok(None),
            step => steps_for_counting::engine::<CallCounts>(step, &case.code, case.swaps_bytes()).map(Some),
        }
    }
}
