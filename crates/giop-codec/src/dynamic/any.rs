//! Conversion of anys to trees of values ([`Dynamic`]) and back, and the location of faults in anys.

use super::program::{Program, locate_in_any};
use super::{DynError, DynErrorKind, Dynamic};
use crate::any::Any;
use crate::cdr::{Decoder, Encoder};
use crate::typecode::TypeCode;
use crate::walk::canonical_encoder;

impl Any {
    /// Reads a value like [`decode_value`](Any::decode_value), but an error tells which part is invalid.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn decode_value_with_path(code: &TypeCode, d: &mut Decoder<'_>) -> Result<Any, DynError> {
        let bookmark = d.bookmark();
        Any::decode_value(code, d).map_err(|error| locate_in_any(&Program::of(code), d, bookmark, error))
    }

    /// Writes the value like [`encode_value`](Any::encode_value), but an error tells which part is at fault.
    ///
    /// # Errors
    /// [`Encode`](crate::dynamic::DynErrorKind::Encode), with the path to the part.
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

    /// Checks everything that is not checked when a value is received: text, bounds of text, and ordinals.
    /// Succeeds for every value that was created locally. Makes no copy of the value.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn validate(&self) -> Result<(), DynError> {
        let Some(mut d) = self.decoder_if_unchecked() else { return Ok(()) };
        Program::of(self.type_code()).validate(&mut d).map(drop)
    }

    /// Returns the value as a tree. Sequences of numbers may be views of the any's memory.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault, if the value is invalid
    /// or the tree would exceed the memory limit for its size.
    pub fn to_dynamic(&self) -> Result<Dynamic, DynError> {
        Program::of(self.type_code()).decode(&mut self.decoder())
    }

    /// Creates an any from a tree.
    ///
    /// # Errors
    /// Those of [`Program::encode`], and [`Decode`](DynErrorKind::Decode) if an any cannot hold the value.
    pub fn from_dynamic(value: &Dynamic) -> Result<Any, DynError> {
        let mut e = canonical_encoder();
        e.record_next_context();
        Program::of(&value.code).encode(value, &mut e)?;
        Ok(Any::from_encoder(&value.code, e)?)
    }
}
