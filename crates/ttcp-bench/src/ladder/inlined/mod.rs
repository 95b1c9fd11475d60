//! Step 1: the same engine with inlined small routines.
//!
//! Only the [stream](cdr) differs from the [original](super::original) engine.

pub mod cdr;
#[path = "../original/code.rs"]
pub mod code;
#[path = "../original/traverse.rs"]
pub mod traverse;
#[path = "../original/visits.rs"]
pub mod visits;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use visits::{Visit, decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};

/// Returns the fault. Inlined: faults are not moved out of line yet.
#[inline(always)]
pub fn raise(fault: Fault) -> Fault {
    fault
}
