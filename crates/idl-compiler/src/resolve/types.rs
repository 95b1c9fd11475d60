//! Binding of types.

use super::scope::{Entity, ScopeId};
use super::{Progress, Resolver, article};
use crate::MAX_DEPTH;
use crate::ast::{Expr, Head, Name, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Primitive, Type, TypeId};
use crate::source::Span;

/// Maximum total number of elements of an array. Values of larger ones do not fit into memory.
const MAX_ELEMENTS: u64 = 1 << 31;

impl Resolver<'_> {
    /// Resolves a type whose value is used, so it must be complete.
    pub(super) fn type_spec(&mut self, ty: TypeSpec, scope: ScopeId) -> Option<TypeId> {
        match ty.kind {
            TypeKind::Struct { .. } | TypeKind::Union(_) | TypeKind::Enum { .. } => {
                self.constructed(Head::default(), ty, scope)
            }
            _ => self.simple_type(&ty, scope),
        }
    }

    /// Resolves a type that declares nothing.
    pub(super) fn simple_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        let kind = match &ty.kind {
            TypeKind::Primitive(primitive) => Type::Primitive(*primitive),
            TypeKind::Object => Type::Object,
            TypeKind::String(bound) => Type::String(self.bound(bound.as_ref(), scope)?),
            TypeKind::WString(bound) => Type::WString(self.bound(bound.as_ref(), scope)?),
            TypeKind::Sequence { element, bound } => {
                let element = self.element_type(element, scope);
                let bound = self.bound(bound.as_ref(), scope);
                Type::Sequence { element: element?, bound: bound? }
            }
            TypeKind::Name(name) => {
                let ty = self.named_type(name, scope)?;
                if let Type::Named(def) = ty {
                    self.check_complete(def, name.span)?;
                }
                ty
            }
            TypeKind::Any => Type::Any,
            TypeKind::ValueBase => Type::ValueBase,
            TypeKind::Map { key, value, bound } => {
                let span = key.span;
                let (key, value) = (self.simple_type(key, scope), self.element_type(value, scope));
                let bound = self.bound(bound.as_ref(), scope);
                self.check_key(key?, span)?;
                Type::Map { key: key?, value: value?, bound: bound? }
            }
            TypeKind::Fixed(Some(parts)) => self.fixed_type(&parts.0, &parts.1, scope)?,
            TypeKind::Fixed(None) => {
                let error = Diagnostic::error(
                    "bad-fixed",
                    ty.span,
                    "`fixed` without its digits is only the type of a constant",
                );
                self.report(error.help(
                    "write how many digits it has, and how many of them behind the point: `fixed<9, 2>`",
                ));
                return None;
            }
            TypeKind::Void
            | TypeKind::Bad
            | TypeKind::Struct { .. }
            | TypeKind::Union(_)
            | TypeKind::Enum { .. } => {
                return None;
            }
        };
        Some(self.intern(kind))
    }

    /// Resolves the type of a sequence's elements. A struct or union may be incomplete, which allows
    /// recursive types.
    fn element_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        let TypeKind::Name(name) = &ty.kind else { return self.simple_type(ty, scope) };
        let ty = self.named_type(name, scope)?;
        if let Type::Named(def) = ty
            && self.states[def.index()].progress != Progress::Complete
        {
            self.recursion_possible = true;
        }
        Some(self.intern(ty))
    }

    fn named_type(&mut self, name: &Name, scope: ScopeId) -> Option<Type> {
        let entity = self.lookup(name, scope)?;
        self.type_of(entity, name)
    }

    /// Returns the type with this name.
    pub(super) fn type_of(&mut self, entity: Entity, name: &Name) -> Option<Type> {
        match entity {
            Entity::TypeCode => return Some(Type::TypeCode),
            Entity::Type(id) => return Some(self.model.ty(id).clone()),
            _ => {}
        }
        if let Entity::Def(def) = entity {
            let kind = &self.model.def(def).kind;
            if matches!(
                kind,
                DefKind::Struct(_)
                    | DefKind::Union(_)
                    | DefKind::Enum(_)
                    | DefKind::Interface(_)
                    | DefKind::Typedef(_)
                    | DefKind::Value(_)
                    | DefKind::ValueBox(_)
                    | DefKind::Native
                    | DefKind::Bitset(_)
                    | DefKind::Bitmask(_)
            ) {
                return Some(Type::Named(def));
            }
        }
        let error = self.wrong_kind(entity, name, "not-a-type", "a type");
        self.report(match entity {
            Entity::Def(def) if matches!(self.model.def(def).kind, DefKind::Exception(_)) => {
                error.note("an exception can only be raised; it is no type of a member, parameter or result")
            }
            Entity::Enumerator(enumeration, _) => {
                error.help(format!("its type is `{}`", self.model.scoped_name(enumeration)))
            }
            _ => error,
        });
        None
    }

    /// Returns an error about a name that has another meaning than required.
    pub(super) fn wrong_kind(
        &self,
        entity: Entity,
        name: &Name,
        code: &'static str,
        wanted: &str,
    ) -> Diagnostic {
        let (what, declared) = match entity {
            Entity::Def(def) => (self.model.def(def).kind.what(), Some(self.model.def(def).span)),
            Entity::Enumerator(def, ordinal) => {
                let body = self.model.enumeration(def);
                ("enumerator", body.and_then(|body| body.enumerators.get(ordinal as usize)).map(|e| e.span))
            }
            Entity::PortType(index) => ("port type", self.implied.port_types.get(index).map(|ty| ty.span)),
            Entity::Template(_) => ("template module", None),
            Entity::Type(_) => ("type", None),
            Entity::Value(_) => ("constant", None),
            Entity::Corba => ("module", None),
            Entity::TypeCode => ("type", None),
            Entity::Member | Entity::Bad => ("member or parameter", None),
        };
        let error = Diagnostic::error(
            code,
            name.span,
            format!("`{}` is {}, not {wanted}", name.text(), article(what)),
        );
        match declared {
            Some(span) => error.and(span, format!("declared here as {}", article(what))),
            None => error,
        }
    }

    /// Checks that a struct or union is defined before another type contains a value of it.
    pub(super) fn check_complete(&mut self, def: DefId, span: Span) -> Option<()> {
        let what = match self.model.def(def).kind {
            DefKind::Struct(_) => "struct",
            DefKind::Union(_) => "union",
            // Values are held by reference, and may contain themselves.
            DefKind::Value(_) => {
                self.recursion_possible |= self.states[def.index()].progress != Progress::Complete;
                return Some(());
            }
            _ => return Some(()),
        };
        let name = self.model.scoped_name(def);
        let error = match self.states[def.index()].progress {
            Progress::Complete => return Some(()),
            Progress::Open => {
                let message = format!("{what} `{name}` contains itself");
                let error = Diagnostic::error("recursive", span, message);
                error.and(self.model.def(def).span, format!("inside the body of this {what}"))
            }
            Progress::Forward(forward) => {
                let message = format!("{what} `{name}` is used before it is defined");
                Diagnostic::error("incomplete", span, message).and(forward, "only declared here")
            }
        };
        self.report(error.help(format!(
            "until the end of its definition it can only be the element of a sequence: `sequence<{name}>`"
        )));
        None
    }

    /// Returns the type with array dimensions, if there are any.
    pub(super) fn array(&mut self, element: TypeId, dims: &[Expr], scope: ScopeId) -> Option<TypeId> {
        if dims.is_empty() {
            return Some(element);
        }
        let sizes: Vec<Option<u32>> =
            dims.iter().map(|dim| self.positive(dim, "the size of an array", scope)).collect();
        let sizes: Vec<u32> = sizes.into_iter().collect::<Option<_>>()?;
        let total = sizes.iter().try_fold(1u64, |total, size| total.checked_mul(u64::from(*size)));
        if total.is_none_or(|total| total > MAX_ELEMENTS) {
            let span = dims.first().map_or(Span::START, |dim| dim.span);
            let span = dims.last().map_or(span, |last| span.to(last.span));
            let message = format!("an array of more than {MAX_ELEMENTS} elements");
            self.report(Diagnostic::error("too-large", span, message));
            return None;
        }
        Some(self.intern(Type::Array { element, dims: sizes }))
    }

    /// Evaluates a bound. The outer `None` is an error, the inner one means no bound.
    fn bound(&mut self, bound: Option<&Expr>, scope: ScopeId) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self.positive(bound, "a bound", scope).map(Some),
        }
    }

    /// Evaluates a constant from 1 to 2^32 - 1.
    fn positive(&mut self, value: &Expr, what: &str, scope: ScopeId) -> Option<u32> {
        let number = self.integer(value, Primitive::ULong, scope)?;
        match u32::try_from(number) {
            Ok(number) if number > 0 => Some(number),
            Ok(_) | Err(_) => {
                let message = format!("{what} must be from 1 to {}, this is {number}", u32::MAX);
                self.report(Diagnostic::error("bad-bound", value.span, message));
                None
            }
        }
    }

    /// Resolves the type of a constant.
    pub(super) fn constant_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        if let TypeKind::Fixed(Some(_)) = ty.kind {
            let message = "a constant is of type `fixed`, without digits and scale";
            let error = Diagnostic::error("anonymous-type", ty.span, message);
            self.report(
                error.help("write `fixed`, which has the digits of the value, or the name of a typedef"),
            );
            return None;
        }
        let id = self.simple_type(ty, scope)?;
        let fits = match self.model.stripped(id) {
            Type::Primitive(_) | Type::String(_) | Type::WString(_) => true,
            Type::Named(def) => matches!(self.model.def(*def).kind, DefKind::Enum(_)),
            Type::Fixed { .. } => true,
            Type::Sequence { .. }
            | Type::Array { .. }
            | Type::Object
            | Type::Any
            | Type::TypeCode
            | Type::ValueBase
            | Type::Map { .. } => false,
        };
        if fits {
            return Some(id);
        }
        let message = format!("a constant cannot be of type `{}`", self.model.describe(id));
        let error = Diagnostic::error("not-a-constant-type", ty.span, message);
        self.report(error.note("constants are numbers, characters, booleans, strings and enumerators"));
        None
    }

    /// Records the nesting depth of a finished definition, and rejects it if it is too deep.
    pub(super) fn set_depth(&mut self, id: DefId) {
        let of_bases = self.model.direct_bases(id).chain(self.model.structure(id).and_then(|body| body.base));
        let of_bases = of_bases.chain(self.model.bitset(id).and_then(|body| body.base));
        let of_bases = of_bases.map(|base| self.states[base.index()].depth);
        let parts = self.model.member_types(id);
        let depth = 1 + of_bases.chain(parts.into_iter().map(|ty| self.type_depth(ty))).max().unwrap_or(0);
        self.states[id.index()].depth = depth;
        if depth > MAX_DEPTH {
            let def = self.model.def(id);
            let message =
                format!("{} `{}` is built more than {MAX_DEPTH} levels deep", def.kind.what(), def.name);
            let error = Diagnostic::error("too-deep", def.span, message);
            self.report(error.note("counted through members, elements, typedefs and base interfaces"));
            self.cut(id);
        }
    }

    /// Removes the components of a definition, so that definitions built on it are not too deep again.
    fn cut(&mut self, id: DefId) {
        self.states[id.index()].depth = 0;
        let stand_in = self.intern(Type::Object);
        match &mut self.model.defs[id.index()].kind {
            DefKind::Interface(interface) => interface.bases.clear(),
            DefKind::Value(value) => {
                value.bases.clear();
                value.supports.clear();
                value.state.clear();
            }
            DefKind::ValueBox(boxed) => boxed.ty = stand_in,
            DefKind::Bitset(bitset) => bitset.base = None,
            DefKind::Struct(body) | DefKind::Exception(body) => {
                body.base = None;
                body.members.clear();
            }
            DefKind::Union(union) => union.cases.clear(),
            DefKind::Typedef(alias) => alias.ty = stand_in,
            _ => {}
        }
    }

    fn type_depth(&self, ty: TypeId) -> usize {
        match self.model.ty(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => 1 + self.type_depth(*element),
            Type::Map { key, value, .. } => 1 + self.type_depth(*key).max(self.type_depth(*value)),
            // References and values are held by reference, so recursion does not pass through them.
            Type::Named(def) if self.model.interface(*def).is_none() && self.model.value(*def).is_none() => {
                self.states[def.index()].depth
            }
            _ => 0,
        }
    }
}
