//! Values by their type codes: read from one stream, written to another, whatever the orders, phases, versions and code
//! sets of the two are.

use super::MAX_ANYS;
use super::values::{Graph, is_value};
use crate::cdr::{
    BoundedContent, CdrDecode, CdrEncode, Decoder, Element, Encoder, LongDouble, Seq, WStr, check_bound,
};
use crate::ior::Ior;
use crate::typecode::{Body, Index, Labels, Member, Named, Node, Nodes, TcKind, TypeCode};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// What a value that takes no octets is charged for, so that a type of a million empty structs ends soon.
const EMPTY_VALUE: usize = 16;

/// Why a value was not copied: one of the two streams is to blame.
#[derive(Debug)]
pub(super) enum Fault {
    Decode(DecodeError),
    Encode(EncodeError),
}

/// What copying a value showed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// There is an object reference in it.
    pub(super) references: bool,
    /// There is a place for a value.
    pub(super) values: bool,
}

/// Copies one value of this type. Copies runs of numbers and octets whole; charges the decoder for what is written.
pub(super) fn copy(code: &TypeCode, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Seen, Fault> {
    let mut walker = Walker::new(e);
    let Err(error) = walker.value(d, &code.nodes, code.root) else { return Ok(walker.seen) };
    // Half a value: nothing of it must be referred to.
    walker.e.values = None;
    Err(match walker.fault {
        Some(fault) => Fault::Encode(fault),
        None => Fault::Decode(error),
    })
}

pub(super) struct Walker<'a> {
    pub(super) e: &'a mut Encoder,
    /// How much was written when the decoder was charged for it last.
    charged: usize,
    /// Anys around.
    pub(super) anys: usize,
    /// What could not be written, while an error that says nothing is on its way out.
    fault: Option<EncodeError>,
    pub(super) seen: Seen,
    pub(super) graph: Graph,
}

pub(super) type Done = Result<(), DecodeError>;

impl<'a> Walker<'a> {
    pub(super) fn new(e: &'a mut Encoder) -> Walker<'a> {
        let charged = e.len();
        Walker { e, charged, anys: 0, fault: None, seen: Seen::default(), graph: Graph::default() }
    }

    pub(super) fn put(
        &mut self,
        d: &Decoder<'_>,
        f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Done {
        f(self.e).map_err(|error| {
            self.fault = Some(error);
            d.error(DecodeErrorKind::Malformed)
        })
    }

    /// Charges for what was written.
    pub(super) fn settle(&mut self, d: &mut Decoder<'_>) -> Done {
        let written = self.e.len().saturating_sub(self.charged);
        self.charged += written;
        d.charge(written)
    }

    /// Copies the count of a sequence.
    pub(super) fn count(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        element: Index,
        bound: u32,
    ) -> Result<usize, DecodeError> {
        let count = d.read_len(least(nodes, element))?;
        if bound != 0 && count > bound as usize {
            return Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4));
        }
        self.put(d, |e| e.put_len(count))?;
        Ok(count)
    }

    pub(super) fn value(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> Done {
        let start = d.position();
        let node = nodes.at(nodes.unaliased(index));
        match node {
            Node::Basic(kind) => self.basic(d, *kind)?,
            Node::Text { wide: false, bound } => {
                let text = d.read_string()?;
                within(d, text.as_str(), *bound)?;
                self.put(d, |e| e.put_str(&text))?;
            }
            Node::Text { wide: true, bound } => {
                let text = d.read_wstring()?;
                within(d, &WStr(&text), *bound)?;
                self.put(d, |e| e.put_wstr(&text))?;
            }
            Node::Fixed { digits, .. } => self.fixed(d, *digits)?,
            Node::Sequence { element, bound } => {
                let count = self.count(d, nodes, *element, *bound)?;
                let first = d.position();
                self.elements(d, nodes, *element, count)?;
                if count != 0 && d.position() == first {
                    // Nothing would stand behind such a count where the value is kept, and no reader believes it there.
                    return Err(DecodeError::new(DecodeErrorKind::NotInAny, first));
                }
            }
            Node::Array { element, length } => self.elements(d, nodes, *element, *length as usize)?,
            node if is_value(node) => self.graph(d, nodes, nodes.unaliased(index))?,
            Node::Named(named) => self.named(d, nodes, named)?,
        }
        if d.position() == start {
            return d.charge(EMPTY_VALUE);
        }
        self.settle(d)
    }

    fn basic(&mut self, d: &mut Decoder<'_>, kind: TcKind) -> Done {
        match kind {
            TcKind::Boolean => self.e.put_bool(d.read_bool()?),
            TcKind::Char | TcKind::Octet => self.e.put_u8(d.read_u8()?),
            TcKind::Short | TcKind::UShort => self.e.put_u16(d.read_u16()?),
            TcKind::Long | TcKind::ULong | TcKind::Float => self.e.put_u32(d.read_u32()?),
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => self.e.put_u64(d.read_u64()?),
            TcKind::LongDouble => self.e.put_fixed(&LongDouble::decode(d)?),
            TcKind::WChar => {
                let unit = d.read_wchar()?;
                self.put(d, |e| e.put_wchar(unit))?;
            }
            TcKind::Any => return self.any(d),
            TcKind::TypeCode => {
                let code = TypeCode::decode(d)?;
                self.put(d, |e| code.encode(e))?;
            }
            TcKind::Principal => {
                let count = d.read_len(1)?;
                self.put(d, |e| e.put_len(count))?;
                self.run::<u8>(d, count)?;
            }
            // tk_null, tk_void.
            _ => {}
        }
        Ok(())
    }

    fn any(&mut self, d: &mut Decoder<'_>) -> Done {
        if self.anys >= MAX_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit));
        }
        let code = TypeCode::decode(d)?;
        self.put(d, |e| code.encode(e))?;
        self.anys += 1;
        d.nested(|d| self.value(d, &code.nodes, code.root))?;
        self.anys -= 1;
        Ok(())
    }

    /// The octets of a decimal number, of which some peers send no more than it has digits.
    fn fixed(&mut self, d: &mut Decoder<'_>, digits: u16) -> Done {
        let start = d.position();
        let invalid = || DecodeError::new(DecodeErrorKind::InvalidFixed, start);
        let width = usize::from(digits) / 2 + 1;
        let mut octets = Vec::with_capacity(width);
        loop {
            let octet = d.read_u8()?;
            octets.push(octet);
            match (octet >> 4, octet & 0xF) {
                (0..=9, 0..=9) if octets.len() < width => {}
                (0..=9, 0xC | 0xD) => break,
                // Without a sign: positive.
                (0..=9, 0xF) => {
                    octets.pop();
                    octets.push(octet & 0xF0 | 0xC);
                    break;
                }
                _ => return Err(invalid()),
            }
        }
        // The digit that pads an even number of them is none.
        if digits.is_multiple_of(2)
            && octets.len() == width
            && octets.first().is_some_and(|octet| *octet >= 0x10)
        {
            return Err(invalid());
        }
        (octets.len()..width).for_each(|_| self.e.put_u8(0));
        self.e.put_raw(&octets);
        Ok(())
    }

    /// The elements of a sequence or array, whose count was read.
    fn elements(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, element: Index, count: usize) -> Done {
        let element = nodes.unaliased(element);
        if let Node::Basic(kind) = nodes.at(element) {
            match kind {
                TcKind::Char | TcKind::Octet => return self.run::<u8>(d, count),
                TcKind::Short | TcKind::UShort => return self.run::<u16>(d, count),
                TcKind::Long | TcKind::ULong | TcKind::Float => return self.run::<u32>(d, count),
                TcKind::LongLong | TcKind::ULongLong | TcKind::Double => return self.run::<u64>(d, count),
                TcKind::LongDouble => return self.run::<LongDouble>(d, count),
                _ => {}
            }
        }
        d.nested(|d| (0..count).try_for_each(|_| self.value(d, nodes, element)))
    }

    fn run<T: Element>(&mut self, d: &mut Decoder<'_>, count: usize) -> Done {
        let items: Seq<T> = d.read_seq(count)?;
        self.e.put_seq(&items);
        Ok(())
    }

    fn named(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, named: &Named) -> Done {
        match (&named.body, named.kind) {
            (Body::Members(members), TcKind::Except) => {
                // omniORB leaves out the id, which the type code says anyway.
                let id = d.clone().read_octet_str();
                if named.id.is_empty() || id.is_ok_and(|id| id == named.id.as_bytes()) {
                    d.read_octet_str()?;
                }
                self.put(d, |e| e.put_ascii(&named.id))?;
                self.members(d, nodes, members)
            }
            (Body::Members(members), _) => self.members(d, nodes, members),
            (Body::Enumerators(names), _) => {
                let ordinal = d.read_enum(names.len() as u32)?;
                self.e.put_u32(ordinal);
                Ok(())
            }
            (Body::Union(union), _) => {
                let labels = match nodes.at(nodes.unaliased(union.discriminator)) {
                    Node::Basic(kind) => Labels::of_basic(*kind),
                    Node::Named(Named { body: Body::Enumerators(names), .. }) => {
                        Some(Labels::Enum(names.len() as u32))
                    }
                    _ => None,
                };
                let labels = labels.ok_or_else(|| d.error(DecodeErrorKind::InvalidTypeCode))?;
                let discriminator = labels.read(d, false)?;
                self.put(d, |e| labels.write(e, discriminator))?;
                match union.selected(discriminator) {
                    Some(member) => d.nested(|d| self.value(d, nodes, member.kind)),
                    None => Ok(()),
                }
            }
            (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => self.reference(d),
            _ => self.none(d),
        }
    }

    fn members(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, members: &[Member]) -> Done {
        d.nested(|d| members.iter().try_for_each(|member| self.value(d, nodes, member.kind)))
    }

    pub(super) fn reference(&mut self, d: &mut Decoder<'_>) -> Done {
        self.seen.references = true;
        let ior = Ior::decode(d)?;
        self.put(d, |e| ior.encode(e))
    }

    #[cold]
    fn none(&mut self, d: &Decoder<'_>) -> Done {
        Err(d.error(DecodeErrorKind::NotInAny))
    }
}

/// Least number of octets of an element, where that is easy to say, and 1 at least.
fn least(nodes: &Nodes, element: Index) -> usize {
    match nodes.at(nodes.unaliased(element)) {
        Node::Basic(kind) => match kind {
            TcKind::Short | TcKind::UShort | TcKind::WChar => 2,
            TcKind::Long | TcKind::ULong | TcKind::Float | TcKind::Any | TcKind::TypeCode => 4,
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => 8,
            TcKind::LongDouble => 16,
            _ => 1,
        },
        Node::Text { .. } | Node::Sequence { .. } => 4,
        // Null, or an abstract interface's nil behind its boolean.
        node if is_value(node) => 4,
        _ => 1,
    }
}

fn within<S: BoundedContent + ?Sized>(d: &Decoder<'_>, text: &S, bound: u32) -> Done {
    if bound == 0 {
        return Ok(());
    }
    check_bound(text, bound as usize).map_err(|_| d.error(DecodeErrorKind::BoundExceeded))
}

impl From<Fault> for EncodeError {
    /// Of a value of this process.
    fn from(fault: Fault) -> EncodeError {
        match fault {
            Fault::Encode(error) => error,
            Fault::Decode(_) => EncodeErrorKind::Unrepresentable.into(),
        }
    }
}
