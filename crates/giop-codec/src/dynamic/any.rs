//! Anys and trees of values, and the location of faults in anys.

use super::program::{Program, locate_in_any};
use super::{DynError, DynErrorKind, Dynamic};
use crate::any::Any;
use crate::cdr::{Decoder, Encoder};
use crate::typecode::TypeCode;
use crate::walk::canonical_encoder;

impl Any {
    /// Reads a value like [`decode_value`](Any::decode_value), and reports the location of an error in the
    /// value.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path.
    pub fn decode_value_with_path(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DynError> {
        let bookmark = d.bookmark();
        Any::decode_value(code, d).map_err(|error| locate_in_any(&Program::of(code), d, bookmark, error))
    }

    /// Writes the value like [`encode_value`](Any::encode_value), and reports which part has no encoding.
    ///
    /// # Errors
    /// [`Encode`](crate::dynamic::DynErrorKind::Encode), with the path.
    pub fn encode_value_with_path(&self, e: &mut Encoder) -> Result<(), DynError> {
        self.encode_value(e).map_err(|error| {
            let mut unused = Encoder::new(e.order(), e.version());
            unused.set_code_sets(e.code_sets());
            let result =
                self.to_dynamic().and_then(|value| Program::of(self.type_code()).encode(&value, &mut unused));
            let path = result.err().map(|found| found.path().clone()).unwrap_or_default();
            DynError::at(DynErrorKind::Encode(error), path)
        })
    }

    /// Checks text, ordinals and bounds of text, which are not checked when a value is received. Always
    /// succeeds for a locally created value. Copies nothing.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn validate(&self) -> Result<(), DynError> {
        let Some(mut d) = self.decoder_if_unchecked() else { return Ok(()) };
        Program::of(self.type_code()).validate(&mut d).map(drop)
    }

    /// Returns the value as a tree. Numbers in long sequences are views of the any's memory.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path: the value is invalid, or has more
    /// parts than the limit for its size permits.
    pub fn to_dynamic(&self) -> Result<Dynamic, DynError> {
        Program::of(self.type_code()).decode(&mut self.decoder())
    }

    /// Creates an any of the value of a tree.
    ///
    /// # Errors
    /// The tree does not match its type, a value has no encoding (see [`Program::encode`]), or an any cannot
    /// hold it.
    pub fn from_dynamic(value: &Dynamic) -> Result<Any, DynError> {
        let mut e = canonical_encoder();
        e.record_next_context();
        Program::of(&value.code).encode(value, &mut e)?;
        Ok(Any::from_encoder(&value.code, e)?)
    }
}
