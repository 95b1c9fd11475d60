//! Skipping and validation of values, with the path to a fault.

use super::{Contents, Program};
use crate::cdr::Decoder;
use crate::dynamic::DynError;
use crate::walk::go_over;

impl Program {
    /// Skips a value and returns its contents. Checks counts, lengths and discriminators, but not text,
    /// ordinals or the content of type codes. Allocates nothing, except for values of value types and type
    /// codes that are not cached.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn skip(&self, d: &mut Decoder<'_>) -> Result<Contents, DynError> {
        self.over(d, false)
    }

    /// Skips a value with all checks that a decoder of the type makes, including in anys. A value that passes
    /// can be decoded.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn validate(&self, d: &mut Decoder<'_>) -> Result<Contents, DynError> {
        self.over(d, true)
    }

    fn over(&self, d: &mut Decoder<'_>, checks: bool) -> Result<Contents, DynError> {
        let bookmark = d.bookmark();
        go_over(self.type_code(), d, checks).map_err(|error| self.locate(d, bookmark, error, checks))
    }
}
