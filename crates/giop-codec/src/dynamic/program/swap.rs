//! Conversion of encoded values to the other byte order in place.

use super::Program;
use crate::cdr::{CdrDecode, DecodeLimits, Decoder, padding};
use crate::dynamic::{DynError, DynErrorKind};
use crate::program::{Index, LabelEncoding, Op, Pc, Plan, UnionSwitch};
use crate::typecode::{Body, NamedType, Node, Nodes, TcKind, TypeCode};
use crate::{ByteOrder, DecodeErrorKind, Version};

impl Program {
    /// Converts an encoded value to the other byte order in place, and returns its size in bytes. The value
    /// begins at the first byte, whose offset from the alignment origin is `phase` modulo 8. Text, padding
    /// and encapsulations are unchanged, because their bytes do not depend on this byte order. Wide text is
    /// assumed to be UTF-16. The structure of the value is checked first, so an invalid value is not changed.
    /// Allocates memory only for type codes.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault, or
    /// [`Inconsistent`](DynErrorKind::Inconsistent) if the value contains value types.
    pub fn swap(
        &self,
        bytes: &mut [u8],
        phase: usize,
        order: ByteOrder,
        version: Version,
        limits: DecodeLimits,
    ) -> Result<usize, DynError> {
        let mut d = Decoder::new(bytes, order, version).with_phase(phase % 8);
        d.set_limits(limits);
        let malformed = d.error(DecodeErrorKind::Malformed);
        if self.skip(&mut d)?.has_value_types {
            return Err(DynErrorKind::Inconsistent(
                "a value that contains value types cannot be converted in place",
            )
            .into());
        }
        let mut swapper = Swapper { bytes, position: 0, phase: phase % 8, order, version };
        // This cannot fail, because the value was checked.
        swapper.swap_value(&self.code).ok_or(malformed)?;
        Ok(swapper.position)
    }
}

struct Swapper<'a> {
    bytes: &'a mut [u8],
    position: usize,
    phase: usize,
    order: ByteOrder,
    version: Version,
}

/// `None` means that the bytes are not a valid value, which the previous check excludes.
type SwapResult<T = ()> = Option<T>;

impl Swapper<'_> {
    fn swap_value(&mut self, code: &TypeCode) -> SwapResult {
        self.swap_steps(&code.nodes, code.nodes.steps().entry(code.root))
    }

    fn swap_steps(&mut self, nodes: &Nodes, mut pc: Pc) -> SwapResult {
        let steps = nodes.steps();
        loop {
            let op = steps.ops.get(pc as usize)?;
            pc += 1;
            match *op {
                Op::Block(plan) => self.swap_run(steps.plan(plan)?, 1)?,
                Op::FixedArray { plan, count } => self.swap_run(steps.plan(plan)?, count as usize)?,
                Op::FixedSequence { plan, .. } => {
                    let count = self.swap_long()? as usize;
                    self.swap_run(steps.plan(plan)?, count)?;
                }
                Op::Sequence { element, .. } => {
                    let count = self.swap_long()?;
                    self.swap_elements(nodes, element, count)?;
                }
                Op::Array { element, count } => self.swap_elements(nodes, element, count)?,
                Op::Text { wide: true, .. } if self.version < Version::V1_2 => {
                    let units = self.swap_long()?;
                    (0..units).try_for_each(|_| self.swap_number::<2>().map(drop))?;
                }
                Op::Text { .. } | Op::Principal => self.skip_counted()?,
                Op::WChar => self.swap_wchar()?,
                Op::Decimal { .. } => while self.swap_number::<1>()?[0] & 0xF < 0xA {},
                Op::Union(switch) => self.swap_union(nodes, steps.switches.get(switch as usize)?)?,
                Op::Struct(index) => self.swap_steps(nodes, steps.entry(index))?,
                Op::Any => {
                    let code = self.swap_type_code()?;
                    self.swap_value(&code)?;
                }
                Op::TypeCode => drop(self.swap_type_code()?),
                Op::Object => {
                    self.skip_counted()?;
                    for _ in 0..self.swap_long()? {
                        self.swap_long()?;
                        self.skip_counted()?;
                    }
                }
                Op::ExceptionId(index) => {
                    let Node::Named(NamedType { id, .. }) = nodes.at(index) else { return None };
                    let next = self.decoder().read_str_bytes();
                    if id.is_empty() || next.is_ok_and(|bytes| bytes == id.as_bytes()) {
                        self.skip_counted()?;
                    }
                }
                Op::Graph(_) | Op::NoValues => return None,
                Op::Return => return Some(()),
            }
        }
    }

    fn swap_elements(&mut self, nodes: &Nodes, element: Index, count: u32) -> SwapResult {
        let entry = nodes.steps().entry(element);
        (0..count).try_for_each(|_| self.swap_steps(nodes, entry))
    }

    fn swap_union(&mut self, nodes: &Nodes, switch: &UnionSwitch) -> SwapResult {
        let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(switch.union) else {
            return None;
        };
        let label = switch.labels.read(&mut self.decoder()).ok()?;
        match switch.labels {
            LabelEncoding::Boolean | LabelEncoding::Octet => drop(self.swap_number::<1>()?),
            LabelEncoding::Short | LabelEncoding::UShort => drop(self.swap_number::<2>()?),
            LabelEncoding::Long | LabelEncoding::ULong | LabelEncoding::Enum(_) => {
                self.swap_number::<4>()?;
            }
            LabelEncoding::LongLong | LabelEncoding::ULongLong => drop(self.swap_number::<8>()?),
            LabelEncoding::WChar => self.swap_wchar()?,
        }
        let Some(member) = union.selected(label) else { return Some(()) };
        self.swap_steps(nodes, nodes.steps().entry(member.ty))
    }

    fn swap_wchar(&mut self) -> SwapResult {
        if self.version < Version::V1_2 {
            return self.swap_number::<2>().map(drop);
        }
        let [len] = self.swap_number::<1>()?;
        self.skip_bytes(len.into())
    }

    /// Decodes a type code, and swaps those of its numbers that are outside of encapsulations.
    fn swap_type_code(&mut self) -> SwapResult<TypeCode> {
        let code = TypeCode::decode(&mut self.decoder()).ok()?;
        let kind = TcKind::from_number(self.swap_long()?)?;
        match kind {
            kind if kind.is_basic() => {}
            TcKind::String | TcKind::WString => drop(self.swap_long()?),
            TcKind::Fixed => {
                self.swap_number::<2>()?;
                self.swap_number::<2>()?;
            }
            _ => self.skip_counted()?,
        }
        Some(code)
    }

    fn swap_run(&mut self, plan: &Plan, count: usize) -> SwapResult {
        let phase = self.position + self.phase;
        let len = plan.run_size(phase, count);
        let end = self.position.checked_add(len)?;
        plan.swap_in_place(self.bytes.get_mut(self.position..end)?, phase);
        self.position = end;
        Some(())
    }

    /// Returns a decoder at the current position. The data from there on is not swapped yet.
    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self.bytes, self.order, self.version).with_phase(self.phase).at(self.position)
    }

    /// Swaps a number and returns its original bytes.
    fn swap_number<const N: usize>(&mut self) -> SwapResult<[u8; N]> {
        let start = self.position + padding(self.position + self.phase, N);
        let number = self.bytes.get_mut(start..)?.first_chunk_mut::<N>()?;
        let original = *number;
        number.reverse();
        self.position = start + N;
        Some(original)
    }

    /// Swaps a `long` or `unsigned long` and returns its value.
    #[inline(never)]
    fn swap_long(&mut self) -> SwapResult<u32> {
        let bytes = self.swap_number::<4>()?;
        Some(match self.order {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        })
    }

    /// Swaps a byte count, and skips that number of bytes.
    fn skip_counted(&mut self) -> SwapResult {
        self.swap_long().and_then(|len| self.skip_bytes(len as usize))
    }

    fn skip_bytes(&mut self, len: usize) -> SwapResult {
        self.position = self.position.checked_add(len).filter(|position| *position <= self.bytes.len())?;
        Some(())
    }
}
