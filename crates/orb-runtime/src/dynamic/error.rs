//! [`DynamicException`]: the error of dynamic calls and servants.

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
    /// A user exception, which the raises clause of the operation must list.
    User(Any),
    /// A system exception.
    System(SystemException),
}

impl DynamicException {
    /// Returns the exception as an `X`, or `None` if it is not a user exception of this type or is invalid.
    #[must_use]
    pub fn get<X: UserException + Typed + CdrDecode>(&self) -> Option<X> {
        match self {
            Self::User(any) => any.get().ok(),
            Self::System(_) => None,
        }
    }

    /// Returns the repository id of the exception, or an empty text for a user exception whose type has none.
    #[must_use]
    pub fn repository_id(&self) -> String {
        match self {
            Self::User(any) => any.type_code().unaliased().id().unwrap_or_default().to_owned(),
            Self::System(exception) => exception.repository_id().to_owned(),
        }
    }
}

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

/// An exception that cannot be encoded becomes a system exception.
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
