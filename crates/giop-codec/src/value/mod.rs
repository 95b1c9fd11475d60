//! Value types ("Value Types", "Value Semantics"): graphs of states that are passed by value, with sharing,
//! cycles and null.
//!
//! # Values in Rust
//!
//! The state of `valuetype V` is a plain struct `V` with public fields, which implements [`ValueType`]. The
//! first field of a derived value is its concrete base. Where IDL has `V`, Rust has `Option<`[`Value<V>`]`>`:
//! null, or a handle.
//!
//! * A *graph* is a list of nodes that are kept and released together. Each node is the state of one value. A
//!   complete graph is immutable. [`Value::new`] creates a graph of one node, and a [`GraphBuilder`] creates
//!   graphs with cycles. A decoded value forms one graph with all values nested in it.
//! * A handle consists of a reference to a graph and the index of a node. A handle inside a graph to a node
//!   of the same graph does not keep the graph alive. Therefore cycles do not leak, even if a peer sends
//!   them. All other handles to complete graphs keep them alive, and so do clones of any handle.
//! * A handle in a field does not always keep its graph alive, but the result of [`Value::get`] does:
//!   `node.get().next`.
//! * The type of a handle is the IDL type that is declared where it is used. The type of the node may be
//!   derived from it. [`Value::downcast`] tests for such a type; [`Value::upcast`] to a base always succeeds.
//! * States are immutable. To change one, clone it, change the clone and create a value from it. Other
//!   handles still refer to the old value.
//! * [`Value::is_same`] compares identity. `==` compares all that two values refer to. `{:?}` shows each
//!   node once.
//!
//! # No recursion
//!
//! Decoding, encoding, comparison, formatting and drop traverse a graph with explicit lists instead of the
//! stack. Therefore a chain of a million values cannot overflow the stack.
//!
//! For that purpose, a type divides its state into *parts* ([`ValueType::PART_COUNT`]): its members in order.
//! A call for a part that is a value, or a sequence of values, processes only headers ([`ValuePart`]). Values
//! deeper inside a member are processed by recursion, with at most 64 levels.
//!
//! # Protection against peers
//!
//! Only types that the program names are ever instantiated: declared types, the types in [`Factories`], and
//! the standard boxes. An indirection must refer to an earlier position at which an item of the right kind
//! begins. The size of every node is deducted from the decoder's memory limit.

mod boxes;
mod class;
mod context;
pub(crate) mod custom;
mod factory;
mod graph;
mod header;
mod members;
mod read;
mod traversal;
pub(crate) mod untyped;
pub(crate) mod write;

pub use boxes::{StringValue, WStringValue};
pub(crate) use class::{
    CUSTOM_STATE_MEMBER, Class, ClassChoice, Classes, MemberKind, concrete_id, declared_id, has_base_with_id,
    member_kind,
};
pub use context::{DecodeContext, ValueTypes};
pub(crate) use custom::Piece;
pub(crate) use factory::LocalTypes;
pub use factory::{Casts, Factories, Factory};
pub use graph::{GraphBuilder, Value, ValueRef};
pub(crate) use header::ValueHeader;
pub use members::{AbstractForm, ValuePart};
pub(crate) use untyped::NextValue;

use core::any::Any;
use core::fmt::Debug;

use crate::cdr::{Decoder, Encoder};
use crate::typecode::{TypeDesc, Typed};
use crate::{DecodeError, EncodeError};

/// A type that can be the parameter of a [`Value`]: a concrete value type, an abstract one or [`ValueBase`].
///
/// Every [`ValueType`] implements this trait. So do abstract value types, which are structs without fields.
pub trait ValueForm: Any + Debug + Default + Send + Sync {
    /// The repository id of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// The factory of states of exactly this type; `None` for abstract types.
    const FACTORY: Option<&'static Factory> = None;
}

/// The state of a concrete value type.
pub trait ValueType: Any + Clone + Debug + Default + PartialEq + Send + Sync {
    /// The repository id of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// The ids of the bases to which a receiver may truncate a value of this type, nearest first.
    const TRUNCATABLE_BASES: &'static [&'static str] = &[];

    /// The description of the type. Without it, only an any whose type code includes the type can contain it.
    const TYPE: Option<&'static TypeDesc> = None;

    /// Whether the type implements [`CustomMarshal`] to write its state, which is then always in chunks.
    const IS_CUSTOM: bool = false;

    /// The number of parts of the state, including the parts of the concrete bases, which come first.
    const PART_COUNT: u32;

    /// The number of parts of each concrete base, including those of its own bases, beginning with the root.
    const BASE_PART_COUNTS: &'static [u32] = &[];

    /// The factory of states of this type.
    const STATE_FACTORY: &'static Factory = &Factory::of::<Self>();

    /// Offers casts from this type to itself, to each of its bases, and to each trait with its operations.
    fn casts(to: &mut Casts<'_>);

    /// Writes a part of the state.
    ///
    /// # Errors
    /// The part cannot be encoded.
    fn encode_part(&self, part: u32, e: &mut Encoder, progress: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads a part of the state.
    ///
    /// # Errors
    /// The bytes are not a valid part.
    fn decode_part(
        &mut self,
        part: u32,
        d: &mut Decoder<'_>,
        progress: &mut Progress,
    ) -> Result<Flow, DecodeError>;
}

impl<V: ValueType> ValueForm for V {
    const REPOSITORY_ID: &'static str = V::REPOSITORY_ID;
    const FACTORY: Option<&'static Factory> = Some(V::STATE_FACTORY);
}

/// The base of all value types ("ValueBase"): a `Value<ValueBase>` may be any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueBase;

impl ValueForm for ValueBase {
    const REPOSITORY_ID: &'static str = "IDL:omg.org/CORBA/ValueBase:1.0";
}

/// The description of a handle is the description of its value type.
impl<V: ValueForm + Typed> Typed for Value<V> {
    const DESC: &'static TypeDesc = V::DESC;
}

impl Typed for ValueBase {
    const DESC: &'static TypeDesc = TypeDesc::VALUE_BASE;
}

/// How to continue after a call that wrote or read a part of a state. If the call ended with the header of a
/// value, the caller first processes the state of that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next part.
    Next,
    /// Continue with the same part, because it has more.
    Again,
}

/// The progress within a part that is a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// The number of remaining elements; `None` until the length of the sequence has been written or read.
    remaining: Option<usize>,
}

/// A value type that has `B` among its bases, including abstract ones: see [`Value::upcast`].
pub trait Extends<B: ValueForm>: ValueForm {}

impl<V: ValueForm> Extends<ValueBase> for V {}

/// The encoding of a `custom` value type, which the author of the type implements ("Custom Marshaling").
///
/// `unmarshal` reads what `marshal` writes. A receiver skips the data that `unmarshal` does not read.
pub trait CustomMarshal {
    /// Writes the state: any items that implement [`CdrEncode`](crate::cdr::CdrEncode), one after the other.
    ///
    /// # Errors
    /// The state cannot be encoded.
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads the state into `self`, which is a default state. Handles in it can be stored, but [`Value::get`]
    /// returns default states until the whole graph has been read.
    ///
    /// # Errors
    /// The bytes are not a valid state.
    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;
}
