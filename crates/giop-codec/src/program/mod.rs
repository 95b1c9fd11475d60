//! Programs: types compiled once into flat lists of steps, which small loops execute on bytes and values.
//!
//! Everything that depends only on the type is computed once: the sizes of fixed layouts for each phase,
//! contiguous members, the minimum size of an element, the labels of a union. Numbers and structs of numbers
//! are processed in runs: one bounds check, then a few operations on words. This module has the steps and the
//! transfer of runs; type codes are compiled in `typecode`, and the loops over steps are in `walk`.
//!
//! Words of this module:
//! - The *phase* of a value is its position modulo 8 from the alignment origin, which determines its padding.
//! - A *run* consists of consecutive values of one type of fixed layout.
//! - The *stride* is the distance in bytes from one element of a run to the next.
//! - A *plan* describes a type of fixed layout: the offset of each field, for each phase.
//! - A *node* is one of the types that make up a type code. They are stored in an *arena*, and refer to each
//!   other by index.

mod bulk;
mod labels;
mod plan;
mod words;

use std::sync::OnceLock;

pub(crate) use bulk::{put_numbers, read_decimal};
pub(crate) use labels::Labels;
pub(crate) use plan::{Field, FieldKind, MAX_FIELDS, Plan};

use crate::DecodeError;

pub(crate) type StepResult<T = ()> = Result<T, DecodeError>;

/// The index of a node in its arena.
pub(crate) type Index = u32;

/// A program counter: an index in [`Steps::ops`].
pub(crate) type Pc = u32;

/// The charge in bytes for a value that takes no bytes. Without it, a small message could contain a million
/// empty structs.
pub(crate) const EMPTY_VALUE_CHARGE: usize = 16;

pub(crate) const NO_PLAN: u32 = u32::MAX;

/// A step. A part whose type needs several steps is one step, with the index of the type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Consecutive members of fixed layout, including those of nested structs and arrays, by their plan.
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
    /// A union, by its index in [`Steps::switches`].
    Union(u32),
    /// A struct.
    Call(Index),
    Any,
    TypeCode,
    Object,
    /// A value of a value type or abstract interface.
    Graph(Index),
    Principal,
    /// The repository id before the members of an exception.
    ExceptId(Index),
    /// A type that has no values in messages.
    Refused,
    /// The end of a type's steps.
    Return,
}

const _: () = assert!(size_of::<Op>() <= 12);

/// The encoding of a union's discriminator. The members are in the node `union`.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) labels: Labels,
    pub(crate) union: Index,
}

/// The contents of a value, or the possible contents of values of a type, in addition to numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// A `string`, whose encoding depends on the code set. Characters of fixed layout are not included.
    pub text: bool,
    /// A `wchar` or `wstring`, whose encoding also depends on the version.
    pub wide: bool,
    /// An object reference.
    pub references: bool,
    /// A part of a value type or abstract interface, which may be null.
    pub graphs: bool,
    /// An any, which may contain anything.
    pub anys: bool,
    /// The maximum alignment: 1, 2, 4 or 8, or 0 for a value that takes no bytes.
    pub align: u8,
}

impl Contents {
    pub(crate) fn union(self, other: Contents) -> Contents {
        Contents {
            text: self.text || other.text,
            wide: self.wide || other.wide,
            references: self.references || other.references,
            graphs: self.graphs || other.graphs,
            anys: self.anys || other.anys,
            align: self.align.max(other.align),
        }
    }
}

/// The steps of all types of an arena. The boxed slices have an entry for each node.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) ops: Vec<Op>,
    /// The node with all aliases resolved.
    pub(crate) alias: Box<[Index]>,
    /// The first step.
    pub(crate) entries: Box<[Pc]>,
    pub(crate) plans: Vec<Plan>,
    /// The index in `plans`, or `NO_PLAN`.
    pub(crate) plan_of: Box<[u32]>,
    /// The minimum size of a value in bytes.
    pub(crate) least: Box<[u32]>,
    pub(crate) switches: Vec<Switch>,
    /// Whether a sequence may have elements that take no bytes. Anys reject the count of such a sequence.
    pub(crate) empties: bool,
    /// The possible contents of values, computed on first use.
    pub(crate) contents: Box<[OnceLock<Contents>]>,
}

impl Steps {
    pub(crate) fn entry(&self, index: Index) -> Pc {
        self.entries.get(index as usize).copied().unwrap_or(Pc::MAX)
    }

    pub(crate) fn plan(&self, plan: u32) -> Option<&Plan> {
        self.plans.get(plan as usize)
    }

    pub(crate) fn unaliased(&self, index: Index) -> Index {
        self.alias.get(index as usize).copied().unwrap_or(index)
    }

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
    pub(crate) fn wide_number_stride(&self, index: Index) -> Option<usize> {
        let plan = self.plan(*self.plan_of.get(index as usize)?)?;
        (plan.number && plan.align == 8).then_some(plan.stride)
    }

    pub(crate) fn is_fixed(&self, index: Index) -> bool {
        self.plan_of.get(index as usize).is_some_and(|plan| *plan != NO_PLAN)
    }

    pub(crate) fn least(&self, index: Index) -> usize {
        self.least.get(index as usize).map_or(0, |least| *least as usize)
    }
}
