//! Decoding of type codes ("TypeCode", in "CDR Transfer Syntax / Pseudo-Object Types").

use core::any::Any;
use std::borrow::Cow;
use std::collections::HashMap;

use super::TypeCode;
use super::kind::{TcKind, ValueModifier};
use super::node::{Body, Builder, Index, Member, Name, NamedType, Node, Nodes, Union, Value};
use crate::cdr::{CdrDecode, Decoder};
use crate::ior::MAX_REPOSITORY_ID_BYTES;
use crate::program::LabelEncoding;
use crate::{DecodeError, DecodeErrorKind};

/// The repository id of the value box of a `wstring` to which a Java `String` is mapped.
pub(crate) const WSTRING_VALUE: &str = "IDL:omg.org/CORBA/WStringValue:1.0";

/// The maximum number of different types in a received type code.
pub const MAX_NODES: usize = 4096;

/// The maximum number of nested encapsulations in a type code.
pub const MAX_LEVELS: usize = 32;

/// The number in place of a kind that begins an indirection to another type of the same type code.
pub(super) const INDIRECTION: u32 = 0xFFFF_FFFF;

/// A cache of type codes by their encoding, so that a repeated type code is decoded only once.
pub trait TypeCodeCache: Send + Sync {
    /// Returns the cached type code with this kind and encapsulation, which includes its byte order flag.
    fn find(&self, kind: u32, encapsulation: &[u8]) -> Option<TypeCode>;

    /// Stores a type code that [`find`](Self::find) did not return and that has therefore been decoded.
    fn keep(&self, kind: u32, encapsulation: &[u8], code: &TypeCode);
}

/// The functions that find types in a decoder's context. Each Rust type of contexts has its own.
pub(crate) struct TypeLookup {
    pub(crate) type_codes: for<'c> fn(&'c dyn Any) -> Option<&'c dyn TypeCodeCache>,
    pub(crate) value_type: fn(&dyn Any, &str) -> Option<TypeCode>,
}

pub(crate) fn type_lookup<'a>(d: &Decoder<'a>) -> Option<(&'a dyn Any, &'static TypeLookup)> {
    let context = d.dyn_context()?;
    Some((context, context.lookup_functions().downcast_ref()?))
}

impl CdrDecode for TypeCode {
    /// The size of a kind without parameters.
    const MIN_SIZE: usize = 4;

    /// Decodes at most [`MAX_NODES`] types in [`MAX_LEVELS`] levels. Returns a cached type code with the same
    /// encoding, if there [is one](crate::value::DecodeContext::type_codes).
    fn decode(d: &mut Decoder<'_>) -> Result<TypeCode, DecodeError> {
        // Fast path: most type codes are of a basic kind.
        let kind = d.read_u32()?;
        if let Some(basic) = TcKind::from_number(kind).and_then(TypeCode::basic) {
            return Ok(basic);
        }
        match type_lookup(d).and_then(|(context, lookup)| (lookup.type_codes)(context)) {
            Some(cache) if has_encapsulation(kind) => {
                let bookmark = d.bookmark();
                let len = d.read_len(1)?;
                let encapsulation = d.take(len)?;
                if let Some(code) = cache.find(kind, encapsulation) {
                    return Ok(code);
                }
                d.return_to(bookmark);
                let code = read(d, kind)?;
                cache.keep(kind, encapsulation, &code);
                Ok(code)
            }
            _ => read(d, kind),
        }
    }
}

/// Returns whether the parameters of a kind are in an encapsulation, and therefore position-independent.
fn has_encapsulation(kind: u32) -> bool {
    let has_no_encapsulation =
        matches!(TcKind::from_number(kind), None | Some(TcKind::String | TcKind::WString | TcKind::Fixed));
    !has_no_encapsulation && kind != INDIRECTION
}

fn read(d: &mut Decoder<'_>, kind: u32) -> Result<TypeCode, DecodeError> {
    let mut reader = Reader { builder: Builder::default(), indices: HashMap::new(), enclosing: Vec::new() };
    let root = reader.read_type_of_kind(d, kind)?;
    match reader.builder.finish() {
        Some(nodes) => Ok(TypeCode::new(nodes, root)),
        None => Err(d.error(DecodeErrorKind::InvalidTypeCode)),
    }
}

struct Reader {
    builder: Builder,
    /// The indices of all types except basic ones, by the position of their kind in the outermost stream.
    indices: HashMap<usize, Index>,
    /// The types that are being read, innermost last.
    enclosing: Vec<EnclosingType>,
}

struct EnclosingType {
    index: Index,
    /// Whether a type may contain itself through this one.
    allows_recursion: bool,
}

impl Reader {
    fn read_type(&mut self, d: &mut Decoder<'_>) -> Result<Index, DecodeError> {
        let kind = d.read_u32()?;
        self.read_type_of_kind(d, kind)
    }

    fn read_type_of_kind(&mut self, d: &mut Decoder<'_>, kind: u32) -> Result<Index, DecodeError> {
        let at = d.stream_position() - 4;
        if kind == INDIRECTION {
            return self.read_indirection(d);
        }
        let Some(kind) = TcKind::from_number(kind) else { return Err(invalid(d, 4)) };
        if kind.is_basic() {
            return Ok(self.builder.basic(kind));
        }
        if self.builder.len() >= MAX_NODES {
            return Err(d.error(DecodeErrorKind::LimitExceeded));
        }
        d.charge(size_of::<Node>())?;
        let index = self.builder.reserve();
        self.indices.insert(at, index);
        let node = match kind {
            TcKind::String | TcKind::WString => {
                Node::Text { wide: kind == TcKind::WString, bound: d.read_u32()? }
            }
            TcKind::Fixed => {
                let (digits, scale) = (d.read_u16()?, d.read_i16()?);
                if !is_valid_fixed(digits, scale) {
                    return Err(invalid(d, 4));
                }
                Node::Fixed { digits, scale }
            }
            _ => {
                if self.enclosing.len() >= MAX_LEVELS {
                    return Err(d.error(DecodeErrorKind::DepthLimit));
                }
                let mut inner = d.encapsulation()?;
                let allows_recursion = !matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias);
                self.enclosing.push(EnclosingType { index, allows_recursion });
                let node = self.read_parameters(&mut inner, kind)?;
                self.enclosing.pop();
                d.reclaim_memory(&inner);
                node
            }
        };
        self.builder.set(index, node);
        Ok(index)
    }

    /// Resolves an indirection. The offset is the distance from itself to the kind of an earlier type.
    fn read_indirection(&mut self, d: &mut Decoder<'_>) -> Result<Index, DecodeError> {
        let offset = d.read_i32()?;
        let from = d.stream_position() - 4;
        // An offset of -4 would refer to this indirection itself.
        let to = (offset < -4).then(|| from.checked_sub(offset.unsigned_abs() as usize)).flatten();
        let Some(index) = to.and_then(|to| self.indices.get(&to).copied()) else { return Err(invalid(d, 4)) };
        let mut inner = self.enclosing.iter().skip_while(|enclosing| enclosing.index != index).peekable();
        if inner.peek().is_some() && !inner.any(|enclosing| enclosing.allows_recursion) {
            return Err(invalid(d, 4));
        }
        Ok(index)
    }

    fn read_parameters(&mut self, d: &mut Decoder<'_>, kind: TcKind) -> Result<Node, DecodeError> {
        match kind {
            TcKind::Sequence => {
                let element = self.read_type(d)?;
                return Ok(Node::Sequence { element, bound: d.read_u32()? });
            }
            TcKind::Array => {
                let element = self.read_type(d)?;
                return Ok(Node::Array { element, length: d.read_u32()? });
            }
            _ => {}
        }
        let at = d.position();
        let id = read_name(d)?;
        if id.len() > MAX_REPOSITORY_ID_BYTES {
            return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
        }
        let name = read_name(d)?;
        let body = match kind {
            TcKind::Struct | TcKind::Except => Body::Members(self.read_members(d, |_| Ok(0))?),
            TcKind::Enum => Body::Enumerators(read_enumerators(d)?),
            TcKind::Union => Body::Union(Box::new(self.read_union(d)?)),
            TcKind::ValueBox if id == WSTRING_VALUE => Body::Content(self.read_wide_content(d)?),
            TcKind::Alias | TcKind::ValueBox => Body::Content(self.read_type(d)?),
            TcKind::Value | TcKind::Event => Body::Value(Box::new(self.read_value(d)?)),
            _ => Body::Opaque,
        };
        Ok(Node::Named(NamedType { kind, id, name, body }))
    }

    /// Reads the content type of a `WStringValue`, which is a `wstring`. Java ORBs write `string` instead.
    fn read_wide_content(&mut self, d: &mut Decoder<'_>) -> Result<Index, DecodeError> {
        let content = self.read_type(d)?;
        let Some(Node::Text { wide: false, bound }) = self.builder.get(content) else { return Ok(content) };
        let node = Node::Text { wide: true, bound: *bound };
        if self.builder.len() >= MAX_NODES {
            return Err(d.error(DecodeErrorKind::LimitExceeded));
        }
        d.charge(size_of::<Node>())?;
        Ok(self.builder.push(node))
    }

    /// Reads a count, and for each member its name, its type, and what `read_visibility` reads.
    fn read_members(
        &mut self,
        d: &mut Decoder<'_>,
        read_visibility: impl Fn(&mut Decoder<'_>) -> Result<i64, DecodeError>,
    ) -> Result<Box<[Member]>, DecodeError> {
        let count = d.read_len(MIN_MEMBER_SIZE)?;
        let mut members = d.new_vec(count)?;
        for _ in 0..count {
            let name = read_name(d)?;
            let ty = self.read_type(d)?;
            members.push(Member { name, ty, label_or_visibility: read_visibility(d)? });
        }
        Ok(members.into())
    }

    fn read_union(&mut self, d: &mut Decoder<'_>) -> Result<Union, DecodeError> {
        let discriminator = self.read_type(d)?;
        let labels = self.builder.unaliased(discriminator).and_then(LabelEncoding::of);
        let labels = labels.ok_or_else(|| invalid(d, 4))?;
        let default = d.read_i32()?;
        let count = d.read_len(MIN_MEMBER_SIZE)?;
        let default = match u32::try_from(default) {
            Ok(index) if (index as usize) < count => Some(index),
            Err(_) if default == -1 => None,
            _ => return Err(invalid(d, 8)),
        };
        let mut members = d.new_vec(count)?;
        d.charge(size_of::<u32>().saturating_mul(count))?;
        for index in 0..count {
            let label = labels.read_label(d, default == Some(index as u32))?;
            let name = read_name(d)?;
            members.push(Member { name, ty: self.read_type(d)?, label_or_visibility: label });
        }
        Ok(Union::new(discriminator, default, members.into()))
    }

    fn read_value(&mut self, d: &mut Decoder<'_>) -> Result<Value, DecodeError> {
        let modifier = d.read_i16()?;
        let Some(modifier) = ValueModifier::from_number(modifier) else { return Err(invalid(d, 2)) };
        let base = self.read_type(d)?;
        let base = match self.builder.get(base) {
            Some(Node::Basic(TcKind::Null)) => None,
            Some(Node::Named(NamedType { kind: TcKind::Value | TcKind::Event, .. })) => Some(base),
            // No other type can be a base. A type that is still being read would be its own base.
            _ => return Err(invalid(d, 4)),
        };
        // All numbers other than 0 count as public.
        let members = self.read_members(d, |d| d.read_i16().map(|visibility| i64::from(visibility != 0)))?;
        Ok(Value { modifier, base, members })
    }
}

/// Returns whether a `fixed` may have these digits and this scale. The limits keep its text short.
pub(crate) fn is_valid_fixed(digits: u16, scale: i16) -> bool {
    (1..=31).contains(&digits) && (-31..=31).contains(&scale)
}

/// The minimum size in bytes of a member: an empty name (5) and a kind (4), without the padding between them.
const MIN_MEMBER_SIZE: usize = 9;

/// Returns an error at the position of the last item that was read, which has `size` bytes.
#[cold]
fn invalid(d: &Decoder<'_>, size: usize) -> DecodeError {
    DecodeError::new(DecodeErrorKind::InvalidTypeCode, d.position().saturating_sub(size))
}

/// Reads a name or id. Both are always in ISO 8859-1, whatever the code sets are.
fn read_name(d: &mut Decoder<'_>) -> Result<Name, DecodeError> {
    let bytes = d.read_str_bytes()?;
    if bytes.is_empty() {
        return Ok(Cow::Borrowed(""));
    }
    if let Ok(text) = str::from_utf8(bytes)
        && text.is_ascii()
    {
        d.charge(text.len())?;
        return Ok(Cow::Owned(text.to_owned()));
    }
    let chars = bytes.iter().map(|byte| char::from(*byte));
    d.charge(chars.clone().map(char::len_utf8).sum())?;
    Ok(Cow::Owned(chars.collect()))
}

fn read_enumerators(d: &mut Decoder<'_>) -> Result<Box<[Name]>, DecodeError> {
    let count = d.read_len(5)?;
    let mut names = d.new_vec(count)?;
    for _ in 0..count {
        names.push(read_name(d)?);
    }
    Ok(names.into())
}

impl LabelEncoding {
    /// Returns the encoding of the labels of a union; `None` if the type cannot be its discriminator.
    pub(crate) fn of_node(nodes: &Nodes, discriminator: Index) -> Option<LabelEncoding> {
        LabelEncoding::of(nodes.at(nodes.unaliased(discriminator)))
    }

    /// Does the same as [`of_node`](Self::of_node), but does not resolve aliases.
    pub(super) fn of(discriminator: &Node) -> Option<LabelEncoding> {
        match discriminator {
            Node::Basic(kind) => LabelEncoding::of_basic(*kind),
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                Some(LabelEncoding::Enum(names.len() as u32))
            }
            _ => None,
        }
    }

    pub(crate) fn of_basic(kind: TcKind) -> Option<LabelEncoding> {
        Some(match kind {
            TcKind::Boolean => LabelEncoding::Boolean,
            TcKind::Octet | TcKind::Char => LabelEncoding::Octet,
            TcKind::Short => LabelEncoding::Short,
            TcKind::UShort => LabelEncoding::UShort,
            TcKind::Long => LabelEncoding::Long,
            TcKind::ULong => LabelEncoding::ULong,
            TcKind::LongLong => LabelEncoding::LongLong,
            TcKind::ULongLong => LabelEncoding::ULongLong,
            TcKind::WChar => LabelEncoding::WChar,
            _ => return None,
        })
    }
}
