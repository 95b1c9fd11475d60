//! Errors of code generation.

use std::fmt;

/// The reason why no code was generated. `Debug` prints the same text as `Display`, because Rust uses `Debug`
/// to print the error that `main` of a build script returns.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Error(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IDL:\n\n{self}\n")
    }
}

impl std::error::Error for Error {}
