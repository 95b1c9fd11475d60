//! Step 3: the receiver's part of the one large routine is split, and what is rare stands apart.
//!
//! A routine for each kind of what is constructed ([`mod@decode`]) knows what it is about, fits into the cache, and asks nobody what
//! is to be done. Faults are made out of line ([`rare`]), so that the code that is run lies together. The sender, copying and
//! freeing are left to the walk of step 2, which no longer reads values.

#[path = "../inlined/cdr.rs"]
pub mod cdr;
#[path = "../merged/code.rs"]
pub mod code;
pub mod decode;
#[path = "../merged/traverse.rs"]
pub mod traverse;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{Known, TypeCode};
pub use decode::{decode, one_by_one as decode_scalars};
pub use traverse::{copy, encode, free};

/// Whether the walk still reads values.
pub const DECODES: bool = false;
/// Whether the walk still writes values.
pub const ENCODES: bool = true;

/// A fault, made where nothing else is.
#[cold]
#[inline(never)]
pub fn rare(fault: Fault) -> Fault {
    fault
}
