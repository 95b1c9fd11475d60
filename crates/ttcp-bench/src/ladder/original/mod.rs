//! Step 0: a type code interpreter like those of the first IIOP engines, without any precomputation.
//!
//! A type code is a byte string that is parsed again wherever it is needed. [`traverse`](traverse::traverse)
//! traverses a type and calls a function pointer for each value. The callbacks [`encoder`](visits::encoder),
//! [`decoder`](visits::decoder), [`deep_copy`](visits::deep_copy) and [`deep_free`](visits::deep_free) call
//! `traverse` for constructed values.
//!
//! Nothing is cached. For every value, a struct skips the names in its type code and computes size and
//! alignment of each member. A number costs a visit and a call of its stream, and a sequence is traversed a
//! second time to free it. Values have C's memory layout.
//!
//! Routines that were calls in the original are calls here (`inline(never)`); the compiler's flags are the
//! usual ones. `benches/dynamic.rs` includes this directory too, as its baseline.

pub mod cdr;
pub mod code;
pub mod traverse;
pub mod visits;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{StoredTypeCode, TypeCode};
pub use visits::{Visit, decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};
