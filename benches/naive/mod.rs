//! The baseline of `dynamic`: a type code interpreter as the first IIOP engines had one, before anything was precomputed.
//!
//! A type code is octets, and they are parsed again wherever they are needed. [`traverse`](traverse::traverse) walks a
//! type and calls back for each value, by a function pointer; [`encoder`](visits::encoder),
//! [`decoder`](visits::decoder), [`deep_copy`](visits::deep_copy) and [`deep_free`](visits::deep_free) are what it can
//! call back, and go on into `traverse` for what is constructed. Nothing is remembered: a struct skips the names in its
//! type code and works out size and alignment of each member for every value, a number is a visit and a call of its
//! stream, and a sequence is walked a second time to be freed. Values lie in memory as C has them ([`memory`]).
//!
//! Routines that were calls in the original are calls here (`inline(never)`); the compiler's flags are those of all
//! benches. [`check`] counts the calls, so that the baseline does neither more nor less work than it should.

pub mod cdr;
mod check;
pub mod memory;
pub mod traverse;
pub mod visits;

pub use check::check;

use cdr::Cdr;
use memory::Heap;

/// Why a walk ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The octets end within a value or a type code.
    End,
    /// A kind that this engine has no values for (there are the basic ones, enums, structs, sequences and arrays; no type that
    /// refers to one written before), or octets that are no type code.
    Kind(u32),
    /// More elements than the type allows.
    Bound,
    /// The memory is not that of a value of the type.
    Memory,
}

pub type Status = Result<(), Fault>;

/// What is called back for a value: the type, two addresses, the stream, the environment.
pub type Visit<T> = fn(&TypeCode<'_>, &mut [u8], &mut [u8], &mut Cdr<'_>, &mut Environment<T>) -> Status;

/// What every routine is handed beside its arguments.
#[derive(Default)]
pub struct Environment<T> {
    pub heap: Heap,
    pub tally: T,
}

/// The routines whose calls are counted.
#[derive(Debug, Clone, Copy)]
pub enum Routine {
    Encoder,
    Decoder,
    DeepFree,
    Traverse,
    StructTraverse,
    SizeAndAlignment,
    ParamCount,
}

/// Counts calls, or does nothing.
pub trait Tally: Default {
    fn call(&mut self, routine: Routine);
}

/// For measuring.
#[derive(Default)]
pub struct Uncounted;

impl Tally for Uncounted {
    fn call(&mut self, _: Routine) {}
}

pub const NULL: u32 = 0;
pub const VOID: u32 = 1;
pub const SHORT: u32 = 2;
pub const LONG: u32 = 3;
pub const USHORT: u32 = 4;
pub const ULONG: u32 = 5;
pub const FLOAT: u32 = 6;
pub const DOUBLE: u32 = 7;
pub const BOOLEAN: u32 = 8;
pub const CHAR: u32 = 9;
pub const OCTET: u32 = 10;
pub const TYPE_CODE: u32 = 12;
pub const STRUCT: u32 = 15;
pub const ENUM: u32 = 17;
pub const SEQUENCE: u32 = 19;
pub const ARRAY: u32 = 20;
pub const LONGLONG: u32 = 23;
pub const ULONGLONG: u32 = 24;

/// A kind and the octets of its parameters: an encapsulation, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    kind: u32,
    parameters: &'a [u8],
}

impl<'a> TypeCode<'a> {
    /// That of type codes, which are values as well.
    pub const OF_TYPE_CODE: TypeCode<'static> = TypeCode { kind: TYPE_CODE, parameters: &[] };

    pub fn new(kind: u32, parameters: &'a [u8]) -> Self {
        Self { kind, parameters }
    }

    #[inline(never)]
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// A stream of the parameters, in their own byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if there are none.
    pub fn parameters(&self) -> Result<Cdr<'a>, Fault> {
        Cdr::encapsulation(self.parameters)
    }
}
