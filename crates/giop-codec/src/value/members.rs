//! [`ValuePart`]: members of a state that are values, or hold them.

use super::{AbstractForm, Value, ValueForm};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError};

/// What comes after a part of a state was written or read, and a value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next part.
    Next,
    /// The same part again: it has more.
    Again,
}

/// How far a part has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Elements of which the count is known; `None` before the count.
    left: Option<usize>,
}

/// A part of a state that is one value, or one thing that may hold a value, or a sequence of either. The values in it are only begun: who drives goes through them
/// before it comes back.
pub trait ValuePart {
    /// Writes it up to the next value that is new, whose header it writes.
    ///
    /// # Errors
    /// It has no encoding.
    fn encode_part(&self, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError>;

    /// Reads it up to the next value that is new, whose header it reads.
    ///
    /// # Errors
    /// The octets are no such part.
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

    /// A value, or what may hold one, as an element of a sequence that is a part of a state.
    pub trait Element: Sized {
        /// Least number of octets.
        const MIN_SIZE: usize;

        /// Writes it up to the value in it; `true` if that is new, so that its state comes next.
        ///
        /// # Errors
        /// It has no encoding.
        fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError>;

        /// Reads it up to the value in it; `true` if that is new, so that its state comes next.
        ///
        /// # Errors
        /// The octets are no such element.
        fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError>;
    }
}

use element::Element;

impl<V: ValueForm> Element for Option<Value<V>> {
    const MIN_SIZE: usize = 4;

    fn begin_encode(&self, e: &mut Encoder) -> Result<bool, EncodeError> {
        e.begin_value(self.as_ref())
    }

    fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError> {
        d.begin_value()
    }
}

/// A boolean that tells whether it is an object, then that or a value. Nil is a null value.
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
                e.begin_value(held.as_ref().and_then(T::held_value))
            }
        }
    }

    fn begin_decode(d: &mut Decoder<'_>) -> Result<(Self, bool), DecodeError> {
        if d.read_bool()? {
            return Ok((T::decode_object(d)?, false));
        }
        let (value, is_new) = d.begin_value()?;
        Ok((value.map(T::of_value), is_new))
    }
}
