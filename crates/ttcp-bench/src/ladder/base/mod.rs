//! The code that all interpreters of type codes share: faults, values in memory, kinds of types, counters.

pub(crate) mod kind;
pub(crate) mod memory;

use std::cell::RefCell;
use std::fmt;

pub(crate) use memory::Heap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The data ends within a value or a type code.
    End,
    /// The kind is not supported, or the bytes are not a type code. Only basic types, enums, structs,
    /// sequences and arrays are supported, and no recursive types.
    Kind(u32),
    /// A sequence has more elements than its type allows.
    Bound,
    /// The memory does not contain a value of the type, or a sequence needs too much memory.
    Memory,
}

pub(crate) type Status = Result<(), Fault>;

/// The state of an engine, which all its routines pass on.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    pub(crate) heap: Heap,
}

/// The routines whose calls are counted. Calls of inlined routines are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Routine {
    /// Encodes a value; in later steps, only a constructed value or a run of numbers.
    Encoder,
    /// Decodes a value; in later steps, only a constructed value or a run of numbers.
    Decoder,
    DeepFree,
    Traverse,
    StructTraverse,
    /// Computes the size and the alignment of a type.
    SizeAndAlignment,
    /// Returns the number of parameters of a type code.
    ParamCount,
    /// Returns the element type of a sequence or array.
    TypeCodeParam,
    Kind,
    Get,
    Put,
    SkipString,
    GetTypeCode,
    Swap,
}

impl Routine {
    /// The names in the literature, in the order of the routines.
    pub(crate) const NAMES: [&str; 14] = [
        "CDR::encoder",
        "CDR::decoder",
        "deep_free",
        "TypeCode::traverse",
        "struct_traverse",
        "calc_nested_size_and_alignment",
        "TypeCode::param_count",
        "TypeCode::typecode_param",
        "TypeCode::kind",
        "CDR::get_*",
        "CDR::put_*",
        "CDR::skip_string",
        "CDR::get_typecode",
        "swap",
    ];
}

/// The numbers of calls, in the order of [`Routine::NAMES`].
pub(crate) type Counts = [u64; Routine::NAMES.len()];

/// Counts calls, or does nothing. Engines have it as a type parameter, so that it costs nothing if unused.
pub(crate) trait CallCounter: fmt::Debug + 'static {
    fn count(routine: Routine);
}

/// Does not count calls.
#[derive(Debug)]
pub(crate) struct NoCounting;

/// Counts the calls of each thread.
#[derive(Debug)]
pub(crate) struct CallCounts;

impl CallCounter for NoCounting {
    #[inline(always)]
    fn count(_: Routine) {}
}

thread_local! {
    static COUNTS: RefCell<Counts> = const { RefCell::new([0; Routine::NAMES.len()]) };
}

impl CallCounter for CallCounts {
    fn count(routine: Routine) {
        COUNTS.with_borrow_mut(|counts| counts[routine as usize] += 1);
    }
}

impl CallCounts {
    /// Returns and resets the counts of this thread.
    pub(crate) fn take() -> Counts {
        COUNTS.take()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::End => f.write_str("the data ends too early"),
            Fault::Kind(kind) => write!(f, "values of kind {kind} are not supported"),
            Fault::Bound => f.write_str("there are more elements than the type allows"),
            Fault::Memory => {
                f.write_str("the memory contains no value of the type, or a sequence is too long")
            }
        }
    }
}

impl std::error::Error for Fault {}
