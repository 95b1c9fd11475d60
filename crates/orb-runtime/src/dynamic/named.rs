//! Arguments by name.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use giop_codec::any::{Any, AnyError};
use giop_codec::cdr::{CdrDecode, Decoder, Encoder};
use giop_codec::dynamic::{DynError, DynErrorKind, Mode, ParamInfo, Step};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::typecode::{TypeCode, Typed};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

use super::bad_param;

/// An argument: its name, which way it goes, its type, and its value where there is one already.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "CORBA::NamedValue")]
pub struct NamedValue {
    /// For the program alone: in messages only the order counts.
    pub name: Box<str>,
    /// Which way it goes.
    pub mode: Mode,
    /// Its type.
    pub code: TypeCode,
    /// `None` of an `out` argument before the call, and of an argument that is still to be set.
    pub value: Option<Any>,
}

impl NamedValue {
    /// An argument that has a value: `in` or `inout`.
    #[must_use]
    pub fn new(name: &str, mode: Mode, value: Any) -> Self {
        Self { name: name.into(), mode, code: value.type_code().clone(), value: Some(value) }
    }

    /// An argument that has no value yet: `out`.
    #[must_use]
    pub fn of_type(name: &str, mode: Mode, code: TypeCode) -> Self {
        Self { name: name.into(), mode, code, value: None }
    }

    /// What an operation has as its parameter.
    pub(super) fn of(param: &ParamInfo) -> Self {
        Self { name: param.name.clone(), mode: param.mode, code: param.code.clone(), value: None }
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM without a value, BAD_OPERATION where it is of another type, MARSHAL where `T` refuses it.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, SystemException> {
        taken(self.any()?, &self.name)
    }

    fn any(&self) -> Result<&Any, SystemException> {
        self.value.as_ref().ok_or_else(|| missing(&self.name, CompletionStatus::No))
    }
}

/// The value that has that name as a `T`.
pub(super) fn taken<T: Typed + CdrDecode>(value: &Any, name: &str) -> Result<T, SystemException> {
    value.get().map_err(|error| not_taken(value, name, error))
}

#[cold]
fn not_taken(value: &Any, name: &str, error: AnyError) -> SystemException {
    let found = match error {
        AnyError::TypeMismatch { wanted, found } => {
            let found = format!("a value of type `{found}`").into();
            DynErrorKind::TypeMismatch { wanted, found }.into()
        }
        // Text and ordinals were not looked at before.
        AnyError::Decode(error) => value.validate().err().unwrap_or_else(|| error.into()),
        error => return error.into(),
    };
    found.inside(Step::Member(name.into())).into()
}

#[cold]
pub(super) fn missing(name: &str, completed: CompletionStatus) -> SystemException {
    bad_param(format!("the argument `{name}` has no value"), completed)
}

/// Arguments in their order.
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
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an argument behind the others.
    #[doc(alias = "add_value")]
    pub fn push(&mut self, argument: NamedValue) {
        self.0.push(argument);
    }

    /// The first argument of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&NamedValue> {
        self.0.iter().find(|argument| *argument.name == *name)
    }

    /// The same, to be changed.
    pub fn named_mut(&mut self, name: &str) -> Option<&mut NamedValue> {
        self.0.iter_mut().find(|argument| *argument.name == *name)
    }

    /// The value of the argument of that name as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM where there is no such argument, or it has no value; BAD_OPERATION where it is of another type, MARSHAL where `T`
    /// refuses it.
    pub fn get<T: Typed + CdrDecode>(&self, name: &str) -> Result<T, SystemException> {
        match self.named(name) {
            Some(argument) => argument.get(),
            None => Err(unknown(name)),
        }
    }

    /// Writes the values that go from the caller to the servant, or the other way.
    pub(super) fn encode(&self, goes: fn(Mode) -> bool, e: &mut Encoder) -> Result<(), DynError> {
        let mut all = self.0.iter().filter(|argument| goes(argument.mode));
        all.try_for_each(|argument| match &argument.value {
            Some(value) => value.encode_value_with_path(e).map_err(|error| inside(error, &argument.name)),
            None => Ok(()),
        })
    }

    /// These arguments with their values, which come in this order.
    pub(super) fn decoded<'a>(
        arguments: impl Iterator<Item = &'a NamedValue>,
        d: &mut Decoder<'_>,
    ) -> Result<Self, DynError> {
        let decoded = arguments.map(|argument| {
            let value = received(&argument.code, &argument.name, d)?;
            let NamedValue { name, mode, code, .. } = argument.clone();
            Ok(NamedValue { name, mode, code, value: Some(value) })
        });
        decoded.collect::<Result<_, DynError>>().map(Self)
    }
}

/// Reads the value that has that name.
pub(super) fn received(code: &TypeCode, name: &str, d: &mut Decoder<'_>) -> Result<Any, DynError> {
    Any::decode_value_with_path(code, d).map_err(|error| inside(error, name))
}

#[cold]
pub(super) fn inside(error: DynError, name: &str) -> DynError {
    error.inside(Step::Member(name.into()))
}

/// Keeps an error, which says where something is wrong, while the one that says what goes its way.
pub(super) struct Aside(Mutex<Option<DynError>>);

impl Aside {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    #[cold]
    fn keep(&self, error: DynError) -> DynErrorKind {
        let kind = error.kind().clone();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        kind
    }

    pub(super) fn decoded<R>(&self, d: &Decoder<'_>, done: Result<R, DynError>) -> Result<R, DecodeError> {
        done.map_err(|error| match self.keep(error) {
            DynErrorKind::Decode(error) => error,
            _ => d.error(DecodeErrorKind::Malformed),
        })
    }

    pub(super) fn encoded(&self, done: Result<(), DynError>) -> Result<(), EncodeError> {
        done.map_err(|error| match self.keep(error) {
            DynErrorKind::Encode(error) => error,
            _ => EncodeErrorKind::Unrepresentable.into(),
        })
    }

    /// The error that was kept, if one was.
    pub(super) fn take(&self) -> Option<DynError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cold]
pub(super) fn unknown(name: &str) -> SystemException {
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

    /// Over a connection of GIOP 1.0 no wide text goes.
    #[test]
    fn an_argument_without_an_encoding_is_told_by_its_place() {
        let texts = vec![WString::from("a"), WString::from("b")];
        let arguments =
            [argument("count", Any::new(2_i32).unwrap()), argument("texts", Any::new(texts).unwrap())];
        let list: NVList = arguments.into_iter().collect();
        let error = list.encode(Mode::goes_in, &mut Encoder::new(ByteOrder::NATIVE, Version::V1_0));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("texts[0]: "), "{error}");
    }

    #[test]
    fn a_value_that_is_not_what_it_is_asked_for_is_told_by_its_place() {
        let value = argument("count", Any::new(2_i32).unwrap());
        let error = value.get::<Vec<String>>().unwrap_err().to_string();
        assert!(
            error.contains(": count: a value of type `long` is no value of type `sequence<string>`"),
            "{error}"
        );
        // The second text has no end.
        let octets = [2_u32, 1, 0, 2].map(u32::to_ne_bytes).concat();
        let octets = [octets, b"ab".to_vec()].concat();
        let mut d = Decoder::new(&octets, ByteOrder::NATIVE, Version::V1_2);
        let texts = Any::decode_value(&Vec::<String>::type_code(), &mut d).unwrap();
        let error = argument("texts", texts).get::<Vec<String>>().unwrap_err().to_string();
        assert!(error.contains(": texts[1]: "), "{error}");
    }
}
