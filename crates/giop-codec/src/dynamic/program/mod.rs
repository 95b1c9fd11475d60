//! [`Program`]: a type code compiled once into a flat list of steps, which small loops execute on bytes and
//! values.
//!
//! Everything that depends only on the type is computed once: the sizes of fixed layouts for each phase,
//! contiguous members, the minimum size of an element, the labels of a union. Numbers and structs of numbers
//! are processed in runs: one bounds check, then a few operations on words. The program is kept with the type
//! code, for all types that it consists of.

mod bulk;
mod compile;
mod copy;
mod graph_read;
mod graph_write;
mod plan;
mod print;
mod read;
mod run;
mod skip;
mod swap;
mod words;
mod write;

use std::fmt;
use std::sync::OnceLock;

pub(crate) use read::locate_kept;
pub(crate) use run::{Act, Ran, length, run};
pub use skip::Contents;
pub(crate) use skip::{go_over_any, read_except_id};

pub(crate) use self::bulk::read_decimal;
pub(crate) use self::plan::Plan;
use crate::typecode::{Index, Labels, Nodes, TypeCode};

/// A position in the list of steps.
pub(crate) type Pc = u32;

/// The charge in bytes for a value that takes no bytes. Without it, a small message could contain a million
/// empty structs.
pub(crate) const EMPTY_VALUE: usize = 16;

const NO_PLAN: u32 = u32::MAX;

/// A step. A type that needs several steps is referred to by its node, and has an entry.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A value of fixed layout: consecutive members, including those of nested structs and arrays.
    Block(u32),
    /// An array of elements of fixed layout.
    Run {
        plan: u32,
        count: u32,
    },
    /// A sequence of elements of fixed layout; a bound of 0 means unbounded.
    Bulk {
        plan: u32,
        bound: u32,
    },
    /// A sequence of elements of variable layout.
    Each {
        element: Index,
        bound: u32,
    },
    /// An array of elements of variable layout.
    Times {
        element: Index,
        count: u32,
    },
    Text {
        wide: bool,
        bound: u32,
    },
    WChar,
    Decimal {
        digits: u16,
    },
    Union(u32),
    /// A struct.
    Call(Index),
    Any,
    TypeCode,
    Object,
    /// A value, or the content of an abstract interface.
    Graph(Index),
    Principal,
    /// The repository id before the members of an exception.
    ExceptId(Index),
    /// A type that has no values in messages.
    Refused,
    Return,
}

const _: () = assert!(size_of::<Op>() <= 12);

/// The encoding of a union's discriminator; the rest is in the node.
#[derive(Debug)]
struct Switch {
    labels: Labels,
    union: Index,
}

/// The steps of all types of an arena.
#[derive(Debug)]
pub(crate) struct Body {
    ops: Vec<Op>,
    /// The type of each node with all aliases resolved.
    alias: Box<[Index]>,
    /// The first step of each node.
    entries: Box<[Pc]>,
    plans: Vec<Plan>,
    /// The plan of each node, or `NO_PLAN`.
    plan_of: Box<[u32]>,
    /// The minimum size in bytes of a value of each node.
    least: Box<[u32]>,
    switches: Vec<Switch>,
    /// Whether a sequence may have elements that take no bytes.
    empties: bool,
    /// The possible contents of values of each node, computed on first use.
    contents: Box<[OnceLock<Contents>]>,
}

impl Body {
    pub(crate) fn entry(&self, index: Index) -> Pc {
        self.entries.get(index as usize).copied().unwrap_or(Pc::MAX)
    }

    fn plan(&self, plan: u32) -> Option<&Plan> {
        self.plans.get(plan as usize)
    }

    /// Returns whether a sequence of any type of the arena may have elements that take no bytes. Anys reject
    /// the count of such a sequence.
    pub(crate) fn may_have_empties(&self) -> bool {
        self.empties
    }

    /// Returns the type with all aliases resolved.
    fn unaliased(&self, index: Index) -> Index {
        self.alias.get(index as usize).copied().unwrap_or(index)
    }

    /// Returns the memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        let each =
            size_of::<Index>() + size_of::<Pc>() + 2 * size_of::<u32>() + size_of::<OnceLock<Contents>>();
        let plans: usize = self.plans.iter().map(Plan::memory).sum();
        size_of::<Body>()
            + size_of_val(&*self.ops)
            + each * self.alias.len()
            + plans
            + size_of_val(&*self.switches)
    }

    /// Returns the stride of a type whose array is one contiguous run of 8-byte numbers.
    #[cold]
    fn joined(&self, index: Index) -> Option<usize> {
        let plan = self.plan(*self.plan_of.get(index as usize)?)?;
        (plan.number && plan.align() == 8).then(|| plan.stride())
    }

    /// Returns whether values are of fixed layout.
    pub(crate) fn is_fixed(&self, index: Index) -> bool {
        self.plan_of.get(index as usize).is_some_and(|plan| *plan != NO_PLAN)
    }

    /// Returns the minimum size of a value in bytes.
    pub(crate) fn least(&self, index: Index) -> usize {
        self.least.get(index as usize).map_or(0, |least| *least as usize)
    }
}

/// A type code with its program.
///
/// The program is compiled once for a type code and all types that it consists of, on first use. A clone
/// increments a reference count.
///
/// ```
/// use giop_codec::cdr::{CdrEncode, Decoder, Encoder};
/// use giop_codec::dynamic::program::Program;
/// use giop_codec::typecode::Typed;
/// use giop_codec::{ByteOrder, Version};
///
/// let names = vec!["one".to_owned(), "two".to_owned()];
/// let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
/// names.encode(&mut e)?;
/// e.put_u16(7);
///
/// let octets = e.into_bytes();
/// let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
/// let seen = Program::of(&Vec::<String>::type_code()).skip(&mut d)?;
/// assert!(seen.text);
/// assert_eq!(d.read_u16()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Program {
    code: TypeCode,
}

impl Program {
    /// Returns the program of a type.
    pub fn of(code: &TypeCode) -> Program {
        let program = Program { code: code.clone() };
        program.body();
        program
    }

    /// Returns the type.
    pub fn type_code(&self) -> &TypeCode {
        &self.code
    }

    pub(crate) fn body(&self) -> &Body {
        self.code.nodes.compiled()
    }

    fn nodes(&self) -> &Nodes {
        &self.code.nodes
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({}, {} steps)", self.code, self.body().ops.len())
    }
}
