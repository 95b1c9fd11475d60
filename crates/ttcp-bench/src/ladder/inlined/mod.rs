//! Step 1: the engine of step 0 with inlined small routines.
//!
//! Only the [stream](cdr) differs from the [original](super::original) engine.

pub(crate) mod cdr;
#[path = "../original/code.rs"]
pub(crate) mod code;
#[path = "../original/traverse.rs"]
pub(crate) mod traverse;
#[path = "../original/visits.rs"]
pub(crate) mod visits;

pub(crate) use super::base::*;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use visits::{decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};

/// Returns the fault. It is inlined, because only step 3 moves error handling out of line.
#[inline(always)]
pub(crate) fn raise(fault: Fault) -> Fault {
    fault
}
