//! [`ValuePart`]: members of a state that are values.

use super::{Value, ValueForm};
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

/// A part of a state that is one value or a sequence of values. The values in it are only begun: who drives goes through them
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
        e.begin_value(self.as_ref())?;
        Ok(Flow::Next)
    }

    fn decode_part(&mut self, d: &mut Decoder<'_>, _: &mut Progress) -> Result<Flow, DecodeError> {
        *self = d.begin_value()?.0;
        Ok(Flow::Next)
    }
}

impl<V: ValueForm> ValuePart for Vec<Option<Value<V>>> {
    fn encode_part(&self, e: &mut Encoder, at: &mut Progress) -> Result<Flow, EncodeError> {
        let mut left = match at.left {
            Some(left) => left,
            None => {
                e.put_len(self.len())?;
                self.len()
            }
        };
        while let Some(value) = self.len().checked_sub(left).and_then(|index| self.get(index)) {
            left -= 1;
            if e.begin_value(value.as_ref())? && left > 0 {
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
                let count = d.read_len(4)?;
                *self = d.new_vec(count)?;
                count
            }
        };
        while left > 0 {
            let (value, is_new) = d.begin_value()?;
            self.push(value);
            left -= 1;
            if is_new && left > 0 {
                at.left = Some(left);
                return Ok(Flow::Again);
            }
        }
        Ok(Flow::Next)
    }
}
