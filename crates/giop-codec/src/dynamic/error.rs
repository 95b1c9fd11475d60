//! Errors of values whose types are known at run time, with the path to the fault.

use core::fmt;

use super::path::{Path, Step};
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use crate::typecode::TypeCode;
use crate::{DecodeError, EncodeError, OneLine, Printable};

/// A fault of a value, or of a query about it. `Display` includes the path: `payload.frames[3].width: ...`.
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
    #[error("{} is no value of type `{}`", OneLine::new(.found), OneLine::new(.wanted))]
    TypeMismatch {
        /// The required type.
        wanted: TypeCode,
        /// A description of the value found.
        found: Box<str>,
    },
    /// A value that the type does not have, or that has no current component
    /// (`DynamicAny::DynAny::InvalidValue`).
    #[error("{0}")]
    InvalidValue(&'static str),
    /// The type has no values, or none outside of its process
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
    /// The element does not exist.
    #[error("{index} is out of bounds: at most {len}")]
    Bounds {
        /// The index that was requested, or the actual number of elements.
        index: usize,
        /// The actual or the maximum number of elements.
        len: usize,
    },
    /// An array has another number of elements than its type.
    #[error("{found} element{} for an array of {wanted}", if *found == 1 { "" } else { "s" })]
    Length {
        /// The number of elements of the type.
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

    /// Returns the error relative to the enclosing value: `step` leads from there to this value.
    #[cold]
    pub fn inside(mut self, step: Step) -> DynError {
        self.0.path = std::mem::take(&mut self.0.path).inside(step);
        self
    }

    /// Converts to a system exception: that of a decoding or encoding error, `BAD_OPERATION` for
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), `IMP_LIMIT` for [`Limit`](DynErrorKind::Limit), else
    /// `BAD_PARAM`.
    #[cold]
    pub fn system(&self, completed: CompletionStatus) -> SystemException {
        let kind = match self.kind() {
            DynErrorKind::Decode(error) => return error.system(completed).with_source(self.clone()),
            DynErrorKind::Encode(error) => return error.system(completed).with_source(self.clone()),
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
    /// Uses COMPLETED_NO.
    fn from(error: DynError) -> SystemException {
        error.system(CompletionStatus::No)
    }
}
