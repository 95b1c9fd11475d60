//! [`Program`]: a type code compiled once into a flat list of steps, which small loops execute on bytes and
//! values.
//!
//! Everything that depends only on the type is computed once: the sizes of fixed layouts for each phase,
//! contiguous members, the minimum size of an element, the labels of a union. Numbers and structs of numbers
//! are processed in runs: one bounds check, then a few operations on words. The program is kept with the type
//! code, for all types that it consists of.

mod copy;
mod graph_read;
mod graph_write;
mod print;
mod read;
mod skip;
mod swap;
mod write;

pub(crate) use read::locate_kept;

pub use crate::program::Contents;
pub use crate::walk::Program;
