//! The forms of types and parameters in Rust, and what the interpreter of the runtime marshals.

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;

use crate::model::{DefId, DefKind, TypeId};

/// Maximum size in bytes of an array that is stored inline.
pub(super) const MAX_INLINE_BYTES: u64 = 4096;

/// A type of a member, parameter, result or element, with the properties that its use determines.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeUse {
    pub(super) ty: TypeId,
    /// True if the references in the type are never nil.
    pub(super) non_nil: bool,
    pub(super) optional: bool,
    /// The minimum and maximum, in the form that `Ranged` uses.
    pub(super) range: Option<(i128, i128)>,
}

impl TypeUse {
    pub(super) fn plain(ty: TypeId) -> TypeUse {
        TypeUse::of(ty, false)
    }

    /// Returns a use of a type in another type, such as the elements of a sequence.
    pub(super) fn of(ty: TypeId, non_nil: bool) -> TypeUse {
        TypeUse { ty, non_nil, optional: false, range: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeqForm {
    /// `Bytes`, for `sequence<octet>`.
    Bytes,
    /// `Seq<T>`, for elements whose memory is their encoding.
    Seq,
    /// `Vec<T>`, for all other elements.
    Vec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayForm {
    /// `[T; N]`.
    Inline,
    /// `Box<[T; N]>`, for large arrays.
    Boxed,
    /// `FixedSeq<T, N>`, for large arrays of elements whose memory is their encoding.
    Shared,
}

/// How an argument is passed to a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By value: numbers, characters, enums, bitsets, bitmasks and native types.
    Value,
    Str,
    /// `WStr`, which is a reference to text.
    WStr,
    /// `Bytes` or `Seq<T>` by value.
    Shared,
    /// `&[T]`.
    Slice,
    /// An object reference, or a handle to a value, by value.
    Reference,
    /// `&T`.
    Borrow,
    /// `&[T; N]`, a reference to the content of a box.
    ArrayRef,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passing {
    pub(super) form: Form,
    /// The bound of a string or sequence, which is checked before the argument is sent.
    pub(super) bound: Option<u32>,
}

/// The function for which a parameter is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmittedFn {
    /// A method of the reference. It takes everything that converts to the parameter's type.
    ClientMethod,
    /// The call function, which the methods of the reference call.
    CallFunction,
    /// A method of the servant trait.
    ServantMethod,
    /// A method of the object-safe local trait. Its future is boxed, and all its borrows share a lifetime.
    LocalMethod,
}

/// How the values of a type are marshalled, if not only by generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By the interpreter.
    Interpretive,
    /// By the interpreter for this number of uses, and by generated code afterwards.
    Adaptive(u32),
}

/// The types and calls that the interpreter marshals.
#[derive(Debug, Default)]
pub(super) struct MarshallingModes {
    pub(super) modes: HashMap<DefId, Mode>,
    /// Types whose parts the interpreter can access: those with a mode, or in interpreted calls.
    pub(super) exposed_types: HashSet<DefId>,
    /// Interfaces for whose calls the interpreter marshals parameters and results.
    pub(super) interpreted_calls: HashSet<DefId>,
}

/// The traits that a type's own marshalling code implements.
pub(super) struct Traits {
    pub(super) encode: TokenStream,
    pub(super) decode: TokenStream,
}

impl MarshallingModes {
    /// Returns how a type is marshalled, if not only by generated code.
    pub(super) fn mode(&self, id: DefId) -> Option<Mode> {
        self.modes.get(&id).copied()
    }

    pub(super) fn interprets_calls(&self, interface: DefId) -> bool {
        self.interpreted_calls.contains(&interface)
    }
}

/// Returns whether the interpreter can marshal types of this kind.
pub(super) fn is_interpretable(kind: &DefKind) -> bool {
    matches!(kind, DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_))
}
