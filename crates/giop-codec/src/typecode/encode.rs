//! Encoding of type codes ("TypeCode", in "CDR Transfer Syntax / Pseudo-Object Types").

use super::TypeCode;
use super::decode::{INDIRECTION, MAX_LEVELS};
use super::kind::TcKind;
use super::node::{Body, Index, Member, NamedType, Node, Nodes, Union, Value};
use crate::cdr::{CdrEncode, Encoder};
use crate::program::LabelEncoding;
use crate::{EncodeError, EncodeErrorKind};

impl CdrEncode for TypeCode {
    /// A type that has already been written becomes an indirection, even inside the type itself. Basic types,
    /// strings and `fixed` are always written again. Enclosing sequences, arrays, aliases and value boxes are
    /// written a second time before an indirection to them.
    ///
    /// # Errors
    /// [`Unrepresentable`](EncodeErrorKind::Unrepresentable) if the type code has more levels of
    /// encapsulations than [`MAX_LEVELS`](super::MAX_LEVELS), which is the limit of the decoder.
    /// [`CharNotInCodeSet`](EncodeErrorKind::CharNotInCodeSet) for a name that is not ISO 8859-1.
    /// [`IncompleteTypeCode`](EncodeErrorKind::IncompleteTypeCode) unless the type code is
    /// [complete](TypeCode::is_complete).
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        if let Node::Basic(kind) = self.node() {
            e.put_u32(kind.number());
            return Ok(());
        }
        let written = vec![None; self.nodes.all().len()];
        Writer { nodes: &self.nodes, written, enclosing: Vec::new() }.put_type(e, self.root)
    }
}

struct Writer<'a> {
    nodes: &'a Nodes,
    /// The position of the kind of each type that was written; `None` for types that become no indirection.
    written: Vec<Option<usize>>,
    /// The types that are being written, outermost first.
    enclosing: Vec<Index>,
}

impl Writer<'_> {
    fn put_type(&mut self, e: &mut Encoder, index: Index) -> Result<(), EncodeError> {
        let node = self.nodes.at(index);
        e.align(4);
        match node {
            Node::Basic(kind) => {
                e.put_u32(kind.number());
                return Ok(());
            }
            Node::Text { bound, .. } => {
                e.put_u32(node.kind().number());
                e.put_u32(*bound);
                return Ok(());
            }
            Node::Fixed { digits, scale } => {
                e.put_u32(TcKind::Fixed.number());
                e.put_u16(*digits);
                e.put_i16(*scale);
                return Ok(());
            }
            Node::Placeholder(_) => return Err(EncodeErrorKind::IncompleteTypeCode.into()),
            Node::Sequence { .. } | Node::Array { .. } | Node::Named(_) => {}
        }
        let Some(place) = self.written.get_mut(index as usize) else {
            return Err(EncodeErrorKind::Unrepresentable.into());
        };
        // All peers resolve an indirection to an enclosing struct, union or value type. JacORB does not
        // resolve indirections to enclosing sequences and arrays, and Combat not to aliases. Such a type is
        // written a second time inside itself, and becomes an indirection at its third occurrence.
        let is_resolved_by_peers =
            matches!(node, Node::Named(named) if !matches!(named.body, Body::Content(_)));
        let is_repeated = !is_resolved_by_peers
            && self.enclosing.len() < MAX_LEVELS
            && self.enclosing.iter().filter(|enclosing| **enclosing == index).count() == 1;
        if let Some(place) = place.filter(|_| !is_repeated) {
            e.put_u32(INDIRECTION);
            let back = i32::try_from(e.len() - place).map_err(|_| EncodeErrorKind::TooLong)?;
            e.put_i32(-back);
            return Ok(());
        }
        if self.enclosing.len() >= MAX_LEVELS {
            return Err(EncodeErrorKind::Unrepresentable.into());
        }
        place.get_or_insert(e.len());
        e.put_u32(node.kind().number());
        self.enclosing.push(index);
        e.encapsulate(|e| self.put_parameters(e, node))?;
        self.enclosing.pop();
        Ok(())
    }

    fn put_parameters(&mut self, e: &mut Encoder, node: &Node) -> Result<(), EncodeError> {
        match node {
            Node::Sequence { element, bound: count } | Node::Array { element, length: count } => {
                self.put_type(e, *element)?;
                e.put_u32(*count);
                Ok(())
            }
            Node::Named(NamedType { id, name, body, .. }) => {
                put_name(e, id)?;
                put_name(e, name)?;
                match body {
                    Body::Opaque => Ok(()),
                    Body::Content(content) => self.put_type(e, *content),
                    Body::Members(members) => {
                        e.put_len(members.len())?;
                        members.iter().try_for_each(|member| self.put_member(e, member))
                    }
                    Body::Enumerators(names) => {
                        e.put_len(names.len())?;
                        names.iter().try_for_each(|name| put_name(e, name))
                    }
                    Body::Union(union) => self.put_union(e, union),
                    Body::Value(value) => self.put_value(e, value),
                }
            }
            Node::Basic(_) | Node::Text { .. } | Node::Fixed { .. } | Node::Placeholder(_) => Ok(()),
        }
    }

    fn put_member(&mut self, e: &mut Encoder, member: &Member) -> Result<(), EncodeError> {
        put_name(e, &member.name)?;
        self.put_type(e, member.ty)
    }

    fn put_union(&mut self, e: &mut Encoder, union: &Union) -> Result<(), EncodeError> {
        self.put_type(e, union.discriminator)?;
        let labels = match self.nodes.at(self.nodes.unaliased(union.discriminator)) {
            Node::Basic(kind) => LabelEncoding::of_basic(*kind),
            _ => Some(LabelEncoding::Enum(u32::MAX)),
        };
        let labels = labels.ok_or(EncodeErrorKind::Unrepresentable)?;
        e.put_i32(match union.default {
            Some(index) => i32::try_from(index).map_err(|_| EncodeErrorKind::TooLong)?,
            None => -1,
        });
        e.put_len(union.members.len())?;
        for member in &union.members {
            labels.write(e, member.label_or_visibility)?;
            self.put_member(e, member)?;
        }
        Ok(())
    }

    fn put_value(&mut self, e: &mut Encoder, value: &Value) -> Result<(), EncodeError> {
        e.put_i16(value.modifier as i16);
        match value.base {
            Some(base) => self.put_type(e, base)?,
            None => e.put_u32(TcKind::Null.number()),
        }
        e.put_len(value.members.len())?;
        for member in &value.members {
            self.put_member(e, member)?;
            e.put_i16(member.label_or_visibility as i16);
        }
        Ok(())
    }
}

/// Writes a name or id. Both are always in ISO 8859-1, whatever the code sets are.
fn put_name(e: &mut Encoder, name: &str) -> Result<(), EncodeError> {
    if name.is_ascii() { e.put_unconverted_str(name) } else { e.put_latin1(name) }
}
