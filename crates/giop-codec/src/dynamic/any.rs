//! Anys and trees of values, and the location of faults in anys.

use super::program::{Program, locate_kept};
use super::{DynError, DynErrorKind, Dynamic};
use crate::any::Any;
use crate::cdr::{Decoder, Encoder};
use crate::typecode::TypeCode;
use crate::walk::canonical;

impl Any {
    /// Reads a value like [`decode_value`](Any::decode_value), and reports the location of an error in the
    /// value.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path.
    pub fn decode_value_with_path(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DynError> {
        let bookmark = d.bookmark();
        Any::decode_value(code, d).map_err(|error| locate_kept(&Program::of(code), d, bookmark, error))
    }

    /// Writes the value like [`encode_value`](Any::encode_value), and reports which part has no encoding.
    ///
    /// # Errors
    /// [`Encode`](crate::dynamic::DynErrorKind::Encode), with the path.
    pub fn encode_value_with_path(&self, e: &mut Encoder) -> Result<(), DynError> {
        self.encode_value(e).map_err(|error| {
            let mut again = Encoder::new(e.order(), e.version());
            again.set_code_sets(e.code_sets());
            let found =
                self.to_dynamic().and_then(|value| Program::of(self.type_code()).encode(&value, &mut again));
            let path = found.err().map(|found| found.path().clone()).unwrap_or_default();
            DynError::at(DynErrorKind::Encode(error), path)
        })
    }

    /// Checks all of the value, like a decoder of its type. Always succeeds for a locally created value.
    /// Text, ordinals and bounds of text in a received value were not checked before. Copies nothing.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn validate(&self) -> Result<(), DynError> {
        match self.unchecked() {
            Some(mut d) => Program::of(self.type_code()).validate(&mut d).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the value as a tree. Numbers in long sequences are views of the any's memory.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path: for example, the value has more parts
    /// than the limit for its size permits.
    pub fn to_dynamic(&self) -> Result<Dynamic, DynError> {
        Program::of(self.type_code()).decode(&mut self.decoder())
    }

    /// Creates an any of the value of a tree.
    ///
    /// # Errors
    /// The tree does not match its type, a value has no encoding (see [`Program::encode`]), or an any cannot
    /// hold it.
    pub fn from_dynamic(value: &Dynamic) -> Result<Any, DynError> {
        let mut e = canonical();
        e.want_context();
        Program::of(&value.code).encode(value, &mut e)?;
        Ok(Any::of_encoded(&value.code, e)?)
    }
}
