//! The forms that types and parameters can have in Rust.

use crate::model::TypeId;

/// Maximum size in bytes of an array that is stored inline.
pub(super) const MAX_INLINE_BYTES: u64 = 4096;

/// A type of a member, parameter, result or element, with the properties that its use determines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) ty: TypeId,
    /// The references in it are never nil.
    pub(super) non_nil: bool,
    /// The member is optional.
    pub(super) optional: bool,
    /// The minimum and maximum, in the form that `Ranged` uses.
    pub(super) range: Option<(i128, i128)>,
}

impl Use {
    /// A use of a type without further properties.
    pub(super) fn plain(ty: TypeId) -> Use {
        Use::of(ty, false)
    }

    /// A use of a type inside another type.
    pub(super) fn of(ty: TypeId, non_nil: bool) -> Use {
        Use { ty, non_nil, optional: false, range: None }
    }
}

/// The Rust form of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeqForm {
    /// `sequence<octet>`.
    Bytes,
    /// `Seq<T>`, for elements whose memory is their encoding.
    Seq,
    /// `Vec<T>`, for all other elements.
    Vec,
}

/// The Rust form of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayForm {
    /// `[T; N]`.
    Inline,
    /// `Box<[T; N]>`, for large arrays.
    Boxed,
    /// `FixedSeq<T, N>`, for large arrays of elements whose memory is their encoding.
    Shared,
}

/// The form of an `in` parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By value: numbers, characters, enums.
    Value,
    /// `&str`.
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

/// How an `in` parameter is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passing {
    pub(super) form: Form,
    /// The bound of a string or sequence, which is checked before the argument is sent.
    pub(super) bound: Option<u32>,
}

/// The kind of method to which a signature belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A method of the reference. It takes everything that converts to the parameter's type.
    Client,
    /// The call function, which the methods of the reference call.
    Call,
    /// A method of the servant.
    Servant,
    /// A method of the object-safe local trait, whose future is boxed. All its borrows have one lifetime.
    Local,
}
