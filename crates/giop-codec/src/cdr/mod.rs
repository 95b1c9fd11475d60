//! Common Data Representation ("CDR Transfer Syntax"): conversion of typed values to bytes and back.
//!
//! [`Encoder`] and [`Decoder`] place every primitive at the next multiple of its size (at most 8), in the
//! byte order of the message. Offsets count from an *alignment origin*. The *phase* of a byte is its offset
//! modulo 8. [`CdrEncode`] and [`CdrDecode`] define how a type is written and read.
//!
//! Types whose encoded size depends only on the phase at which a value starts also implement [`FixedLayout`].
//! Examples are integers, floats, and structs and arrays of them. A run of consecutive values of such a type
//! is written or read in one pass, with one bounds check.

mod allocation;
mod bits;
mod bookmark;
mod bounded;
mod byte_swap;
pub(crate) mod chunked;
mod code_set_id;
mod containers;
mod context;
mod conversion;
mod converted;
mod decimal;
mod decoder;
mod ebcdic;
mod elements;
mod encoder;
mod fixed;
mod fixed_runs;
mod fixed_seq;
mod fragments;
mod layout;
mod long_double;
mod map;
mod nilable;
mod optional;
mod pad;
mod ranged;
mod rewrite;
mod run_blocks;
mod scalar;
mod segments;
mod seq;
mod streaming;
mod strings;
mod text;
mod traits;
mod value_state;
mod wide;

pub use allocation::allocation_size;
pub use bits::{
    BitsError, bit_field, replace_bit_field_truncated, signed_bit_field, try_replace_bit_field,
    try_replace_signed_bit_field,
};
pub(crate) use bookmark::Bookmark;
pub use bounded::{BoundError, Bounded, BoundedContent, check_bound};
pub(crate) use byte_swap::{TILE_BYTES, copy, swap, swap_in_place};
pub(crate) use chunked::is_end_tag;
pub use code_set_id::CodeSetId;
pub(crate) use context::Context;
pub use converted::ConvertedSet;
pub use decimal::{Fixed, FixedError, Rounding};
pub use decoder::{DecodeLimits, Decoder, MAX_DEPTH};
pub use elements::Elements;
pub use encoder::{Encoder, Mark};
pub use fixed::{FixedReader, FixedWriter};
pub use fixed_seq::{FixedLengthError, FixedSeq};
pub(crate) use layout::padding;
pub use layout::{AnyBitPattern, FixedLayout, Layout};
pub use long_double::LongDouble;
pub use nilable::Nilable;
pub use optional::{OPTIONAL_MIN_SIZE, decode_optional, encode_optional};
pub use pad::Pad;
pub use ranged::{RangeError, Ranged, RangedNumber};
pub use rewrite::Rewrites;
pub use segments::Segments;
pub use seq::{Element, Seq};
pub use streaming::{MIN_STREAMED_RUN_BYTES, Outlet, PIECE_BYTES};
pub use text::{Char, CharConversionError, CharSet, CodeSets, InvalidText, WChar, WCharSet};
pub use traits::{CdrDecode, CdrEncode};
pub(crate) use value_state::{Nesting, OpenChunk, ReadState, ReadTables, WriteState, WrittenTables};
pub use wide::{LoneSurrogate, WStr, WString};
