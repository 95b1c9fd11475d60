//! [`NamedValue`] and [`NVList`]: the arguments of dynamic calls and requests.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use giop_codec::any::{Any, AnyError};
use giop_codec::cdr::{CdrDecode, Decoder, Encoder};
use giop_codec::dynamic::{DynError, DynErrorKind, Mode, ParamInfo, Step};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::typecode::{TypeCode, Typed};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

use crate::dynamic::bad_param;
use crate::lock::lock;

/// An argument: its name, direction and type, and its value if it has one.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "CORBA::NamedValue")]
pub struct NamedValue {
    /// The name, which is not sent: messages contain the arguments in their order.
    pub name: Box<str>,
    /// The direction.
    pub mode: Mode,
    /// The type.
    pub code: TypeCode,
    /// The value. `None` for an `out` argument before the call, and for an argument that is not set yet.
    pub value: Option<Any>,
}

impl NamedValue {
    /// Creates an argument with a value, for the directions `in` and `inout`.
    #[must_use]
    pub fn new(name: &str, mode: Mode, value: Any) -> Self {
        Self { name: name.into(), mode, code: value.type_code().clone(), value: Some(value) }
    }

    /// Creates an argument without a value, for the direction `out`.
    #[must_use]
    pub fn without_value(name: &str, mode: Mode, code: TypeCode) -> Self {
        Self { name: name.into(), mode, code, value: None }
    }

    pub(super) fn for_param(param: &ParamInfo) -> Self {
        Self { name: param.name.clone(), mode: param.mode, code: param.code.clone(), value: None }
    }

    /// Returns the value as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM if there is no value, BAD_OPERATION if the value has another type, MARSHAL if `T` rejects
    /// the value.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, SystemException> {
        let value = self.value.as_ref().ok_or_else(|| missing_value(&self.name, CompletionStatus::No))?;
        typed_value(value, &self.name)
    }
}

pub(super) fn typed_value<T: Typed + CdrDecode>(value: &Any, name: &str) -> Result<T, SystemException> {
    value.get().map_err(|error| value_error(value, name, error))
}

#[cold]
fn value_error(value: &Any, name: &str, error: AnyError) -> SystemException {
    let found = match error {
        AnyError::TypeMismatch { wanted, found } => {
            let found = format!("a value of type `{found}`").into();
            DynErrorKind::TypeMismatch { wanted, found }.into()
        }
        // `validate` finds the location of the error, also of invalid text and enum ordinals.
        AnyError::Decode(error) => value.validate().err().unwrap_or_else(|| error.into()),
        error => return error.into(),
    };
    found.inside(Step::Member(name.into())).into()
}

#[cold]
pub(super) fn missing_value(name: &str, completed: CompletionStatus) -> SystemException {
    bad_param(format!("the argument `{name}` has no value"), completed)
}

/// A list of arguments.
///
/// ```
/// use orb_runtime::dynamic::{Mode, NVList, NamedValue};
/// use orb_runtime::types::Any;
///
/// let mut list = NVList::new();
/// list.push(NamedValue::new("amount", Mode::In, Any::new(10.0_f64)?));
/// assert_eq!(list.named("amount").unwrap().get::<f64>()?, 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[doc(alias = "CORBA::NVList")]
pub struct NVList(Vec<NamedValue>);

impl NVList {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an argument.
    #[doc(alias = "add_value")]
    pub fn push(&mut self, argument: NamedValue) {
        self.0.push(argument);
    }

    /// Returns the first argument with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&NamedValue> {
        self.0.iter().find(|argument| *argument.name == *name)
    }

    /// Returns the first argument with this name, mutably.
    pub fn named_mut(&mut self, name: &str) -> Option<&mut NamedValue> {
        self.0.iter_mut().find(|argument| *argument.name == *name)
    }

    /// Returns the value of the argument with this name as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM if the argument does not exist or has no value, BAD_OPERATION if the value has another type,
    /// MARSHAL if `T` rejects the value.
    pub fn get<T: Typed + CdrDecode>(&self, name: &str) -> Result<T, SystemException> {
        match self.named(name) {
            Some(argument) => argument.get(),
            None => Err(unknown_argument(name)),
        }
    }

    /// Encodes the values of the arguments whose direction `is_encoded` selects. Skips missing values.
    pub(super) fn encode(&self, is_encoded: fn(Mode) -> bool, e: &mut Encoder) -> Result<(), DynError> {
        let mut selected = self.0.iter().filter(|argument| is_encoded(argument.mode));
        selected.try_for_each(|argument| match &argument.value {
            Some(value) => value.encode_value_with_path(e).map_err(|error| inside(error, &argument.name)),
            None => Ok(()),
        })
    }

    /// Decodes the values of these arguments. The decoder contains them in the same order.
    pub(super) fn decode<'a>(
        arguments: impl Iterator<Item = &'a NamedValue>,
        d: &mut Decoder<'_>,
    ) -> Result<Self, DynError> {
        let decoded = arguments.map(|argument| {
            let value = decode_value(&argument.code, &argument.name, d)?;
            let NamedValue { name, mode, code, .. } = argument.clone();
            Ok(NamedValue { name, mode, code, value: Some(value) })
        });
        decoded.collect::<Result<_, DynError>>().map(Self)
    }
}

pub(super) fn decode_value(code: &TypeCode, name: &str, d: &mut Decoder<'_>) -> Result<Any, DynError> {
    Any::decode_value_with_path(code, d).map_err(|error| inside(error, name))
}

#[cold]
pub(super) fn inside(error: DynError, name: &str) -> DynError {
    error.inside(Step::Member(name.into()))
}

/// Keeps an error with its location in a value, while closures can return only a [`DecodeError`] or
/// [`EncodeError`], which have no location.
pub(super) struct LocatedErrorSlot(Mutex<Option<DynError>>);

impl LocatedErrorSlot {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    #[cold]
    fn store(&self, error: DynError) -> DynErrorKind {
        let kind = error.kind().clone();
        *lock(&self.0) = Some(error);
        kind
    }

    /// Stores the error of `result`, and returns it as a [`DecodeError`].
    pub(super) fn keep_decode_error<R>(
        &self,
        d: &Decoder<'_>,
        result: Result<R, DynError>,
    ) -> Result<R, DecodeError> {
        result.map_err(|error| match self.store(error) {
            DynErrorKind::Decode(error) => error,
            _ => d.error(DecodeErrorKind::Malformed),
        })
    }

    pub(super) fn keep_encode_error(&self, result: Result<(), DynError>) -> Result<(), EncodeError> {
        result.map_err(|error| match self.store(error) {
            DynErrorKind::Encode(error) => error,
            _ => EncodeErrorKind::Unrepresentable.into(),
        })
    }

    pub(super) fn take(&self) -> Option<DynError> {
        lock(&self.0).take()
    }
}

#[cold]
pub(super) fn unknown_argument(name: &str) -> SystemException {
    bad_param(format!("there is no argument `{name}`"), CompletionStatus::No)
}

impl Deref for NVList {
    type Target = [NamedValue];

    fn deref(&self) -> &[NamedValue] {
        &self.0
    }
}

impl DerefMut for NVList {
    fn deref_mut(&mut self) -> &mut [NamedValue] {
        &mut self.0
    }
}

impl FromIterator<NamedValue> for NVList {
    fn from_iter<I: IntoIterator<Item = NamedValue>>(arguments: I) -> Self {
        Self(arguments.into_iter().collect())
    }
}

impl IntoIterator for NVList {
    type Item = NamedValue;
    type IntoIter = std::vec::IntoIter<NamedValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a NVList {
    type Item = &'a NamedValue;
    type IntoIter = std::slice::Iter<'a, NamedValue>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use giop_codec::cdr::WString;
    use giop_codec::{ByteOrder, Version};

    use super::*;

    fn argument(name: &str, value: Any) -> NamedValue {
        NamedValue::new(name, Mode::In, value)
    }

    /// GIOP 1.0 does not support wide text.
    #[test]
    fn encoding_error_has_the_location_in_the_argument() {
        let texts = vec![WString::from("a"), WString::from("b")];
        let arguments =
            [argument("count", Any::new(2_i32).unwrap()), argument("texts", Any::new(texts).unwrap())];
        let list: NVList = arguments.into_iter().collect();
        let error = list.encode(Mode::is_input, &mut Encoder::new(ByteOrder::NATIVE, Version::V1_0));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("texts[0]: "), "{error}");
    }

    #[test]
    fn type_or_decoding_error_has_the_location_in_the_argument() {
        let value = argument("count", Any::new(2_i32).unwrap());
        let error = value.get::<Vec<String>>().unwrap_err().to_string();
        assert!(
            error.contains(": count: a value of type `long` does not match type `sequence<string>`"),
            "{error}"
        );
        // The second text is not terminated.
        let bytes = [2_u32, 1, 0, 2].map(u32::to_ne_bytes).concat();
        let bytes = [bytes, b"ab".to_vec()].concat();
        let mut d = Decoder::new(&bytes, ByteOrder::NATIVE, Version::V1_2);
        let texts = Any::decode_value(&Vec::<String>::type_code(), &mut d).unwrap();
        let error = argument("texts", texts).get::<Vec<String>>().unwrap_err().to_string();
        assert!(error.contains(": texts[1]: "), "{error}");
    }
}
