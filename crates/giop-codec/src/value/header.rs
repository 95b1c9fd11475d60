//! The first octets of a value: its tag, and what it says of the value's type ("Value Encoding").

/// The id of the box of a `string`.
pub(super) const STRING_VALUE: &str = "IDL:omg.org/CORBA/StringValue:1.0";

/// The id of the box of a `wstring`, which is what a Java `String` is.
pub(crate) const WSTRING_VALUE: &str = "IDL:omg.org/CORBA/WStringValue:1.0";

/// Null.
pub(super) const NULL: u32 = 0;
/// An offset follows, to the tag of an earlier value (or to an earlier repository id, list of them, or URL).
pub(super) const INDIRECTION: u32 = 0xFFFF_FFFF;
/// Value tags are these 24 bits, and flags.
pub(super) const VALUE: u32 = 0x7FFF_FF00;
/// A URL of code follows.
pub(super) const CODEBASE: u32 = 0x01;
/// Which repository ids follow: none, one, or a list.
pub(super) const TYPE_INFO: u32 = 0x06;
pub(super) const ONE_ID: u32 = 0x02;
pub(super) const ID_LIST: u32 = 0x06;
/// The state is in chunks.
pub(super) const CHUNKED: u32 = 0x08;

/// Whether it begins a value, and has no flag that does not exist.
pub(super) const fn is_header(tag: u32) -> bool {
    tag & !0xFF == VALUE && tag & !(VALUE | CODEBASE | TYPE_INFO | CHUNKED) == 0 && tag & TYPE_INFO != 0x04
}

/// Whether it is the length of a chunk.
pub(super) const fn is_chunk(tag: u32) -> bool {
    0 < tag && tag < VALUE
}

/// Whether it is an end tag.
pub(super) const fn is_end(tag: u32) -> bool {
    tag >= 0x8000_0000
}

/// Whether the id is written also where the declared type is the value's own: Java ORBs always write those of their types, and some of
/// them read no value without.
pub(super) fn is_always_named(repository_id: &str) -> bool {
    is_explicit(repository_id) || repository_id == WSTRING_VALUE
}

/// Whether the id is always written out, never as an indirection.
pub(super) fn is_explicit(repository_id: &str) -> bool {
    repository_id.starts_with("RMI:")
}
