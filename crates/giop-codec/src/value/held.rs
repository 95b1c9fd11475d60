//! [`AbstractForm`]: types that hold a value or an object reference.

use super::{Extends, Value, ValueForm};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// The type of a place of an abstract interface ("Abstract Interfaces"): it holds a value that supports the
/// interface, or an object reference.
///
/// On the wire, a boolean selects which of the two follows. Nil is written as a null value; a received nil
/// reference is also accepted.
pub trait AbstractForm: Sized {
    /// The type that represents the values that support the interface.
    type Values: ValueForm;

    /// Creates the form that holds this value.
    fn of_value(value: Value<Self::Values>) -> Self;

    /// Returns the value, unless it is an object reference.
    fn held_value(&self) -> Option<&Value<Self::Values>>;

    /// Writes the object reference. The form must hold one.
    ///
    /// # Errors
    /// It has no encoding.
    fn encode_object(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads an object reference, which may be nil.
    ///
    /// # Errors
    /// The bytes are not an object reference.
    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError>;
}

/// Lets a value that supports the interface be passed as `impl Into<Option<T>>`.
impl<W: Extends<T::Values>, T: AbstractForm> From<Value<W>> for Option<T> {
    fn from(value: Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}

/// Lets a value that supports the interface be passed as `impl Into<Option<T>>`.
impl<W: Extends<T::Values>, T: AbstractForm> From<&Value<W>> for Option<T> {
    fn from(value: &Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}
