//! [`Fault`], the failure of any operation, and its conversions to the errors of each operation.

use zorb::cos_naming::naming_context::{
    AlreadyBound, BindContextError, BindError, BindNewContextError, CannotProceed, DestroyError, InvalidName,
    NotEmpty, NotFound, NotFoundReason, RebindContextError, RebindError, ResolveError, UnbindError,
};
use zorb::cos_naming::naming_context_ext::{
    InvalidAddress, ResolveStrError, ToNameError, ToStringError, ToUrlError,
};
use zorb::cos_naming::{NameComponent, NamingContextRef};
use zorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};

use crate::store::StoreError;
use crate::zorb_naming::balanced_context::{
    BindForError, BindGroupError, GroupFull, JoinError, LeaveError, MembersError, NoGroup, NoMember,
    ReportLoadError,
};

/// The failure of an operation: any exception that an operation of contexts raises.
#[derive(Debug)]
pub(crate) enum Fault {
    NotFound(NotFound),
    CannotProceed(CannotProceed),
    InvalidName(InvalidName),
    AlreadyBound(AlreadyBound),
    NotEmpty(NotEmpty),
    InvalidAddress(InvalidAddress),
    NoGroup(NoGroup),
    NoMember(NoMember),
    GroupFull(GroupFull),
    System(SystemException),
}

impl Fault {
    /// Returns `NotFound`. `rest` begins with the component that was not found or has the wrong type.
    pub(crate) fn not_found(why: NotFoundReason, rest: &[NameComponent]) -> Self {
        Self::NotFound(NotFound { why, rest_of_name: rest.to_vec() })
    }

    /// Returns `NotFound` for a component that is not bound, with which `rest` begins.
    pub(crate) fn missing(rest: &[NameComponent]) -> Self {
        Self::not_found(NotFoundReason::MissingNode, rest)
    }

    /// Returns `CannotProceed`. The client may continue with `rest` in `context`.
    pub(crate) fn cannot_proceed(context: NamingContextRef, rest: &[NameComponent]) -> Self {
        Self::CannotProceed(CannotProceed { cxt: Some(context), rest_of_name: rest.to_vec() })
    }

    /// Returns the failure for a context of this service that was destroyed.
    #[cold]
    pub(crate) fn destroyed() -> Self {
        system_exception(SystemExceptionKind::ObjectNotExist, "the naming context was destroyed").into()
    }
}

#[cold]
pub(crate) fn system_exception(kind: SystemExceptionKind, text: &'static str) -> SystemException {
    SystemException::from(kind).with_reason(text)
}

impl From<SystemException> for Fault {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<StoreError> for Fault {
    #[cold]
    fn from(error: StoreError) -> Self {
        let (kind, completion) = match error {
            StoreError::Unavailable { completion, .. } => (SystemExceptionKind::Transient, completion),
            StoreError::NotWritten { .. } => (SystemExceptionKind::PersistStore, CompletionStatus::No),
            // It is not known whether the change was made.
            StoreError::Broken(_) => (SystemExceptionKind::PersistStore, CompletionStatus::Maybe),
        };
        Self::System(SystemException::new(kind, MinorCode::NONE, completion).with_source(error))
    }
}

/// Implements the conversions between [`Fault`] and the error types of the operations.
macro_rules! impl_fault_conversions {
    ($($error:ident { $($variant:ident),* })*) => {$(
        impl From<Fault> for $error {
            fn from(fault: Fault) -> Self {
                match fault {
                    $(Fault::$variant(exception) => Self::$variant(exception),)*
                    Fault::System(exception) => Self::System(exception),
                    // Unreachable, because operations raise only exceptions that they declare.
                    #[allow(unreachable_patterns, reason = "some error types have all variants")]
                    other => Self::System(undeclared_exception(&other)),
                }
            }
        }

        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$variant(exception) => Self::$variant(exception),)*
                    $error::System(exception) => Self::System(exception),
                }
            }
        }
    )*};
}

#[cold]
fn undeclared_exception(fault: &Fault) -> SystemException {
    SystemException::internal()
        .completed(CompletionStatus::Maybe)
        .with_reason(format!("the operation does not declare {fault:?}"))
}

impl_fault_conversions! {
    BindError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    RebindError { NotFound, CannotProceed, InvalidName }
    BindContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    RebindContextError { NotFound, CannotProceed, InvalidName }
    ResolveError { NotFound, CannotProceed, InvalidName }
    ResolveStrError { NotFound, CannotProceed, InvalidName }
    UnbindError { NotFound, CannotProceed, InvalidName }
    BindNewContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    DestroyError { NotEmpty }
    ToStringError { InvalidName }
    ToNameError { InvalidName }
    ToUrlError { InvalidName, InvalidAddress }
    BindForError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    BindGroupError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    JoinError { NotFound, CannotProceed, InvalidName, NoGroup, GroupFull }
    LeaveError { NotFound, CannotProceed, InvalidName, NoGroup, NoMember }
    ReportLoadError { NotFound, CannotProceed, InvalidName, NoGroup, NoMember }
    MembersError { NotFound, CannotProceed, InvalidName, NoGroup }
}
