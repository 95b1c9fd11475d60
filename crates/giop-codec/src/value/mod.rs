//! Value types ("Value Types", "Value Semantics"): graphs of states that are passed by value, with sharing,
//! cycles and null.
//!
//! # Values in Rust
//!
//! The state of `valuetype V` is a plain struct `V` with public fields, which implements [`ValueType`]. The
//! first field of a derived value is its concrete base. Where IDL has `V`, Rust has `Option<`[`Value<V>`]`>`:
//! null, or a handle.
//!
//! * A *graph* is a list of nodes in one shared allocation. Each node is the state of one value. A complete
//!   graph is immutable. [`Value::new`] creates a graph of one node, [`GraphBuilder`] one with cycles. A
//!   decoded value forms one graph with all values nested in it.
//! * A handle is a graph and an index. A handle inside of a graph to a node of the same graph does not keep
//!   the graph alive; every other handle does. Therefore cycles do not leak, even if a peer sends them.
//!   A clone of a handle keeps a complete graph alive.
//! * A handle in a field does not always keep its graph alive. The result of [`Value::get`] does:
//!   `node.get().next`.
//! * The type of a handle is the IDL type of its place. The type of the node may be derived from it.
//!   [`Value::downcast`] tests for a derived type at run time; [`Value::upcast`] to a base always succeeds.
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
//! For that, a type divides its state into *parts* ([`ValueType::PARTS`]): its members in order. A call for a
//! part that is a value, or a sequence of values, processes only their headers ([`ValuePart`]).
//! Values deeper inside of a member, such as in a struct in a sequence, count as nested constructed types:
//! at most 64 levels.
//!
//! # Protection against peers
//!
//! Only types that the program names are ever instantiated: the static type of a place, and those in
//! [`Factories`]. Indirections refer to earlier positions, where an item of the right kind begins. Every node
//! is charged to the decoder's memory limit.

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
    BYTES, Class, ClassChoice, Classes, MemberKind, concrete, formal, has_base_with_id, member_kind,
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

/// The type parameter of a [`Value`]: a concrete value type, an abstract one or [`ValueBase`].
///
/// Every [`ValueType`] implements it, and abstract value types, which are structs without fields.
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

    /// The type code as data. Without it, an any can contain a value of this type only if the type code in
    /// the any names the type.
    const TYPE: Option<&'static TypeDesc> = None;

    /// Whether its state is written by [`CustomMarshal`], always in chunks.
    const CUSTOM: bool = false;

    /// Number of parts of the state, including those of the concrete bases, which come first.
    const PARTS: u32;

    /// Number of parts of each concrete base, including those of its own bases; the outermost first.
    const BASE_PARTS: &'static [u32] = &[];

    /// Factory of states of this type.
    const STATE_FACTORY: &'static Factory = &Factory::of::<Self>();

    /// Offers a cast from this type to itself, each of its bases and each trait of operations.
    fn casts(to: &mut Casts<'_>);

    /// Writes a part of the state.
    ///
    /// # Errors
    /// The part has no encoding.
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

/// A place of a value type has the description of the type.
impl<V: ValueForm + Typed> Typed for Value<V> {
    const DESC: &'static TypeDesc = V::DESC;
}

impl Typed for ValueBase {
    const DESC: &'static TypeDesc = TypeDesc::VALUE_BASE;
}

/// The next step after a part of a state, or a value in it, was written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next part.
    Next,
    /// Continue with the same part, because it has more.
    Again,
}

/// The progress within a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Number of remaining elements; `None` before their count was written or read.
    remaining: Option<usize>,
}

/// A value type with base or abstract base `B`: see [`Value::upcast`].
pub trait Extends<B: ValueForm>: ValueForm {}

impl<V: ValueForm> Extends<ValueBase> for V {}

/// The encoding of a `custom` value type, written by its author ("Custom Marshaling").
///
/// `unmarshal` reads what `marshal` writes. A receiver skips the data that `unmarshal` does not read.
pub trait CustomMarshal {
    /// Writes the state: any items that implement [`CdrEncode`](crate::cdr::CdrEncode), one after the other.
    ///
    /// # Errors
    /// The state has no encoding.
    fn marshal(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads the state into a default one. Values in it can be stored, but their content is available only
    /// after the whole graph is read. Until then [`Value::get`] returns their default state.
    ///
    /// # Errors
    /// The bytes are not a valid state.
    fn unmarshal(&mut self, d: &mut Decoder<'_>) -> Result<(), DecodeError>;
}
