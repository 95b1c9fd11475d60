//! The forms that types and parameters can have in Rust, and the types and calls that are interpreted.

use std::collections::{HashMap, HashSet};

use proc_macro2::TokenStream;

use crate::model::{DefId, DefKind, TypeId};

/// Maximum size in bytes of an array that is stored inline.
pub(super) const MAX_INLINE_BYTES: u64 = 4096;

/// A type of a member, parameter, result or element, with the properties that its use determines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) ty: TypeId,
    /// The references in it are never nil.
    pub(super) non_nil: bool,
    pub(super) optional: bool,
    /// The minimum and maximum, in the form that `Ranged` uses.
    pub(super) range: Option<(i128, i128)>,
}

impl Use {
    pub(super) fn plain(ty: TypeId) -> Use {
        Use::of(ty, false)
    }

    /// A use of a type inside another type.
    pub(super) fn of(ty: TypeId, non_nil: bool) -> Use {
        Use { ty, non_nil, optional: false, range: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeqForm {
    /// `sequence<octet>`.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By value: numbers, characters, enums.
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
    Boxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passing {
    pub(super) form: Form,
    /// The bound of a string or sequence, which is checked before the argument is sent.
    pub(super) bound: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A method of the reference. It takes everything that converts to the parameter's type.
    Client,
    /// The call function, which the methods of the reference call.
    Call,
    Servant,
    /// A method of the object-safe local trait, whose future is boxed. All its borrows have one lifetime.
    Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// By the interpreter.
    Interpretive,
    /// By the interpreter for this number of uses, then by the type's own code.
    Adaptive(u32),
}

#[derive(Debug, Default)]
pub(super) struct Hybrid {
    pub(super) modes: HashMap<DefId, Mode>,
    /// Types that give access to their parts: those with a mode, and those that calls need.
    pub(super) exposed: HashSet<DefId>,
    /// Interfaces whose calls interpret their parameters and results.
    pub(super) calls: HashSet<DefId>,
}

/// The traits that a type's own marshalling code implements.
pub(super) struct Traits {
    pub(super) encode: TokenStream,
    pub(super) decode: TokenStream,
}

impl Hybrid {
    /// Returns how a type is marshalled, if not only by its own code.
    pub(super) fn mode(&self, id: DefId) -> Option<Mode> {
        self.modes.get(&id).copied()
    }

    pub(super) fn calls(&self, id: DefId) -> bool {
        self.calls.contains(&id)
    }
}

/// Returns whether types of this kind can be interpreted.
pub(super) fn is_type(kind: &DefKind) -> bool {
    matches!(kind, DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_))
}
