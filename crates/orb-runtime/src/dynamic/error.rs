//! [`DynamicException`].

use std::error::Error;
use std::fmt;

use giop_codec::Printable;
use giop_codec::any::Any;
use giop_codec::cdr::CdrDecode;
use giop_codec::exception::SystemException;
use giop_codec::typecode::Typed;

use crate::servant::UserException;

/// An exception of a dynamic call or servant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DynamicException {
    /// An exception of the operation's raises clause.
    User(Any),
    /// A system exception.
    System(SystemException),
}

impl DynamicException {
    /// Returns the user exception, if it is an `X`.
    #[must_use]
    pub fn get<X: UserException + Typed + CdrDecode>(&self) -> Option<X> {
        match self {
            Self::User(any) => any.get().ok(),
            Self::System(_) => None,
        }
    }

    /// Returns the repository id of the exception; empty if the value is not an exception.
    #[must_use]
    pub fn repository_id(&self) -> String {
        match self {
            Self::User(any) => any.type_code().unaliased().id().unwrap_or_default().to_owned(),
            Self::System(exception) => exception.repository_id().to_owned(),
        }
    }
}

/// Writes a user exception as its repository id, as [`Printable`] text.
impl fmt::Display for DynamicException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(_) => Printable::new(&self.repository_id()).fmt(f),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl Error for DynamicException {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::User(_) => None,
            Self::System(exception) => exception.source(),
        }
    }
}

/// Converts a typed exception. One that cannot be encoded becomes the system exception that reports that.
impl<X: UserException + Typed> From<X> for DynamicException {
    fn from(exception: X) -> Self {
        match Any::new(&exception) {
            Ok(any) => Self::User(any),
            Err(error) => Self::System(error.into()),
        }
    }
}

impl From<SystemException> for DynamicException {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}
