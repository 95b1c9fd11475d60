//! Value types ("Value Types", "Value Semantics"): graphs of states that are passed by value, with sharing,
//! cycles and null.
//!
//! # Values in Rust
//!
//! The state of `valuetype V` is a plain struct `V` with public fields, which implements [`ValueType`]. The
//! first field of a derived value is its concrete base. Where IDL has `V`, Rust has `Option<`[`Value<V>`]`>`:
//! null, or a handle.
//!
//! * A *graph* is a list of nodes, each the state of one value, in one shared allocation that is immutable
//!   once it is complete. [`Value::new`] creates a graph of one node, [`GraphBuilder`] one with cycles. A
//!   decoded value forms one graph with all values nested in it.
//! * A handle is a graph and an index. Handles inside of a graph to nodes of the same graph do not keep it
//!   alive; all others do. Therefore neither a cycle nor a peer's graph leaks, and no traversal is needed. A
//!   clone of a handle keeps its graph alive, once that is complete.
//! * A handle in a field may not keep its graph alive. It is therefore read through [`Value::get`], which
//!   does: `node.get().next`.
//! * The type of a handle is the IDL type of its place. The type of the node may be derived from it.
//!   [`Value::downcast`] tests for a derived type at run time; [`Value::upcast`] to a base always succeeds.
//! * States are immutable. To change one, clone it, change the clone and create a value from it. Other
//!   holders of the old one keep it.
//! * [`Value::is_same`] compares identity. `==` compares two graphs from the values on. `{:?}` shows each
//!   node once.
//!
//! # No recursion
//!
//! Decoding, encoding, comparison, formatting and drop traverse a graph with explicit lists instead of the
//! stack. A peer's chain of a million values is therefore as harmless as a local one.
//!
//! For that, a type divides its state into *parts* ([`ValueType::PARTS`]): its members in order. A member
//! that is a value, or a sequence of values, only begins each value ([`ValuePart`]). Values deeper inside of
//! a member, such as in a struct in a sequence, count as nested constructed types: at most 64 levels.
//!
//! # Protection against peers
//!
//! Only types that the program names are ever instantiated: the static type of a place, and those in
//! [`Factories`]. Indirections lead backwards, to places where an item of the right kind began. Every node is
//! charged to the decoder's memory limit.

mod boxes;
mod build;
mod class;
mod compare;
mod context;
pub(crate) mod custom;
mod factory;
mod graph;
mod header;
mod held;
mod members;
mod read;
mod show;
mod types;
pub(crate) mod untyped;
pub(crate) mod write;

pub use boxes::{StringValue, WStringValue};
pub use build::GraphBuilder;
pub(crate) use class::{
    BYTES, Class, ClassChoice, Classes, MemberKind, concrete, formal, has_base_with_id, member_kind,
};
pub use context::DecodeContext;
pub(crate) use custom::Piece;
pub(crate) use factory::LocalTypes;
pub use factory::{Casts, Factories, Factory};
pub use graph::{Value, ValueRef};
pub(crate) use header::ValueHeader;
pub use held::AbstractForm;
pub use members::{Flow, Progress, ValuePart};
pub use types::ValueTypes;
pub(crate) use untyped::NextValue;

use core::any::Any;
use core::fmt::Debug;

use crate::cdr::{Decoder, Encoder};
use crate::typecode::{TypeDesc, Typed};
use crate::{DecodeError, EncodeError};

/// The type parameter of a [`Value`]: a concrete value type, an abstract one or [`ValueBase`].
///
/// Every [`ValueType`] implements it. Abstract value types are structs without fields that implement it
/// directly.
pub trait ValueForm: Any + Debug + Default + Send + Sync {
    /// Repository id of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// Factory of states of exactly this type; `None` for abstract types.
    const FACTORY: Option<&'static Factory> = None;
}

/// The state of a concrete value type.
pub trait ValueType: Any + Clone + Debug + Default + PartialEq + Send + Sync {
    /// Repository id of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// The ids of the bases to which a receiver may truncate it, nearest first.
    const TRUNCATABLE: &'static [&'static str] = &[];

    /// Its type code as data. Without it, an any can contain a value of this type only if the any's own type
    /// code names the type.
    const TYPE: Option<&'static TypeDesc> = None;

    /// Whether its state is written by [`CustomMarshal`], always in chunks.
    const CUSTOM: bool = false;

    /// Number of parts of its state, those of its concrete base first.
    const PARTS: u32;

    /// Number of parts of each of its concrete bases, the outermost first.
    const BASE_PARTS: &'static [u32] = &[];

    /// Factory of states of this type.
    const MAKER: &'static Factory = &Factory::of::<Self>();

    /// Offers a cast from this type to itself, each of its bases and each trait of operations.
    fn casts(to: &mut Casts<'_>);

    /// Writes a part of the state.
    ///
    /// # Errors
    /// The part has no encoding.
    fn encode_part(&self, part: u32, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads a part of the state.
    ///
    /// # Errors
    /// The bytes are not such a part.
    fn decode_part(&mut self, part: u32, d: &mut Decoder<'_>, at: &mut Progress)
    -> Result<Flow, DecodeError>;
}

impl<V: ValueType> ValueForm for V {
    const REPOSITORY_ID: &'static str = V::REPOSITORY_ID;
    const FACTORY: Option<&'static Factory> = Some(V::MAKER);
}

/// The base of all value types ("ValueBase"): a `Value<ValueBase>` may be any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueBase;

impl ValueForm for ValueBase {
    const REPOSITORY_ID: &'static str = "IDL:omg.org/CORBA/ValueBase:1.0";
}

/// The description of a place of a value type is that of the type.
impl<V: ValueForm + Typed> Typed for Value<V> {
    const DESC: &'static TypeDesc = V::DESC;
}

impl Typed for ValueBase {
    const DESC: &'static TypeDesc = TypeDesc::VALUE_BASE;
}

/// A value type with base or abstract base `B`: see [`Value::upcast`].
pub trait Extends<B: ValueForm>: ValueForm {}

impl<V: ValueForm> Extends<ValueBase> for V {}

/// The encoding of a `custom` value type, written by its author ("Custom Marshaling").
///
/// `unmarshal` reads what `marshal` writes. A receiver skips the data that `unmarshal` leaves. Truncated
/// values are cut before that data.
pub trait CustomMarshal {
    /// Writes the state: any values by [`CdrEncode`](crate::cdr::CdrEncode), one after the other.
    ///
    /// # Errors
    /// The state has no encoding.
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads the state into a default one. Values in it can be stored, but their content is available only
    /// after the whole graph was read. Until then [`Value::get`] returns their default state.
    ///
    /// # Errors
    /// The bytes are not such a state.
    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;
}
