//! [`AbstractForm`]: what holds a value or an object reference.

use super::{Extends, Value, ValueForm};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// What is passed where IDL names an abstract interface ("Abstract Interfaces"): a value that supports it, or an object reference.
///
/// On the wire a boolean tells which of the two follows; nil is a null value, as which a nil reference is taken too.
pub trait AbstractForm: Sized {
    /// Stands for the values that support the interface.
    type Values: ValueForm;

    /// The form that holds this value.
    fn of_value(value: Value<Self::Values>) -> Self;

    /// The value, unless it is an object reference.
    fn held_value(&self) -> Option<&Value<Self::Values>>;

    /// Writes the object reference, which it is.
    ///
    /// # Errors
    /// It has no encoding.
    fn encode_object(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads an object reference, which may be nil.
    ///
    /// # Errors
    /// The octets are none.
    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError>;
}

/// For whoever takes `impl Into<Option<T>>`: a value that supports the interface.
impl<W: Extends<T::Values>, T: AbstractForm> From<Value<W>> for Option<T> {
    fn from(value: Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}

/// For whoever takes `impl Into<Option<T>>`: a value that supports the interface.
impl<W: Extends<T::Values>, T: AbstractForm> From<&Value<W>> for Option<T> {
    fn from(value: &Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}
