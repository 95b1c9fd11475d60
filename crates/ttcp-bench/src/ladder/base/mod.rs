//! The code that the interpretive steps share, so that they differ only in the subject of each step: faults,
//! values in memory, the kinds of types, and call counters.

pub mod kind;
pub mod memory;

use std::cell::RefCell;
use std::fmt;

pub use memory::Heap;

/// Why a traversal ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The data ends within a value or a type code.
    End,
    /// A kind that these engines do not support, or bytes that are not a type code. Supported are the basic
    /// kinds, enums, structs, sequences and arrays, without references to earlier types.
    Kind(u32),
    /// More elements than the type allows.
    Bound,
    /// The memory does not match a value of the type, or is exhausted.
    Memory,
}

/// The result of a traversal.
pub type Status = Result<(), Fault>;

/// The context that every routine receives in addition to its arguments.
#[derive(Debug, Default)]
pub struct Environment {
    /// The allocator of the buffers.
    pub heap: Heap,
}

/// The routines whose calls are counted. Where a step has inlined a routine, it is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Routine {
    /// Writes a value; in later steps: the routines for constructed types.
    Encoder,
    /// Reads a value; in later steps: the routines for constructed types.
    Decoder,
    /// Frees the buffers of a value.
    DeepFree,
    /// Traverses a type.
    Traverse,
    /// Traverses the members of a struct.
    StructTraverse,
    /// Computes size and alignment of a type.
    SizeAndAlignment,
    /// Returns the number of parameters of a type code.
    ParamCount,
    /// Returns the element type.
    TypeCodeParam,
    /// Returns the kind of a type code.
    Kind,
    /// Reads a number.
    Get,
    /// Writes a number.
    Put,
    /// Skips a string.
    SkipString,
    /// Reads a type code.
    GetTypeCode,
    /// Swaps the byte order of a number.
    Swap,
}

impl Routine {
    /// All routines, in the order of the counts.
    pub const ALL: [Routine; 14] = [
        Routine::Encoder,
        Routine::Decoder,
        Routine::DeepFree,
        Routine::Traverse,
        Routine::StructTraverse,
        Routine::SizeAndAlignment,
        Routine::ParamCount,
        Routine::TypeCodeParam,
        Routine::Kind,
        Routine::Get,
        Routine::Put,
        Routine::SkipString,
        Routine::GetTypeCode,
        Routine::Swap,
    ];

    /// Returns the literature's name.
    pub fn name(self) -> &'static str {
        match self {
            Routine::Encoder => "CDR::encoder",
            Routine::Decoder => "CDR::decoder",
            Routine::DeepFree => "deep_free",
            Routine::Traverse => "TypeCode::traverse",
            Routine::StructTraverse => "struct_traverse",
            Routine::SizeAndAlignment => "calc_nested_size_and_alignment",
            Routine::ParamCount => "TypeCode::param_count",
            Routine::TypeCodeParam => "TypeCode::typecode_param",
            Routine::Kind => "TypeCode::kind",
            Routine::Get => "CDR::get_*",
            Routine::Put => "CDR::put_*",
            Routine::SkipString => "CDR::skip_string",
            Routine::GetTypeCode => "CDR::get_typecode",
            Routine::Swap => "swap",
        }
    }
}

/// How often each routine was called, in the order of [`Routine::ALL`].
pub type Counts = [u64; Routine::ALL.len()];

/// Counts calls, or does nothing. A type parameter of the engines.
pub trait Tally: fmt::Debug + 'static {
    /// Counts a call of `routine`.
    fn call(routine: Routine);
}

/// No counting, for measurements.
#[derive(Debug)]
pub struct Uncounted;

/// Counts on this thread.
#[derive(Debug)]
pub struct Counted;

impl Tally for Uncounted {
    #[inline(always)]
    fn call(_: Routine) {}
}

thread_local! {
    static COUNTS: RefCell<Counts> = const { RefCell::new([0; Routine::ALL.len()]) };
}

impl Tally for Counted {
    fn call(routine: Routine) {
        COUNTS.with_borrow_mut(|counts| counts[routine as usize] += 1);
    }
}

impl Counted {
    /// Returns the counts since the last call, and resets them.
    pub fn take() -> Counts {
        COUNTS.take()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::End => f.write_str("the octets end too early"),
            Fault::Kind(kind) => write!(f, "there are no values of kind {kind}"),
            Fault::Bound => f.write_str("there are more elements than the type allows"),
            Fault::Memory => f.write_str("the memory is not that of a value of the type"),
        }
    }
}

impl std::error::Error for Fault {}
