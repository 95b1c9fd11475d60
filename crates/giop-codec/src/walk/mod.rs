//! Processing of encoded values by the programs of their types. A program is a list of steps, compiled from a
//! type code. Values are skipped, checked, or copied from one stream to another.

mod copy;
mod custom;
mod graph;
mod program;
mod run;
mod skip;

pub(crate) use copy::{CopyError, copy as copy_value, copy_with_ids};
pub(crate) use custom::{StreamProperties, UNICODE_CODE_SETS, canonical_encoder};
pub(crate) use graph::{CopiedValues, VALUE_CHARGE_BYTES, skip_known_state};
pub use program::Program;
pub(crate) use run::{check_fits, read_count, read_length};
pub(crate) use skip::{read_exception_id, skip_in_any, skip_value, skip_wstring};

/// The maximum number of anys inside each other that are decoded.
pub const MAX_NESTED_ANYS: usize = 32;
