//! Processing of encoded values by the programs of their types: values are skipped, checked, or copied from
//! one stream to another.

mod copy;
mod custom;
mod graph;
mod program;
mod run;
mod skip;

pub(crate) use copy::{CopyError, copy as copy_value, copy_with_ids};
pub(crate) use custom::{StreamProperties, UNICODE_CODE_SETS, canonical_encoder};
pub(crate) use graph::{CopiedValues, VALUE_CHARGE, skip_known_state};
pub use program::Program;
pub(crate) use run::{check_fits, read_count, read_length};
pub(crate) use skip::{read_except_id, skip_in_any, skip_value, skip_wstring};

/// The maximum nesting of anys that are decoded.
pub const MAX_ANYS: usize = 32;
