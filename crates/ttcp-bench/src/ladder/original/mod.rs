//! Step 0: a type code interpreter as the first IIOP engines had one, before anything was precomputed.
//!
//! A type code is octets, and they are parsed again wherever they are needed. [`traverse`](traverse::traverse) walks a
//! type and calls back for each value, by a function pointer; [`encoder`](visits::encoder),
//! [`decoder`](visits::decoder), [`deep_copy`](visits::deep_copy) and [`deep_free`](visits::deep_free) are what it can
//! call back, and go on into `traverse` for what is constructed. Nothing is remembered: a struct skips the names in its
//! type code and works out size and alignment of each member for every value, a number is a visit and a call of its
//! stream, and a sequence is walked a second time to be freed. Values lie in memory as C has them.
//!
//! Routines that were calls in the original are calls here (`inline(never)`); the compiler's flags are those of everything
//! else. `benches/dynamic.rs` has this folder too, as its baseline.

pub mod cdr;
pub mod code;
pub mod traverse;
pub mod visits;

pub use super::base::*;
pub use cdr::Cdr;
pub use code::{Known, TypeCode};
pub use visits::{Visit, decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};
