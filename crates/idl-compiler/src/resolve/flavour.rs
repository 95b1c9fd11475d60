//! The bases and uses that abstract interfaces, local interfaces and native types can have.

use std::collections::HashMap;

use super::scope::with_article;
use super::symbols::Symbols;
use crate::ast::{Ident, Name};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Flavour, Model, Type, TypeId};
use crate::source::Span;

struct TypeUse {
    ty: TypeId,
    span: Span,
    /// The item that has the type: "parameter `a`".
    item: String,
}

pub(super) fn check_same_flavour(symbols: &mut Symbols<'_>, id: DefId, name: &Ident, kind: &DefKind) {
    let earlier = symbols.model.def(id);
    let (DefKind::Interface(before), DefKind::Interface(now)) = (&earlier.kind, kind) else { return };
    if before.flavour == now.flavour && earlier.kind.description() == kind.description() {
        return;
    }
    let (before, now) = (earlier.kind.description(), kind.description());
    let message = format!("{now} `{}` is declared elsewhere as {}", name.text, with_article(before));
    let error = Diagnostic::error("forward-kind", name.span, message);
    let error = error.and(earlier.span, format!("declared here as {}", with_article(before)));
    symbols.report(error.help(format!("write `{before}` in both places, or `{now}`")));
}

/// Checks the flavours of bases: an abstract interface can have only abstract bases, a plain interface plain
/// or abstract bases, and a local interface any bases. `names` are the bases as listed.
pub(super) fn check_base_flavours(
    symbols: &mut Symbols<'_>,
    flavour: Flavour,
    interface: &Ident,
    names: &[Name],
    bases: &[DefId],
) {
    for base in bases {
        let Some(of_base) = symbols.model.interface(*base).map(|base| base.flavour) else { continue };
        let base = symbols.model.def(*base);
        let what = base.kind.description();
        let of = &interface.text;
        let (code, message, note) = match (flavour, of_base) {
            (Flavour::Abstract, Flavour::Plain | Flavour::Local) => (
                "not-abstract",
                format!("abstract interface `{of}` cannot inherit from {what} `{}`", base.name),
                "an abstract interface may denote a value, which is not an object",
            ),
            (Flavour::Plain, Flavour::Local) => (
                "local-base",
                format!("interface `{of}`, which is not local, cannot inherit from {what} `{}`", base.name),
                "objects of a local interface cannot be called from other processes",
            ),
            _ => continue,
        };
        // A base that is listed by a typedef's name is not found. Then the error is at the interface.
        let listed = names.iter().find(|name| name.parts.last().is_some_and(|part| part.text == base.name));
        let error = Diagnostic::error(code, listed.map_or(interface.span, |name| name.span), message);
        let error = error.and(base.span, format!("declared here as {}", with_article(what)));
        symbols.report(error.note(note));
    }
}

/// Checks where local interfaces, native types and `@stream` parameters are used. Types that contain
/// references to local interfaces are not allowed in remote operations and in the state of values. Native
/// types are not allowed inside other types. `@stream` parameters are not allowed in operations of local and
/// abstract interfaces. The check runs at the end, because a sequence may be declared before its elements are
/// defined.
pub(super) fn check_restricted_uses(symbols: &mut Symbols<'_>) {
    let is_special = |kind: &DefKind| match kind {
        DefKind::Interface(interface) => interface.flavour != Flavour::Plain,
        kind => matches!(kind, DefKind::Native),
    };
    if !symbols.model.defs().iter().any(|def| is_special(&def.kind)) {
        return;
    }
    let mut local_parts = HashMap::new();
    for index in 0..symbols.model.defs().len() {
        let id = DefId(index as u32);
        symbols.current_def = Some(id);
        check_no_stream_parameters(symbols, id);
        for type_use in remote_types(&symbols.model, id) {
            check_not_local(symbols, id, &type_use, &mut local_parts);
        }
        for type_use in contents(&symbols.model, id) {
            check_not_native(symbols, &type_use);
        }
    }
    symbols.current_def = None;
}

/// Returns the types of a remote operation or attribute, the state of a value, or the type in a box.
fn remote_types(model: &Model, id: DefId) -> Vec<TypeUse> {
    let def = model.def(id);
    let is_remote = def.parent.and_then(|parent| model.interface(parent));
    let is_remote = is_remote.is_some_and(|interface| interface.flavour != Flavour::Local);
    let mut uses = Vec::new();
    let mut add = |ty, span, item: String| uses.push(TypeUse { ty, span, item });
    match &def.kind {
        DefKind::Operation(operation) if is_remote => {
            if let Some(result) = operation.result {
                add(result, def.span, "result".to_owned());
            }
            for param in &operation.params {
                add(param.ty, param.span, format!("parameter `{}`", param.name));
            }
            add_exception_members(model, &operation.raises, |ty, what| add(ty, def.span, what));
        }
        DefKind::Attribute(attribute) if is_remote => {
            add(attribute.ty, def.span, "value".to_owned());
            add_exception_members(model, &attribute.get_raises, |ty, what| add(ty, def.span, what));
            add_exception_members(model, &attribute.set_raises, |ty, what| add(ty, def.span, what));
        }
        DefKind::Value(value) => {
            for state in &value.state {
                let member = &state.member;
                add(member.ty, member.span, format!("state member `{}`", member.name));
            }
        }
        DefKind::ValueBox(boxed) => add(boxed.ty, def.span, "content".to_owned()),
        _ => {}
    }
    uses
}

fn add_exception_members(model: &Model, exceptions: &[DefId], mut add: impl FnMut(TypeId, String)) {
    for id in exceptions {
        let scoped = model.scoped_name(*id);
        for member in model.all_struct_members(*id) {
            add(member.ty, format!("exception member `{scoped}::{}`", member.name));
        }
    }
}

fn check_not_local(
    symbols: &mut Symbols<'_>,
    id: DefId,
    type_use: &TypeUse,
    local_parts: &mut HashMap<TypeId, Option<DefId>>,
) {
    let local = *local_parts
        .entry(type_use.ty)
        .or_insert_with(|| symbols.model.reachable_local_interface(type_use.ty));
    let Some(local) = local else { return };
    let def = symbols.model.def(id);
    let owner = format!("{} `{}`", def.kind.description(), symbols.model.scoped_name(id));
    let help = match def.parent.map(|parent| symbols.model.def(parent)) {
        Some(parent) if matches!(parent.kind, DefKind::Interface(_)) => {
            format!("only a local interface can have it: write `local interface {}`", parent.name)
        }
        _ => "remove it, or its local parts: a value is sent with all its state".to_owned(),
    };
    let (what, ty) = (&type_use.item, symbols.model.describe(type_use.ty));
    let message = format!("{what} of {owner} has the local type `{ty}`");
    let error = Diagnostic::error("local-type", type_use.span, message);
    let declared = symbols.model.def(local);
    let label = format!("`{}` is local: references to it never leave the process", declared.name);
    symbols.report(error.and(declared.span, label).help(help));
}

/// Returns the types that a definition directly consists of: members, state, elements.
fn contents(model: &Model, id: DefId) -> Vec<TypeUse> {
    let def = model.def(id);
    let member = |member: &crate::model::Member| TypeUse {
        ty: member.ty,
        span: member.span,
        item: format!("member `{}`", member.name),
    };
    match &def.kind {
        DefKind::Struct(body) | DefKind::Exception(body) => body.members.iter().map(member).collect(),
        DefKind::Union(union) => union.cases.iter().map(|case| member(&case.member)).collect(),
        DefKind::Value(value) => value.state.iter().map(|state| member(&state.member)).collect(),
        DefKind::ValueBox(boxed) => {
            vec![TypeUse { ty: boxed.ty, span: def.span, item: format!("box `{}`", def.name) }]
        }
        DefKind::Typedef(alias) => match model.ty(alias.ty) {
            // An alias of a native type is a native type.
            Type::Named(_) => Vec::new(),
            _ => vec![TypeUse { ty: alias.ty, span: def.span, item: format!("typedef `{}`", def.name) }],
        },
        _ => Vec::new(),
    }
}

fn check_not_native(symbols: &mut Symbols<'_>, type_use: &TypeUse) {
    let mut todo = vec![type_use.ty];
    while let Some(ty) = todo.pop() {
        let Type::Named(def) = symbols.model.stripped(ty) else {
            // Typedefs of sequences and arrays are checked at their declaration.
            if !matches!(symbols.model.ty(ty), Type::Named(_)) {
                todo.extend(symbols.model.parts(symbols.model.ty(ty)));
            }
            continue;
        };
        let def = symbols.model.def(*def);
        if matches!(def.kind, DefKind::Native) {
            let message =
                format!("{} contains native type `{}`", type_use.item, symbols.model.scoped_name(def.id));
            let error = Diagnostic::error("native-member", type_use.span, message);
            let error = error.and(def.span, "declared here as native");
            return symbols
                .report(error.note("a native type is allowed only for parameters, results and attributes"));
        }
    }
}

fn check_no_stream_parameters(symbols: &mut Symbols<'_>, id: DefId) {
    let def = symbols.model.def(id);
    let DefKind::Operation(operation) = &def.kind else { return };
    let owner = def.parent.and_then(|parent| symbols.model.interface(parent));
    let (of, note) = match owner.map(|interface| interface.flavour) {
        Some(Flavour::Local) => ("a local interface", "a call of a local object sends no messages"),
        Some(Flavour::Abstract) => ("an abstract interface", "a call of a value sends no messages"),
        Some(Flavour::Plain) | None => return,
    };
    let streamed = operation.params.iter().find_map(|param| param.annotations.get("stream"));
    if let Some(annotation) = streamed {
        let message = format!("`@stream` is not allowed in operation `{}` of {of}", def.name);
        let error = Diagnostic::error("bad-annotation", annotation.span, message);
        symbols.report(error.note(note));
    }
}
