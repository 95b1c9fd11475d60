//! Random types with random values, and an encoder for them that is independent of programs.
#![allow(dead_code, reason = "each test uses some")]

use giop_codec::any::Any;
use giop_codec::cdr::{CdrEncode, Char, CharSet, CodeSets, Encoder, LongDouble, Seq, WChar, WCharSet};
use giop_codec::dynamic::{Decimal, Dynamic, Items, UnionValue, Value, ValueGraph};
use giop_codec::ior::{Ior, ProfileTag, TaggedProfile};
use giop_codec::typecode::{TcKind, TypeCode, UnionLabel};
use giop_codec::{ByteOrder, Version};
use proptest::prelude::*;

pub const SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };
pub const FOREIGN: ByteOrder =
    if matches!(ByteOrder::NATIVE, ByteOrder::Big) { ByteOrder::Little } else { ByteOrder::Big };

#[derive(Clone, Debug)]
pub enum Shape {
    Basic(TcKind),
    Text(u32),
    Wide(u32),
    Fixed(u16, u16),
    Enum(u32),
    Object,
    Seq(Box<Shape>, u32),
    Array(Box<Shape>, u32),
    Struct(Vec<Shape>),
    Union(Vec<Shape>, bool),
    Alias(Box<Shape>),
}

const BASIC: [TcKind; 15] = [
    TcKind::Boolean,
    TcKind::Char,
    TcKind::Octet,
    TcKind::Short,
    TcKind::UShort,
    TcKind::Long,
    TcKind::ULong,
    TcKind::LongLong,
    TcKind::ULongLong,
    TcKind::Float,
    TcKind::Double,
    TcKind::LongDouble,
    TcKind::WChar,
    TcKind::Any,
    TcKind::TypeCode,
];

/// Types of at most four levels.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        12 => prop::sample::select(&BASIC[..13]).prop_map(Shape::Basic),
        1 => prop::sample::select(&BASIC[13..]).prop_map(Shape::Basic),
        1 => (0..2_u32).prop_map(|bounded| Shape::Text(bounded * 9)),
        1 => (0..2_u32).prop_map(|bounded| Shape::Wide(bounded * 9)),
        1 => (1..32_u16, 0..9_u16).prop_map(|(digits, scale)| Shape::Fixed(digits, scale.min(digits))),
        1 => (1..5_u32).prop_map(Shape::Enum),
        1 => Just(Shape::Object),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            2 => (inner.clone(), 0..2_u32).prop_map(|(of, bounded)| Shape::Seq(Box::new(of), bounded * 9)),
            2 => (inner.clone(), 1..5_u32).prop_map(|(of, len)| Shape::Array(Box::new(of), len)),
            4 => prop::collection::vec(inner.clone(), 1..7).prop_map(Shape::Struct),
            1 => (prop::collection::vec(inner.clone(), 1..4), any::<bool>())
                .prop_map(|(of, default)| Shape::Union(of, default)),
            1 => inner.prop_map(|of| Shape::Alias(Box::new(of))),
        ]
    })
}

/// Types whose values always have the same size.
pub fn fixed_shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        9 => prop::sample::select(&BASIC[..12]).prop_map(Shape::Basic),
        1 => (1..5_u32).prop_map(Shape::Enum),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            1 => (inner.clone(), 1..5_u32).prop_map(|(of, len)| Shape::Array(Box::new(of), len)),
            3 => prop::collection::vec(inner.clone(), 1..7).prop_map(Shape::Struct),
        ]
    })
}

/// A random number generator.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 20 ^ self.0 << 40
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.roll() >> 8) % n
    }
}

impl Shape {
    pub fn type_code(&self) -> TypeCode {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        match self {
            Shape::Basic(kind) => TypeCode::basic(*kind).unwrap(),
            Shape::Text(bound) => TypeCode::string(*bound),
            Shape::Wide(bound) => TypeCode::wstring(*bound),
            Shape::Fixed(digits, scale) => TypeCode::create_fixed(*digits, *scale as i16).unwrap(),
            Shape::Enum(count) => {
                TypeCode::create_enum("IDL:E:1.0", "E", names.get(..*count as usize).unwrap()).unwrap()
            }
            Shape::Object => TypeCode::OBJECT,
            Shape::Seq(of, bound) => TypeCode::sequence(&of.type_code(), *bound),
            Shape::Array(of, len) => TypeCode::array(&of.type_code(), *len),
            Shape::Struct(of) => {
                let codes: Vec<TypeCode> = of.iter().map(Shape::type_code).collect();
                let members: Vec<(&str, &TypeCode)> = names.iter().copied().zip(&codes).collect();
                TypeCode::create_struct("", "", &members).unwrap()
            }
            Shape::Union(of, default) => {
                let codes: Vec<TypeCode> = of.iter().map(Shape::type_code).collect();
                let label = |at: usize| match *default && at + 1 == of.len() {
                    true => UnionLabel::Default,
                    false => UnionLabel::Case(at as i64),
                };
                let members: Vec<(UnionLabel, &str, &TypeCode)> =
                    codes.iter().enumerate().map(|(at, code)| (label(at), names[at], code)).collect();
                TypeCode::create_union("", "", &TypeCode::SHORT, &members).unwrap()
            }
            Shape::Alias(of) => TypeCode::create_alias("IDL:A:1.0", "A", &of.type_code()).unwrap(),
        }
    }

    /// Returns whether the type has a part for which `f` returns true.
    pub fn has(&self, f: &dyn Fn(&Shape) -> bool) -> bool {
        f(self)
            || match self {
                Shape::Seq(of, _) | Shape::Array(of, _) | Shape::Alias(of) => of.has(f),
                Shape::Struct(of) | Shape::Union(of, _) => of.iter().any(|of| of.has(f)),
                _ => false,
            }
    }

    pub fn is_wide(&self) -> bool {
        self.has(&|shape| matches!(shape, Shape::Wide(_) | Shape::Basic(TcKind::WChar)))
    }

    pub fn is_opaque(&self) -> bool {
        self.has(&|shape| matches!(shape, Shape::Basic(TcKind::Any | TcKind::TypeCode)))
    }

    /// Returns a random value in the form in which `decode` returns it.
    pub fn value(&self, dice: &mut Dice) -> Value {
        match self {
            Shape::Basic(kind) => basic(*kind, dice),
            Shape::Text(_) => Value::String("h\u{e4}llo wo".chars().take(dice.below(9) as usize).collect()),
            Shape::Wide(_) => {
                Value::WString("h\u{e4}l\u{1F600}".chars().take(dice.below(4) as usize).collect())
            }
            Shape::Fixed(digits, scale) => {
                let unscaled = i128::from(dice.below(10_u64.pow(u32::from(*digits).min(19))));
                let unscaled = if unscaled % 2 == 0 { unscaled } else { -unscaled };
                Value::Fixed(Box::new(Decimal { unscaled, digits: *digits, scale: *scale as i16 }))
            }
            Shape::Enum(count) => Value::Enum(dice.below(u64::from(*count)) as u32),
            Shape::Object => {
                let data = vec![1; dice.below(7) as usize].into();
                let profiles = vec![TaggedProfile { tag: ProfileTag(9), data }; dice.below(3) as usize];
                Value::Object(Box::new(Ior { type_id: "IDL:I:1.0".into(), profiles }))
            }
            Shape::Seq(of, _) => {
                let count = dice.below(9) as usize;
                items(of, count, dice)
            }
            Shape::Array(of, len) => items(of, *len as usize, dice),
            Shape::Struct(of) => Value::Struct(of.iter().map(|of| of.value(dice)).collect()),
            Shape::Union(of, _) => {
                let discriminator = dice.below(of.len() as u64 + 1) as i64;
                let value = self.selected(discriminator).map(|of| of.value(dice));
                Value::Union(Box::new(UnionValue { discriminator, value }))
            }
            Shape::Alias(of) => of.value(dice),
        }
    }

    fn selected(&self, label: i64) -> Option<&Shape> {
        let Shape::Union(of, default) = self else { return None };
        of.get(label as usize).or_else(|| of.last().filter(|_| *default))
    }

    /// Writes a value, one primitive at a time.
    pub fn put(&self, value: &Value, e: &mut Encoder) {
        match (self, value) {
            (Shape::Basic(_) | Shape::Text(_) | Shape::Wide(_) | Shape::Enum(_) | Shape::Object, value) => {
                leaf(value, e)
            }
            (Shape::Fixed(..), Value::Fixed(number)) => {
                let width = usize::from(number.digits) / 2 + 1;
                let digits = format!("{:0>len$}", number.unscaled.unsigned_abs(), len = 2 * width - 1);
                let sign = if number.unscaled < 0 { 0xD } else { 0xC };
                let nibbles: Vec<u8> = digits.bytes().map(|digit| digit - b'0').chain([sign]).collect();
                nibbles.chunks(2).for_each(|pair| e.put_u8(pair[0] << 4 | pair[1]));
            }
            (Shape::Seq(of, _), Value::Items(items)) => {
                e.put_u32(items.len() as u32);
                (0..items.len()).for_each(|at| of.put(&items.get(at).unwrap(), e));
            }
            (Shape::Array(of, _), Value::Items(items)) => {
                (0..items.len()).for_each(|at| of.put(&items.get(at).unwrap(), e));
            }
            (Shape::Struct(of), Value::Struct(members)) => {
                of.iter().zip(members).for_each(|(of, member)| of.put(member, e));
            }
            (Shape::Union(..), Value::Union(union)) => {
                e.put_i16(union.discriminator as i16);
                if let (Some(of), Some(value)) = (self.selected(union.discriminator), &union.value) {
                    of.put(value, e);
                }
            }
            (Shape::Alias(of), value) => of.put(value, e),
            (shape, value) => panic!("{shape:?} {value:?}"),
        }
    }
}

pub fn leaf(value: &Value, e: &mut Encoder) {
    match value {
        Value::Boolean(value) => e.put_bool(*value),
        Value::Octet(value) => e.put_u8(*value),
        Value::Char(value) => e.put_u8(value.0),
        Value::Short(value) => e.put_i16(*value),
        Value::UShort(value) => e.put_u16(*value),
        Value::Long(value) => e.put_i32(*value),
        Value::ULong(value) | Value::Enum(value) => e.put_u32(*value),
        Value::LongLong(value) => e.put_i64(*value),
        Value::ULongLong(value) => e.put_u64(*value),
        Value::Float(value) => e.put_f32(*value),
        Value::Double(value) => e.put_f64(*value),
        Value::LongDouble(value) => value.encode(e).unwrap(),
        Value::WChar(value) => e.put_wchar(*value).unwrap(),
        Value::String(value) => e.put_str(value).unwrap(),
        Value::WString(value) => e.put_wstr(value).unwrap(),
        Value::Any(value) => value.encode(e).unwrap(),
        Value::TypeCode(value) => value.encode(e).unwrap(),
        Value::Object(value) => value.encode(e).unwrap(),
        value => panic!("{value:?}"),
    }
}

fn basic(kind: TcKind, dice: &mut Dice) -> Value {
    let roll = dice.roll();
    match kind {
        TcKind::Boolean => Value::Boolean(roll & 1 != 0),
        TcKind::Char => Value::Char(Char(roll as u8)),
        TcKind::Octet => Value::Octet(roll as u8),
        TcKind::Short => Value::Short(roll as i16),
        TcKind::UShort => Value::UShort(roll as u16),
        TcKind::Long => Value::Long(roll as i32),
        TcKind::ULong => Value::ULong(roll as u32),
        TcKind::LongLong => Value::LongLong(roll as i64),
        TcKind::ULongLong => Value::ULongLong(roll),
        TcKind::Float => Value::Float(roll as u16 as f32 / 8.0),
        TcKind::Double => Value::Double(roll as u32 as f64 / 8.0),
        TcKind::LongDouble => Value::LongDouble(LongDouble::from(roll as u32 as f64 / 8.0)),
        TcKind::WChar => Value::WChar(WChar(roll as u16)),
        TcKind::Any => Value::Any(Box::new(match roll & 3 {
            0 => Any::default(),
            1 => Any::new(roll as i16).unwrap(),
            2 => Any::new(vec!["x".to_owned(), "yz".to_owned()]).unwrap(),
            _ => Any::new(Any::new(roll as f64).unwrap()).unwrap(),
        })),
        TcKind::TypeCode => Value::TypeCode(Box::new(match roll & 1 {
            0 => TypeCode::LONG,
            _ => {
                TypeCode::create_struct("IDL:S:1.0", "S", &[("a", &TypeCode::STRING), ("b", &TypeCode::LONG)])
                    .unwrap()
            }
        })),
        kind => panic!("{kind:?}"),
    }
}

fn items(of: &Shape, count: usize, dice: &mut Dice) -> Value {
    let values: Vec<Value> = (0..count).map(|_| of.value(dice)).collect();
    macro_rules! numbers {
        ($variant:ident $items:ident) => {
            Items::$items(
                values
                    .iter()
                    .map(|v| match v {
                        Value::$variant(v) => *v,
                        v => panic!("{v:?}"),
                    })
                    .collect(),
            )
        };
    }
    let mut of = of;
    while let Shape::Alias(inner) = of {
        of = inner;
    }
    let items = match of {
        Shape::Basic(TcKind::Octet) => {
            let octets: Seq<u8> = values
                .iter()
                .map(|v| match v {
                    Value::Octet(v) => *v,
                    v => panic!("{v:?}"),
                })
                .collect();
            Items::Octets(octets.into())
        }
        Shape::Basic(TcKind::Char) => numbers!(Char Chars),
        Shape::Basic(TcKind::Short) => numbers!(Short Shorts),
        Shape::Basic(TcKind::UShort) => numbers!(UShort UShorts),
        Shape::Basic(TcKind::Long) => numbers!(Long Longs),
        Shape::Basic(TcKind::ULong) => numbers!(ULong ULongs),
        Shape::Basic(TcKind::LongLong) => numbers!(LongLong LongLongs),
        Shape::Basic(TcKind::ULongLong) => numbers!(ULongLong ULongLongs),
        Shape::Basic(TcKind::Float) => numbers!(Float Floats),
        Shape::Basic(TcKind::Double) => numbers!(Double Doubles),
        _ => Items::Values(values),
    };
    Value::Items(Box::new(items))
}

/// Returns an encoder whose first byte has that phase.
pub fn encoder(order: ByteOrder, version: Version, phase: usize) -> Encoder {
    let mut e = Encoder::new_at(order, version, phase);
    e.set_code_sets(SETS);
    e
}

pub fn dynamic(shape: &Shape, value: Value) -> Dynamic {
    Dynamic { code: shape.type_code(), value, graph: ValueGraph::default() }
}
