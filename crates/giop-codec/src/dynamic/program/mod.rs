//! [`Program`]: a type code that was compiled to a list of steps, which small loops execute.
//!
//! Everything that depends only on the type is computed once, such as the sizes of fixed layouts, the minimum
//! size of an element, and the labels of a union. Consecutive numbers and structs of numbers are processed
//! together, with one bounds check and a few operations on words. The program is stored with the type code.

mod copy;
mod graph_read;
mod graph_write;
mod print;
mod read;
mod swap;
mod write;

pub(crate) use read::locate_in_any;

use crate::cdr::Decoder;
use crate::dynamic::DynError;
pub use crate::program::Contents;
pub use crate::walk::Program;
use crate::walk::skip_value;

impl Program {
    /// Skips a value and returns what kinds of parts it contains, or can contain if the type contains value
    /// types. Checks counts, lengths and discriminators.
    /// Checks text, ordinals and the content of type codes only if the type contains value types. Allocates
    /// memory only for value types, and for type codes that are not cached.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn skip(&self, d: &mut Decoder<'_>) -> Result<Contents, DynError> {
        self.skip_with_path(d, false)
    }

    /// Skips a value and makes all checks that decoding would make, including those of the content of anys.
    ///
    /// # Errors
    /// [`Decode`](crate::dynamic::DynErrorKind::Decode), with the path to the fault.
    pub fn validate(&self, d: &mut Decoder<'_>) -> Result<Contents, DynError> {
        self.skip_with_path(d, true)
    }

    fn skip_with_path(&self, d: &mut Decoder<'_>, checks: bool) -> Result<Contents, DynError> {
        let bookmark = d.bookmark();
        skip_value(self.type_code(), d, checks).map_err(|error| self.locate(d, bookmark, error, checks))
    }
}
