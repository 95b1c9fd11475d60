//! The servants' transformation of an `inout` parameter ("Transformation" in the README).

use zorb::prelude::*;
use zorb::{BoundError, Fixed, FixedSeq};

use super::extras::interop as extras;
use super::types::interop::names;
use super::types::interop::*;

/// A type with a transformation.
pub trait Transform {
    /// Replaces the value by its transformation.
    fn transform(&mut self);
}

/// Returns the transformation of a value.
pub fn transformed<T: Clone + Transform>(value: &T) -> T {
    let mut value = value.clone();
    value.transform();
    value
}

macro_rules! scalars {
    ($($t:ty: |$v:ident| $changed:expr),* $(,)?) => {
        $(impl Transform for $t {
            fn transform(&mut self) {
                let $v = *self;
                *self = $changed;
            }
        })*
    };
}

scalars! {
    i16: |v| !v,
    u16: |v| !v,
    i32: |v| !v,
    u32: |v| !v,
    i64: |v| !v,
    u64: |v| !v,
    u8: |v| v ^ 0x20,
    Char: |v| Char(v.0 ^ 0x20),
    WChar: |v| WChar(v.0 ^ 0x20),
    bool: |v| !v,
    f32: |v| -v,
    f64: |v| -v,
    Color: |v| match v {
        Color::Red => Color::Green,
        Color::Green => Color::Blue,
        Color::Blue => Color::Red,
    },
    names::Result: |v| match v {
        names::Result::Ok => names::Result::Err,
        names::Result::Err => names::Result::Ok,
    },
}

/// Placeholder for a union without a member.
impl Transform for () {
    fn transform(&mut self) {}
}

impl<const DIGITS: u32, const SCALE: u32> Transform for Fixed<DIGITS, SCALE> {
    fn transform(&mut self) {
        *self = -*self;
    }
}

impl Transform for String {
    fn transform(&mut self) {
        *self = self
            .chars()
            .map(|c| if c.is_ascii_alphabetic() { char::from(c as u8 ^ 0x20) } else { c })
            .collect();
    }
}

impl Transform for WString {
    fn transform(&mut self) {
        let other_case = |unit: u16| match u8::try_from(unit) {
            Ok(c) if c.is_ascii_alphabetic() => unit ^ 0x20,
            _ => unit,
        };
        *self = self.units().map(other_case).collect();
    }
}

impl<T: Transform> Transform for Vec<T> {
    fn transform(&mut self) {
        self.reverse();
        self.iter_mut().for_each(T::transform);
    }
}

impl<T: Transform, const N: usize> Transform for [T; N] {
    fn transform(&mut self) {
        self.reverse();
        self.iter_mut().for_each(T::transform);
    }
}

impl Transform for Bytes {
    fn transform(&mut self) {
        *self = self.iter().rev().map(|octet| octet ^ 0x20).collect();
    }
}

/// Sequences of fixed layout share their elements, so a changed one is a new sequence.
macro_rules! shared {
    ($($t:ty),*) => {
        $(impl Transform for Seq<$t> {
            fn transform(&mut self) {
                *self = self.iter().rev().map(transformed).collect();
            }
        })*
    };
}

shared!(i16, u16, i32, u32, i64, u64, f32, f64, Char);

impl<const N: usize> Transform for FixedSeq<i32, N> {
    fn transform(&mut self) {
        let changed: Vec<i32> = self.iter().rev().map(transformed).collect();
        *self = changed.try_into().expect("as long as before");
    }
}

impl<S, const N: usize> Transform for Bounded<S, N>
where
    S: Clone + Transform,
    Bounded<S, N>: TryFrom<S, Error = BoundError>,
{
    fn transform(&mut self) {
        let changed = transformed(&**self);
        *self = changed.try_into().expect("as long as before");
    }
}

/// References within constructed types are unchanged.
impl Transform for Option<NodeRef> {
    fn transform(&mut self) {}
}

macro_rules! structs {
    ($($t:ty { $($member:ident),* })*) => {
        $(impl Transform for $t {
            fn transform(&mut self) {
                $(self.$member.transform();)*
            }
        })*
    };
}

structs! {
    Point { x, y }
    Mixed { tag, weight, delta, total, mark, flag, ratio, port, mask, stamp, tail }
    Bill { items, total, number, share, code }
    Person { name, age, favourite }
    Team { lead, members, origin, goal, label, scores, digest, table }
    Caption { narrow, wide, mark }
    Tree { value, children }
    Wrapped { before, choice, more, after }
    NodePair { title, first, second }
    names::Option { some, outcome }
    names::Words { r#type, r#fn, r#loop, class }
}

/// Unions: each variant with the member to change, `()` if there is none.
macro_rules! unions {
    ($($t:ty { $($variant:pat => $member:expr),* $(,)? })*) => {
        $(impl Transform for $t {
            fn transform(&mut self) {
                match self {
                    $($variant => $member.transform(),)*
                }
            }
        })*
    };
}

unions! {
    ByLong { Self::A(v) => v, Self::B(_, v) => v, Self::C(_, v) => v }
    ByColor { Self::Count(v) => v, Self::Spot(v) => v, Self::Other(_) => () }
    AllColors { Self::R(v) => v, Self::G(v) => v, Self::S(v) => v }
    ByBoolean { Self::Yes(v) => v, Self::No(v) => v }
    Maybe { Self::Some(v) => v, Self::Other(_) => () }
    ByChar { Self::Number(v) => v, Self::People(_, v) => v, Self::Other(_, v) => v }
    ByShort { Self::Grid(v) => v, Self::List(v) => v, Self::Other(_) => () }
    ByUShort { Self::Flag(v) => v, Self::Letter(v) => v, Self::Other(_) => () }
    ByULong { Self::Inner(v) => v, Self::Rest(_, v) => v }
    ByLongLong { Self::Before(v) => v, Self::After(v) => v, Self::Other(_) => () }
    ByULongLong { Self::Most(v) => v, Self::Rest(_, v) => v }
    WideChoice { Self::Text(v) => v, Self::Letter(v) => v, Self::Narrow(_, v) => v }
    NodeOrText { Self::Vertex(v) => v, Self::Words(v) => v }
    extras::FarUShort { Self::Letter(v) => v, Self::Flag(v) => v, Self::Other(_) => () }
    extras::FarULong { Self::Last(v) => v, Self::Middle(v) => v, Self::Other(_) => () }
    extras::FarLongLong { Self::Before(v) => v, Self::After(v) => v, Self::Between(_, v) => v }
    extras::FarULongLong { Self::Last(v) => v, Self::Middle(v) => v, Self::Other(_) => () }
}
