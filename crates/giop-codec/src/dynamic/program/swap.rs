//! Values turned into the other byte order where they are.

use super::{Op, Pc, Plan, Program};
use crate::cdr::{CdrDecode, DecodeLimits, Decoder, padding};
use crate::dynamic::{DynError, DynErrorKind};
use crate::typecode::{Body as Shape, Index, Labels, Named, Node, Nodes, TcKind, TypeCode};
use crate::{ByteOrder, DecodeErrorKind, Version};

impl Program {
    /// Turns a value into the other byte order, in place. The value begins with the first octet, which lies at `phase` modulo 8 from the alignment
    /// origin; returns how many octets it has. Text, padding and what is in encapsulations, each with a byte order of its own, stay as
    /// they are; wide text is taken for UTF-16. Looks at the structure of the value first, so one that is none is not touched. Allocates
    /// nothing, but for the type codes of anys.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to what is wrong; [`Inconsistent`](DynErrorKind::Inconsistent) where there are values
    /// of value types, which refer to each other.
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
        let mut turner = Turner { octets, at: 0, phase: phase % 8, from, version };
        // Cannot fail: what was gone over is all there.
        turner.value(&self.code).ok_or(malformed)?;
        Ok(turner.at)
    }
}

/// Goes over a value a second time, and turns what it meets.
struct Turner<'a> {
    octets: &'a mut [u8],
    at: usize,
    phase: usize,
    from: ByteOrder,
    version: Version,
}

/// `None`: it is not the value that was gone over.
type Turned<T = ()> = Option<T>;

impl Turner<'_> {
    fn value(&mut self, code: &TypeCode) -> Turned {
        self.steps(&code.nodes, code.nodes.compiled().entry(code.root))
    }

    fn steps(&mut self, nodes: &Nodes, mut pc: Pc) -> Turned {
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
                    let Node::Named(Named { id, .. }) = nodes.at(index) else { return None };
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

    fn each(&mut self, nodes: &Nodes, element: Index, count: u32) -> Turned {
        let entry = nodes.compiled().entry(element);
        (0..count).try_for_each(|_| self.steps(nodes, entry))
    }

    fn union(&mut self, nodes: &Nodes, switch: &super::Switch) -> Turned {
        let Node::Named(Named { body: Shape::Union(union), .. }) = nodes.at(switch.union) else {
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

    /// A type code, of which the numbers that are in no encapsulation are turned.
    fn type_code(&mut self) -> Turned<TypeCode> {
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

    fn run(&mut self, plan: &Plan, count: usize) -> Turned {
        let phase = self.at + self.phase;
        let len = plan.run(phase, count);
        let end = self.at.checked_add(len)?;
        plan.turn_in_place(self.octets.get_mut(self.at..end)?, phase);
        self.at = end;
        Some(())
    }

    /// A decoder of what comes next, which is not turned yet.
    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self.octets, self.from, self.version).shifted(self.phase).at(self.at)
    }

    /// Turns a number; what it was before, in the order that it had.
    fn number<const N: usize>(&mut self) -> Turned<[u8; N]> {
        let start = self.at + padding(self.at + self.phase, N);
        let place = self.octets.get_mut(start..)?.first_chunk_mut::<N>()?;
        let number = *place;
        place.reverse();
        self.at = start + N;
        Some(number)
    }

    #[inline(never)]
    fn long(&mut self) -> Turned<u32> {
        let octets = self.number::<4>()?;
        Some(match self.from {
            ByteOrder::Big => u32::from_be_bytes(octets),
            ByteOrder::Little => u32::from_le_bytes(octets),
        })
    }

    /// A count of octets, and those.
    fn counted(&mut self) -> Turned {
        let len = self.long()? as usize;
        self.pass(len)
    }

    fn pass(&mut self, len: usize) -> Turned {
        self.at = self.at.checked_add(len).filter(|at| *at <= self.octets.len())?;
        Some(())
    }
}
