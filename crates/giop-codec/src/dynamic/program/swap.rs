//! In-place conversion of values to the other byte order.

use super::Program;
use crate::cdr::{CdrDecode, DecodeLimits, Decoder, padding};
use crate::dynamic::{DynError, DynErrorKind};
use crate::program::{Index, Labels, Op, Pc, Plan, Switch};
use crate::typecode::{Body as Shape, NamedType, Node, Nodes, TcKind, TypeCode};
use crate::{ByteOrder, DecodeErrorKind, Version};

impl Program {
    /// Converts a value to the other byte order in place, and returns its size in bytes. The value begins
    /// with the first byte, which is at `phase` modulo 8 from the alignment origin. Text, padding and
    /// encapsulations, which have their own byte order, are unchanged. Wide text is assumed to be UTF-16. The
    /// structure of the value is checked first, so an invalid value is not changed. Allocates nothing, except
    /// for the type codes of anys.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault.
    /// [`Inconsistent`](DynErrorKind::Inconsistent) if the value contains values of value types, which may
    /// refer to each other.
    pub fn swap(
        &self,
        octets: &mut [u8],
        phase: usize,
        from: ByteOrder,
        version: Version,
        limits: DecodeLimits,
    ) -> Result<usize, DynError> {
        let mut d = Decoder::new(octets, from, version).shifted(phase % 8);
        d.set_limits(limits);
        let malformed = d.error(DecodeErrorKind::Malformed);
        let seen = self.skip(&mut d)?;
        if seen.graphs {
            return Err(DynErrorKind::Inconsistent("values of value types are not turned in place").into());
        }
        let mut swapper = Swapper { octets, at: 0, phase: phase % 8, from, version };
        // This cannot fail, because the value was skipped before.
        swapper.value(&self.code).ok_or(malformed)?;
        Ok(swapper.at)
    }
}

/// A second pass over a value, which swaps its numbers.
struct Swapper<'a> {
    octets: &'a mut [u8],
    at: usize,
    phase: usize,
    from: ByteOrder,
    version: Version,
}

/// `None` means that the value differs from the one that was skipped.
type SwapResult<T = ()> = Option<T>;

impl Swapper<'_> {
    fn value(&mut self, code: &TypeCode) -> SwapResult {
        self.steps(&code.nodes, code.nodes.compiled().entry(code.root))
    }

    fn steps(&mut self, nodes: &Nodes, mut pc: Pc) -> SwapResult {
        let body = nodes.compiled();
        loop {
            let op = body.ops.get(pc as usize)?;
            pc += 1;
            match *op {
                Op::Block(plan) => self.run(body.plan(plan)?, 1)?,
                Op::Run { plan, count } => self.run(body.plan(plan)?, count as usize)?,
                Op::Bulk { plan, .. } => {
                    let count = self.long()? as usize;
                    self.run(body.plan(plan)?, count)?;
                }
                Op::Each { element, .. } => {
                    let count = self.long()?;
                    self.each(nodes, element, count)?;
                }
                Op::Times { element, count } => self.each(nodes, element, count)?,
                Op::Text { wide: true, .. } if self.version < Version::V1_2 => {
                    let units = self.long()?;
                    (0..units).try_for_each(|_| self.number::<2>().map(drop))?;
                }
                Op::Text { .. } | Op::Principal => self.counted()?,
                Op::WChar if self.version < Version::V1_2 => drop(self.number::<2>()?),
                Op::WChar => {
                    let [len] = self.number::<1>()?;
                    self.pass(len.into())?;
                }
                Op::Decimal { .. } => while self.number::<1>()?[0] & 0xF < 0xA {},
                Op::Union(switch) => self.union(nodes, body.switches.get(switch as usize)?)?,
                Op::Call(index) => self.steps(nodes, body.entry(index))?,
                Op::Any => {
                    let code = self.type_code()?;
                    self.value(&code)?;
                }
                Op::TypeCode => drop(self.type_code()?),
                Op::Object => {
                    self.counted()?;
                    for _ in 0..self.long()? {
                        self.long()?;
                        self.counted()?;
                    }
                }
                Op::ExceptId(index) => {
                    let Node::Named(NamedType { id, .. }) = nodes.at(index) else { return None };
                    let next = self.decoder().read_octet_str();
                    if id.is_empty() || next.is_ok_and(|octets| octets == id.as_bytes()) {
                        self.counted()?;
                    }
                }
                Op::Graph(_) | Op::Refused => return None,
                Op::Return => return Some(()),
            }
        }
    }

    fn each(&mut self, nodes: &Nodes, element: Index, count: u32) -> SwapResult {
        let entry = nodes.compiled().entry(element);
        (0..count).try_for_each(|_| self.steps(nodes, entry))
    }

    fn union(&mut self, nodes: &Nodes, switch: &Switch) -> SwapResult {
        let Node::Named(NamedType { body: Shape::Union(union), .. }) = nodes.at(switch.union) else {
            return None;
        };
        let label = switch.labels.read(&mut self.decoder(), false).ok()?;
        match switch.labels {
            Labels::Boolean | Labels::Octet => drop(self.number::<1>()?),
            Labels::Short | Labels::UShort => drop(self.number::<2>()?),
            Labels::Long | Labels::ULong | Labels::Enum(_) => drop(self.number::<4>()?),
            Labels::LongLong | Labels::ULongLong => drop(self.number::<8>()?),
            Labels::WChar if self.version < Version::V1_2 => drop(self.number::<2>()?),
            Labels::WChar => {
                let [len] = self.number::<1>()?;
                self.pass(len.into())?;
            }
        }
        match union.selected(label) {
            Some(member) => self.steps(nodes, nodes.compiled().entry(member.kind)),
            None => Some(()),
        }
    }

    /// Decodes a type code and swaps its numbers that are outside of encapsulations.
    fn type_code(&mut self) -> SwapResult<TypeCode> {
        let code = TypeCode::decode(&mut self.decoder()).ok()?;
        let kind = TcKind::from_number(self.long()?)?;
        match kind {
            kind if kind.is_basic() => {}
            TcKind::String | TcKind::WString => drop(self.long()?),
            TcKind::Fixed => {
                self.number::<2>()?;
                self.number::<2>()?;
            }
            _ => self.counted()?,
        }
        Some(code)
    }

    fn run(&mut self, plan: &Plan, count: usize) -> SwapResult {
        let phase = self.at + self.phase;
        let len = plan.run(phase, count);
        let end = self.at.checked_add(len)?;
        plan.turn_in_place(self.octets.get_mut(self.at..end)?, phase);
        self.at = end;
        Some(())
    }

    /// Returns a decoder at the current position, where the data is not swapped yet.
    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self.octets, self.from, self.version).shifted(self.phase).at(self.at)
    }

    /// Swaps a number; returns its original bytes.
    fn number<const N: usize>(&mut self) -> SwapResult<[u8; N]> {
        let start = self.at + padding(self.at + self.phase, N);
        let place = self.octets.get_mut(start..)?.first_chunk_mut::<N>()?;
        let number = *place;
        place.reverse();
        self.at = start + N;
        Some(number)
    }

    #[inline(never)]
    fn long(&mut self) -> SwapResult<u32> {
        let octets = self.number::<4>()?;
        Some(match self.from {
            ByteOrder::Big => u32::from_be_bytes(octets),
            ByteOrder::Little => u32::from_le_bytes(octets),
        })
    }

    /// Swaps a byte count, and skips that number of bytes.
    fn counted(&mut self) -> SwapResult {
        let len = self.long()? as usize;
        self.pass(len)
    }

    fn pass(&mut self, len: usize) -> SwapResult {
        self.at = self.at.checked_add(len).filter(|at| *at <= self.octets.len())?;
        Some(())
    }
}
