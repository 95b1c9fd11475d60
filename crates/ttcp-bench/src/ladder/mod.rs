//! The ladder: interpretive engines for values of types that are known at run time, from the design of the
//! first IIOP engines to compiled stubs. Each step is its predecessor with one change, as described in the
//! literature.
//!
//! | step | | change |
//! |---|---|---|
//! | 0 | [`original`](measured::original) | none: a traversal of the type code's bytes that calls back for each value |
//! | 1 | [`inlined`](measured::inlined) | small routines are inlined |
//! | 2 | [`merged`](measured::merged) | sizes computed once, traversal and visits one routine, types passed down, scalars freed at once |
//! | 3 | [`receiver`](measured::receiver) | the receiver split into small routines, rare cases out of line |
//! | 4 | [`sender`](measured::sender) | the sender too |
//! | 5 | [`typed`](measured::typed) | a routine for consecutive numbers: check, swap and copy in one loop |
//! | 6 | [`program`] | zorb's own: a type code compiled once to flat steps |
//! | 7 | [`compiled`] | stubs |
//!
//! A step that reuses code of another compiles the same file again. Therefore each step has machine code of
//! its own, which can be counted ([`size`]) and optimised separately. All steps are compiled twice: for
//! measuring, and with counted calls.

pub mod base;
pub mod case;
pub mod compiled;
#[path = "steps.rs"]
pub mod counted;
#[path = "steps.rs"]
pub mod measured;
pub mod measurement;
pub mod program;
pub mod raw;
pub mod size;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use serde::Serialize;
use zorb::Bytes;

use base::{Counted, Uncounted};
use case::Case;

/// A step of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// 0: the original control flow
    Original,
    /// 1: small routines inlined
    Inlined,
    /// 2: sizes known, walk and visits merged
    Merged,
    /// 3: the receiver split
    Receiver,
    /// 4: the sender split
    Sender,
    /// 5: numbers in a row in one loop
    Typed,
    /// 6: a flat program
    Program,
    /// 7: compiled stubs
    Compiled,
    /// No step: bytes are copied unchanged, as sockets do
    Raw,
}

/// A conversion from bytes to a value and back, with its state between calls.
pub trait Engine {
    /// Reads a value from its encoding, and stores it.
    ///
    /// # Errors
    /// The bytes do not encode the type.
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()>;

    /// Drops the stored value, with all that it refers to.
    ///
    /// # Errors
    /// It is not a value of the type.
    fn release(&mut self) -> anyhow::Result<()>;

    /// Writes the stored value, and overwrites the previous output.
    ///
    /// # Errors
    /// It is not a value of the type.
    fn send(&mut self) -> anyhow::Result<()>;

    /// Returns the output.
    fn sent(&mut self) -> Vec<u8>;

    /// Returns the stored elements in C's memory layout; `None` if the engine does not build any.
    fn memory(&mut self) -> Option<Vec<u8>>;

    /// Returns the number of buffers in use, if the engine has buffers.
    fn buffers(&self) -> usize {
        0
    }

    /// Replaces the stored value with a copy of it. Compiled code and programs count references, so they keep
    /// the value.
    ///
    /// # Errors
    /// It is not a value of the type.
    fn copy(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Step {
    /// The steps, lowest first.
    pub const ALL: [Step; 8] = [
        Step::Original,
        Step::Inlined,
        Step::Merged,
        Step::Receiver,
        Step::Sender,
        Step::Typed,
        Step::Program,
        Step::Compiled,
    ];

    /// Returns its number, from 0.
    pub fn number(self) -> usize {
        self as usize
    }

    /// Returns the title in tables: `3 receiver split`.
    pub fn title(self) -> &'static str {
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

    /// Returns its engine for the type of a case.
    ///
    /// # Errors
    /// The engine does not support the type.
    pub fn engine(self, case: &Case) -> anyhow::Result<Box<dyn Engine>> {
        match self {
            Step::Program => Ok(Box::new(program::Interpreter::new(case))),
            Step::Compiled => Ok(compiled::engine(case)),
            Step::Raw => Ok(Box::<raw::Copied>::default()),
            step => measured::engine::<Uncounted>(step, &case.code, case.swaps()),
        }
    }

    /// Returns its engine with counted calls; `None` for steps that are not counted.
    ///
    /// # Errors
    /// The engine does not support the type.
    pub fn counted(self, case: &Case) -> anyhow::Result<Option<Box<dyn Engine>>> {
        match self {
            Step::Program | Step::Compiled | Step::Raw => Ok(None),
            step => counted::engine::<Counted>(step, &case.code, case.swaps()).map(Some),
        }
    }
}
