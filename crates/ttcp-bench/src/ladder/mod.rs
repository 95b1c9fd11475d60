//! The ladder: interpretive engines for values of types that are known at run time, from that of the first IIOP engines to what
//! compiled stubs do. Each step is the one before it and one change, as the literature describes it.
//!
//! | step | | change |
//! |---|---|---|
//! | 0 | [`original`](measured::original) | none: a walk over the type code's octets that calls back for each value |
//! | 1 | [`inlined`](measured::inlined) | small routines are inlined |
//! | 2 | [`merged`](measured::merged) | sizes worked out once, walk and visits one routine, types handed down, scalars freed at a stroke |
//! | 3 | [`receiver`](measured::receiver) | the receiver split into small routines, what is rare out of line |
//! | 4 | [`sender`](measured::sender) | the sender too |
//! | 5 | [`typed`](measured::typed) | a routine for numbers in a row: check, turn and copy in one loop |
//! | 6 | [`program`] | zorb's own: a type code compiled once to flat steps |
//! | 7 | [`compiled`] | stubs |
//!
//! What a step takes from another is the same file, compiled again: so each has machine code of its own, to be counted ([`size`]) and to
//! be optimised for it. All are compiled twice: as they are measured, and with calls counted.

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
    /// No step, but what sockets do: octets are copied as they are
    Raw,
}

/// A way from octets to a value and back, with what it keeps between calls.
pub trait Engine {
    /// Takes a value from its octets, and keeps it.
    ///
    /// # Errors
    /// They are none of the type.
    fn receive(&mut self, wire: &Bytes) -> anyhow::Result<()>;

    /// Ends the value that is kept, with all that it refers to.
    ///
    /// # Errors
    /// It is no value of the type.
    fn release(&mut self) -> anyhow::Result<()>;

    /// Writes the value that is kept, over what was written before.
    ///
    /// # Errors
    /// It is no value of the type.
    fn send(&mut self) -> anyhow::Result<()>;

    /// What was written.
    fn sent(&mut self) -> Vec<u8>;

    /// The elements that are kept, as C has them in memory; `None` if none are made of the octets.
    fn memory(&mut self) -> Option<Vec<u8>>;

    /// How many buffers are in use, where it has such.
    fn buffers(&self) -> usize {
        0
    }

    /// Keeps a copy of the value in its place. Compiled code and programs count references, and keep what they have.
    ///
    /// # Errors
    /// It is no value of the type.
    fn copy(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Step {
    /// The steps, from the bottom.
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

    /// Its number, from 0.
    pub fn number(self) -> usize {
        self as usize
    }

    /// For tables: `3 receiver split`.
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

    /// Its engine for the type of a case.
    ///
    /// # Errors
    /// The type is none that the engine knows.
    pub fn engine(self, case: &Case) -> anyhow::Result<Box<dyn Engine>> {
        match self {
            Step::Program => Ok(Box::new(program::Interpreter::new(case))),
            Step::Compiled => Ok(compiled::engine(case)),
            Step::Raw => Ok(Box::<raw::Copied>::default()),
            step => measured::engine::<Uncounted>(step, &case.code, case.swaps()),
        }
    }

    /// Its engine with calls counted; `None` for what is not counted so.
    ///
    /// # Errors
    /// The type is none that the engine knows.
    pub fn counted(self, case: &Case) -> anyhow::Result<Option<Box<dyn Engine>>> {
        match self {
            Step::Program | Step::Compiled | Step::Raw => Ok(None),
            step => counted::engine::<Counted>(step, &case.code, case.swaps()).map(Some),
        }
    }
}
