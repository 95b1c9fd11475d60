//! Conversions of errors into system exceptions, so that `?` works in servants.

use super::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::cdr::{BitsError, BoundError, CharConversionError, FixedError, FixedLengthError, RangeError};

/// Creates an exception with `COMPLETED_NO` and without minor code or cause, like the constructors without
/// arguments in the C++ and Java mappings.
impl From<SystemExceptionKind> for SystemException {
    fn from(kind: SystemExceptionKind) -> Self {
        Self::new(kind, MinorCode::NONE, CompletionStatus::No)
    }
}

/// Defines conversions to exceptions with `COMPLETED_NO` and the error as the cause.
macro_rules! from_error {
    ($($error:ty => $kind:ident, $minor:expr, $doc:literal;)+) => {
        $(
            #[doc = $doc]
            impl From<$error> for SystemException {
                #[cold]
                fn from(error: $error) -> Self {
                    Self::new(SystemExceptionKind::$kind, $minor, CompletionStatus::No).with_source(error)
                }
            }
        )+
    };
}

from_error! {
    BoundError => BadParam, MinorCode::NONE, "Converts to `BAD_PARAM` with `COMPLETED_NO`.";
    BitsError => BadParam, MinorCode::NONE, "Converts to `BAD_PARAM` with `COMPLETED_NO`.";
    RangeError => BadParam, MinorCode::NONE, "Converts to `BAD_PARAM` with `COMPLETED_NO`.";
    FixedLengthError => BadParam, MinorCode::NONE, "Converts to `BAD_PARAM` with `COMPLETED_NO`.";
    FixedError => DataConversion, MinorCode::NONE, "Converts to `DATA_CONVERSION` with `COMPLETED_NO`, as in the C++ mapping.";
    CharConversionError => DataConversion, minor::DATA_CONVERSION_CHARACTER,
        "Converts to `DATA_CONVERSION`, minor OMG 1, with `COMPLETED_NO`.";
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
    fn kind_becomes_an_exception_with_completed_no_and_without_minor_code() {
        for &kind in SystemExceptionKind::ALL {
            assert_eq!(raised(kind), (kind, MinorCode::NONE, CompletionStatus::No));
        }
    }
}
