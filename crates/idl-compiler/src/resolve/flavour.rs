//! Abstract and local interfaces and native types: rules for their derivation and for the locations of their
//! use.

use std::collections::HashMap;

use super::article;
use super::symbols::Symbols;
use crate::ast::{Ident, Name};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Flavour, Model, Type, TypeId};
use crate::source::Span;

/// A use of a type, for messages.
struct Place {
    ty: TypeId,
    span: Span,
    /// The item that has the type: `parameter `a``.
    what: String,
}

/// Checks that all declarations of an interface have the same kind.
pub(super) fn check_same_flavour(symbols: &mut Symbols<'_>, id: DefId, name: &Ident, kind: &DefKind) {
    let earlier = symbols.model.def(id);
    let (DefKind::Interface(before), DefKind::Interface(now)) = (&earlier.kind, kind) else { return };
    if before.flavour == now.flavour && earlier.kind.what() == kind.what() {
        return;
    }
    let (before, now) = (earlier.kind.what(), kind.what());
    let message = format!("{now} `{}` is declared elsewhere as {}", name.text, article(before));
    let error = Diagnostic::error("forward-kind", name.span, message);
    let error = error.and(earlier.span, format!("declared here as {}", article(before)));
    symbols.report(error.help(format!("write `{before}` in both places, or `{now}`")));
}

/// Checks the flavours of bases: those of abstract interfaces are abstract, those of plain ones are plain
/// or abstract, those of local ones are arbitrary. `names` are the bases as listed.
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
        let what = base.kind.what();
        let of = &interface.text;
        let (code, message, note) = match (flavour, of_base) {
            (Flavour::Abstract, Flavour::Plain | Flavour::Local) => (
                "not-abstract",
                format!("abstract interface `{of}` inherits from {what} `{}`", base.name),
                "an abstract interface may stand for a value, which is no object",
            ),
            (Flavour::Plain, Flavour::Local) => (
                "local-base",
                format!("interface `{of}`, which is not local, inherits from {what} `{}`", base.name),
                "objects of a local interface cannot be called from elsewhere",
            ),
            _ => continue,
        };
        // If the base is listed by a typedef, its name differs, and the interface's span is used.
        let listed = names.iter().find(|name| name.parts.last().is_some_and(|part| part.text == base.name));
        let error = Diagnostic::error(code, listed.map_or(interface.span, |name| name.span), message);
        let error = error.and(base.span, format!("declared here as {}", article(what)));
        symbols.report(error.note(note));
    }
}

/// Checks the uses of local interfaces, native types and `@stream`. Local interfaces, and types built of
/// them, must not be in remote signatures or in the state of values. Native types are for parameters,
/// results and attributes only. `@stream` is for calls that are always remote. The check runs at the end,
/// because a sequence may be declared before its elements are defined.
pub(super) fn check_local_types(symbols: &mut Symbols<'_>) {
    let special = |kind: &DefKind| match kind {
        DefKind::Interface(interface) => interface.flavour != Flavour::Plain,
        kind => matches!(kind, DefKind::Native),
    };
    if !symbols.model.defs().iter().any(|def| special(&def.kind)) {
        return;
    }
    let mut known = HashMap::new();
    for index in 0..symbols.model.defs().len() {
        let id = DefId(index as u32);
        symbols.context = Some(id);
        check_streams_of(symbols, id);
        for place in signature(&symbols.model, id) {
            check_not_local(symbols, id, &place, &mut known);
        }
        for place in contents(&symbols.model, id) {
            check_not_native(symbols, &place);
        }
    }
    symbols.context = None;
}

/// Returns the types in the signature of an operation or attribute that can be called remotely, the state
/// of a value, or the type in a box.
fn signature(model: &Model, id: DefId) -> Vec<Place> {
    let def = model.def(id);
    let travels = def.parent.and_then(|parent| model.interface(parent));
    let travels = travels.is_some_and(|interface| interface.flavour != Flavour::Local);
    let mut places = Vec::new();
    let mut add = |ty, span, what: String| places.push(Place { ty, span, what });
    match &def.kind {
        DefKind::Operation(operation) if travels => {
            if let Some(result) = operation.result {
                add(result, def.span, "result".to_owned());
            }
            for param in &operation.params {
                add(param.ty, param.span, format!("parameter `{}`", param.name));
            }
            raised(model, &operation.raises, |ty, what| add(ty, def.span, what));
        }
        DefKind::Attribute(attribute) if travels => {
            add(attribute.ty, def.span, "value".to_owned());
            raised(model, &attribute.get_raises, |ty, what| add(ty, def.span, what));
            raised(model, &attribute.set_raises, |ty, what| add(ty, def.span, what));
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
    places
}

/// Adds the types of the members of exceptions.
fn raised(model: &Model, exceptions: &[DefId], mut add: impl FnMut(TypeId, String)) {
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
    place: &Place,
    known: &mut HashMap<TypeId, Option<DefId>>,
) {
    let local = *known.entry(place.ty).or_insert_with(|| symbols.model.local_part(place.ty));
    let Some(local) = local else { return };
    let def = symbols.model.def(id);
    let owner = format!("{} `{}`", def.kind.what(), symbols.model.scoped_name(id));
    let help = match def.parent.map(|parent| symbols.model.def(parent)) {
        Some(parent) if matches!(parent.kind, DefKind::Interface(_)) => {
            format!("only a local interface can have it: `local interface {}`", parent.name)
        }
        _ => "a value travels with all its state".to_owned(),
    };
    let (what, ty) = (&place.what, symbols.model.describe(place.ty));
    let message = format!("{what} of {owner} is of local type `{ty}`");
    let error = Diagnostic::error("local-type", place.span, message);
    let declared = symbols.model.def(local);
    let label = format!("`{}` is local: references to it never leave the process", declared.name);
    symbols.report(error.and(declared.span, label).help(help));
}

/// Returns the types that a definition is built of: members, state, elements.
fn contents(model: &Model, id: DefId) -> Vec<Place> {
    let def = model.def(id);
    let member = |member: &crate::model::Member| Place {
        ty: member.ty,
        span: member.span,
        what: format!("member `{}`", member.name),
    };
    match &def.kind {
        DefKind::Struct(body) | DefKind::Exception(body) => body.members.iter().map(member).collect(),
        DefKind::Union(union) => union.cases.iter().map(|case| member(&case.member)).collect(),
        DefKind::Value(value) => value.state.iter().map(|state| member(&state.member)).collect(),
        DefKind::ValueBox(boxed) => {
            vec![Place { ty: boxed.ty, span: def.span, what: format!("box `{}`", def.name) }]
        }
        DefKind::Typedef(alias) => match model.ty(alias.ty) {
            // An alias of a native type is a native type.
            Type::Named(_) => Vec::new(),
            _ => vec![Place { ty: alias.ty, span: def.span, what: format!("typedef `{}`", def.name) }],
        },
        _ => Vec::new(),
    }
}

fn check_not_native(symbols: &mut Symbols<'_>, place: &Place) {
    let mut todo = vec![place.ty];
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
                format!("{} is built of native type `{}`", place.what, symbols.model.scoped_name(def.id));
            let error = Diagnostic::error("native-member", place.span, message);
            let error = error.and(def.span, "declared here as native");
            return symbols
                .report(error.note("a native type stands only for parameters, results and attributes"));
        }
    }
}

fn check_streams_of(symbols: &mut Symbols<'_>, id: DefId) {
    let def = symbols.model.def(id);
    let DefKind::Operation(operation) = &def.kind else { return };
    let owner = def.parent.and_then(|parent| symbols.model.interface(parent));
    let (of, note) = match owner.map(|interface| interface.flavour) {
        Some(Flavour::Local) => {
            ("a local interface", "a call of a local object sends nothing that could be taken while it comes")
        }
        Some(Flavour::Abstract) => {
            ("an abstract interface", "a call of a value sends nothing that could be taken while it comes")
        }
        Some(Flavour::Plain) | None => return,
    };
    let streamed = operation.params.iter().find_map(|param| param.annotations.get("stream"));
    if let Some(annotation) = streamed {
        let message = format!("`@stream` in operation `{}` of {of}", def.name);
        let error = Diagnostic::error("bad-annotation", annotation.span, message);
        symbols.report(error.note(note));
    }
}
