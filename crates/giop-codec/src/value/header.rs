//! The header of a value: its tag and type information ("Value Encoding").

pub(super) use crate::cdr::is_end_tag;
use crate::typecode::WSTRING_VALUE;

/// The repository id of the standard value box of a `string`.
pub(super) const STRING_VALUE: &str = "IDL:omg.org/CORBA/StringValue:1.0";

pub(super) const NULL: u32 = 0;
/// The tag before an offset to an earlier value, repository id, list of ids, or URL.
pub(super) const INDIRECTION: u32 = 0xFFFF_FFFF;
/// The upper 24 bits of value tags. The lower 8 bits are flags.
pub(super) const VALUE: u32 = 0x7FFF_FF00;
/// The flag of a value with a codebase URL.
pub(super) const CODEBASE: u32 = 0x01;
/// The mask of the flags that tell whether the header has no repository id, one id, or a list of ids.
pub(super) const TYPE_INFO: u32 = 0x06;
pub(super) const ONE_ID: u32 = 0x02;
pub(super) const ID_LIST: u32 = 0x06;
/// The flag of a value whose state is in chunks.
pub(super) const CHUNKED: u32 = 0x08;

/// The header of a value, without its type information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueHeader {
    /// The position of the tag, counted from the alignment origin.
    pub(crate) at: usize,
    pub(crate) is_chunked: bool,
    /// The end of the enclosing value's chunk, if this value begins inside it. Only TAO writes such values.
    pub(super) outer_chunk_end: Option<usize>,
}

/// Returns whether the tag begins a value, without undefined flags.
pub(super) const fn is_header(tag: u32) -> bool {
    tag & !0xFF == VALUE && tag & !(VALUE | CODEBASE | TYPE_INFO | CHUNKED) == 0 && tag & TYPE_INFO != 0x04
}

pub(super) const fn is_chunk(tag: u32) -> bool {
    0 < tag && tag < VALUE
}

/// Returns whether the id is always written, because some Java ORBs cannot read values without it.
pub(super) fn is_always_named(repository_id: &str) -> bool {
    is_always_in_full(repository_id) || repository_id == WSTRING_VALUE
}

/// Returns whether the id is always written in full, and never as an indirection to an earlier occurrence.
pub(super) fn is_always_in_full(repository_id: &str) -> bool {
    repository_id.starts_with("RMI:")
}
