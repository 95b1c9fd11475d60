//! [`Typed`]: Rust types that represent IDL types.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::TypeCode;
use super::desc::TypeDesc;
use super::kind::TcKind;
use crate::cdr::{
    Bounded, Char, Element, Fixed, FixedSeq, LongDouble, Nilable, Ranged, Seq, WChar, WStr, WString,
};

/// A Rust type that represents an IDL type, and whose values can be stored in an any.
///
/// The Rust type determines the type code. For a `typedef`, which is no distinct Rust type, this is the type
/// code of its original type. Generated code contains the type code of each alias as a constant.
///
/// ```
/// use giop_codec::typecode::{TypeCode, Typed};
///
/// assert_eq!(f64::type_code(), TypeCode::DOUBLE);
/// assert_eq!(<[[i32; 3]; 2]>::type_code().to_string(), "long[2][3]");
/// ```
pub trait Typed {
    /// The type as constant data: see [`TypeDesc`].
    const DESC: &'static TypeDesc;

    /// Returns the type code. The type code of a basic or named type is created only once.
    fn type_code() -> TypeCode {
        TypeCode::of_desc(Self::DESC)
    }
}

macro_rules! basic {
    ($($type:ty, $kind:ident;)*) => {$(
        impl Typed for $type {
            const DESC: &'static TypeDesc = &TypeDesc::Basic(TcKind::$kind);
        }
    )*};
}

basic! {
    (), Void;
    bool, Boolean;
    u8, Octet;
    i8, Octet;
    i16, Short;
    u16, UShort;
    i32, Long;
    u32, ULong;
    i64, LongLong;
    u64, ULongLong;
    f32, Float;
    f64, Double;
    LongDouble, LongDouble;
    Char, Char;
    WChar, WChar;
    TypeCode, TypeCode;
}

macro_rules! described {
    ($([$($generic:tt)*] $type:ty = $desc:expr;)*) => {$(
        impl<$($generic)*> Typed for $type {
            const DESC: &'static TypeDesc = &{ $desc };
        }
    )*};
}

described! {
    [] str = TypeDesc::String { bound: 0 };
    [] String = TypeDesc::String { bound: 0 };
    [const N: usize] Bounded<String, N> = TypeDesc::String { bound: bound(N) };
    [] WStr<'_> = TypeDesc::WString { bound: 0 };
    [] WString = TypeDesc::WString { bound: 0 };
    [const N: usize] Bounded<WString, N> = TypeDesc::WString { bound: bound(N) };
    [] Bytes = TypeDesc::Sequence { element: u8::DESC, bound: 0 };
    [const N: usize] Bounded<Bytes, N> = TypeDesc::Sequence { element: u8::DESC, bound: bound(N) };
    [T: Typed] [T] = TypeDesc::Sequence { element: T::DESC, bound: 0 };
    [T: Typed] Vec<T> = TypeDesc::Sequence { element: T::DESC, bound: 0 };
    [T: Typed, const N: usize] Bounded<Vec<T>, N> = TypeDesc::Sequence { element: T::DESC, bound: bound(N) };
    [T: Typed] Seq<T> = TypeDesc::Sequence { element: T::DESC, bound: 0 };
    [T: Typed, const N: usize] Bounded<Seq<T>, N> = TypeDesc::Sequence { element: T::DESC, bound: bound(N) };
    [T: Typed, const N: usize] [T; N] = TypeDesc::Array { element: T::DESC, length: bound(N) };
    [T: Typed + Element, const N: usize] FixedSeq<T, N> = TypeDesc::Array { element: T::DESC, length: bound(N) };
    [K: Typed, V: Typed] BTreeMap<K, V> = TypeDesc::Map { key: K::DESC, value: V::DESC, bound: 0 };
    [K: Typed, V: Typed, const N: usize] Bounded<BTreeMap<K, V>, N> =
        TypeDesc::Map { key: K::DESC, value: V::DESC, bound: bound(N) };
    [T: Typed, const MIN: i128, const MAX: i128] Ranged<T, MIN, MAX> = *T::DESC;
    [const D: u32, const S: u32] Fixed<D, S> = TypeDesc::Fixed { digits: D as u16, scale: S as i16 };
    [T: Typed + ?Sized] Box<T> = *T::DESC;
    [T: Typed + ?Sized] &T = *T::DESC;
    [T: Typed + Nilable] Option<T> = *T::DESC;
}

const fn bound(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "a bound or length in IDL must fit an unsigned long");
    n as u32
}
