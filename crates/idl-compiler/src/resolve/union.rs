//! Unions: discriminators, labels, defaults.

use std::collections::HashMap;

use super::known::AnnotatedKind;
use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::{annotation, constant, typed_annotation, types};
use crate::ast::{self, Ident, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::{
    Annotations, Case, ConstValue, DefId, DefKind, Label, Member, Model, Primitive, Type, TypeId, Union,
};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn union(&mut self, preamble: Preamble, union: ast::Union, scope: ScopeId) -> Option<DefId> {
        let body = empty(&mut self.symbols);
        let (id, declared) = self.begin(&preamble, &union.name, DefKind::Union(body), scope);
        let inside = self.symbols.states[id.index()].scope?;
        let annotations = self.annotations(&union.preamble, inside, AnnotatedKind::Discriminator);
        let discriminator = self.type_spec(union.discriminator.clone(), inside);
        let discriminator =
            discriminator.filter(|ty| check_discriminator(&mut self.symbols, *ty, union.discriminator.span));
        let mut labels = Labels::default();
        let mut cases = Vec::new();
        for case in union.cases {
            cases.extend(self.case(case, discriminator, &mut labels, inside));
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        let discriminator = discriminator?;
        let unlisted = unlisted_value(&self.symbols.model, discriminator, &labels);
        if let (Some(span), None) = (labels.default, &unlisted) {
            let error = Diagnostic::error("default-unreachable", span, "`default` can never be selected");
            let ty = self.symbols.model.describe(discriminator);
            self.symbols
                .report_unless_incomplete(error.note(format!("the labels list every value of `{ty}`")));
        }
        if let DefKind::Union(body) = &mut self.symbols.model.defs[id.index()].kind {
            body.discriminator = discriminator;
            body.discriminator_annotations = annotations;
            body.cases = cases;
            match labels.default {
                Some(_) => body.default_value = unlisted,
                None => body.implicit_default = unlisted,
            }
        }
        self.symbols.set_depth(id);
        declared.then_some(id)
    }

    /// Resolves one case; `None` if its member is invalid.
    fn case(
        &mut self,
        case: ast::Case,
        ty: Option<TypeId>,
        labels: &mut Labels,
        scope: ScopeId,
    ) -> Option<Case> {
        let mut case_labels = Vec::new();
        let mut is_default = false;
        for (value, span) in &case.labels {
            match value {
                None => {
                    is_default = true;
                    match labels.default {
                        Some(first) => {
                            let error = Diagnostic::error("duplicate-label", *span, "duplicate `default`");
                            self.symbols.report(error.and(first, "the first is here"));
                        }
                        None => labels.default = Some(*span),
                    }
                }
                Some(expr) => {
                    let Some(ty) = ty else { continue };
                    match constant::constant_value(&mut self.symbols, expr, ty, scope) {
                        None => labels.is_incomplete = true,
                        Some(value) if add_label(&mut self.symbols, &value, expr.span, labels) => {
                            case_labels.push(Label { value, span: expr.span });
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        let member_type = self.type_spec(case.ty, scope);
        let member_type =
            member_type.and_then(|ty| types::array(&mut self.symbols, ty, &case.declarator.dims, scope));
        self.symbols.declare_local(scope, &case.declarator.name, Entity::Member, "member");
        let mut annotations = self.annotations(&case.preamble, scope, AnnotatedKind::Case);
        if let Some(ty) = member_type {
            typed_annotation::evaluate(&mut self.symbols, &case.preamble, &mut annotations, ty, scope);
        }
        annotation::check_non_nil(&mut self.symbols, &annotations, member_type);
        let Ident { text, span } = case.declarator.name;
        let member = Member { name: text, ty: member_type?, docs: case.preamble.docs, annotations, span };
        Some(Case { labels: case_labels, is_default, member })
    }
}

/// Returns a union without cases. Its discriminator is replaced later.
pub(super) fn empty(symbols: &mut Symbols<'_>) -> Union {
    Union {
        discriminator: symbols.intern(Type::Object),
        discriminator_annotations: Annotations::default(),
        cases: Vec::new(),
        implicit_default: None,
        default_value: None,
        nested: Vec::new(),
    }
}

fn check_discriminator(symbols: &mut Symbols<'_>, ty: TypeId, span: Span) -> bool {
    let fits = match symbols.model.stripped(ty) {
        Type::Primitive(primitive) => !primitive.is_float(),
        Type::Named(def) => matches!(symbols.model.def(*def).kind, DefKind::Enum(_)),
        _ => false,
    };
    if let Some(ranged) = symbols.model.ranged_typedef(ty) {
        let message =
            format!("a union cannot be discriminated by `{}`, which has bounds", symbols.model.describe(ty));
        let error = Diagnostic::error("bad-discriminator", span, message);
        let error = error.and(symbols.model.def(ranged).span, "declared here");
        symbols.report(error.help("use the type without bounds"));
        return false;
    }
    if !fits {
        let message = format!("a union cannot be discriminated by `{}`", symbols.model.describe(ty));
        let error = Diagnostic::error("bad-discriminator", span, message);
        symbols.report(
            error.note("a discriminator must be an integer, `char`, `wchar`, `octet`, `boolean` or an enum"),
        );
    }
    fits
}

fn add_label(symbols: &mut Symbols<'_>, value: &ConstValue, span: Span, labels: &mut Labels) -> bool {
    let Some(key) = label_key(value) else { return false };
    match labels.listed.get(&key) {
        Some(first) => {
            let shown = constant::format_value(&symbols.model, value);
            let error = Diagnostic::error("duplicate-label", span, format!("label {shown} is listed twice"));
            let error = error.and(*first, "the first is here");
            symbols.report(error);
            false
        }
        None => {
            labels.listed.insert(key, span);
            true
        }
    }
}

/// Returns a value without a label, if there is one: the least from zero up, or else the greatest below zero.
fn unlisted_value(model: &Model, discriminator: TypeId, labels: &Labels) -> Option<ConstValue> {
    type Build = Box<dyn Fn(i128) -> Option<ConstValue>>;
    let (min, max, build): (i128, i128, Build) = match model.stripped(discriminator) {
        Type::Primitive(Primitive::Boolean) => (0, 1, Box::new(|key| Some(ConstValue::Bool(key != 0)))),
        Type::Primitive(Primitive::Char) => {
            (0, 255, Box::new(|key| u8::try_from(key).ok().map(ConstValue::Char)))
        }
        Type::Primitive(Primitive::WChar) => {
            (0, 65535, Box::new(|key| u16::try_from(key).ok().map(ConstValue::WChar)))
        }
        Type::Primitive(primitive) => {
            let (min, max) = primitive.integer_range()?;
            (min, max, Box::new(|key| Some(ConstValue::Integer(key))))
        }
        Type::Named(def) => {
            let (def, count) = (*def, model.enumeration(*def)?.enumerators.len());
            let build = move |key| Some(ConstValue::Enum { def, ordinal: u32::try_from(key).ok()? });
            (0, count as i128 - 1, Box::new(build))
        }
        _ => return None,
    };
    if labels.is_incomplete {
        return build(min.max(0));
    }
    let is_unlisted = |key: &i128| !labels.listed.contains_key(key);
    build((0..=max).find(is_unlisted).or_else(|| (min..0).rev().find(is_unlisted))?)
}

#[derive(Default)]
struct Labels {
    /// The locations of the labels, by their keys ([`label_key`]).
    listed: HashMap<i128, Span>,
    default: Option<Span>,
    /// Whether an invalid label was reported, which is not in `listed`.
    is_incomplete: bool,
}

/// Returns a number that identifies the label in its union, whose labels all have the same type.
fn label_key(value: &ConstValue) -> Option<i128> {
    Some(match value {
        ConstValue::Bool(value) => i128::from(*value),
        ConstValue::Integer(value) => *value,
        ConstValue::Char(code) => i128::from(*code),
        ConstValue::WChar(code) => i128::from(*code),
        ConstValue::Enum { ordinal, .. } => i128::from(*ordinal),
        _ => return None,
    })
}
