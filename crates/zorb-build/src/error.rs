//! Why nothing was generated.

use std::fmt;

/// Why nothing was generated: one text for people, which `Debug` shows as it is, since that is what is printed where the
/// `main` of a build script returns an error.
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
