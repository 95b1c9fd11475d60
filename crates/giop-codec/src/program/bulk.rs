//! Bulk transfer of values of fixed layout: between streams, or to memory.

use bytes::Bytes;

use super::StepResult;
use super::plan::{FieldKind, Plan};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind};

/// Elements as encoded in a message.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// The first element and its phase, if its layout differs from that of the others.
    first: Option<(&'a [u8], usize)>,
    /// All other elements, a stride apart.
    others: &'a [u8],
}

/// Writes an array of numbers; shares it if no byte swap is needed.
#[inline(never)]
pub(crate) fn put_numbers(e: &mut Encoder, width: u8, octets: &Bytes) {
    if octets.is_empty() {
        return;
    }
    e.align((1 << width).min(8));
    if width == 0 || !e.is_foreign() {
        e.put_shared_ref(octets);
    } else {
        e.put_swapped(width, octets);
    }
}

impl Plan {
    /// # Errors
    /// [`InvalidEnum`](DecodeErrorKind::InvalidEnum) at `start`.
    #[inline(never)]
    fn check(&self, octets: &[u8], phase: usize, stride: usize, swap: bool, start: usize) -> StepResult {
        match self.ordinals(octets, phase, stride, swap) {
            true => Ok(()),
            false => Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start)),
        }
    }

    #[inline(never)]
    fn check_run(&self, run: Run<'_>, swap: bool, start: usize) -> StepResult {
        if let Some((first, phase)) = run.first {
            self.check(first, phase, first.len(), swap, start)?;
        }
        self.check(run.others, self.end(), self.stride(), swap, start)
    }

    /// Takes the next elements if they are contiguous. Otherwise returns `None` and takes nothing.
    fn take<'a>(&self, d: &mut Decoder<'a>, count: usize) -> StepResult<Option<Run<'a>>> {
        let phase = d.phase();
        let lead = self.lead(phase);
        let len = match lead {
            Some(pad) => self.stride().saturating_mul(count).saturating_add(pad),
            None => self.run(phase, count),
        };
        if !d.in_piece(len) {
            return Ok(None);
        }
        let octets = d.take(len)?;
        let (before, others) = octets.split_at(lead.unwrap_or(self.size(phase)).min(octets.len()));
        Ok(Some(Run { first: lead.is_none().then_some((before, phase)), others }))
    }

    /// Returns the width and count of the numbers in an element, if consecutive elements consist only of
    /// numbers.
    fn one_run(&self, d: &Decoder<'_>) -> Option<(u8, usize)> {
        self.uniform().filter(|_| self.number || !d.is_piecewise())
    }

    /// Reads one element in native order into zeroed memory of its size at phase 0, even if its parts are not
    /// contiguous.
    #[cold]
    fn take_apart(&self, d: &mut Decoder<'_>, to: &mut [u8]) -> StepResult {
        let start = d.position();
        for (field, mut at) in self.fields_at(0) {
            // After a fragment boundary, each member is aligned individually.
            let apart = field.width > 2 && !field.joined && d.is_piecewise();
            let (times, count) = if apart { (field.count, 1) } else { (1, field.count) };
            for _ in 0..times {
                let from = d.read_numbers(field.width, count as usize)?;
                let place = to.get_mut(at..at + from.len()).unwrap_or_default();
                let truth = field.what == FieldKind::Bool;
                place
                    .iter_mut()
                    .zip(&from)
                    .for_each(|(to, from)| *to = if truth { (*from != 0).into() } else { *from });
                at += from.len();
            }
        }
        self.check(to, 0, to.len().max(1), false, start)
    }

    /// Skips `count` values and checks their ordinals if `checks` is set.
    pub(crate) fn pass(&self, d: &mut Decoder<'_>, count: usize, checks: bool) -> StepResult {
        let mut left = count;
        while left > 0 {
            let start = d.position();
            match self.take(d, left)? {
                Some(run) if checks => return self.check_run(run, d.is_foreign(), start),
                Some(_) => return Ok(()),
                None => {
                    if let Some((width, each)) = self.one_run(d) {
                        let octets = d.read_numbers(width, left.saturating_mul(each))?;
                        return self.check(&octets, 0, self.stride(), false, start);
                    }
                    self.take_apart(d, &mut vec![0; self.size(0)])?;
                }
            }
            left -= 1;
        }
        Ok(())
    }

    /// Copies `count` values from one stream to another. Numbers are shared if the streams allow it;
    /// everything else is copied once.
    pub(crate) fn copy(&self, d: &mut Decoder<'_>, e: &mut Encoder, count: usize) -> StepResult {
        if let Some((width, each)) = self.one_run(d) {
            let start = d.position();
            let octets = d.read_numbers(width, count.saturating_mul(each))?;
            self.check(&octets, 0, self.stride(), false, start)?;
            put_numbers(e, width, &octets);
            return Ok(());
        }
        let mut left = count;
        while left > 0 {
            let start = d.position();
            if let Some(run) = self.take(d, left)? {
                self.check_run(run, d.is_foreign(), start)?;
                self.put(run, d.is_foreign(), e);
                return Ok(());
            }
            let mut element = vec![0; self.size(0)];
            self.take_apart(d, &mut element)?;
            self.put_one(&element, 0, e.is_foreign(), e);
            left -= 1;
        }
        Ok(())
    }

    /// Reads `count` values into memory: in native order, a stride apart, at the phase at which elements end,
    /// with zeros as padding. Returns a view if they are numbers and the stream allows it.
    pub(crate) fn flat(&self, d: &mut Decoder<'_>, count: usize) -> StepResult<Bytes> {
        let start = d.position();
        if let Some((width, each)) = self.one_run(d) {
            let octets = d.read_numbers(width, count.saturating_mul(each))?;
            self.check(&octets, 0, self.stride(), false, start)?;
            return Ok(octets);
        }
        let mut flat = d.new_vec::<u8>(0)?;
        let mut left = count;
        while left > 0 {
            if let Some(run) = self.take(d, left)? {
                let swap = d.is_foreign();
                self.check_run(run, swap, start)?;
                d.charge(self.stride().saturating_mul(left))?;
                flat.reserve_exact(self.stride().saturating_mul(left));
                if let Some((first, phase)) = run.first {
                    self.turn_one(first, phase, grow(&mut flat, self.stride()), self.end(), swap);
                }
                for some in run.others.chunks(self.tile()) {
                    self.turn_run(some, grow(&mut flat, some.len()), swap);
                }
                break;
            }
            let mut element = vec![0; self.size(0)];
            self.take_apart(d, &mut element)?;
            d.charge(self.stride())?;
            self.turn_one(&element, 0, grow(&mut flat, self.stride()), self.end(), false);
            left -= 1;
        }
        Ok(flat.into())
    }

    /// Writes values that [`flat`](Plan::flat) returned.
    pub(crate) fn put_flat(&self, flat: &Bytes, e: &mut Encoder) {
        match self.uniform() {
            Some((width, _)) => put_numbers(e, width, flat),
            None => self.put(Run { first: None, others: flat }, false, e),
        }
    }

    fn put(&self, run: Run<'_>, foreign: bool, e: &mut Encoder) {
        let swap = foreign != e.is_foreign();
        if let Some((first, phase)) = run.first {
            self.put_one(first, phase, swap, e);
        }
        let mut others = run.others;
        if others.is_empty() {
            return;
        }
        match self.lead(e.position()) {
            Some(0) => {}
            Some(_) => e.align(self.align()),
            None => {
                let (first, rest) = others.split_at(self.stride().min(others.len()));
                self.put_one(first, self.end(), swap, e);
                others = rest;
            }
        }
        e.reserve(others.len());
        for some in others.chunks(self.tile()) {
            self.turn_run(some, e.grow(some.len()), swap);
        }
    }

    #[inline(never)]
    fn put_one(&self, element: &[u8], phase: usize, swap: bool, e: &mut Encoder) {
        let to = e.position();
        self.turn_one(element, phase, e.grow(self.size(to)), to, swap);
    }
}

/// Appends zeros, to be overwritten.
#[inline(never)]
fn grow(octets: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let start = octets.len();
    octets.resize(start + len, 0);
    octets.get_mut(start..).unwrap_or_default()
}

/// Reads the bytes of a decimal number. Some peers send only as many bytes as the number has digits. Returns
/// the bytes at the end of the array, extended to the type's width, and that width.
pub(crate) fn read_decimal(d: &mut Decoder<'_>, digits: u16) -> StepResult<([u8; 16], usize)> {
    let start = d.position();
    let invalid = || DecodeError::new(DecodeErrorKind::InvalidFixed, start);
    let width = (usize::from(digits) / 2 + 1).min(16);
    let mut octets = [0; 16];
    for read in 1..=width {
        let octet = d.read_u8()?;
        octets.rotate_left(1);
        let [.., last] = &mut octets;
        *last = octet;
        match (octet >> 4, octet & 0xF) {
            (0..=9, 0..=9) => continue,
            (0..=9, 0xC | 0xD) => {}
            // Without a sign: positive.
            (0..=9, 0xF) => *last = octet & 0xF0 | 0xC,
            _ => return Err(invalid()),
        }
        // Normalize a negative zero.
        if octets.iter().all(|octet| octet & !0xF == 0 && (*octet == 0 || *octet > 9)) {
            octets[15] = 0xC;
        }
        // For an even number of digits the first digit is padding and must be 0.
        let padded = digits.is_multiple_of(2) && read == width;
        return match octets.get(16 - width) {
            Some(first) if padded && *first >= 0x10 => Err(invalid()),
            _ => Ok((octets, width)),
        };
    }
    Err(invalid())
}
