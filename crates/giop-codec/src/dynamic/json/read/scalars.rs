//! Numbers, strings, and other types whose JSON is a number or string.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, SeqAccess};
use serde_json::Value as Json;

use super::super::super::{Decimal, DynErrorKind, Items, Value};
use super::{PartSeed, items};
use crate::cdr::{BoundedContent, Char, LongDouble, WChar, WString};
use crate::ior::Ior;
use crate::typecode::{Body, NamedType, Node, TcKind};

impl PartSeed<'_> {
    pub(super) fn integer<E: Error>(self, number: i128) -> Result<Value, E> {
        macro_rules! to {
            ($variant:ident $rust:ty) => {
                <$rust>::try_from(number).map(Value::$variant).map_err(|_| self.out_of_range())
            };
        }
        match self.node() {
            Node::Basic(TcKind::Octet) => to!(Octet u8),
            Node::Basic(TcKind::Short) => to!(Short i16),
            Node::Basic(TcKind::UShort) => to!(UShort u16),
            Node::Basic(TcKind::Long) => to!(Long i32),
            Node::Basic(TcKind::ULong) => to!(ULong u32),
            Node::Basic(TcKind::LongLong) => to!(LongLong i64),
            Node::Basic(TcKind::ULongLong) => to!(ULongLong u64),
            Node::Basic(TcKind::Float) => Ok(Value::Float(number as f32)),
            Node::Basic(TcKind::Double) => Ok(Value::Double(number as f64)),
            Node::Basic(TcKind::LongDouble) => Ok(Value::LongDouble(LongDouble::from(number as f64))),
            Node::Basic(TcKind::WChar) => {
                u16::try_from(number).map(|unit| Value::WChar(WChar(unit))).map_err(|_| self.out_of_range())
            }
            Node::Fixed { .. } => self.decimal(&number.to_string()),
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                let ordinal = u32::try_from(number).ok().filter(|ordinal| (*ordinal as usize) < names.len());
                ordinal.map(Value::Enum).ok_or_else(|| self.out_of_range())
            }
            _ => Err(self.mismatch("a number")),
        }
    }

    pub(super) fn decimal<E: Error>(self, text: &str) -> Result<Value, E> {
        let Node::Fixed { digits, scale } = *self.node() else { return Err(self.mismatch("a number")) };
        let Some(number) = Decimal::parse(text, digits, scale) else {
            let error = "the text is not a decimal number, or its type cannot hold all digits";
            return Err(self.state.fail(DynErrorKind::InvalidValue(error)));
        };
        Ok(Value::Fixed(Box::new(number)))
    }

    pub(super) fn base64_bytes<E: Error>(
        mut self,
        text: &str,
        bound: u32,
        length: Option<u32>,
    ) -> Result<Vec<u8>, E> {
        let Ok(bytes) = STANDARD.decode(text) else {
            return Err(self.state.fail(DynErrorKind::InvalidValue("the text is not valid base64")));
        };
        self.check_bound(bytes.len(), bound)?;
        self.check_length(bytes.len(), length)?;
        Ok(bytes)
    }

    pub(super) fn utf16_units<'de, A: SeqAccess<'de>>(
        self,
        bound: u32,
        mut seq: A,
    ) -> Result<Value, A::Error> {
        let mut units = Vec::new();
        while let Some(unit) = seq.next_element::<u64>()? {
            let Ok(unit) = u16::try_from(unit) else { return Err(self.out_of_range()) };
            units.push(unit);
        }
        self.wide_text(WString::from_units(units), bound)
    }

    fn wide_text<E: Error>(mut self, text: WString, bound: u32) -> Result<Value, E> {
        if text.as_wstr().has_nul() {
            let error = DynErrorKind::InvalidValue("a wstring contains a NUL character");
            return Err(self.state.fail(error));
        }
        self.check_bound(text.bounded_len(), bound)?;
        Ok(Value::WString(text))
    }

    pub(super) fn text<E: Error>(mut self, text: &str) -> Result<Value, E> {
        let single_char = |max: u32| {
            let mut chars = text.chars();
            chars.next().map(u32::from).filter(|code| *code <= max && chars.next().is_none())
        };
        match self.node() {
            Node::Text { wide: false, bound } => {
                if text.contains('\0') {
                    let error = DynErrorKind::InvalidValue("a string contains a NUL character");
                    return Err(self.state.fail(error));
                }
                self.check_bound(text.bounded_len(), *bound)?;
                Ok(Value::String(text.into()))
            }
            Node::Text { wide: true, bound } => self.wide_text(WString::from(text), *bound),
            Node::Basic(TcKind::Char) => match single_char(0xFF) {
                Some(code) => Ok(Value::Char(Char(code as u8))),
                None => Err(self.mismatch("a string that is not one character up to U+00FF")),
            },
            Node::Basic(TcKind::WChar) => match single_char(0xFFFF) {
                Some(code) => Ok(Value::WChar(WChar(code as u16))),
                None => Err(self.mismatch("a string that is not one character up to U+FFFF")),
            },
            Node::Basic(TcKind::Float | TcKind::Double) => match text {
                "NaN" => self.float(f64::NAN),
                "Infinity" => self.float(f64::INFINITY),
                "-Infinity" => self.float(f64::NEG_INFINITY),
                _ => Err(self.mismatch("a string")),
            },
            Node::Basic(TcKind::LongDouble) => {
                let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 32);
                let bits = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
                let number = bits.map(|bits| Value::LongDouble(LongDouble::from_bits(bits)));
                number.ok_or_else(|| self.mismatch("a string that is not `0x` and 32 hexadecimal digits"))
            }
            Node::Basic(TcKind::TypeCode) => self.type_code(&Json::from(text)),
            Node::Basic(TcKind::Principal) => {
                self.base64_bytes(text, 0, None).map(|bytes| Value::Principal(bytes.into()))
            }
            Node::Basic(kind)
                if kind.number() != TcKind::Boolean.number() && kind.number() != TcKind::Any.number() =>
            {
                match text.parse::<i128>() {
                    Ok(number) => self.integer(number),
                    Err(_) => Err(self.mismatch("a string")),
                }
            }
            Node::Fixed { .. } => self.decimal(text),
            Node::Sequence { element, bound } if self.is_of_octets(*element) => {
                self.base64_bytes(text, *bound, None).map(|bytes| items(Items::Octets(bytes.into())))
            }
            Node::Array { element, length } if self.is_of_octets(*element) => {
                self.base64_bytes(text, 0, Some(*length)).map(|bytes| items(Items::Octets(bytes.into())))
            }
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                let (nodes, index) = (self.nodes, self.nodes.unaliased(self.index));
                match self.state.find_name((nodes, index), names.iter().map(|name| &**name), text) {
                    Some((ordinal, _)) => Ok(Value::Enum(ordinal as u32)),
                    None => Err(self.state.fail(DynErrorKind::NoSuchMember(text.into()))),
                }
            }
            Node::Named(NamedType { body: Body::Opaque, kind, .. })
                if !matches!(kind, TcKind::Native | TcKind::LocalInterface) =>
            {
                match text.parse::<Ior>() {
                    Ok(ior) => Ok(Value::Object(Box::new(ior))),
                    Err(error) => {
                        let text =
                            format!("the text is not an object reference that begins with `IOR:`: {error}");
                        Err(self.state.fail(DynErrorKind::Syntax(text.into())))
                    }
                }
            }
            _ => Err(self.mismatch("a string")),
        }
    }

    pub(super) fn float<E: Error>(self, number: f64) -> Result<Value, E> {
        match self.node() {
            Node::Basic(TcKind::Float) => {
                let narrow = number as f32;
                if narrow.is_infinite() && number.is_finite() {
                    return Err(self.out_of_range());
                }
                Ok(Value::Float(narrow))
            }
            Node::Basic(TcKind::Double) => Ok(Value::Double(number)),
            Node::Basic(TcKind::LongDouble) => Ok(Value::LongDouble(LongDouble::from(number))),
            Node::Fixed { .. } => self.decimal(&number.to_string()),
            _ => Err(self.mismatch("a number with a fraction")),
        }
    }
}
