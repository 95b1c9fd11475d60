//! Copying of values between streams, and to memory and back.

use bytes::Bytes;

use super::{Contents, Program};
use crate::cdr::{Decoder, Encoder};
use crate::dynamic::{DynError, DynErrorKind};
use crate::program::{EMPTY_VALUE_CHARGE, Op, Plan};
use crate::walk::{CopyError, copy_value, read_count};

const NOT_FLAT: &str =
    "only numbers, structs and arrays of numbers, and sequences of these can be stored as in memory of C";

impl Program {
    /// Copies a value from one stream to another, whose byte order, alignment, version and code sets may
    /// differ. Checks the whole value. Shares runs of numbers if the byte orders are equal. Everything else
    /// is copied once, with zeros as padding.
    ///
    /// Rejects sequences of elements that take no bytes, as anys do.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault; [`Encode`](DynErrorKind::Encode). The
    /// encoder then contains an incomplete value: rewind it.
    pub fn copy(&self, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Contents, DynError> {
        let bookmark = d.bookmark();
        match copy_value(&self.code, d, e) {
            Ok(found) => {
                Ok(Contents { references: found.references, graphs: found.graphs, ..self.contents() })
            }
            Err(CopyError::Encode(error)) => Err(error.into()),
            Err(CopyError::Decode(error)) => Err(self.locate(d, bookmark, error, true)),
        }
    }

    /// Returns the plan of values of the type, or, for a sequence, that of its elements and its bound.
    fn flat_plan(&self) -> Result<(&Plan, Option<u32>), DynError> {
        let steps = self.steps();
        match steps.ops.get(steps.entry(self.code.root) as usize) {
            Some(Op::Block(plan)) => steps.plan(*plan).map(|plan| (plan, None)),
            Some(Op::Bulk { plan, bound }) => steps.plan(*plan).map(|plan| (plan, Some(*bound))),
            _ => None,
        }
        .ok_or_else(|| DynErrorKind::Inconsistent(NOT_FLAT).into())
    }

    /// Returns the number of bytes from one element to the next in the result of [`flat`](Program::flat).
    /// Returns `None` for a type that `flat` does not support. It supports types of fixed layout and
    /// sequences of them, except types with over 256 fields, or with an array of over 64 fields that are not
    /// contiguous numbers.
    pub fn flat_stride(&self) -> Option<usize> {
        self.flat_plan().ok().map(|(plan, _)| plan.stride)
    }

    /// Reads a value of fixed layout, or the elements of a sequence of such values, to memory. The layout is
    /// that of C: native byte order and zero padding. Each element is at a multiple of the
    /// [stride](Program::flat_stride) if elements end aligned; otherwise elements follow each other as in a
    /// stream. Numbers are a view of the decoder's memory if it is shared and byte order and alignment allow
    /// it. Everything else is copied once.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault;
    /// [`Inconsistent`](DynErrorKind::Inconsistent) for a type without a [stride](Program::flat_stride).
    pub fn flat(&self, d: &mut Decoder<'_>) -> Result<Bytes, DynError> {
        let (plan, bound) = self.flat_plan()?;
        let bookmark = d.bookmark();
        let flat = match bound {
            None => plan.read_flat(d, 1),
            Some(bound) => read_count(d, plan.least(), bound).and_then(|count| {
                if plan.least() == 0 {
                    d.charge(count.saturating_mul(EMPTY_VALUE_CHARGE))?;
                }
                plan.read_flat(d, count)
            }),
        };
        flat.map_err(|error| self.locate(d, bookmark, error, true))
    }

    /// Writes the output of [`flat`](Program::flat). Shares numbers in long sequences if byte order and
    /// position allow it; everything else is copied once.
    ///
    /// # Errors
    /// [`InvalidValue`](DynErrorKind::InvalidValue) if the bytes are not an allowed number of whole elements
    /// with valid ordinals. [`Inconsistent`](DynErrorKind::Inconsistent) for a type without a
    /// [stride](Program::flat_stride).
    pub fn unflat(&self, flat: &Bytes, e: &mut Encoder) -> Result<(), DynError> {
        let (plan, bound) = self.flat_plan()?;
        let stride = plan.stride.max(1);
        let (count, rest) = (flat.len() / stride, flat.len() % stride);
        let fits = match bound {
            None => count == usize::from(plan.stride != 0),
            Some(bound) => bound == 0 || count <= bound as usize,
        };
        if rest != 0 || !fits || !plan.has_valid_ordinals(flat, plan.end_phase, stride, false) {
            return Err(DynErrorKind::InvalidValue("the bytes are not whole elements of the type").into());
        }
        if bound.is_some() {
            e.put_len(count)?;
        }
        plan.put_flat(flat, e);
        Ok(())
    }
}
