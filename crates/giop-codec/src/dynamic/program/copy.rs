//! Values from one stream to another, or to memory and back.

use bytes::Bytes;

use super::{Contents, EMPTY_VALUE, Op, Plan, Program};
use crate::any::{Fault, copy_value};
use crate::cdr::{Decoder, Encoder};
use crate::dynamic::{DynError, DynErrorKind};

/// Why a value has no flat image.
const NOT_FLAT: &str = "only numbers, what is made of them, and sequences of either have a flat image";

impl Program {
    /// Copies a value from one stream to another, whatever their orders, phases, versions and code sets are. Looks at all of it. Shares runs
    /// of numbers where the orders are the same, copies the rest once, without what is in padding.
    ///
    /// Sequences of elements that take no octets are refused, as in anys.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to what is wrong; [`Encode`](DynErrorKind::Encode). What the encoder holds then is
    /// half a value: rewind it.
    pub fn copy(&self, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Contents, DynError> {
        let spot = d.spot();
        match copy_value(&self.code, d, e) {
            Ok(seen) => {
                let may_be = self.contents();
                Ok(Contents { references: seen.references, graphs: seen.values, ..may_be })
            }
            Err(Fault::Encode(error)) => Err(error.into()),
            Err(Fault::Decode(error)) => Err(self.locate(d, spot, error, true)),
        }
    }

    /// The plan of values of the type or of elements of the sequence that it is, and the bound of that.
    fn flat_plan(&self) -> Result<(&Plan, Option<u32>), DynError> {
        let body = self.body();
        match body.ops.get(body.entry(self.code.root) as usize) {
            Some(Op::Block(plan)) => body.plan(*plan).map(|plan| (plan, None)),
            Some(Op::Bulk { plan, bound }) => body.plan(*plan).map(|plan| (plan, Some(*bound))),
            _ => None,
        }
        .ok_or_else(|| DynErrorKind::Inconsistent(NOT_FLAT).into())
    }

    /// Bytes from one element of a flat image to the next; of a type without a flat image none. Types of fixed layout have one, and sequences of
    /// such, unless there is an array in them of over 64 fields that are not numbers side by side, or they have over 256 fields.
    pub fn flat_stride(&self) -> Option<usize> {
        self.flat_plan().ok().map(|(plan, _)| plan.stride())
    }

    /// Reads a value of fixed layout, or the elements of a sequence of such, to memory as C has it: native byte order, every element at a
    /// multiple of the [stride](Program::flat_stride) (where elements end aligned, else as they follow each other in a stream), padding zero.
    /// Numbers are a view of the decoder's memory where it has some and order and alignment allow; all else is written once.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to what is wrong; [`Inconsistent`](DynErrorKind::Inconsistent) of types without a flat image.
    pub fn flat(&self, d: &mut Decoder<'_>) -> Result<Bytes, DynError> {
        let (plan, bound) = self.flat_plan()?;
        let spot = d.spot();
        let flat = match bound {
            None => plan.flat(d, 1),
            Some(bound) => super::run::counted(d, plan.least(), bound).and_then(|count| {
                if plan.least() == 0 {
                    d.charge(count.saturating_mul(EMPTY_VALUE))?;
                }
                plan.flat(d, count)
            }),
        };
        flat.map_err(|error| self.locate(d, spot, error, true))
    }

    /// Writes what [`flat`](Program::flat) made. Shares numbers in long sequences where order and position allow, copies the rest once.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) where the octets are not those of whole elements, as many as there may be, with ordinals of their enumerators;
    /// [`Inconsistent`](DynErrorKind::Inconsistent) of types without a flat image.
    pub fn unflat(&self, flat: &Bytes, e: &mut Encoder) -> Result<(), DynError> {
        let (plan, bound) = self.flat_plan()?;
        let stride = plan.stride().max(1);
        let (count, rest) = (flat.len() / stride, flat.len() % stride);
        let fits = match bound {
            None => count == usize::from(plan.stride() != 0),
            Some(bound) => bound == 0 || count <= bound as usize,
        };
        if rest != 0 || !fits || !plan.ordinals(flat, plan.end(), stride, false) {
            return Err(DynErrorKind::InvalidValue("the octets are no flat image of the type").into());
        }
        if bound.is_some() {
            e.put_len(count)?;
        }
        plan.put_flat(flat, e);
        Ok(())
    }
}
