//! Conversions from the ORB's errors to exceptions, so that servants can write `orb.activate(x)?`.

use giop_codec::EncodeError;
use giop_codec::any::AnyError;
use giop_codec::cdr::{BitsError, BoundError, CharConversionError, FixedError, FixedLengthError, RangeError};
use giop_codec::code_set::CodeSetError;
use giop_codec::dynamic::DynError;
use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::ior::ParseIorError;
use giop_codec::typecode::{CreateError, TypeCodeError};
use giop_codec::url::{NameTextError, UrlError};
use giop_proto::LimitsError;

use crate::config::BuildError;
use crate::dynamic::DynamicException;
use crate::errors::{OrbError, because_of, unexecuted_because};
use crate::orb::{ActivateError, ArgsError};
use crate::poa::{
    AdapterInactive, InvalidPolicy, InvalidPolicyValue, ManagerAlreadyExists, PoaError, Refusal,
};
use crate::reference::{InvalidName, NarrowError, ResolveError};
use crate::servant::{DepositError, unknown_user_exception};

/// COMPLETED_NO: `OBJ_ADAPTER` if the key is in use or the root POA has been destroyed, `BAD_PARAM` minor OMG
/// 14 if the key is reserved, and `BAD_INV_ORDER` minor OMG 4 if the ORB has been shut down.
impl From<ActivateError> for SystemException {
    fn from(error: ActivateError) -> Self {
        let (kind, minor) = match error {
            ActivateError::KeyInUse(_) | ActivateError::Destroyed => {
                (SystemExceptionKind::ObjAdapter, MinorCode::NONE)
            }
            ActivateError::ReservedKey(_) => (SystemExceptionKind::BadParam, minor::BAD_PARAM_OBJECT_ID),
            ActivateError::Closed => (SystemExceptionKind::BadInvOrder, minor::BAD_INV_ORDER_SHUTDOWN),
        };
        unexecuted_because(kind, minor, error)
    }
}

/// COMPLETED_NO: `INV_POLICY` for policies that contradict each other, and `OBJ_ADAPTER` for all other
/// errors, with minor OMG 3 if there is no default servant. A system exception is returned unchanged.
impl From<PoaError> for SystemException {
    fn from(error: PoaError) -> Self {
        let minor = match error {
            PoaError::System(exception) => return exception,
            PoaError::InvalidPolicy(error) => return error.into(),
            PoaError::NoServant => minor::OBJ_ADAPTER_NO_DEFAULT_SERVANT,
            _ => MinorCode::NONE,
        };
        unexecuted_because(SystemExceptionKind::ObjAdapter, minor, error)
    }
}

/// `BAD_PARAM`, COMPLETED_NO, if the object does not have the interface, as in the Java mapping. If the call
/// failed, its exception.
impl From<NarrowError> for SystemException {
    fn from(error: NarrowError) -> Self {
        match &error {
            NarrowError::WrongInterface { .. } => {
                unexecuted_because(SystemExceptionKind::BadParam, MinorCode::NONE, error)
            }
            NarrowError::Call { source, .. } => because_of(without_source(source), error),
        }
    }
}

/// COMPLETED_NO: `BAD_PARAM` with the OMG's minor codes 7 to 10 for a malformed or unusable text, `BAD_PARAM`
/// without one for an unknown initial reference or a wrong interface, and `INV_OBJREF` for a nil reference.
/// If a call failed, its exception.
impl From<ResolveError> for SystemException {
    fn from(error: ResolveError) -> Self {
        use SystemExceptionKind::{BadParam, InvObjref};
        match error {
            ResolveError::Url(error) => error.into(),
            ResolveError::Nil(_) => unexecuted_because(InvObjref, MinorCode::NONE, error),
            ResolveError::File { .. } | ResolveError::Nesting => {
                unexecuted_because(BadParam, minor::BAD_PARAM_URL_OTHER, error)
            }
            ResolveError::InvalidName(error) => error.into(),
            ResolveError::Narrow(error) => error.into(),
            ResolveError::Naming { ref source, .. } => because_of(without_source(source), error),
        }
    }
}

/// A user exception becomes `UNKNOWN` minor OMG 1, COMPLETED_MAYBE, like a user exception that is not in the
/// raises clause of the operation. A system exception is returned unchanged.
impl From<DynamicException> for SystemException {
    fn from(error: DynamicException) -> Self {
        match error {
            DynamicException::System(exception) => exception,
            DynamicException::User(_) => unknown_user_exception(error),
        }
    }
}

fn without_source(exception: &SystemException) -> SystemException {
    SystemException::new(exception.kind, exception.minor, exception.completed)
}

/// Implements the conversions from errors to COMPLETED_NO exceptions, whose source is the error.
macro_rules! unexecuted_exceptions {
    ($($(#[$on:meta])* $error:ty => $kind:ident, $minor:expr, $doc:literal;)+) => {
        $(
            #[doc = $doc]
            $(#[$on])*
            impl From<$error> for SystemException {
                fn from(error: $error) -> Self {
                    unexecuted_because(SystemExceptionKind::$kind, $minor, error)
                }
            }
        )+
    };
}

unexecuted_exceptions! {
    AdapterInactive => ObjAdapter, minor::OBJ_ADAPTER_UNKNOWN_ADAPTER, "`OBJ_ADAPTER` minor OMG 1, COMPLETED_NO.";
    ArgsError => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    BuildError => Initialize, MinorCode::NONE, "`INITIALIZE`, COMPLETED_NO.";
    InvalidName => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    InvalidPolicy => InvPolicy, MinorCode::NONE, "`INV_POLICY`, COMPLETED_NO.";
    InvalidPolicyValue => InvPolicy, MinorCode::NONE, "`INV_POLICY`, COMPLETED_NO.";
    ManagerAlreadyExists => ObjAdapter, MinorCode::NONE, "`OBJ_ADAPTER`, COMPLETED_NO.";
    #[cfg(feature = "csi")] crate::csi::LoginRefused => NoPermission, minor::NO_PERMISSION_INVALID_CREDENTIALS,
        "`NO_PERMISSION` minor zorb 2, COMPLETED_NO.";
    #[cfg(feature = "csi")] crate::csi::RulesError => Initialize, MinorCode::NONE, "`INITIALIZE`, COMPLETED_NO.";
    #[cfg(feature = "csi")] crate::csi::UsersError => Initialize, MinorCode::NONE, "`INITIALIZE`, COMPLETED_NO.";
    #[cfg(feature = "tls")] crate::tls::TlsError => Initialize, MinorCode::NONE, "`INITIALIZE`, COMPLETED_NO.";
}

/// Implements the conversions to the error types of generated code, dynamic servants and servant managers.
macro_rules! orb_errors {
    ($($(#[$on:meta])* $error:ty;)+) => {
        $(
            $(#[$on])*
            impl<E> OrbError<E> for $error {}

            $(#[$on])*
            impl From<$error> for DynamicException {
                fn from(error: $error) -> Self {
                    Self::System(error.into())
                }
            }
        )+
    };
}

orb_errors! {
    ActivateError; AdapterInactive; AnyError; ArgsError; BitsError; BoundError; BuildError;
    CharConversionError; CodeSetError; CreateError; DynError; EncodeError; FixedError; FixedLengthError;
    InvalidName; InvalidPolicy; InvalidPolicyValue; LimitsError; ManagerAlreadyExists; NameTextError;
    NarrowError; ParseIorError; PoaError; RangeError; ResolveError; SystemExceptionKind; TypeCodeError;
    UrlError;
    #[cfg(feature = "csi")] crate::csi::LoginRefused;
    #[cfg(feature = "csi")] crate::csi::RulesError;
    #[cfg(feature = "csi")] crate::csi::UsersError;
    #[cfg(feature = "tls")] crate::tls::TlsError;
}

impl<E> OrbError<E> for DynamicException {}

impl<T, E> OrbError<E> for DepositError<T> {}

impl<T> From<DepositError<T>> for DynamicException {
    fn from(error: DepositError<T>) -> Self {
        Self::System(error.into())
    }
}

/// If a servant manager returns the error, the request ends with the system exception.
impl<X: OrbError<Refusal>> From<X> for Refusal {
    fn from(error: X) -> Self {
        Self::System(error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use std::error::Error as _;

    fn call_error() -> SystemException {
        SystemException::transient()
            .with_minor(minor::TRANSIENT_NO_USABLE_PROFILE)
            .with_reason("connection refused by h:1")
    }

    #[test]
    fn each_error_has_its_kind_and_minor_code() {
        use SystemExceptionKind::*;
        let name = || "x".to_owned();
        let cases: [(SystemException, SystemExceptionKind, MinorCode); 13] = [
            (ActivateError::KeyInUse(name()).into(), ObjAdapter, MinorCode::NONE),
            (ActivateError::ReservedKey(name()).into(), BadParam, minor::BAD_PARAM_OBJECT_ID),
            (ActivateError::Closed.into(), BadInvOrder, minor::BAD_INV_ORDER_SHUTDOWN),
            (PoaError::shut_down().into(), BadInvOrder, minor::BAD_INV_ORDER_SHUTDOWN),
            (PoaError::ObjectAlreadyActive.into(), ObjAdapter, MinorCode::NONE),
            (PoaError::NoServant.into(), ObjAdapter, minor::OBJ_ADAPTER_NO_DEFAULT_SERVANT),
            (AdapterInactive.into(), ObjAdapter, minor::OBJ_ADAPTER_UNKNOWN_ADAPTER),
            (InvalidPolicyValue { id: 16, value: 9 }.into(), InvPolicy, MinorCode::NONE),
            (ResolveError::Nil(name()).into(), InvObjref, MinorCode::NONE),
            (ResolveError::Nesting.into(), BadParam, minor::BAD_PARAM_URL_OTHER),
            (InvalidName(name()).into(), BadParam, MinorCode::NONE),
            (ArgsError::NoValue(name()).into(), BadParam, MinorCode::NONE),
            (BuildError::NoRuntime.into(), Initialize, MinorCode::NONE),
        ];
        for (raised, kind, minor) in cases {
            assert_eq!(raised, SystemException::from(kind).with_minor(minor), "{raised}");
            assert!(raised.source().is_some(), "{raised}");
        }
    }

    #[test]
    fn failed_call_keeps_its_kind_minor_code_and_status() {
        let wanted = "IDL:X:1.0";
        let asked = NarrowError::Call { wanted, source: call_error() };
        let looked_up = ResolveError::Naming { name: "a".into(), context: "h".into(), source: call_error() };
        for raised in
            [SystemException::from(asked.clone()), ResolveError::from(asked).into(), looked_up.into()]
        {
            assert_eq!(raised, call_error());
            assert_eq!(raised.to_string().matches("connection refused by h:1").count(), 1, "{raised}");
        }
        let wrong = NarrowError::WrongInterface { wanted, found: "IDL:Y:1.0".into() };
        assert_eq!(SystemException::from(wrong), SystemException::bad_param());
    }

    #[test]
    fn reason_appears_once_in_the_text() {
        let source = io::Error::other("address in use");
        let raised: SystemException = BuildError::Listen { endpoint: "iiop://h:1".into(), source }.into();
        assert_eq!(
            raised.to_string(),
            "INITIALIZE, COMPLETED_NO: cannot listen on `iiop://h:1`: address in use"
        );
        // The error has no source of its own, so it becomes the source of the exception.
        let raised = SystemException::from(PoaError::wrong_policy("x", "RETAIN"));
        assert_eq!(raised.to_string(), "OBJ_ADAPTER, COMPLETED_NO: `x` requires a POA with RETAIN");
        assert!(raised.source().is_some_and(|cause| cause.is::<PoaError>()));
    }

    #[test]
    fn dynamic_servants_and_servant_managers_raise_the_same_exceptions() {
        let closed: DynamicException = ActivateError::Closed.into();
        assert_eq!(SystemException::from(closed), ActivateError::Closed.into());
        let Refusal::System(refused) = Refusal::from(PoaError::ServantNotActive) else {
            panic!("the error became a forward");
        };
        assert_eq!(refused, SystemException::obj_adapter());
    }
}
