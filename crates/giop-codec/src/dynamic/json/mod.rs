//! Conversion of values of all IDL types to JSON and back, as docs/JSON.md describes.

mod code;
mod read;
mod write;

pub use read::DynamicSeed;

use super::{DynError, DynErrorKind, Dynamic};
use crate::any::Any;
use crate::typecode::TypeCode;
use crate::value::ValueTypes;

/// Keys with a special meaning in the mapping.
mod key {
    pub(super) const CASE: &str = "$case";
    pub(super) const EXCEPTION: &str = "$exception";
    pub(super) const ID: &str = "$id";
    pub(super) const REF: &str = "$ref";
    pub(super) const TYPE: &str = "$type";
    pub(super) const VALUE: &str = "value";
}

impl Dynamic {
    /// Returns the value as JSON, without its type.
    ///
    /// # Errors
    /// * The errors of [`check`](Self::check).
    /// * [`Limit`](DynErrorKind::Limit) if values are nested more than 64 levels deep. Each instance of a
    ///   value type within another one is a level.
    /// * [`Limit`](DynErrorKind::Limit) if long names would take more than 16 MiB of the text.
    /// * The errors of [`Any::to_dynamic`] for the content of anys.
    pub fn to_json(&self) -> Result<String, DynError> {
        let mut json = Vec::new();
        self.json_to(&mut json)?;
        String::from_utf8(json).map_err(|_| DynErrorKind::InvalidValue("the text is not UTF-8").into())
    }

    /// Writes the value as JSON without its type. After an error, `out` contains a part of the text.
    ///
    /// # Errors
    /// Those of [`to_json`](Self::to_json), and [`Limit`](DynErrorKind::Limit) if writing to `out` fails.
    pub fn write_json(&self, out: &mut dyn std::io::Write) -> Result<(), DynError> {
        self.json_to(out)
    }

    fn json_to(&self, out: impl std::io::Write) -> Result<(), DynError> {
        self.check()?;
        let output = write::OutputState::default();
        let value = write::NestedValue { value: self, depth: 0, output: &output };
        serde_json::to_writer(out, &value).map_err(|error| match output.fault.take() {
            Some(fault) => fault,
            None if error.is_io() => DynErrorKind::Limit("the output did not accept the text").into(),
            None => syntax(error),
        })
    }

    /// Reads a value of the type from its JSON. Memory use depends on the length of the text, not on the
    /// type.
    ///
    /// # Errors
    /// The fault and its path in the value: [`Syntax`](DynErrorKind::Syntax) with the line and column,
    /// [`NoSuchMember`](DynErrorKind::NoSuchMember), [`MissingMember`](DynErrorKind::MissingMember),
    /// [`DuplicateMember`](DynErrorKind::DuplicateMember), [`Bounds`](DynErrorKind::Bounds),
    /// [`Length`](DynErrorKind::Length), [`TypeMismatch`](DynErrorKind::TypeMismatch),
    /// [`InvalidValue`](DynErrorKind::InvalidValue), [`Inconsistent`](DynErrorKind::Inconsistent), or
    /// [`Limit`](DynErrorKind::Limit) if values are nested more than 64 levels deep.
    pub fn from_json(code: &TypeCode, text: &str) -> Result<Dynamic, DynError> {
        Dynamic::from_json_with_types(code, &ValueTypes::default(), text)
    }

    /// Reads a value like [`from_json`](Self::from_json). The text may name the types in `known_types` by
    /// their ids.
    ///
    /// # Errors
    /// The errors of [`from_json`](Self::from_json).
    pub fn from_json_with_types(
        code: &TypeCode,
        known_types: &ValueTypes,
        text: &str,
    ) -> Result<Dynamic, DynError> {
        let mut json = serde_json::Deserializer::from_str(text);
        // The limit of `serde_json`, 128 levels, suffices: each of the 64 levels of values takes at most two.
        let value = DynamicSeed::new(code).with_known_types(known_types).read(&mut json)?;
        json.end().map_err(syntax)?;
        Ok(value)
    }

    /// Reads the arguments of a call from a JSON object that has a member for each argument, and returns them
    /// in the order of `members`. Each argument has a separate graph, so an `"$id"` is local to one argument.
    /// The text may name the value types in `known_types` by their repository ids.
    ///
    /// # Errors
    /// The errors of [`from_json`](Self::from_json) for a struct with these members.
    pub fn members_from_json(
        members: &[(&str, &TypeCode)],
        known_types: &ValueTypes,
        text: &str,
    ) -> Result<Vec<Dynamic>, DynError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let values = read::read_named_values(members, known_types, &mut json)?;
        json.end().map_err(syntax)?;
        Ok(values)
    }
}

impl Any {
    /// Returns the value with its type as JSON: `{"$type": .., "value": ..}`.
    ///
    /// # Errors
    /// The errors of [`to_dynamic`](Self::to_dynamic) and [`Dynamic::to_json`].
    pub fn to_json(&self) -> Result<String, DynError> {
        let any = Dynamic { code: TypeCode::ANY, value: self.clone().into(), graph: Default::default() };
        any.to_json()
    }

    /// Reads an any from its JSON.
    ///
    /// # Errors
    /// The errors of [`Dynamic::from_json`].
    pub fn from_json(text: &str) -> Result<Any, DynError> {
        match Dynamic::from_json(&TypeCode::ANY, text)?.value {
            super::Value::Any(any) => Ok(*any),
            _ => Err(DynErrorKind::InvalidValue("the value is not an any").into()),
        }
    }
}

fn syntax(error: serde_json::Error) -> DynError {
    DynErrorKind::Syntax(error.to_string().into()).into()
}
