//! [`DynError`]: errors of values whose types are known only at run time, with the path to the fault.

use core::fmt;

use super::path::{Path, Step};
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use crate::typecode::TypeCode;
use crate::{DecodeError, EncodeError, OneLine, Printable};

/// A fault in a value or in an operation on it. `Display` includes the path: `payload.frames[3].width: ...`.
#[derive(Clone, PartialEq)]
pub struct DynError(Box<Fault>);

#[derive(Clone, Debug, PartialEq)]
struct Fault {
    kind: DynErrorKind,
    path: Path,
}

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DynErrorKind {
    /// The bytes are not the encoding of a value of the type.
    #[error("{0}")]
    Decode(#[source] DecodeError),
    /// The value has no encoding.
    #[error("{0}")]
    Encode(#[source] EncodeError),
    /// The value is not of the required type (`DynamicAny::DynAny::TypeMismatch`).
    #[error("{} does not match type `{}`", OneLine::new(.found), OneLine::new(.wanted))]
    TypeMismatch {
        /// The required type.
        wanted: TypeCode,
        /// A description of the value that was found, or of the operation that the type does not support.
        found: Box<str>,
    },
    /// The type does not have this value, or the part that an operation needs does not exist
    /// (`DynamicAny::DynAny::InvalidValue`).
    #[error("{0}")]
    InvalidValue(&'static str),
    /// The type has no values that can be created or sent
    /// (`DynamicAny::DynAnyFactory::InconsistentTypeCode`).
    #[error("{0}")]
    Inconsistent(&'static str),
    /// The type has no member with this name.
    #[error("there is no member `{}`", Printable::new(.0))]
    NoSuchMember(Box<str>),
    /// A member is missing.
    #[error("the member `{}` is missing", Printable::new(.0))]
    MissingMember(Box<str>),
    /// A member occurs twice.
    #[error("the member `{}` occurs twice", Printable::new(.0))]
    DuplicateMember(Box<str>),
    /// An index or a number of elements is out of bounds.
    #[error("index or length {index} is out of bounds: the actual or maximum length is {len}")]
    Bounds {
        /// The requested index, or the number of elements that is wrong.
        index: usize,
        /// For an index, the actual number of elements. Otherwise, the number that the type requires, or its
        /// maximum.
        len: usize,
    },
    /// An array does not have the number of elements that its type requires.
    #[error("the number of array elements is {found} instead of {wanted}")]
    Length {
        /// The number of elements that the type requires.
        wanted: usize,
        /// The actual number of elements.
        found: usize,
    },
    /// A limit of zorb was exceeded.
    #[error("limit exceeded: {0}")]
    Limit(&'static str),
    /// A text does not match its grammar.
    #[error("{}", OneLine::new(.0))]
    Syntax(Box<str>),
}

impl DynError {
    /// Creates an error of the value itself.
    #[cold]
    pub fn new(kind: DynErrorKind) -> DynError {
        DynError::at(kind, Path::ROOT)
    }

    /// Creates an error of a part of the value.
    #[cold]
    pub fn at(kind: DynErrorKind, path: Path) -> DynError {
        DynError(Box::new(Fault { kind, path }))
    }

    /// Returns the kind of the fault.
    pub fn kind(&self) -> &DynErrorKind {
        &self.0.kind
    }

    /// Returns the path to the fault in the value.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the error relative to the enclosing value. `step` leads from the enclosing value to this one.
    #[cold]
    pub fn inside(mut self, step: Step) -> DynError {
        self.0.path = std::mem::take(&mut self.0.path).inside(step);
        self
    }

    /// Converts to a system exception. A decoding or encoding error has its own exception.
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch) becomes `BAD_OPERATION`, [`Limit`](DynErrorKind::Limit)
    /// becomes `IMP_LIMIT`, and all other kinds become `BAD_PARAM`.
    #[cold]
    pub fn to_system_exception(&self, completed: CompletionStatus) -> SystemException {
        let kind = match self.kind() {
            DynErrorKind::Decode(error) => {
                return error.to_system_exception(completed).with_source(self.clone());
            }
            DynErrorKind::Encode(error) => {
                return error.to_system_exception(completed).with_source(self.clone());
            }
            DynErrorKind::TypeMismatch { .. } => SystemExceptionKind::BadOperation,
            DynErrorKind::Limit(_) => SystemExceptionKind::ImpLimit,
            _ => SystemExceptionKind::BadParam,
        };
        SystemException::new(kind, MinorCode::NONE, completed).with_source(self.clone())
    }
}

impl fmt::Display for DynError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path().is_root() {
            write!(f, "{}: ", self.path())?;
        }
        self.kind().fmt(f)
    }
}

impl fmt::Debug for DynError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for DynError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.kind())
    }
}

impl From<DynErrorKind> for DynError {
    fn from(kind: DynErrorKind) -> DynError {
        DynError::new(kind)
    }
}

impl From<DecodeError> for DynError {
    fn from(error: DecodeError) -> DynError {
        DynError::new(DynErrorKind::Decode(error))
    }
}

impl From<EncodeError> for DynError {
    fn from(error: EncodeError) -> DynError {
        DynError::new(DynErrorKind::Encode(error))
    }
}

impl From<DynError> for SystemException {
    /// Converts to a system exception with `COMPLETED_NO`.
    fn from(error: DynError) -> SystemException {
        error.to_system_exception(CompletionStatus::No)
    }
}
