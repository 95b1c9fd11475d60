//! Walks over encoded values, driven by the programs of their types: values are skipped, checked, or copied
//! from one stream to another.

mod copy;
mod custom;
mod graph;
mod places;
mod program;
mod run;
mod skip;

pub(crate) use copy::{CopyError, copy as copy_value, spell};
pub(crate) use custom::{CODE_SETS, Stream, canonical};
pub(crate) use graph::pass_state;
pub(crate) use places::CopiedValues;
pub use program::Program;
pub(crate) use run::{counted, length};
pub(crate) use skip::{go_over, go_over_any, pass_wide, read_except_id};

/// Maximum nesting of anys that are decoded.
pub const MAX_ANYS: usize = 32;
