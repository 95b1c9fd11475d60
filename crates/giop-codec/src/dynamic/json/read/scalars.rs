//! Numbers, texts, and types whose JSON is a number or text.

use base64::Engine;
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
                match u32::try_from(number).ok().filter(|ordinal| (*ordinal as usize) < names.len()) {
                    Some(ordinal) => Ok(Value::Enum(ordinal)),
                    None => Err(self.out_of_range()),
                }
            }
            _ => Err(self.mismatch("a number")),
        }
    }

    pub(super) fn decimal<E: Error>(self, text: &str) -> Result<Value, E> {
        let Node::Fixed { digits, scale } = *self.node() else { return Err(self.mismatch("a number")) };
        match Decimal::parse(text, digits, scale) {
            Some(number) => Ok(Value::Fixed(Box::new(number))),
            None => {
                let text = "the text is no decimal number of the digits of its type";
                Err(self.state.fail(DynErrorKind::InvalidValue(text)))
            }
        }
    }

    pub(super) fn octets<E: Error>(
        mut self,
        text: &str,
        bound: u32,
        length: Option<u32>,
    ) -> Result<Vec<u8>, E> {
        let Ok(octets) = base64::engine::general_purpose::STANDARD.decode(text) else {
            return Err(self.state.fail(DynErrorKind::InvalidValue("the text is not base64")));
        };
        self.bounded(octets.len(), bound)?;
        match length {
            Some(length) if octets.len() != length as usize => {
                let (wanted, found) = (length as usize, octets.len());
                Err(self.state.fail(DynErrorKind::Length { wanted, found }))
            }
            _ => Ok(octets),
        }
    }

    /// Reads a `wstring` from its UTF-16 units.
    pub(super) fn units<'de, A: SeqAccess<'de>>(self, bound: u32, mut seq: A) -> Result<Value, A::Error> {
        let mut units: Vec<u16> = Vec::new();
        while let Some(unit) = seq.next_element::<u64>()? {
            match u16::try_from(unit) {
                Ok(unit) => units.push(unit),
                Err(_) => return Err(self.out_of_range()),
            }
        }
        self.wide(WString::from_units(units), bound)
    }

    fn wide<E: Error>(mut self, text: WString, bound: u32) -> Result<Value, E> {
        if text.as_wstr().has_nul() {
            let error = DynErrorKind::InvalidValue("a wstring contains a NUL character");
            return Err(self.state.fail(error));
        }
        self.bounded(text.bounded_len(), bound)?;
        Ok(Value::WString(text))
    }

    pub(super) fn text<E: Error>(mut self, text: &str) -> Result<Value, E> {
        let one = |most: u32| {
            let mut chars = text.chars();
            chars.next().map(u32::from).filter(|one| *one <= most && chars.next().is_none())
        };
        match self.node() {
            Node::Text { wide: false, bound } => {
                if text.contains('\0') {
                    return Err(self
                        .state
                        .fail(DynErrorKind::InvalidValue("a string contains a NUL character")));
                }
                self.bounded(text.bounded_len(), *bound)?;
                Ok(Value::String(text.into()))
            }
            Node::Text { wide: true, bound } => self.wide(WString::from(text), *bound),
            Node::Basic(TcKind::Char) => match one(0xFF) {
                Some(one) => Ok(Value::Char(Char(one as u8))),
                None => Err(self.mismatch("a text of other than one character up to U+00FF")),
            },
            Node::Basic(TcKind::WChar) => match one(0xFFFF) {
                Some(one) => Ok(Value::WChar(WChar(one as u16))),
                None => Err(self.mismatch("a text of other than one character up to U+FFFF")),
            },
            Node::Basic(TcKind::Float | TcKind::Double) => match text {
                "NaN" => self.float(f64::NAN),
                "Infinity" => self.float(f64::INFINITY),
                "-Infinity" => self.float(f64::NEG_INFINITY),
                _ => Err(self.mismatch("a string")),
            },
            Node::Basic(TcKind::LongDouble) => {
                let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 32);
                match digits.and_then(|digits| u128::from_str_radix(digits, 16).ok()) {
                    Some(bits) => Ok(Value::LongDouble(LongDouble::from_bits(bits))),
                    None => Err(self.mismatch("a string other than 0x and 32 digits")),
                }
            }
            Node::Basic(TcKind::TypeCode) => self.type_code(&Json::from(text)),
            Node::Basic(TcKind::Principal) => {
                self.octets(text, 0, None).map(|octets| Value::Principal(octets.into()))
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
                self.octets(text, *bound, None).map(|octets| items(Items::Octets(octets.into())))
            }
            Node::Array { element, length } if self.is_of_octets(*element) => {
                self.octets(text, 0, Some(*length)).map(|octets| items(Items::Octets(octets.into())))
            }
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                let (nodes, index) = (self.nodes, self.nodes.unaliased(self.index));
                match self.state.position((nodes, index), names.iter().map(|name| &**name), text) {
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
                        let text = format!("a reference is an `IOR:`: {error}");
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
