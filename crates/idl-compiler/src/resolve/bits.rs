//! Bitsets and bitmasks.

use std::collections::HashMap;

use super::expr;
use super::known::AnnotatedKind;
use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use crate::ast::{self, Ident, Name, Preamble, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{
    AnnotationValue, Annotations, BitField, Bitmask, Bitset, ConstValue, DefId, DefKind, Flag, Primitive,
    Type,
};
use crate::source::Span;

/// Maximum number of bits of a bitset, which is the size of the widest integer.
const MAX_BITS: u32 = 64;

/// Number of bits of a bitmask without `@bit_bound`.
const DEFAULT_BIT_BOUND: u8 = 32;

impl Resolver<'_> {
    pub(super) fn bitset(&mut self, preamble: Preamble, bitset: ast::Bitset, scope: ScopeId) {
        // The base is looked up in the enclosing scope, before the bitset's own name counts as defined.
        let base = bitset.base.as_ref().and_then(|base| bitset_base(&mut self.symbols, base, scope));
        let body = Bitset { base, fields: Vec::new() };
        let (id, _) = self.begin(&preamble, &bitset.name, DefKind::Bitset(body), scope);
        let Some(inside) = self.symbols.states[id.index()].scope else { return };
        let mut bits: u32 =
            self.symbols.model.all_bit_fields(id).iter().map(|field| u32::from(field.width)).sum();
        let (no_fields, mut too_wide) = (bits == 0 && bitset.fields.is_empty(), false);
        for field in bitset.fields {
            let width = field_width(&mut self.symbols, &field, inside);
            let ty = self.field_type(field.ty.as_ref(), width, field.width.span, inside);
            let annotations = self.annotations(&field.preamble, inside, AnnotatedKind::Field);
            let unnamed = field.names.is_empty().then_some((None, field.span));
            let named = field.names.into_iter().map(|name| (Some(name.text), name.span));
            for (name, span) in unnamed.into_iter().chain(named) {
                if let Some(text) = name.clone() {
                    let name = Ident { text, span };
                    if !self.symbols.declare_local(inside, &name, Entity::Member, "field") {
                        continue;
                    }
                }
                let (Some(width), Some(ty)) = (width, ty) else { continue };
                bits += u32::from(width);
                if bits > MAX_BITS && !std::mem::replace(&mut too_wide, true) {
                    let message =
                        format!("the fields of `{}` take more than {MAX_BITS} bits", bitset.name.text);
                    let error = Diagnostic::error("bad-bits", span, message);
                    self.symbols.report(error.note("the fields of its bases count as well"));
                }
                let (docs, annotations) = (field.preamble.docs.clone(), annotations.clone());
                if let DefKind::Bitset(body) = &mut self.symbols.model.defs[id.index()].kind {
                    body.fields.push(BitField { name, width, ty, docs, annotations, span });
                }
            }
        }
        if no_fields {
            let message = format!("bitset `{}` has no fields", bitset.name.text);
            self.symbols.report_unless_incomplete(Diagnostic::error("empty", bitset.name.span, message));
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        self.symbols.set_depth(id);
    }

    /// Returns the type of the values in a field: the declared type, or else the smallest with enough bits.
    fn field_type(
        &mut self,
        ty: Option<&TypeSpec>,
        width: Option<u8>,
        width_span: Span,
        scope: ScopeId,
    ) -> Option<Primitive> {
        let Some(ty) = ty else {
            return Some(match width? {
                1 => Primitive::Boolean,
                2..=8 => Primitive::Octet,
                9..=16 => Primitive::UShort,
                17..=32 => Primitive::ULong,
                _ => Primitive::ULongLong,
            });
        };
        let id = self.simple_type(ty, scope)?;
        let bits = match self.symbols.model.stripped(id) {
            Type::Primitive(Primitive::Boolean) => Some((Primitive::Boolean, 1)),
            Type::Primitive(primitive)
                if primitive.integer_range().is_some() && self.symbols.model.ranged_typedef(id).is_none() =>
            {
                Some((*primitive, 8 * primitive.size()))
            }
            _ => None,
        };
        let Some((primitive, bits)) = bits else {
            let message = format!("a field cannot be of type `{}`", self.symbols.model.describe(id));
            let error = Diagnostic::error("bad-bits", ty.span, message);
            return self
                .symbols
                .reject(error.note("a field must be an integer without bounds, an `octet` or a `boolean`"));
        };
        let width = width?;
        if usize::from(width) > bits {
            let message = format!("a field of {width} bits is wider than `{}`", primitive.idl_name());
            let error = Diagnostic::error("bad-bits", width_span, message);
            return self.symbols.reject(
                error.and(ty.span, if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") }),
            );
        }
        Some(primitive)
    }

    pub(super) fn bitmask(&mut self, preamble: Preamble, bitmask: ast::Bitmask, scope: ScopeId) {
        let body = Bitmask { bit_bound: DEFAULT_BIT_BOUND, flags: Vec::new() };
        let (id, _) = self.begin(&preamble, &bitmask.name, DefKind::Bitmask(body), scope);
        let annotations = self.symbols.model.def(id).annotations.clone();
        let bound = annotation_number(&mut self.symbols, &annotations, "bit_bound", 1, 64)
            .unwrap_or(Some(DEFAULT_BIT_BOUND));
        let Some(inside) = self.symbols.states[id.index()].scope else { return };
        let mut taken: HashMap<u8, (String, Span)> = HashMap::new();
        let mut next = 0;
        for flag in bitmask.flags {
            let declared = self.symbols.declare_local(inside, &flag.name, Entity::Member, "flag");
            let annotations = self.annotations(&flag.preamble, inside, AnnotatedKind::Flag);
            let position = annotation_number(&mut self.symbols, &annotations, "position", 0, 63);
            let position = position.unwrap_or(Some(next));
            let (Some(position), true) = (position, declared) else { continue };
            let Ident { text, span } = flag.name;
            next = position.saturating_add(1);
            if let Some(bound) = bound.filter(|bound| position >= *bound) {
                let message = format!("flag `{text}` has bit {position}, but the last bit is {}", bound - 1);
                let error = Diagnostic::error("bad-bits", span, message);
                self.symbols.report(error.help("`@bit_bound(64)` before the bitmask gives it 64 bits"));
                continue;
            }
            if let Some((other, earlier)) = taken.insert(position, (text.clone(), span)) {
                let message = format!("flags `{other}` and `{text}` have the same bit, {position}");
                self.symbols
                    .report(Diagnostic::error("bad-bits", span, message).and(earlier, "the first is here"));
                continue;
            }
            if let DefKind::Bitmask(body) = &mut self.symbols.model.defs[id.index()].kind {
                body.flags.push(Flag { name: text, position, docs: flag.preamble.docs, annotations, span });
            }
        }
        if let (DefKind::Bitmask(body), Some(bound)) = (&mut self.symbols.model.defs[id.index()].kind, bound)
        {
            body.bit_bound = bound;
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
    }
}

fn bitset_base(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<DefId> {
    let entity = symbols.lookup(name, scope)?;
    let base = symbols.stripped_def(entity).filter(|def| symbols.model.bitset(*def).is_some());
    base.or_else(|| symbols.reject_wrong_kind(entity, name, "not-a-base", "a bitset"))
}

fn field_width(symbols: &mut Symbols<'_>, field: &ast::BitField, scope: ScopeId) -> Option<u8> {
    let width = expr::untyped_integer(symbols, &field.width, scope)?;
    if (1..=i128::from(MAX_BITS)).contains(&width) {
        return u8::try_from(width).ok();
    }
    let message = format!("a field must have 1 to {MAX_BITS} bits, but this one has {width}");
    symbols.reject(Diagnostic::error("bad-bits", field.width.span, message))
}

/// Returns the number in an annotation such as `@position(3)`. `None` means that the annotation is absent,
/// and `Some(None)` that its argument is invalid and was reported.
pub(super) fn annotation_number(
    symbols: &mut Symbols<'_>,
    annotations: &Annotations,
    name: &str,
    min: u8,
    max: u8,
) -> Option<Option<u8>> {
    let annotation = annotations.get(name)?;
    let [arg] = annotation.args.as_slice() else { return Some(None) };
    let AnnotationValue::Const(ConstValue::Integer(value)) = arg.value else { return Some(None) };
    if (i128::from(min)..=i128::from(max)).contains(&value) {
        return Some(u8::try_from(value).ok());
    }
    let message = format!("`@{name}` must be from {min} to {max}, but is {value}");
    symbols.report(Diagnostic::error("bad-annotation", arg.span, message));
    Some(None)
}
