//! Step 1: the same engine with inlined small routines.
//!
//! The visits and the traversal are those of the [original](super::original), unchanged, and make the same
//! number of other calls. The [stream](cdr) differs.

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

/// Returns a fault at the place where it is detected.
#[inline(always)]
pub fn rare(fault: Fault) -> Fault {
    fault
}
