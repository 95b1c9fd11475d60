//! Programs: types compiled once into flat lists of steps, which small loops execute on bytes and values.
//!
//! Everything that depends only on the type is computed once: the sizes of fixed layouts for each phase,
//! contiguous members, the minimum size of an element, the labels of a union. Numbers and structs of numbers
//! are processed in runs: one bounds check, then a few operations on words. This module has the steps and the
//! transfer of runs; type codes are compiled in `typecode`, and the loops over steps are in `walk`.

mod bulk;
mod contents;
mod labels;
mod plan;
mod words;

use std::sync::OnceLock;

pub(crate) use bulk::{put_numbers, read_decimal};
pub use contents::Contents;
pub(crate) use labels::Labels;
pub(crate) use plan::{Field, FieldKind, MAX_FIELDS, Plan};

use crate::DecodeError;

/// The result of a step.
pub(crate) type StepResult<T = ()> = Result<T, DecodeError>;

/// The index of a type among those of its type code.
pub(crate) type Index = u32;

/// A position in the list of steps.
pub(crate) type Pc = u32;

/// The charge in bytes for a value that takes no bytes. Without it, a small message could contain a million
/// empty structs.
pub(crate) const EMPTY_VALUE: usize = 16;

pub(crate) const NO_PLAN: u32 = u32::MAX;

/// A step. A type that needs several steps is referred to by its node, and has an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
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
pub(crate) struct Switch {
    pub(crate) labels: Labels,
    pub(crate) union: Index,
}

/// The steps of all types of an arena.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) ops: Vec<Op>,
    /// The type of each node with all aliases resolved.
    pub(crate) alias: Box<[Index]>,
    /// The first step of each node.
    pub(crate) entries: Box<[Pc]>,
    pub(crate) plans: Vec<Plan>,
    /// The plan of each node, or `NO_PLAN`.
    pub(crate) plan_of: Box<[u32]>,
    /// The minimum size in bytes of a value of each node.
    pub(crate) least: Box<[u32]>,
    pub(crate) switches: Vec<Switch>,
    /// Whether a sequence may have elements that take no bytes.
    pub(crate) empties: bool,
    /// The possible contents of values of each node, computed on first use.
    pub(crate) contents: Box<[OnceLock<Contents>]>,
}

impl Steps {
    pub(crate) fn entry(&self, index: Index) -> Pc {
        self.entries.get(index as usize).copied().unwrap_or(Pc::MAX)
    }

    pub(crate) fn plan(&self, plan: u32) -> Option<&Plan> {
        self.plans.get(plan as usize)
    }

    /// Returns whether a sequence of any type of the arena may have elements that take no bytes. Anys reject
    /// the count of such a sequence.
    pub(crate) fn may_have_empties(&self) -> bool {
        self.empties
    }

    /// Returns the type with all aliases resolved.
    pub(crate) fn unaliased(&self, index: Index) -> Index {
        self.alias.get(index as usize).copied().unwrap_or(index)
    }

    /// Returns the memory use in bytes.
    pub(crate) fn memory(&self) -> usize {
        let each =
            size_of::<Index>() + size_of::<Pc>() + 2 * size_of::<u32>() + size_of::<OnceLock<Contents>>();
        let plans: usize = self.plans.iter().map(Plan::memory).sum();
        size_of::<Steps>()
            + size_of_val(&*self.ops)
            + each * self.alias.len()
            + plans
            + size_of_val(&*self.switches)
    }

    /// Returns the stride of a type whose array is one contiguous run of 8-byte numbers.
    #[cold]
    pub(crate) fn joined(&self, index: Index) -> Option<usize> {
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
