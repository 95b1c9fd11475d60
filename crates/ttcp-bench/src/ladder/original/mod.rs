//! Step 0: an interpreter of type codes as in the first ORBs with IIOP, without precomputation.
//!
//! A type code is a byte string that is parsed whenever it is used. [`traverse`](traverse::traverse)
//! traverses a value by its type, and calls a function pointer (a *visit*) for each part. The visits
//! [`encoder`](visits::encoder), [`decoder`](visits::decoder), [`deep_copy`](visits::deep_copy) and
//! [`deep_free`](visits::deep_free) call `traverse` for constructed values.
//!
//! Nothing is cached. For every struct, the engine skips the names in its type code, and computes the size
//! and the alignment of each member. A number costs the call of a visit and a call of the stream. Freeing a
//! sequence traverses all its elements.
//!
//! Routines that were calls in the published engine are also calls in this one (`inline(never)`).
//! `benches/dynamic.rs` includes this directory as its baseline.

pub(crate) mod cdr;
pub(crate) mod code;
pub(crate) mod traverse;
pub(crate) mod visits;

pub(crate) use super::base::*;
pub(crate) use cdr::Cdr;
pub(crate) use code::{StoredTypeCode, TypeCode};
pub(crate) use visits::{decoder as decode, deep_copy as copy, deep_free as free, encoder as encode};
