//! What the interpretive steps share, so that they differ in nothing but what a step is about: faults, values in memory, the kinds
//! of types, and calls that are counted.

pub mod kind;
pub mod memory;

use std::cell::RefCell;
use std::fmt;

pub use memory::Heap;

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The octets end within a value or a type code.
    End,
    /// A kind that these engines have no values for (there are the basic ones, enums, structs, sequences and arrays; no type that
    /// refers to one written before), or octets that are no type code.
    Kind(u32),
    /// More elements than the type allows.
    Bound,
    /// The memory is not that of a value of the type, or more than there is.
    Memory,
}

/// How a walk ended.
pub type Status = Result<(), Fault>;

/// What every routine is handed beside its arguments.
#[derive(Debug, Default)]
pub struct Environment {
    /// Whom buffers come from.
    pub heap: Heap,
}

/// The routines whose calls are counted. Those that a step has inlined are no calls, and not counted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Routine {
    /// Writes a value; later: the routines for what is constructed.
    Encoder,
    /// Reads a value; later: the routines for what is constructed.
    Decoder,
    /// Frees what a value refers to.
    DeepFree,
    /// The walk over a type.
    Traverse,
    /// The walk over the members of a struct.
    StructTraverse,
    /// Works out size and alignment of a type.
    SizeAndAlignment,
    /// How many parameters a type code has.
    ParamCount,
    /// The type of elements.
    TypeCodeParam,
    /// The kind of a type code.
    Kind,
    /// A number that is read.
    Get,
    /// A number that is written.
    Put,
    /// A string that is skipped.
    SkipString,
    /// A type code that is read.
    GetTypeCode,
    /// A number that is turned into the other byte order.
    Swap,
}

impl Routine {
    /// All, in the order of the counts.
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

    /// As the literature calls it.
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

/// Counts calls, or does nothing: what an engine is compiled with.
pub trait Tally: fmt::Debug + 'static {
    /// A routine was called.
    fn call(routine: Routine);
}

/// For measuring.
#[derive(Debug)]
pub struct Uncounted;

/// For counting, on this thread.
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
    /// The counts since they were last taken.
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
