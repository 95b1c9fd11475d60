//! [`Program`]: a type code compiled once into a flat list of steps, which small loops run over octets and values.
//!
//! What depends on the type alone is computed once: the sizes of whatever is of fixed layout for each phase, the members that lie side by
//! side, the least size of an element, the labels of a union. Numbers and structs of numbers are handled in runs: one check of
//! bounds, then a few operations on words. The program is kept with the type code, for all types that it is made of.

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

/// A type's place in the list of steps.
pub(crate) type Pc = u32;

/// What a value that takes no octets is charged for, so that a type of a million empty structs ends soon.
pub(crate) const EMPTY_VALUE: usize = 16;

const NO_PLAN: u32 = u32::MAX;

/// A step. Types that are not all of one step are named by their node, and have an entry.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// What is of fixed layout: all members in a row, those of structs and arrays among them too.
    Block(u32),
    /// An array of what is of fixed layout.
    Run {
        plan: u32,
        count: u32,
    },
    /// A sequence of what is of fixed layout; a bound of 0 is none.
    Bulk {
        plan: u32,
        bound: u32,
    },
    /// A sequence of what varies.
    Each {
        element: Index,
        bound: u32,
    },
    /// An array of what varies.
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
    /// A value, or what an abstract interface holds.
    Graph(Index),
    Principal,
    /// The repository id before the members of an exception.
    ExceptId(Index),
    /// Of a type that has no values in messages.
    Refused,
    Return,
}

const _: () = assert!(size_of::<Op>() <= 12);

/// How a union's discriminator is read; the node says the rest.
#[derive(Debug)]
struct Switch {
    labels: Labels,
    union: Index,
}

/// The steps of all types of an arena.
#[derive(Debug)]
pub(crate) struct Body {
    ops: Vec<Op>,
    /// For each node the one behind all aliases.
    alias: Box<[Index]>,
    /// Where the steps of each node begin.
    entries: Box<[Pc]>,
    plans: Vec<Plan>,
    /// For each node its plan, or `NO_PLAN`.
    plan_of: Box<[u32]>,
    /// For each node the least number of octets of a value.
    least: Box<[u32]>,
    switches: Vec<Switch>,
    /// Whether a sequence may have elements that take no octets.
    empties: bool,
    /// For each node what may be in a value, once somebody asked.
    contents: Box<[OnceLock<Contents>]>,
}

impl Body {
    pub(crate) fn entry(&self, index: Index) -> Pc {
        self.entries.get(index as usize).copied().unwrap_or(Pc::MAX)
    }

    fn plan(&self, plan: u32) -> Option<&Plan> {
        self.plans.get(plan as usize)
    }

    /// Whether a sequence of any type of the arena may have elements that take no octets, whose count no reader of an any believes.
    pub(crate) fn may_have_empties(&self) -> bool {
        self.empties
    }

    /// The type behind all aliases.
    fn unaliased(&self, index: Index) -> Index {
        self.alias.get(index as usize).copied().unwrap_or(index)
    }

    /// What it takes of memory, in octets.
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

    /// The octets of a value whose like in a row are one run of numbers of eight octets and more.
    #[cold]
    fn joined(&self, index: Index) -> Option<usize> {
        let plan = self.plan(*self.plan_of.get(index as usize)?)?;
        (plan.number && plan.align() == 8).then(|| plan.stride())
    }

    /// A value is of fixed layout.
    pub(crate) fn is_fixed(&self, index: Index) -> bool {
        self.plan_of.get(index as usize).is_some_and(|plan| *plan != NO_PLAN)
    }

    /// The least number of octets of a value.
    pub(crate) fn least(&self, index: Index) -> usize {
        self.least.get(index as usize).map_or(0, |least| *least as usize)
    }
}

/// A type code with its program.
///
/// Made once for a type code and all types that it is made of, when it is asked for first. A clone counts a reference.
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
    /// The program of a type.
    pub fn of(code: &TypeCode) -> Program {
        let program = Program { code: code.clone() };
        program.body();
        program
    }

    /// The type.
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
