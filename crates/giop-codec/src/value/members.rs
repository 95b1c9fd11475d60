//! [`ValuePart`] and [`AbstractForm`]: members of a state whose types are value types or abstract interfaces.

use super::read;
use super::write;
use super::{Extends, Flow, Progress, Value, ValueForm};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// A part of a state that is a value, an [`AbstractForm`], or a sequence of either.
///
/// Methods return after the header of each new value. The caller must then process its state.
pub trait ValuePart {
    /// Writes the part up to and including the header of the next new value.
    ///
    /// # Errors
    /// The part has no encoding.
    fn encode_part(&self, e: &mut Encoder, progress: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads the part up to and including the header of the next new value.
    ///
    /// # Errors
    /// The bytes are not a valid part.
    fn decode_part(&mut self, d: &mut Decoder<'_>, progress: &mut Progress) -> Result<Flow, DecodeError>;
}

/// The Rust type for an abstract interface ("Abstract Interfaces"): it holds a value or an object reference.
///
/// On the wire, a boolean tells which of the two follows. Nil is written as a null value.
pub trait AbstractForm: Sized {
    /// The value type that represents all values that support the interface.
    type Values: ValueForm;

    /// Creates an instance that holds this value.
    fn of_value(value: Value<Self::Values>) -> Self;

    /// Returns the value; `None` if this instance holds an object reference.
    fn held_value(&self) -> Option<&Value<Self::Values>>;

    /// Writes the object reference. The instance must hold one.
    ///
    /// # Errors
    /// The reference has no encoding.
    fn encode_object(&self, e: &mut Encoder) -> Result<(), EncodeError>;

    /// Reads an object reference, which may be nil.
    ///
    /// # Errors
    /// The bytes are not an object reference.
    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError>;
}

/// Allows passing a value that supports the interface as `impl Into<Option<T>>`.
impl<W: Extends<T::Values>, T: AbstractForm> From<Value<W>> for Option<T> {
    fn from(value: Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}

/// Allows passing a value that supports the interface as `impl Into<Option<T>>`.
impl<W: Extends<T::Values>, T: AbstractForm> From<&Value<W>> for Option<T> {
    fn from(value: &Value<W>) -> Option<T> {
        Some(T::of_value(value.upcast()))
    }
}

impl<T> ValuePart for Option<T>
where
    Option<T>: Element,
{
    fn encode_part(&self, e: &mut Encoder, _: &mut Progress) -> Result<Flow, EncodeError> {
        self.begin_encode(e).map(|_| Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, _: &mut Progress) -> Result<Flow, DecodeError> {
        *self = Self::begin_decode(d)?.0;
        Ok(Flow::Next)
    }
}

impl<E: Element> ValuePart for Vec<E> {
    fn encode_part(&self, e: &mut Encoder, progress: &mut Progress) -> Result<Flow, EncodeError> {
        let mut remaining = match progress.remaining {
            Some(remaining) => remaining,
            None => {
                e.put_len(self.len())?;
                self.len()
            }
        };
        while let Some(element) = self.len().checked_sub(remaining).and_then(|index| self.get(index)) {
            remaining -= 1;
            if element.begin_encode(e)? && remaining > 0 {
                progress.remaining = Some(remaining);
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, progress: &mut Progress) -> Result<Flow, DecodeError> {
        let mut remaining = match progress.remaining {
            Some(remaining) => remaining,
            None => {
                let count = d.read_len(E::MIN_SIZE)?;
                *self = d.new_vec(count)?;
                count
            }
        };
        while remaining > 0 {
            let (element, is_new) = E::begin_decode(d)?;
            self.push(element);
            remaining -= 1;
            if is_new && remaining > 0 {
                progress.remaining = Some(remaining);
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Next)
    }
}

mod element {
    use super::{DecodeError, Decoder, EncodeError, Encoder};

    /// A value or an [`AbstractForm`](super::AbstractForm), as a part of a state or element of a sequence.
    pub trait Element: Sized {
        /// The minimum size of the encoding in bytes.
        const MIN_SIZE: usize;

        /// Writes the element. Returns `true` if it ends with a header of a new value, whose state follows.
        fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError>;

        /// Reads the element. Returns `true` if it ends with a header of a new value, whose state follows.
        fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError>;
    }
}

use element::Element;

impl<V: ValueForm> Element for Option<Value<V>> {
    const MIN_SIZE: usize = 4;

    fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError> {
        write::begin_value(e, self.as_ref())
    }

    fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError> {
        read::begin_value(d)
    }
}

/// The encoding is a boolean, which is true for an object reference, followed by the reference or the value.
impl<T: AbstractForm> Element for Option<T> {
    const MIN_SIZE: usize = 5;

    fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError> {
        match self {
            Some(form) if form.held_value().is_none() => {
                e.put_bool(true);
                form.encode_object(e).map(|()| false)
            }
            form => {
                e.put_bool(false);
                write::begin_value(e, form.as_ref().and_then(T::held_value))
            }
        }
    }

    fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError> {
        if d.read_bool()? {
            return Ok((T::decode_object(d)?, false));
        }
        let (value, is_new) = read::begin_value(d)?;
        Ok((value.map(T::of_value), is_new))
    }
}
