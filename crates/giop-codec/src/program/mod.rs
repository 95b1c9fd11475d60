//! Programs: types compiled once into flat lists of steps, which small loops execute on bytes and values.
//!
//! Everything that depends only on the type is computed once, such as the sizes of fixed layouts, the minimum
//! size of an element, and the encoding of a union's labels. Numbers and structs of numbers are processed in
//! runs, each with one bounds check followed by operations on whole words. This module defines the steps and
//! transfers runs. The module `typecode` compiles type codes, and `walk` has the loop over the steps.
//!
//! Terms in this module:
//! - The *phase* of a value is its position modulo 8 from the alignment origin, which determines its padding.
//! - A *run* consists of consecutive values of one type of fixed layout.
//! - The *stride* is the distance in bytes from one element of a run to the next.
//! - A type has *fixed layout* if the size of its values depends only on their phase.
//! - A *plan* describes a type of fixed layout: the offset of each field, for each phase.
//! - A *node* is one of the types that make up a type code. They are stored in an *arena*, and refer to each
//!   other by index.

mod bulk;
mod labels;
mod plan;
mod words;

use std::sync::OnceLock;

pub(crate) use bulk::{put_numbers, read_decimal};
pub(crate) use labels::LabelEncoding;
pub(crate) use plan::{Field, FieldKind, MAX_FIELDS, Plan};

use crate::DecodeError;

pub(crate) type StepResult<T = ()> = Result<T, DecodeError>;

/// The index of a node in its arena.
pub(crate) type Index = u32;

/// A program counter: an index in [`Steps::ops`].
pub(crate) type Pc = u32;

/// The bytes that are deducted from the memory limit of the decoder for each value that takes no bytes.
/// Without this charge, a small message could contain a million empty structs.
pub(crate) const EMPTY_VALUE_CHARGE_BYTES: usize = 16;

/// The entry in [`Steps::plan_of`] for a type without a plan.
pub(crate) const NO_PLAN: u32 = u32::MAX;

/// A step, which processes one part of a value. A part with its own steps is given by the index of its type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Consecutive members of fixed layout, including those of nested structs, by the index of their plan.
    Block(u32),
    /// An array of elements of fixed layout.
    FixedArray {
        plan: u32,
        count: u32,
    },
    /// A sequence of elements of fixed layout; a bound of 0 means unbounded.
    FixedSequence {
        plan: u32,
        bound: u32,
    },
    /// A sequence of elements of variable layout.
    Sequence {
        element: Index,
        bound: u32,
    },
    /// An array of elements of variable layout.
    Array {
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
    Struct(Index),
    Any,
    TypeCode,
    Object,
    /// A value of a value type or abstract interface, with the graph of all values that it refers to.
    Graph(Index),
    Principal,
    /// The repository id before the members of an exception.
    ExceptionId(Index),
    /// A type that has no values in messages.
    NoValues,
    /// The end of a type's steps.
    Return,
}

const _: () = assert!(size_of::<Op>() <= 12);

/// The encoding of a union's discriminator, and the index of the union's node, which has the members.
#[derive(Debug)]
pub(crate) struct UnionSwitch {
    pub(crate) labels: LabelEncoding,
    pub(crate) union: Index,
}

/// What a value contains in addition to numbers, or what values of a type can contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// A `string`, whose encoding depends on the code set. A `char` does not count.
    pub has_text: bool,
    /// A `wchar` or `wstring`, whose encoding also depends on the version.
    pub has_wide_text: bool,
    /// An object reference.
    pub has_references: bool,
    /// A part whose type is a value type or an abstract interface. The part may be null.
    pub has_value_types: bool,
    /// An `any`. What it contains is not included here.
    pub has_anys: bool,
    /// The maximum alignment in bytes: 1, 2, 4 or 8, or 0 for a value that takes no bytes.
    pub align: u8,
}

impl Contents {
    pub(crate) fn union(self, other: Contents) -> Contents {
        Contents {
            has_text: self.has_text || other.has_text,
            has_wide_text: self.has_wide_text || other.has_wide_text,
            has_references: self.has_references || other.has_references,
            has_value_types: self.has_value_types || other.has_value_types,
            has_anys: self.has_anys || other.has_anys,
            align: self.align.max(other.align),
        }
    }
}

/// The steps of all types of an arena. Each boxed slice has an entry for each node.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) ops: Vec<Op>,
    /// The index of the node with all aliases resolved.
    pub(crate) alias_targets: Box<[Index]>,
    /// The first step of the type.
    pub(crate) entries: Box<[Pc]>,
    pub(crate) plans: Vec<Plan>,
    /// The index of the type's plan in `plans`, or [`NO_PLAN`].
    pub(crate) plan_of: Box<[u32]>,
    /// The minimum size of a value in bytes.
    pub(crate) min_size: Box<[u32]>,
    pub(crate) switches: Vec<UnionSwitch>,
    /// Whether one of the types is a sequence whose elements may take no bytes. Such elements are rejected in
    /// an any, because their count cannot be checked against the size of the data.
    pub(crate) may_have_empty_elements: bool,
    /// The possible contents of the type's values, computed on first use.
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
        self.alias_targets.get(index as usize).copied().unwrap_or(index)
    }

    pub(crate) fn memory(&self) -> usize {
        let each =
            size_of::<Index>() + size_of::<Pc>() + 2 * size_of::<u32>() + size_of::<OnceLock<Contents>>();
        let plans: usize = self.plans.iter().map(Plan::memory).sum();
        size_of::<Steps>()
            + size_of_val(&*self.ops)
            + each * self.alias_targets.len()
            + plans
            + size_of_val(&*self.switches)
    }

    /// Returns the stride of a type that is a number aligned to 8, or an array of such numbers.
    #[cold]
    pub(crate) fn stride_of_numbers_aligned_to_8(&self, index: Index) -> Option<usize> {
        let plan = self.plan(*self.plan_of.get(index as usize)?)?;
        (plan.is_number_array && plan.align == 8).then_some(plan.stride)
    }

    pub(crate) fn has_fixed_layout(&self, index: Index) -> bool {
        self.plan_of.get(index as usize).is_some_and(|plan| *plan != NO_PLAN)
    }

    pub(crate) fn min_size(&self, index: Index) -> usize {
        self.min_size.get(index as usize).map_or(0, |size| *size as usize)
    }
}
