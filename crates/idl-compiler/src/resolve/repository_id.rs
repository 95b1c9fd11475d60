//! Repository ids: `#pragma prefix`, `ID`, `version`, `typeid`, `typeprefix`.
//!
//! A prefix precedes the whole scoped name (OMG "RepositoryIds", clauses "Repository Identifier Prefix
//! Declaration" and "The Prefix Pragma"; JacORB and TAO do the same). In omniORB, a `#pragma prefix` inside a
//! scope replaces the names of the enclosing scopes instead. For prefixes at file level, such as the prefix
//! of all OMG files, both rules give the same result.
//!
//! A `#pragma prefix` is valid up to the end of its file. A file that is included at file level starts
//! without a prefix. A file that is included inside a scope starts with the prefix of the scope.

use std::rc::Rc;

use super::scope::{Entity, ScopeId};
use super::symbols::{EarlyPrefix, ExplicitId, Symbols};
use crate::ast::{Ident, Name, Pragma, StringArg};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind};
use crate::source::Span;
use crate::work;

/// Maximum length of a repository id. Receivers reject longer ones.
const MAX_ID_BYTES: usize = 1024;

pub(super) fn repository_id(symbols: &Symbols<'_>, def: DefId) -> String {
    let state = &symbols.states[def.index()].repository_id;
    if let Some(explicit) = &state.explicit {
        return explicit.id.clone();
    }
    let version = state.version.as_ref().map_or("1.0", |(version, _)| version.as_str());
    let slash = if state.prefix.is_empty() { "" } else { "/" };
    format!("IDL:{}{slash}{}:{version}", state.prefix, symbols.model.path(def).join("/"))
}

/// Checks that an id that is marshalled is not too long for receivers.
pub(super) fn check_id_length(symbols: &mut Symbols<'_>, def: DefId, id: &str) {
    let def = symbols.model.def(def);
    let is_marshalled = !matches!(
        def.kind,
        DefKind::Module(_) | DefKind::Const(_) | DefKind::Operation(_) | DefKind::Attribute(_)
    );
    if is_marshalled && id.len() > MAX_ID_BYTES {
        let message = format!(
            "the repository id of `{}` has {} bytes, but at most {MAX_ID_BYTES} can be sent",
            def.name,
            id.len()
        );
        let error = Diagnostic::error("repository-id", def.span, message);
        symbols.report(error.help("choose a shorter prefix, or give it an id with `typeid`"));
    }
}

/// Returns the prefix of repository ids here, from a `#pragma prefix` in the file or a `typeprefix`.
pub(super) fn prefix(symbols: &Symbols<'_>, scope: ScopeId, span: Span) -> Rc<str> {
    let (mut at, mut file) = (Some(scope), span.file);
    while let Some(id) = at {
        work::count_step();
        let scope = symbols.scope(id);
        let mut pragma = scope.prefixes.get(&file);
        // The file was included inside the scope, possibly indirectly.
        while let (None, Some(opened_in)) = (pragma, scope.opened_in.filter(|opened_in| *opened_in != file)) {
            work::count_step();
            file = symbols.model.sources().includer(file).unwrap_or(opened_in);
            pragma = scope.prefixes.get(&file);
        }
        if let Some(prefix) = pragma.or(scope.type_prefix.as_ref()) {
            return Rc::clone(prefix);
        }
        at = scope.parent;
    }
    Rc::default()
}

pub(super) fn pragma(symbols: &mut Symbols<'_>, pragma: &Pragma, scope: ScopeId) {
    match pragma {
        Pragma::Prefix(prefix) => {
            let file = prefix.span.file;
            if let Some(prefix) = checked_prefix(symbols, prefix) {
                symbols.scope_mut(scope).prefixes.insert(file, prefix);
            }
        }
        Pragma::Id { name, id } => set_id(symbols, name, id, false, scope),
        Pragma::Version { name, version } => set_version(symbols, name, version, scope),
    }
}

pub(super) fn type_id(symbols: &mut Symbols<'_>, name: &Name, id: &StringArg, scope: ScopeId) {
    set_id(symbols, name, id, true, scope);
}

fn set_id(symbols: &mut Symbols<'_>, name: &Name, id: &StringArg, by_typeid: bool, scope: ScopeId) {
    let Some(def) = lookup_identified(symbols, name, scope) else { return };
    if !check_id(symbols, id) {
        return;
    }
    let state = &symbols.states[def.index()].repository_id;
    let conflict = match (&state.explicit, &state.version) {
        (Some(before), _) if before.by_typeid && by_typeid => {
            Some((before.span, "the first `typeid` is here"))
        }
        (Some(before), _) if before.id != id.text => Some((before.span, "first set here")),
        (Some(_), _) => None,
        (None, Some((_, span))) if repository_id(symbols, def) != id.text => {
            Some((*span, "its version is set here"))
        }
        (None, _) => None,
    };
    if let Some((span, label)) = conflict {
        let message = format!("the repository id of `{}` is set a second time", name.text());
        symbols.report(Diagnostic::error("repository-id", id.span, message).and(span, label));
        return;
    }
    symbols.states[def.index()].repository_id.explicit =
        Some(ExplicitId { id: id.text.clone(), span: id.span, by_typeid });
}

fn set_version(symbols: &mut Symbols<'_>, name: &Name, version: &StringArg, scope: ScopeId) {
    let Some(def) = lookup_identified(symbols, name, scope) else { return };
    let parts: Vec<&str> = version.text.split('.').collect();
    let number = |part: &str| {
        !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()) && part.parse::<u16>().is_ok()
    };
    if parts.len() != 2 || !parts.iter().all(|part| number(part)) {
        let message = format!("`{}` is not a version", version.text);
        let error = Diagnostic::error("bad-pragma", version.span, message);
        symbols.report(error.note("a version is `major.minor`, two numbers up to 65535"));
        return;
    }
    let state = &symbols.states[def.index()].repository_id;
    let conflict = match (&state.explicit, &state.version) {
        (Some(explicit), _) if !explicit.id.ends_with(&format!(":{}", version.text)) => {
            Some((explicit.span, "the whole id was set here"))
        }
        (None, Some((before, span))) if *before != version.text => Some((*span, "first set here")),
        _ => None,
    };
    if let Some((span, label)) = conflict {
        let message = format!("the version of `{}` is set a second time", name.text());
        symbols.report(Diagnostic::error("repository-id", version.span, message).and(span, label));
        return;
    }
    symbols.states[def.index()].repository_id.version = Some((version.text.clone(), version.span));
}

pub(super) fn type_prefix(symbols: &mut Symbols<'_>, name: &Name, prefix: &StringArg, scope: ScopeId) {
    let entity = symbols.lookup_silently(name, scope);
    if entity.is_none_or(|entity| entity == Entity::Corba) {
        let path = future_path(symbols, name, scope).join("::");
        let early = EarlyPrefix { name: name.clone(), prefix: prefix.clone(), scope };
        symbols.early_prefixes.0.entry(path).or_default().push(early);
        return;
    }
    if let Some(def) = lookup_identified(symbols, name, scope) {
        set_type_prefix(symbols, def, name, prefix);
    }
}

/// Applies the `typeprefix` declarations that precede the first declaration of a scope.
pub(super) fn apply_early_prefixes(symbols: &mut Symbols<'_>, def: DefId) {
    if symbols.early_prefixes.0.is_empty() {
        return;
    }
    let path = symbols.model.scoped_name(def);
    for early in symbols.early_prefixes.0.remove(&path).unwrap_or_default() {
        set_type_prefix(symbols, def, &early.name, &early.prefix);
    }
}

/// Reports `typeprefix` declarations of scopes that are never declared, except for the predeclared `CORBA`.
pub(super) fn report_early_prefixes(symbols: &mut Symbols<'_>) {
    let unapplied = std::mem::take(&mut symbols.early_prefixes).0.into_iter();
    let mut unapplied: Vec<(bool, EarlyPrefix)> = unapplied
        .flat_map(|(path, early)| early.into_iter().map(move |early| (path == "CORBA", early)))
        .collect();
    unapplied.sort_by_key(|(_, early)| early.prefix.span);
    for (is_corba, early) in unapplied {
        if is_corba {
            checked_prefix(symbols, &early.prefix);
        } else {
            lookup_identified(symbols, &early.name, early.scope);
        }
    }
}

/// Returns the scoped name of the scope that `name` refers to once it is declared.
fn future_path(symbols: &Symbols<'_>, name: &Name, scope: ScopeId) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let first = Name { parts: name.parts.iter().take(1).cloned().collect(), ..name.clone() };
    let mut parts = name.parts.iter();
    match (name.absolute, symbols.lookup_silently(&first, scope)) {
        (false, Some(Entity::Def(def))) => {
            path.extend(symbols.model.path(def).iter().map(|part| (*part).to_owned()));
            parts.next();
        }
        (false, None) => {
            let outer = symbols.scope(scope).owner.map_or(Vec::new(), |owner| symbols.model.path(owner));
            path.extend(outer.iter().map(|part| (*part).to_owned()));
        }
        _ => {}
    }
    path.extend(parts.map(|part| part.text.clone()));
    path
}

fn set_type_prefix(symbols: &mut Symbols<'_>, def: DefId, name: &Name, prefix: &StringArg) {
    let Some(inside) = symbols.scope_of(Entity::Def(def)) else {
        let message = format!("`{}` is not a scope", name.text());
        let error = Diagnostic::error("repository-id", name.span, message);
        let error = error.and(symbols.model.def(def).span, "declared here");
        symbols.report(
            error.note("`typeprefix` must name a module, interface, value type, struct, union or exception"),
        );
        return;
    };
    let Some(text) = checked_prefix(symbols, prefix) else { return };
    if let Some(first) = symbols.states[def.index()].repository_id.type_prefix {
        // If several files open a module, each may contain the same `typeprefix`.
        if symbols.scope(inside).type_prefix.as_ref() == Some(&text) {
            return;
        }
        let message = format!("a second `typeprefix` of `{}` sets another prefix", name.text());
        symbols
            .report(Diagnostic::error("repository-id", prefix.span, message).and(first, "the first is here"));
        return;
    }
    symbols.states[def.index()].repository_id.type_prefix = Some(prefix.span);
    let inside = symbols.scope_mut(inside);
    inside.prefixes.clear();
    inside.type_prefix = Some(Rc::clone(&text));
    apply_prefix(symbols, def, &text);
}

/// Applies a prefix to a definition and its contents, except scopes with a `typeprefix`.
fn apply_prefix(symbols: &mut Symbols<'_>, root: DefId, prefix: &Rc<str>) {
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        work::count_step();
        symbols.states[id.index()].repository_id.prefix = Rc::clone(prefix);
        for index in 0..symbols.states[id.index()].inner_defs.len() {
            let inner = symbols.states[id.index()].inner_defs[index];
            let state = &symbols.states[inner.index()];
            if state.repository_id.type_prefix.is_some() {
                continue;
            }
            if let Some(scope) = state.scope {
                symbols.scope_mut(scope).prefixes.clear();
            }
            todo.push(inner);
        }
    }
}

/// Handles a module that is opened again: new declarations get the new prefix, but the module keeps its id.
pub(super) fn update_prefix_of_reopened_module(
    symbols: &mut Symbols<'_>,
    def: DefId,
    name: &Ident,
    scope: ScopeId,
) {
    let prefix = prefix(symbols, scope, name.span);
    let state = &symbols.states[def.index()];
    let Some(inside) = state.scope else { return };
    if state.repository_id.type_prefix.is_none() && state.repository_id.prefix != prefix {
        let message = format!("module `{}` is opened again under another prefix", name.text);
        let warning = Diagnostic::warning("repository-id", name.span, message);
        let warning = warning.and(
            symbols.model.def(def).span,
            format!("first opened with prefix \"{}\"", state.repository_id.prefix),
        );
        symbols.report(warning.note(format!("definitions in this opening get the prefix \"{prefix}\"")));
    }
    let inside = symbols.scope_mut(inside);
    inside.prefixes.remove(&name.span.file);
    inside.opened_in = Some(name.span.file);
}

/// Checks that a definition has the same prefix as its forward declaration.
pub(super) fn check_forward_prefix(symbols: &mut Symbols<'_>, def: DefId, name: &Ident, scope: ScopeId) {
    let state = &symbols.states[def.index()];
    let prefix = prefix(symbols, scope, name.span);
    if state.repository_id.explicit.is_none() && state.repository_id.prefix != prefix {
        let message =
            format!("the repository id prefix of `{}` differs from its earlier declaration", name.text);
        let error = Diagnostic::error("repository-id", name.span, message);
        let error = error.and(
            symbols.model.def(def).span,
            format!("declared here with prefix \"{}\"", state.repository_id.prefix),
        );
        let error = error.note(format!("the prefix here is \"{prefix}\""));
        symbols.report(error);
    }
}

/// Returns the definition that a pragma, `typeid` or `typeprefix` names.
fn lookup_identified(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<DefId> {
    match symbols.lookup(name, scope)? {
        Entity::Def(def) if symbols.templates.is_outside_checked_body(def) => None,
        Entity::Def(def) => Some(def),
        entity => {
            symbols.reject_wrong_kind(entity, name, "repository-id", "a definition with a repository id")
        }
    }
}

fn check_id(symbols: &mut Symbols<'_>, id: &StringArg) -> bool {
    let fits = |text: &str| text.bytes().all(|c| c.is_ascii_graphic());
    let format = id.text.split_once(':').filter(|(format, body)| !format.is_empty() && !body.is_empty());
    let bad_idl = match format {
        Some(("IDL", body)) => !body.rsplit_once(':').is_some_and(|(name, version)| {
            let (major, minor) = version.split_once('.').unwrap_or((version, ""));
            !name.is_empty() && [major, minor].iter().all(|part| part.parse::<u16>().is_ok())
        }),
        Some(_) => false,
        None => true,
    };
    if bad_idl || !fits(&id.text) {
        let message = format!("\"{}\" is not a repository id", id.text.escape_debug());
        let error = Diagnostic::error("repository-id", id.span, message);
        symbols.report(
            error.note("a repository id is `format:text`; the usual format is `IDL:scope/name:major.minor`"),
        );
        return false;
    }
    true
}

/// Returns the prefix if it is valid in a repository id. A `:` would end the id's name.
fn checked_prefix(symbols: &mut Symbols<'_>, prefix: &StringArg) -> Option<Rc<str>> {
    let fits = prefix.text.bytes().all(|c| c.is_ascii_graphic() && c != b':');
    let slashes = prefix.text.starts_with('/') || prefix.text.ends_with('/');
    if !fits || slashes {
        let message = format!("\"{}\" is not a prefix of repository ids", prefix.text.escape_debug());
        let error = Diagnostic::error("bad-pragma", prefix.span, message);
        return symbols.reject(
            error.note("a prefix must be ASCII without blanks and `:`, and without `/` at its ends; a `/` is added after it"),
        );
    }
    if prefix.text.len() > MAX_ID_BYTES {
        let length = prefix.text.len();
        let message = format!("this prefix has {length} bytes, but a repository id at most {MAX_ID_BYTES}");
        return symbols.reject(Diagnostic::error("bad-pragma", prefix.span, message));
    }
    Some(prefix.text.as_str().into())
}
