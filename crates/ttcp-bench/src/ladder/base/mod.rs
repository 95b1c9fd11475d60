//! Code that all steps that interpret type codes share: faults, values in memory, the kinds of types, and
//! call counters.

pub mod kind;
pub mod memory;

use std::cell::RefCell;
use std::fmt;

pub use memory::Heap;

/// The reason why a traversal failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The data ends within a value or a type code.
    End,
    /// The kind is not supported, or the bytes are not a type code. Supported are basic types, enums,
    /// structs, sequences and arrays, but no recursive types.
    Kind(u32),
    /// More elements than the type allows.
    Bound,
    /// The memory does not contain a value of the type, or a sequence is too long.
    Memory,
}

/// The result of a traversal.
pub type Status = Result<(), Fault>;

/// The context that is passed to every routine.
#[derive(Debug, Default)]
pub struct Environment {
    /// The allocator of the buffers.
    pub heap: Heap,
}

/// The routines whose calls are counted. Inlined routines are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Routine {
    /// Writes a value; in later steps, only a constructed value.
    Encoder,
    /// Reads a value; in later steps, only a constructed value.
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

    /// Returns the name in the literature.
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

/// The numbers of calls, in the order of [`Routine::ALL`].
pub type Counts = [u64; Routine::ALL.len()];

/// Counts calls, or does nothing. Engines have it as a type parameter.
pub trait CallCounter: fmt::Debug + 'static {
    /// Counts a call of `routine`.
    fn call(routine: Routine);
}

/// Does nothing, for measurements.
#[derive(Debug)]
pub struct NoCounting;

/// Counts the calls of the current thread.
#[derive(Debug)]
pub struct CallCounts;

impl CallCounter for NoCounting {
    #[inline(always)]
    fn call(_: Routine) {}
}

thread_local! {
    static COUNTS: RefCell<Counts> = const { RefCell::new([0; Routine::ALL.len()]) };
}

impl CallCounter for CallCounts {
    fn call(routine: Routine) {
        COUNTS.with_borrow_mut(|counts| counts[routine as usize] += 1);
    }
}

impl CallCounts {
    /// Returns and resets the counts.
    pub fn take() -> Counts {
        COUNTS.take()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::End => f.write_str("the data ends too early"),
            Fault::Kind(kind) => write!(f, "values of kind {kind} are not supported"),
            Fault::Bound => f.write_str("there are more elements than the type allows"),
            Fault::Memory => f.write_str("the memory does not contain a value of the type"),
        }
    }
}

impl std::error::Error for Fault {}
