//! Conversions of errors into system exceptions, so that `?` works in servants.

use std::error::Error;

use super::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::cdr::{BitsError, BoundError, CharConversionError, FixedError, FixedLengthError, RangeError};

/// Creates an exception without a minor code and cause, COMPLETED_NO, like the constructors without arguments
/// of the C++ and Java mappings.
impl From<SystemExceptionKind> for SystemException {
    fn from(kind: SystemExceptionKind) -> Self {
        Self::new(kind, MinorCode::NONE, CompletionStatus::No)
    }
}

/// Defines conversions with COMPLETED_NO and the error as the cause.
macro_rules! from_error {
    ($($error:ty => $kind:ident, $minor:expr, $doc:literal;)+) => {
        $(
            #[doc = $doc]
            impl From<$error> for SystemException {
                #[cold]
                fn from(error: $error) -> Self {
                    caused(SystemExceptionKind::$kind, $minor, error)
                }
            }
        )+
    };
}

from_error! {
    BoundError => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    BitsError => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    RangeError => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    FixedLengthError => BadParam, MinorCode::NONE, "`BAD_PARAM`, COMPLETED_NO.";
    FixedError => DataConversion, MinorCode::NONE, "`DATA_CONVERSION`, COMPLETED_NO, as in the C++ mapping.";
    CharConversionError => DataConversion, minor::DATA_CONVERSION_CHARACTER,
        "`DATA_CONVERSION` minor OMG 1, COMPLETED_NO.";
}

fn caused(
    kind: SystemExceptionKind,
    minor: MinorCode,
    error: impl Error + Send + Sync + 'static,
) -> SystemException {
    SystemException::new(kind, minor, CompletionStatus::No).with_source(error)
}

/// Defines constructors with short names for the exceptions that servants raise most.
macro_rules! short {
    ($($name:ident($($minor:ident)?) $kind:ident $doc:literal;)+) => {
        /// Constructors for the exceptions that servants raise most: COMPLETED_NO, without a cause.
        ///
        /// [`because`](SystemException::because) adds a reason. [`completed`](SystemException::completed)
        /// changes the completion status, for a servant that has already had an effect.
        ///
        /// ```
        /// use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, minor};
        ///
        /// let refused = SystemException::bad_param(minor::BAD_PARAM_OBJECT_ID)
        ///     .because("accounts are numbered from 1");
        /// assert_eq!(
        ///     refused.to_string(),
        ///     "BAD_PARAM (OMG minor 14: invalid object id), COMPLETED_NO: accounts are numbered from 1"
        /// );
        /// let full = SystemException::no_memory().completed(CompletionStatus::Maybe);
        /// assert_eq!((full.minor, full.completed), (MinorCode::NONE, CompletionStatus::Maybe));
        /// ```
        impl SystemException {
            $(
                #[doc = $doc]
                pub const fn $name($($minor: MinorCode)?) -> Self {
                    let _minor = MinorCode::NONE;
                    $(let _minor = $minor;)?
                    Self::new(SystemExceptionKind::$kind, _minor, CompletionStatus::No)
                }
            )+
        }
    };
}

short! {
    bad_inv_order(minor) BadInvOrder "`BAD_INV_ORDER`: the operation may not be called now.";
    bad_operation() BadOperation "`BAD_OPERATION`: the object has no such operation.";
    bad_param(minor) BadParam "`BAD_PARAM`: an argument is not what it should be.";
    data_conversion() DataConversion "`DATA_CONVERSION`: a character or number has no representation.";
    imp_limit() ImpLimit "`IMP_LIMIT`: more than a limit of the server allows.";
    internal() Internal "`INTERNAL`: the server is in a state that should not be.";
    inv_objref() InvObjref "`INV_OBJREF`: a reference is nil, or of another interface.";
    no_implement() NoImplement "`NO_IMPLEMENT`: the operation is not implemented.";
    no_memory() NoMemory "`NO_MEMORY`: memory ran out.";
    no_permission() NoPermission "`NO_PERMISSION`: the caller may not do this.";
    no_resources() NoResources "`NO_RESOURCES`: something that is needed ran out.";
    obj_adapter() ObjAdapter "`OBJ_ADAPTER`: objects and adapters are not set up as the operation needs it.";
    object_not_exist() ObjectNotExist
        "`OBJECT_NOT_EXIST`: the object that is called is gone for good. Clients forget its reference.";
    persist_store() PersistStore "`PERSIST_STORE`: a file or database failed.";
    timeout() Timeout "`TIMEOUT`: a deadline passed.";
    transient(minor) Transient "`TRANSIENT`: not now; the client, or its ORB, may try again.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::{Bounded, Char, Fixed};

    fn raised(error: impl Into<SystemException>) -> (SystemExceptionKind, MinorCode, CompletionStatus) {
        let raised = error.into();
        (raised.kind, raised.minor, raised.completed)
    }

    #[test]
    fn error_of_a_value_becomes_a_system_exception_with_its_reason() {
        use SystemExceptionKind::{BadParam, DataConversion};
        let too_long = Bounded::<String, 3>::new("four".to_owned()).unwrap_err();
        assert_eq!(raised(too_long), (BadParam, MinorCode::NONE, CompletionStatus::No));
        let shown = SystemException::from(too_long).to_string();
        assert_eq!(shown, "BAD_PARAM, COMPLETED_NO: length 4 exceeds the bound of 3");
        let none = "x".parse::<Fixed<5, 2>>().unwrap_err();
        assert_eq!(raised(none), (DataConversion, MinorCode::NONE, CompletionStatus::No));
        let wide = Char::try_from('\u{2603}').unwrap_err();
        let expected = (DataConversion, minor::DATA_CONVERSION_CHARACTER, CompletionStatus::No);
        assert_eq!(raised(wide), expected);
        assert_eq!(raised(BitsError { width: 3 }).0, BadParam);
        assert_eq!(raised(FixedLengthError { length: 1, expected: 2 }).0, BadParam);
    }

    #[test]
    fn kind_alone_is_an_exception_without_minor_code_that_did_nothing() {
        for &kind in SystemExceptionKind::ALL {
            assert_eq!(raised(kind), (kind, MinorCode::NONE, CompletionStatus::No));
        }
    }

    #[test]
    fn short_constructors_make_the_kind_that_they_name() {
        let transient = SystemException::transient(minor::TRANSIENT_DISCARDED);
        assert_eq!(transient.minor, minor::TRANSIENT_DISCARDED);
        for (made, name) in [
            (SystemException::bad_inv_order(MinorCode::NONE), "BAD_INV_ORDER"),
            (SystemException::bad_operation(), "BAD_OPERATION"),
            (SystemException::bad_param(MinorCode::NONE), "BAD_PARAM"),
            (SystemException::data_conversion(), "DATA_CONVERSION"),
            (SystemException::imp_limit(), "IMP_LIMIT"),
            (SystemException::internal(), "INTERNAL"),
            (SystemException::inv_objref(), "INV_OBJREF"),
            (SystemException::no_implement(), "NO_IMPLEMENT"),
            (SystemException::no_memory(), "NO_MEMORY"),
            (SystemException::no_permission(), "NO_PERMISSION"),
            (SystemException::no_resources(), "NO_RESOURCES"),
            (SystemException::obj_adapter(), "OBJ_ADAPTER"),
            (SystemException::object_not_exist(), "OBJECT_NOT_EXIST"),
            (SystemException::persist_store(), "PERSIST_STORE"),
            (SystemException::timeout(), "TIMEOUT"),
            (transient.clone(), "TRANSIENT"),
        ] {
            assert_eq!((made.kind.name(), made.completed), (name, CompletionStatus::No));
        }
    }
}
