//! Decoding of values as trees, and location of an error in a value.

use super::Program;
use super::graph_read::GraphState;
use crate::any::{Any, MAX_NESTED_ANYS};
use crate::cdr::{Bookmark, CdrDecode, Decoder, Seq, check_bound};
use crate::dynamic::{Decimal, DynError, DynErrorKind, Dynamic, Items, Step, UnionValue, Value, ValueGraph};
use crate::ior::Ior;
use crate::program::{EMPTY_VALUE_CHARGE_BYTES, Index, LabelEncoding, StepResult, read_decimal};
use crate::typecode::{Body, Member, NamedType, Node, Nodes, TcKind, TypeCode, Union};
use crate::value::Class;
use crate::walk::{check_fits, read_exception_id, read_length, skip_wstring};
use crate::{DecodeError, DecodeErrorKind};

pub(super) type ReadResult<T = Value> = Result<T, DynError>;

impl Program {
    /// Reads a value. Sequences of numbers are views of a shared buffer if byte order and alignment permit.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode), with the path to the fault.
    pub fn decode(&self, d: &mut Decoder<'_>) -> Result<Dynamic, DynError> {
        let mut reader = Reader { checks_content: true, ..Reader::default() };
        let value = reader.value(d, self.nodes(), self.code.root)?;
        Ok(Dynamic { code: self.code.clone(), value, graph: reader.graph })
    }

    /// Locates an error in a value that began at `bookmark`. Reads the value again, within the limits that
    /// remained at that position. `checks_content` tells whether text and ordinals are checked.
    #[cold]
    pub(super) fn locate<'a>(
        &self,
        d: &Decoder<'a>,
        bookmark: Bookmark<'a>,
        error: DecodeError,
        checks_content: bool,
    ) -> DynError {
        let mut again = d.clone();
        again.return_to(bookmark);
        let mut reader = Reader { checks_content, only_locates: true, ..Reader::default() };
        match reader.value(&mut again, self.nodes(), self.code.root) {
            Err(found) if may_be_same_error(found.kind(), error.kind) => {
                DynError::at(DynErrorKind::Decode(error), found.path().clone())
            }
            _ => error.into(),
        }
    }
}

/// Returns whether the error that the search found may be the error to be located. It is a different error if
/// the search reached another limit first.
fn may_be_same_error(found: &DynErrorKind, wanted: DecodeErrorKind) -> bool {
    let is_limit = |kind| matches!(kind, DecodeErrorKind::AllocLimit | DecodeErrorKind::DepthLimit);
    matches!(found, DynErrorKind::Decode(found) if found.kind == wanted || !is_limit(found.kind))
}

#[derive(Default)]
pub(super) struct Reader {
    pub(super) graph: ValueGraph,
    pub(super) graph_state: Option<Box<GraphState>>,
    /// Whether text and ordinals are checked.
    checks_content: bool,
    /// Whether this reader only locates an error, including errors in anys. Values then count towards the
    /// memory limit, but are not stored.
    pub(super) only_locates: bool,
    /// The number of enclosing anys. It is counted only while an error is located.
    any_depth: usize,
}

impl Reader {
    /// Reads a value. This function is on the stack once for each level. To keep its stack frame small,
    /// [`leaf`](Self::leaf) reads values without parts.
    pub(super) fn value(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, index: Index) -> ReadResult {
        let index = nodes.steps().unaliased(index);
        match nodes.at(index) {
            Node::Basic(TcKind::Any) if self.only_locates => self.read_any_content(d),
            Node::Sequence { element, bound } => {
                let count = read_count(d, nodes, *element, *bound)?;
                self.items(d, nodes, *element, count)
            }
            Node::Array { element, length } => self.items(d, nodes, *element, *length as usize),
            Node::Named(named) => self.named(d, nodes, named, index),
            node => self.leaf(d, node),
        }
    }

    #[inline(never)]
    fn leaf(&self, d: &mut Decoder<'_>, node: &Node) -> ReadResult {
        Ok(match node {
            Node::Basic(TcKind::Any) => Value::Any(read_boxed(d, read_any)?),
            Node::Basic(kind) => read_basic(d, *kind)?,
            Node::Text { wide: false, .. } if !self.checks_content => {
                let len = read_length(d, 1)?;
                d.take(len)?;
                Value::Void
            }
            Node::Text { wide: true, .. } if !self.checks_content => {
                skip_wstring(d)?;
                Value::Void
            }
            Node::Text { wide: false, bound } => {
                let text = d.read_string()?;
                check_fits(d, *bound, || check_bound(text.as_str(), *bound as usize).is_ok())?;
                Value::String(text.into())
            }
            Node::Text { wide: true, bound } => {
                let text = d.read_wstring()?;
                check_fits(d, *bound, || check_bound(&text, *bound as usize).is_ok())?;
                Value::WString(text)
            }
            Node::Fixed { digits, scale } => {
                Value::Fixed(read_boxed(d, |d| decode_decimal(d, *digits, *scale))?)
            }
            Node::Named(named) => match (&named.body, named.kind) {
                (Body::Enumerators(_), _) if !self.checks_content => Value::Enum(d.read_u32()?),
                (Body::Enumerators(names), _) => Value::Enum(d.read_enum(names.len() as u32)?),
                (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => {
                    Value::Object(read_boxed(d, Ior::decode)?)
                }
                _ => return Err(d.error(DecodeErrorKind::NotInAny).into()),
            },
            Node::Placeholder(_) | Node::Sequence { .. } | Node::Array { .. } => {
                return Err(d.error(DecodeErrorKind::InvalidTypeCode).into());
            }
        })
    }

    /// Reads the content of an any to locate an error, within the limits for a received any.
    fn read_any_content(&mut self, d: &mut Decoder<'_>) -> ReadResult {
        let code = self.any_type(d)?;
        let (checks_content, any_depth) = (self.checks_content, self.any_depth + 1);
        let mut reader = Reader { checks_content, only_locates: true, any_depth, ..Reader::default() };
        d.descend()?;
        let read = reader.value(d, &code.nodes, code.root);
        d.ascend();
        read.map_err(|error| error.inside(Step::Content)).map(|_| Value::Void)
    }

    #[inline(never)]
    fn any_type(&self, d: &mut Decoder<'_>) -> ReadResult<TypeCode> {
        if self.any_depth >= MAX_NESTED_ANYS {
            return Err(d.error(DecodeErrorKind::DepthLimit).into());
        }
        let code = TypeCode::decode(d)?;
        code.nodes.compile_for(d)?;
        Ok(code)
    }

    fn named(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, named: &NamedType, index: Index) -> ReadResult {
        match (&named.body, named.kind) {
            (Body::Members(members), kind) => {
                if kind == TcKind::Except {
                    read_exception_id(d, &named.id)?;
                }
                d.descend()?;
                let read = self.members(d, nodes, members);
                d.ascend();
                read
            }
            (Body::Union(union), _) => self.union(d, nodes, union),
            (_, TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface) => {
                self.read_graph(d, nodes, index)
            }
            _ => self.leaf(d, nodes.at(index)),
        }
    }

    fn union(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, union: &Union) -> ReadResult {
        let discriminator = read_discriminator(d, nodes, union)?;
        let value = match union.selected(discriminator) {
            Some(member) => {
                d.descend()?;
                let read = self.value(d, nodes, member.ty);
                d.ascend();
                Some(read.map_err(|error| inside_member(error, member))?)
            }
            None => None,
        };
        Ok(Value::Union(Box::new(UnionValue { discriminator, value })))
    }

    fn members(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, members: &[Member]) -> ReadResult {
        let mut values = self.new_list(d, members.len())?;
        for member in members {
            match self.value(d, nodes, member.ty) {
                Ok(value) => self.push(&mut values, value),
                Err(error) => return Err(inside_member(error, member)),
            }
        }
        Ok(Value::Struct(values.into()))
    }

    /// Returns a list for `count` values. Deducts its memory from the limit even if values are not stored.
    pub(super) fn new_list(&self, d: &mut Decoder<'_>, count: usize) -> Result<Vec<Value>, DecodeError> {
        if !self.only_locates {
            return d.new_vec(count);
        }
        d.charge(count.saturating_mul(size_of::<Value>()))?;
        Ok(Vec::new())
    }

    pub(super) fn push(&self, values: &mut Vec<Value>, value: Value) {
        if !self.only_locates {
            values.push(value);
        }
    }

    /// Reads the elements of a sequence or array after its count.
    fn items(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, element: Index, count: usize) -> ReadResult {
        let element = nodes.steps().unaliased(element);
        if let Node::Basic(kind) = nodes.at(element)
            && let Some(items) = read_numbers(d, *kind, count)?
        {
            return Ok(Value::Items(boxed(d, items)?));
        }
        if d.has_fragment_boundaries()
            && let Some(stride) = nodes.steps().stride_of_numbers_aligned_to_8(element)
        {
            return self.read_joined_numbers(d, nodes, element, (count, stride));
        }
        d.descend()?;
        let values = self.elements(d, nodes, element, count);
        d.ascend();
        Ok(Value::Items(boxed(d, Items::Values(values?))?))
    }

    fn elements(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        element: Index,
        count: usize,
    ) -> ReadResult<Vec<Value>> {
        let mut values = self.new_list(d, count)?;
        for index in 0..count {
            let start = d.position();
            match self.value(d, nodes, element) {
                Ok(value) => self.push(&mut values, value),
                Err(error) => return Err(inside_element(error, index)),
            }
            if d.position() == start {
                d.charge(EMPTY_VALUE_CHARGE_BYTES)?;
            }
        }
        Ok(values)
    }

    /// Reads numbers that are aligned to 8, or arrays of them, in a message that was joined from GIOP 1.1
    /// fragments. They are read as one run, because the sender does not align them again after a fragment
    /// boundary.
    #[cold]
    fn read_joined_numbers(
        &mut self,
        d: &mut Decoder<'_>,
        nodes: &Nodes,
        element: Index,
        (count, stride): (usize, usize),
    ) -> ReadResult {
        if count > 0 && d.begin_run(8) > 0 {
            return Err(d.error(DecodeErrorKind::EndOfData).into());
        }
        let bytes = d.take(count.saturating_mul(stride))?;
        let mut numbers_decoder = Decoder::new(bytes, d.order(), d.version());
        numbers_decoder.set_limits(d.limits());
        let items = self.items(&mut numbers_decoder, nodes, element, count);
        d.set_limits(numbers_decoder.limits());
        items
    }
}

#[inline(never)]
fn read_basic(d: &mut Decoder<'_>, kind: TcKind) -> ReadResult {
    Ok(match kind {
        TcKind::Boolean => Value::Boolean(read_number(d, 0)? != 0),
        TcKind::Char => Value::Char((read_number(d, 0)? as u8).into()),
        TcKind::Octet => Value::Octet(read_number(d, 0)? as u8),
        TcKind::Short => Value::Short(read_number(d, 1)? as i16),
        TcKind::UShort => Value::UShort(read_number(d, 1)? as u16),
        TcKind::Long => Value::Long(read_number(d, 2)? as i32),
        TcKind::ULong => Value::ULong(read_number(d, 2)? as u32),
        TcKind::LongLong => Value::LongLong(read_number(d, 3)?.cast_signed()),
        TcKind::ULongLong => Value::ULongLong(read_number(d, 3)?),
        TcKind::Float => Value::Float(f32::from_bits(read_number(d, 2)? as u32)),
        TcKind::Double => Value::Double(f64::from_bits(read_number(d, 3)?)),
        TcKind::LongDouble => Value::LongDouble(CdrDecode::decode(d)?),
        TcKind::WChar => Value::WChar(d.read_wchar()?),
        TcKind::TypeCode => Value::TypeCode(read_boxed(d, TypeCode::decode)?),
        TcKind::Principal => {
            let len = read_length(d, 1)?;
            d.charge(len)?;
            Value::Principal(d.take(len)?.into())
        }
        _ => Value::Void,
    })
}

/// Boxes a part, and deducts its memory from the limit.
pub(super) fn boxed<T>(d: &mut Decoder<'_>, value: T) -> Result<Box<T>, DecodeError> {
    d.charge(size_of::<T>())?;
    Ok(Box::new(value))
}

pub(super) fn read_boxed<'a, T, E: From<DecodeError>>(
    d: &mut Decoder<'a>,
    read: impl FnOnce(&mut Decoder<'a>) -> Result<T, E>,
) -> Result<Box<T>, E> {
    let value = read(d)?;
    Ok(boxed(d, value)?)
}

/// Reads a number of `1 << log2_size` bytes. Not inlined, to keep the code small.
#[inline(never)]
fn read_number(d: &mut Decoder<'_>, log2_size: u8) -> StepResult<u64> {
    Ok(match log2_size {
        0 => d.read_u8()?.into(),
        1 => d.read_u16()?.into(),
        2 => d.read_u32()?.into(),
        _ => d.read_u64()?,
    })
}

#[inline(never)]
fn read_count(d: &mut Decoder<'_>, nodes: &Nodes, element: Index, bound: u32) -> ReadResult<usize> {
    let count = read_length(d, nodes.steps().min_size(element))?;
    check_fits(d, bound, || count <= bound as usize)?;
    Ok(count)
}

#[inline(never)]
fn read_discriminator(d: &mut Decoder<'_>, nodes: &Nodes, union: &Union) -> ReadResult<i64> {
    let labels = LabelEncoding::of_node(nodes, union.discriminator)
        .ok_or_else(|| d.error(DecodeErrorKind::InvalidTypeCode))?;
    let discriminator = labels.read(d)?;
    d.charge(size_of::<UnionValue>())?;
    Ok(discriminator)
}

/// Reads an any. An error has the path to the fault in the content.
#[inline(never)]
fn read_any(d: &mut Decoder<'_>) -> ReadResult<Any> {
    let bookmark = d.bookmark();
    Any::decode(d).map_err(|error| {
        let mut again = d.clone();
        again.return_to(bookmark);
        let content = TypeCode::decode(&mut again).and_then(|code| {
            code.nodes.compile_for(&mut again)?;
            again.descend()?;
            Ok(Program::of(&code))
        });
        match content {
            Ok(content) => locate_in_any(&content, &again, again.bookmark(), error).inside(Step::Content),
            Err(_) => error.into(),
        }
    })
}

/// Locates an error in the content of an any, which began at `bookmark`.
#[cold]
pub(crate) fn locate_in_any<'a>(
    program: &Program,
    d: &Decoder<'a>,
    bookmark: Bookmark<'a>,
    error: DecodeError,
) -> DynError {
    // Most anys are received without checks of text and ordinals, so search without these checks first.
    let found = program.locate(d, bookmark, error, false);
    if found.path().is_root() { program.locate(d, bookmark, error, true) } else { found }
}

/// Reads elements that are numbers or characters. Returns `None`, and reads nothing, for another kind.
fn read_numbers(d: &mut Decoder<'_>, kind: TcKind, count: usize) -> ReadResult<Option<Items>> {
    let log2_size = match kind {
        TcKind::Octet | TcKind::Char => 0,
        TcKind::Short | TcKind::UShort => 1,
        TcKind::Long | TcKind::ULong | TcKind::Float => 2,
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => 3,
        _ => return Ok(None),
    };
    let bytes = d.read_numbers(log2_size, count)?;
    Ok(Some(match kind {
        TcKind::Char => Items::Chars(Seq::from_checked(bytes)),
        TcKind::Short => Items::Shorts(Seq::from_checked(bytes)),
        TcKind::UShort => Items::UShorts(Seq::from_checked(bytes)),
        TcKind::Long => Items::Longs(Seq::from_checked(bytes)),
        TcKind::ULong => Items::ULongs(Seq::from_checked(bytes)),
        TcKind::LongLong => Items::LongLongs(Seq::from_checked(bytes)),
        TcKind::ULongLong => Items::ULongLongs(Seq::from_checked(bytes)),
        TcKind::Float => Items::Floats(Seq::from_checked(bytes)),
        TcKind::Double => Items::Doubles(Seq::from_checked(bytes)),
        _ => Items::Octets(bytes),
    }))
}

#[inline(never)]
fn decode_decimal(d: &mut Decoder<'_>, digits: u16, scale: i16) -> ReadResult<Decimal> {
    let (bytes, width) = read_decimal(d, digits)?;
    let (mut unscaled, mut sign) = (0_i128, 1);
    for byte in bytes.iter().skip(bytes.len() - width) {
        for digit in [byte >> 4, byte & 0xF] {
            match digit {
                0..=9 => unscaled = unscaled * 10 + i128::from(digit),
                0xD => sign = -1,
                _ => {}
            }
        }
    }
    Ok(Decimal { unscaled: unscaled * sign, digits, scale })
}

/// Stores the error of a result for a caller that can return only decode errors, and returns a substitute.
pub(super) fn store_error<T>(
    stored: &mut Option<DynError>,
    at: usize,
    result: ReadResult<T>,
) -> Result<T, DecodeError> {
    result.map_err(|error| {
        *stored = Some(error);
        DecodeError::new(DecodeErrorKind::Malformed, at)
    })
}

#[cold]
pub(super) fn inside_member(error: DynError, member: &Member) -> DynError {
    error.inside(Step::Member(Box::from(&*member.name)))
}

#[cold]
pub(super) fn inside_element(error: DynError, index: usize) -> DynError {
    error.inside(Step::Index(index))
}

#[cold]
pub(super) fn inside_node(error: DynError, class: &Class, node: u32, member: usize) -> DynError {
    error.inside(Step::Member(class.member_name(member))).inside(Step::Node(node))
}
