//! Types and constant values.

use super::{DefId, TypeId};

/// An IDL type. It refers to the types and definitions that it contains by [`TypeId`] and [`DefId`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A basic type.
    Primitive(Primitive),
    /// `string` or `string<N>`; the bound counts characters.
    String(Option<u32>),
    /// `wstring` or `wstring<N>`; the bound counts wide characters.
    WString(Option<u32>),
    /// `sequence<T>` or `sequence<T, N>`.
    Sequence {
        /// Element type.
        element: TypeId,
        /// Maximum number of elements, at least 1.
        bound: Option<u32>,
    },
    /// `T a[D0][D1]...`, all dimensions together.
    Array {
        /// Element type. It can be an array only through a typedef.
        element: TypeId,
        /// Dimensions, outermost first. There is at least one, and each is at least 1.
        dims: Vec<u32>,
    },
    /// A struct, union, enum, interface (a reference to it), value type, value box, native type, bitset,
    /// bitmask or typedef, by name.
    Named(DefId),
    /// `Object`: a reference to an object of any interface.
    Object,
    /// `any`: a value of any type, together with a description of this type.
    Any,
    /// `CORBA::TypeCode`: a type as a value.
    TypeCode,
    /// `ValueBase`: a value of any value type, or null.
    ValueBase,
    /// `fixed<digits, scale>`: a decimal number. The type of a `fixed` constant has the digits and the scale
    /// of the constant's value.
    Fixed {
        /// Total number of decimal digits, 1 to 31.
        digits: u8,
        /// Digits after the decimal point, at most `digits`.
        scale: u8,
    },
    /// `map<K, V>` or `map<K, V, N>`.
    Map {
        /// Key type.
        key: TypeId,
        /// Value type.
        value: TypeId,
        /// Maximum number of entries, at least 1.
        bound: Option<u32>,
    },
}

/// A basic IDL type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Primitive {
    /// `boolean`.
    Boolean,
    /// `octet`: eight bits that are never converted.
    Octet,
    /// `char`: one character of the narrow code set.
    Char,
    /// `wchar`.
    WChar,
    /// `int8`: a signed number of eight bits.
    Int8,
    /// `uint8`: an unsigned number of eight bits, encoded as `octet`.
    UInt8,
    /// `short`, `int16`.
    Short,
    /// `unsigned short`, `uint16`.
    UShort,
    /// `long`, `int32`.
    Long,
    /// `unsigned long`, `uint32`.
    ULong,
    /// `long long`, `int64`.
    LongLong,
    /// `unsigned long long`, `uint64`.
    ULongLong,
    /// `float`: IEEE binary32.
    Float,
    /// `double`: IEEE binary64.
    Double,
    /// `long double`: IEEE binary128.
    LongDouble,
}

impl Primitive {
    /// Returns the IDL spelling of the type.
    pub fn idl_name(self) -> &'static str {
        match self {
            Primitive::Boolean => "boolean",
            Primitive::Octet => "octet",
            Primitive::Char => "char",
            Primitive::WChar => "wchar",
            Primitive::Int8 => "int8",
            Primitive::UInt8 => "uint8",
            Primitive::Short => "short",
            Primitive::UShort => "unsigned short",
            Primitive::Long => "long",
            Primitive::ULong => "unsigned long",
            Primitive::LongLong => "long long",
            Primitive::ULongLong => "unsigned long long",
            Primitive::Float => "float",
            Primitive::Double => "double",
            Primitive::LongDouble => "long double",
        }
    }

    /// Returns the least and greatest value of an integer type or `octet`; `None` for other types.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            Primitive::Octet | Primitive::UInt8 => (0, u8::MAX.into()),
            Primitive::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Primitive::Short => (i16::MIN.into(), i16::MAX.into()),
            Primitive::UShort => (0, u16::MAX.into()),
            Primitive::Long => (i32::MIN.into(), i32::MAX.into()),
            Primitive::ULong => (0, u32::MAX.into()),
            Primitive::LongLong => (i64::MIN.into(), i64::MAX.into()),
            Primitive::ULongLong => (0, u64::MAX.into()),
            _ => return None,
        })
    }

    /// Returns whether the type is `float`, `double` or `long double`.
    pub fn is_float(self) -> bool {
        matches!(self, Primitive::Float | Primitive::Double | Primitive::LongDouble)
    }

    /// Returns the size in CDR in bytes, which is also the alignment, except that `long double` (16 bytes) is
    /// aligned to 8. For `wchar` this is 2, its size in GIOP 1.0 and 1.1; in GIOP 1.2 it has no fixed size.
    pub fn size(self) -> usize {
        match self {
            Primitive::Boolean | Primitive::Octet | Primitive::Char | Primitive::Int8 | Primitive::UInt8 => 1,
            Primitive::WChar | Primitive::Short | Primitive::UShort => 2,
            Primitive::Long | Primitive::ULong | Primitive::Float => 4,
            Primitive::LongLong | Primitive::ULongLong | Primitive::Double => 8,
            Primitive::LongDouble => 16,
        }
    }
}

/// The value of a constant, union label or annotation argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstValue {
    /// `boolean`.
    Bool(bool),
    /// Any integer type or `octet`, in the range of the constant's type.
    Integer(i128),
    /// `float` (already rounded to binary32) or `double`.
    Float(f64),
    /// `long double`: the bits of the IEEE binary128 value, sign in bit 127.
    LongDouble(u128),
    /// `char`, as its ISO 8859-1 code.
    Char(u8),
    /// `wchar`, as one UTF-16 code unit.
    WChar(u16),
    /// `string`; no character is NUL. Each is at most U+00FF, except in an untyped annotation argument.
    String(String),
    /// `wstring`; no character is NUL.
    WString(String),
    /// `fixed`: the number is `unscaled` divided by ten to the power of `scale`, without trailing zeros in
    /// the fraction.
    Fixed {
        /// All digits as one integer, at most 31 of them.
        unscaled: i128,
        /// Number of digits after the decimal point, at most 31.
        scale: u8,
    },
    /// An enumerator.
    Enum {
        /// The enum.
        def: DefId,
        /// Position of the enumerator in it.
        ordinal: u32,
    },
}
