//! Value types ("Value Types", "Value Semantics"): graphs of states that travel by value, with sharing, cycles and null.
//!
//! # The shape of a value in Rust
//!
//! The state of `valuetype V` is a plain struct `V` with public fields, which implements [`ValueType`]. A derived value has its
//! concrete base as its first field. Wherever IDL says `V`, Rust has `Option<`[`Value<V>`]`>`: null, or a handle.
//!
//! * A *graph* is a list of nodes, each the state of one value, in one shared allocation that never changes once it is whole.
//!   [`Value::new`] makes a graph of one node, [`GraphBuilder`] one with cycles, and a decoded value is one with all values that
//!   came nested in it.
//! * A handle is a graph and an index. Handles inside of a graph to nodes of the same graph do not keep it alive, all others do. So
//!   neither a cycle nor a peer's graph leaks, and nothing is walked to find that out. A clone of a handle always keeps alive.
//! * Since a handle in a field may not keep its graph alive, it is read through [`Value::get`], which does:
//!   `node.get().next`, fields as fields.
//! * The type of a handle is the IDL type of its place; what the node is may be derived from it. [`Value::downcast`] asks,
//!   [`Value::upcast`] knows.
//! * States do not change. To change one, clone it, change the clone and make it a value: whoever shares the old one keeps it.
//! * [`Value::is_same`] tells identity. `==` tells whether two graphs look the same from there on; `{:?}` shows each node once.
//!
//! # Without recursion
//!
//! Decoding, encoding, comparing, showing and dropping walk a graph with lists in place of the stack, so that a peer's chain of a
//! million values is as harmless as a local one. For that a type gives its state in *parts* ([`ValueType::PARTS`]): its members in
//! order, of which those that are values, or sequences of values, only say that one comes ([`ValuePart`]). Values deeper inside
//! of a member, such as in a struct in a sequence, are nested constructed types and count as such: 64 levels.
//!
//! # What a peer can make of it
//!
//! Only types that the program names are ever made: the static type of a place, and those in [`Factories`]. Indirections go
//! backwards, to places where the right kind of thing began. Every node is charged to the decoder's memory limit.

mod boxes;
mod build;
mod class;
mod compare;
mod custom;
mod factory;
mod graph;
mod header;
mod held;
mod members;
mod pass;
mod read;
mod show;
mod types;
mod write;

pub use boxes::{StringValue, WStringValue};
pub use build::GraphBuilder;
pub(crate) use class::{BYTES, Chosen, Class, Classes, Part, concrete, formal, has_base_with_id, part};
pub(crate) use custom::Piece;
pub(crate) use factory::Made;
pub use factory::{Casts, Factories, Factory};
pub use graph::{Value, ValueRef};
pub(crate) use header::WSTRING_VALUE;
pub use held::AbstractForm;
pub use members::{Flow, Progress, ValuePart};
pub(crate) use pass::{Next, Opened, PassedType};
pub(crate) use read::Reading;
pub use types::ValueTypes;
pub(crate) use write::Writing;

use core::any::Any;
use core::fmt::Debug;

use crate::cdr::{Decoder, Encoder};
use crate::typecode::{TypeDesc, Typed};
use crate::{DecodeError, EncodeError};

/// What a [`Value`] may be a handle to: a concrete value type, an abstract one or [`ValueBase`].
///
/// Every [`ValueType`] is one; abstract value types are structs without fields that implement it themselves.
pub trait ValueForm: Any + Debug + Default + Send + Sync {
    /// Of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// What makes a state of exactly this type; `None` for abstract types.
    const FACTORY: Option<&'static Factory> = None;
}

/// The state of a concrete value type.
pub trait ValueType: Any + Clone + Debug + Default + PartialEq + Send + Sync {
    /// Of the IDL type.
    const REPOSITORY_ID: &'static str;

    /// The ids of the bases to which a receiver may truncate it, nearest first.
    const TRUNCATABLE: &'static [&'static str] = &[];

    /// Its type code as data, without which a value of this type is in an any only where the any's own type code names the type.
    const TYPE: Option<&'static TypeDesc> = None;

    /// Whether its state is what [`CustomMarshal`] writes, always in chunks.
    const CUSTOM: bool = false;

    /// How many parts its state has, those of its concrete base first.
    const PARTS: u32;

    /// The same of each of its concrete bases, the outermost first.
    const BASE_PARTS: &'static [u32] = &[];

    /// What makes a state of this type.
    const MAKER: &'static Factory = &Factory::of::<Self>();

    /// Offers a way from this type to itself, each of its bases and each trait of operations.
    fn casts(to: &mut Casts<'_>);

    /// Writes a part of the state.
    ///
    /// # Errors
    /// The part has no encoding.
    fn encode_part(&self, part: u32, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads a part of the state.
    ///
    /// # Errors
    /// The octets are no such part.
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

/// A place of a value type is described as the type itself is.
impl<V: ValueForm + Typed> Typed for Value<V> {
    const DESC: &'static TypeDesc = V::DESC;
}

impl Typed for ValueBase {
    const DESC: &'static TypeDesc = TypeDesc::VALUE_BASE;
}

/// A value type that has `B` among its bases, or abstract bases: see [`Value::upcast`].
pub trait Extends<B: ValueForm>: ValueForm {}

impl<V: ValueForm> Extends<ValueBase> for V {}

/// The encoding of a `custom` value type, which its author writes ("Custom Marshaling").
///
/// What one writes the other reads. A receiver skips what `unmarshal` leaves, and truncated values are cut before it.
pub trait CustomMarshal {
    /// Writes the state: any values by [`CdrEncode`](crate::cdr::CdrEncode), one after the other.
    ///
    /// # Errors
    /// The state has no encoding.
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads the state into one that is its default. Values in it can be kept; what they hold is there only when the whole
    /// graph has been read: until then [`Value::get`] shows their default state.
    ///
    /// # Errors
    /// The octets are no such state.
    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;
}
