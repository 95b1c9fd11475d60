//! What is wrong with a value of a type that is known at run time, and where in it.

use core::fmt;

use super::path::{Path, Step};
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use crate::typecode::TypeCode;
use crate::{DecodeError, EncodeError, OneLine, Printable};

/// Something is wrong with a value, or a question about it. `Display` says where: `payload.frames[3].width: ...`.
#[derive(Clone, PartialEq)]
pub struct DynError(Box<Fault>);

#[derive(Clone, Debug, PartialEq)]
struct Fault {
    kind: DynErrorKind,
    path: Path,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DynErrorKind {
    /// The octets are not those of a value of the type.
    Decode(DecodeError),
    /// The value has no octets.
    Encode(EncodeError),
    /// There is something else than a value of the type that is wanted (`DynamicAny::DynAny::TypeMismatch`).
    TypeMismatch {
        /// The type that is wanted.
        wanted: TypeCode,
        /// What is there, in words.
        found: Box<str>,
    },
    /// A value that the type has not, or that has no current component (`DynamicAny::DynAny::InvalidValue`).
    InvalidValue(&'static str),
    /// The type has no values, or none outside of its process (`DynamicAny::DynAnyFactory::InconsistentTypeCode`).
    Inconsistent(&'static str),
    /// The type has no such member.
    NoSuchMember(Box<str>),
    /// A member is missing.
    MissingMember(Box<str>),
    /// A member is there twice.
    DoubledMember(Box<str>),
    /// There is no such element.
    Bounds {
        /// The element that was asked for, or the number of elements that are there.
        index: usize,
        /// How many there are, or may be.
        len: usize,
    },
    /// An array has another number of elements than its type says.
    Length {
        /// How many it has by its type.
        wanted: usize,
        /// How many are there.
        found: usize,
    },
    /// A limit of zorb's own was met.
    Limit(&'static str),
    /// A text is not as its grammar has it.
    Syntax(Box<str>),
}

impl DynError {
    /// An error of the value itself.
    #[cold]
    pub fn new(kind: DynErrorKind) -> DynError {
        DynError::at(kind, Path::ROOT)
    }

    /// An error of a part of the value.
    #[cold]
    pub fn at(kind: DynErrorKind, path: Path) -> DynError {
        DynError(Box::new(Fault { kind, path }))
    }

    /// What is wrong.
    pub fn kind(&self) -> &DynErrorKind {
        &self.0.kind
    }

    /// Where in the value.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The same error as seen from around: the value is the one that `step` leads to.
    #[cold]
    pub fn inside(mut self, step: Step) -> DynError {
        self.0.path = std::mem::take(&mut self.0.path).inside(step);
        self
    }

    /// The system exception for whoever gave the value: of octets and encoding what they say of themselves, `BAD_OPERATION` for another type,
    /// `IMP_LIMIT` for a limit, else `BAD_PARAM`.
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
    /// COMPLETED_NO.
    fn from(error: DynError) -> SystemException {
        error.system(CompletionStatus::No)
    }
}
