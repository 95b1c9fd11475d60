//! [`ValuePart`]: members of a state that are values, or contain them.

use super::read;
use super::write;
use super::{AbstractForm, Value, ValueForm};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// The next step after a part of a state, and a value in it, was written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next part.
    Next,
    /// Continue with the same part, because it has more.
    Again,
}

/// The progress within a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Number of remaining elements; `None` before the count.
    left: Option<usize>,
}

/// A part of a state that is a value, or a holder of one, or a sequence of either. Its methods only begin
/// each value in it. The caller then processes the state of that value before it calls them again.
pub trait ValuePart {
    /// Writes the part up to the next new value, whose header it writes.
    ///
    /// # Errors
    /// The part has no encoding.
    fn encode_part(&self, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads the part up to the next new value, whose header it reads.
    ///
    /// # Errors
    /// The bytes are not such a part.
    fn decode_part(&mut self, d: &mut Decoder<'_>, at: &mut Progress) -> Result<Flow, DecodeError>;
}

impl<V: ValueForm> ValuePart for Option<Value<V>> {
    fn encode_part(&self, e: &mut Encoder, _: &mut Progress) -> Result<Flow, EncodeError> {
        self.begin_encode(e).map(|_| Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, _: &mut Progress) -> Result<Flow, DecodeError> {
        *self = Self::begin_decode(d)?.0;
        Ok(Flow::Next)
    }
}

impl<T: AbstractForm> ValuePart for Option<T> {
    fn encode_part(&self, e: &mut Encoder, _: &mut Progress) -> Result<Flow, EncodeError> {
        self.begin_encode(e).map(|_| Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, _: &mut Progress) -> Result<Flow, DecodeError> {
        *self = Self::begin_decode(d)?.0;
        Ok(Flow::Next)
    }
}

impl<E: Element> ValuePart for Vec<E> {
    fn encode_part(&self, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError> {
        let mut left = match at.left {
            Some(left) => left,
            None => {
                e.put_len(self.len())?;
                self.len()
            }
        };
        while let Some(element) = self.len().checked_sub(left).and_then(|index| self.get(index)) {
            left -= 1;
            if element.begin_encode(e)? && left > 0 {
                at.left = Some(left);
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, at: &mut Progress) -> Result<Flow, DecodeError> {
        let mut left = match at.left {
            Some(left) => left,
            None => {
                let count = d.read_len(E::MIN_SIZE)?;
                *self = d.new_vec(count)?;
                count
            }
        };
        while left > 0 {
            let (element, is_new) = E::begin_decode(d)?;
            self.push(element);
            left -= 1;
            if is_new && left > 0 {
                at.left = Some(left);
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Next)
    }
}

mod element {
    use super::{DecodeError, Decoder, EncodeError, Encoder};

    /// A value, or a holder of one, as an element of a sequence that is a part of a state.
    pub trait Element: Sized {
        /// Minimum number of bytes.
        const MIN_SIZE: usize;

        /// Writes the element up to the value in it. Returns `true` if that is new, so that its state
        /// follows.
        ///
        /// # Errors
        /// The element has no encoding.
        fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError>;

        /// Reads the element up to the value in it. Returns `true` if that is new, so that its state follows.
        ///
        /// # Errors
        /// The bytes are not such an element.
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

/// A boolean that is true for an object, then the object or value. Nil is a null value.
impl<T: AbstractForm> Element for Option<T> {
    const MIN_SIZE: usize = 5;

    fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError> {
        match self {
            Some(held) if held.held_value().is_none() => {
                e.put_bool(true);
                held.encode_object(e).map(|()| false)
            }
            held => {
                e.put_bool(false);
                write::begin_value(e, held.as_ref().and_then(T::held_value))
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
