//! Step 1: the same engine, whose small routines are inlined.
//!
//! The visits and the walk are those of the [original](super::original), text for text, and the calls that are left are as many; the
//! [stream](cdr) is another one.

pub mod cdr;
#[path = "../original/code.rs"]
pub mod code;
#[path = "../original/traverse.rs"]
pub mod traverse;
#[path = "../original/visits.rs"]
pub mod visits;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{Known, TypeCode};
pub use visits::{Visit, decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};

/// A fault, made where it is found.
#[inline(always)]
pub fn rare(fault: Fault) -> Fault {
    fault
}
