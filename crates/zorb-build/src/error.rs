//! Errors of code generation.

use std::fmt;

/// The reason why no code was generated, as text for people. `Debug` prints the text unchanged, because Rust
/// prints errors from the `main` of a build script by `Debug`.
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
