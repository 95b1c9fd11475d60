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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DynErrorKind {
    /// The bytes are not the encoding of a value of the type.
    Decode(DecodeError),
    /// The value has no encoding.
    Encode(EncodeError),
    /// The value is not of the required type (`DynamicAny::DynAny::TypeMismatch`).
    TypeMismatch {
        /// The required type.
        wanted: TypeCode,
        /// A description of the value found.
        found: Box<str>,
    },
    /// A value that the type does not have, or that has no current component
    /// (`DynamicAny::DynAny::InvalidValue`).
    InvalidValue(&'static str),
    /// The type has no values, or none outside of its process
    /// (`DynamicAny::DynAnyFactory::InconsistentTypeCode`).
    Inconsistent(&'static str),
    /// The type has no such member.
    NoSuchMember(Box<str>),
    /// A member is missing.
    MissingMember(Box<str>),
    /// A member occurs twice.
    DoubledMember(Box<str>),
    /// The element does not exist.
    Bounds {
        /// The index that was requested, or the actual number of elements.
        index: usize,
        /// The actual or the maximum number of elements.
        len: usize,
    },
    /// An array has another number of elements than its type.
    Length {
        /// The number of elements of the type.
        wanted: usize,
        /// The actual number of elements.
        found: usize,
    },
    /// A limit of zorb was exceeded.
    Limit(&'static str),
    /// A text does not match its grammar.
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

    /// Converts to the system exception for the source of the value. Decoding and encoding errors determine
    /// their own exception. Otherwise it is `BAD_OPERATION` for another type, `IMP_LIMIT` for a limit, else
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

impl fmt::Display for DynErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DynErrorKind::Decode(error) => error.fmt(f),
            DynErrorKind::Encode(error) => error.fmt(f),
            DynErrorKind::TypeMismatch { wanted, found } => {
                write!(f, "{} is no value of type `{}`", OneLine::new(found), OneLine::new(wanted))
            }
            DynErrorKind::InvalidValue(text) | DynErrorKind::Inconsistent(text) => f.write_str(text),
            DynErrorKind::NoSuchMember(name) => write!(f, "there is no member `{}`", Printable::new(name)),
            DynErrorKind::MissingMember(name) => {
                write!(f, "the member `{}` is missing", Printable::new(name))
            }
            DynErrorKind::DoubledMember(name) => {
                write!(f, "the member `{}` is there twice", Printable::new(name))
            }
            DynErrorKind::Bounds { index, len } => write!(f, "{index} is out of bounds: at most {len}"),
            DynErrorKind::Length { wanted, found } => {
                let s = if *found == 1 { "" } else { "s" };
                write!(f, "{found} element{s} for an array of {wanted}")
            }
            DynErrorKind::Limit(text) => write!(f, "{text}, which is more than is taken"),
            DynErrorKind::Syntax(text) => OneLine::new(text).fmt(f),
        }
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
        match self.kind() {
            DynErrorKind::Decode(error) => Some(error),
            DynErrorKind::Encode(error) => Some(error),
            _ => None,
        }
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
