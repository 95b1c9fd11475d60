//! Resolution of types.

use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::{expr, fixed};
use crate::ast::{Expr, Name, Preamble, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Primitive, Type, TypeId};
use crate::source::Span;

/// Maximum total number of elements of an array, in all its dimensions.
const MAX_ELEMENTS: u64 = 1 << 31;

impl Resolver<'_> {
    /// Resolves a type that must be complete. A struct, union or enum may be declared in place.
    pub(super) fn type_spec(&mut self, ty: TypeSpec, scope: ScopeId) -> Option<TypeId> {
        match ty.kind {
            TypeKind::Struct { .. } | TypeKind::Union(_) | TypeKind::Enum { .. } => {
                self.constructed(Preamble::default(), ty, scope)
            }
            _ => self.simple_type(&ty, scope),
        }
    }

    /// Resolves a type that is not declared in place and must be complete.
    pub(super) fn simple_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        let kind = match &ty.kind {
            TypeKind::Primitive(primitive) => Type::Primitive(*primitive),
            TypeKind::Object => Type::Object,
            TypeKind::String(bound) => Type::String(length_bound(&mut self.symbols, bound.as_ref(), scope)?),
            TypeKind::WString(bound) => {
                Type::WString(length_bound(&mut self.symbols, bound.as_ref(), scope)?)
            }
            TypeKind::Sequence { element, bound } => {
                let element = self.element_type(element, scope);
                let bound = length_bound(&mut self.symbols, bound.as_ref(), scope);
                Type::Sequence { element: element?, bound: bound? }
            }
            TypeKind::Name(name) => {
                let ty = named_type(&mut self.symbols, name, scope)?;
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
                let bound = length_bound(&mut self.symbols, bound.as_ref(), scope);
                check_key(&mut self.symbols, key?, span)?;
                Type::Map { key: key?, value: value?, bound: bound? }
            }
            TypeKind::Fixed(Some(parts)) => fixed::fixed_type(&mut self.symbols, &parts.0, &parts.1, scope)?,
            TypeKind::Fixed(None) => {
                let message = "`fixed` without digits is allowed only as the type of a constant";
                let error = Diagnostic::error("bad-fixed", ty.span, message);
                let help =
                    "write how many digits it has, and how many of them follow the point: `fixed<9, 2>`";
                return self.symbols.reject(error.help(help));
            }
            _ => return None,
        };
        Some(self.symbols.intern(kind))
    }

    /// Resolves the element type of a sequence or map, which may be incomplete: types can be recursive.
    fn element_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        let TypeKind::Name(name) = &ty.kind else { return self.simple_type(ty, scope) };
        let ty = named_type(&mut self.symbols, name, scope)?;
        if let Type::Named(def) = ty
            && self.symbols.states[def.index()].progress != Progress::Complete
        {
            self.recursion_possible = true;
        }
        Some(self.symbols.intern(ty))
    }

    /// Checks that a struct or union is defined before another type contains a value of it.
    pub(super) fn check_complete(&mut self, def: DefId, span: Span) -> Option<()> {
        let what = match self.symbols.model.def(def).kind {
            DefKind::Struct(_) => "struct",
            DefKind::Union(_) => "union",
            // Values are held by reference, and may contain themselves.
            DefKind::Value(_) => {
                self.recursion_possible |= self.symbols.states[def.index()].progress != Progress::Complete;
                return Some(());
            }
            _ => return Some(()),
        };
        let name = self.symbols.model.scoped_name(def);
        let error = match self.symbols.states[def.index()].progress {
            Progress::Complete => return Some(()),
            Progress::Open => {
                let message = format!("{what} `{name}` contains itself");
                let error = Diagnostic::error("recursive", span, message);
                error.and(self.symbols.model.def(def).span, format!("inside the body of this {what}"))
            }
            Progress::Forward(forward) => {
                let message = format!("{what} `{name}` is used before it is defined");
                Diagnostic::error("incomplete", span, message).and(forward, "only declared here")
            }
        };
        self.symbols.reject(error.help(format!(
            "until the end of its definition it can only be the element of a sequence or map: `sequence<{name}>`"
        )))
    }

    pub(super) fn constant_type(&mut self, ty: &TypeSpec, scope: ScopeId) -> Option<TypeId> {
        if let TypeKind::Fixed(Some(_)) = ty.kind {
            let message = "the fixed-point type of a constant must be `fixed`, without digits and scale";
            let error = Diagnostic::error("anonymous-type", ty.span, message);
            let help = "write `fixed`, which takes its digits from the value, or the name of a typedef";
            return self.symbols.reject(error.help(help));
        }
        let id = self.simple_type(ty, scope)?;
        let fits = match self.symbols.model.stripped(id) {
            Type::Primitive(_) | Type::String(_) | Type::WString(_) | Type::Fixed { .. } => true,
            Type::Named(def) => matches!(self.symbols.model.def(*def).kind, DefKind::Enum(_)),
            _ => false,
        };
        if fits {
            return Some(id);
        }
        let message = format!("a constant cannot be of type `{}`", self.symbols.model.describe(id));
        let error = Diagnostic::error("not-a-constant-type", ty.span, message);
        self.symbols
            .reject(error.note("a constant must be a number, character, boolean, string or enumerator"))
    }
}

/// Checks that keys of a map can be compared and ordered.
fn check_key(symbols: &mut Symbols<'_>, key: TypeId, span: Span) -> Option<()> {
    let fits = match symbols.model.stripped(key) {
        Type::Primitive(primitive) => !primitive.is_float(),
        Type::String(_) | Type::WString(_) | Type::Fixed { .. } => true,
        Type::Named(def) => matches!(symbols.model.def(*def).kind, DefKind::Enum(_) | DefKind::Bitmask(_)),
        _ => false,
    };
    if fits {
        return Some(());
    }
    let message = format!("the keys of a map cannot be of type `{}`", symbols.model.describe(key));
    let error = Diagnostic::error("bad-key", span, message);
    symbols.reject(
        error.note("a key must be an integer, `octet`, character, boolean, `fixed`, string, enum or bitmask"),
    )
}

fn named_type(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<Type> {
    let entity = symbols.lookup(name, scope)?;
    type_of(symbols, entity, name)
}

/// Returns the type that an entity is. `name` is its name in the text, for messages.
pub(super) fn type_of(symbols: &mut Symbols<'_>, entity: Entity, name: &Name) -> Option<Type> {
    match entity {
        Entity::TypeCode => return Some(Type::TypeCode),
        Entity::TemplateType(id) => return Some(symbols.model.ty(id).clone()),
        _ => {}
    }
    if let Entity::Def(def) = entity {
        let is_type = !matches!(
            symbols.model.def(def).kind,
            DefKind::Module(_)
                | DefKind::Operation(_)
                | DefKind::Attribute(_)
                | DefKind::Exception(_)
                | DefKind::Const(_)
        );
        if is_type {
            return Some(Type::Named(def));
        }
    }
    let error = symbols.wrong_kind(entity, name, "not-a-type", "a type");
    symbols.reject(match entity {
        Entity::Def(def) if matches!(symbols.model.def(def).kind, DefKind::Exception(_)) => error
            .note("an exception can only be raised; it cannot be the type of a member, parameter or result"),
        Entity::Enumerator(enumeration, _) => {
            error.help(format!("its type is `{}`", symbols.model.scoped_name(enumeration)))
        }
        _ => error,
    })
}

/// Returns the array type with these dimensions; the element type itself if there are none.
pub(super) fn array(
    symbols: &mut Symbols<'_>,
    element: TypeId,
    dims: &[Expr],
    scope: ScopeId,
) -> Option<TypeId> {
    if dims.is_empty() {
        return Some(element);
    }
    let sizes: Vec<Option<u32>> =
        dims.iter().map(|dim| positive(symbols, dim, "the size of an array", scope)).collect();
    let sizes: Vec<u32> = sizes.into_iter().collect::<Option<_>>()?;
    let total = sizes.iter().try_fold(1u64, |total, size| total.checked_mul(u64::from(*size)));
    if total.is_none_or(|total| total > MAX_ELEMENTS) {
        let span = dims.first().map_or(Span::START, |dim| dim.span);
        let span = dims.last().map_or(span, |last| span.to(last.span));
        let message = format!("an array must not have more than {MAX_ELEMENTS} elements");
        return symbols.reject(Diagnostic::error("too-large", span, message));
    }
    Some(symbols.intern(Type::Array { element, dims: sizes }))
}

/// Evaluates a bound. `None` means that an error was reported, and `Some(None)` that there is no bound.
fn length_bound(symbols: &mut Symbols<'_>, bound: Option<&Expr>, scope: ScopeId) -> Option<Option<u32>> {
    match bound {
        None => Some(None),
        Some(bound) => positive(symbols, bound, "a bound", scope).map(Some),
    }
}

/// Evaluates a constant from 1 to 2^32 - 1.
fn positive(symbols: &mut Symbols<'_>, value: &Expr, what: &str, scope: ScopeId) -> Option<u32> {
    let number = expr::integer(symbols, value, Primitive::ULong, scope)?;
    match u32::try_from(number) {
        Ok(number) if number > 0 => Some(number),
        Ok(_) | Err(_) => {
            let message = format!("{what} must be from 1 to {}, but is {number}", u32::MAX);
            symbols.reject(Diagnostic::error("bad-bound", value.span, message))
        }
    }
}
