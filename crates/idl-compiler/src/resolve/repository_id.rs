//! Repository ids: `#pragma prefix`, `ID`, `version`, `typeid`, `typeprefix`.
//!
//! A prefix stands before the whole scoped name (OMG "RepositoryIds", clauses "Repository Identifier Prefix Declaration"
//! and "The Prefix Pragma"; JacORB and TAO do the same). omniORB lets a `#pragma prefix` inside a scope replace the names
//! of the scopes around instead; for prefixes at file level, all of the OMG's own, both give the same. A prefix belongs to
//! its file: an included file starts without one, and the one that includes goes on with its own.

use super::Resolver;
use super::scope::{Entity, ScopeId};
use crate::ast::{Ident, Name, Pragma, StringArg};
use crate::diagnostic::Diagnostic;
use crate::model::DefId;
use crate::source::Span;

/// What is known of the repository id of a definition.
pub(super) struct IdState {
    prefix: String,
    version: Option<(String, Span)>,
    /// Set whole.
    explicit: Option<Explicit>,
    /// A `typeprefix` names the definition itself.
    type_prefix: Option<Span>,
}

struct Explicit {
    id: String,
    span: Span,
    /// By `typeid`, which may stand only once.
    declared: bool,
}

impl IdState {
    pub(super) fn new(prefix: String) -> Self {
        IdState { prefix, version: None, explicit: None, type_prefix: None }
    }
}

impl Resolver<'_> {
    /// The finished id.
    pub(super) fn repository_id(&self, def: DefId) -> String {
        let state = &self.states[def.index()].id;
        if let Some(explicit) = &state.explicit {
            return explicit.id.clone();
        }
        let version = state.version.as_ref().map_or("1.0", |(version, _)| version.as_str());
        let slash = if state.prefix.is_empty() { "" } else { "/" };
        format!("IDL:{}{slash}{}:{version}", state.prefix, self.model.path(def).join("/"))
    }

    /// The prefix for what is declared in this scope at this place: what the file it stands in has said here or in the
    /// scopes around, or a `typeprefix`.
    pub(super) fn prefix(&self, scope: ScopeId, place: Span) -> String {
        let mut at = Some(scope);
        while let Some(id) = at {
            let scope = self.scope(id);
            if let Some(prefix) = scope.prefixes.get(&place.file).or(scope.type_prefix.as_ref()) {
                return prefix.clone();
            }
            at = scope.parent;
        }
        String::new()
    }

    pub(super) fn pragma(&mut self, pragma: &Pragma, scope: ScopeId) {
        match pragma {
            Pragma::Prefix(prefix) => {
                let file = prefix.span.file;
                if let Some(prefix) = self.checked_prefix(prefix) {
                    self.scope_mut(scope).prefixes.insert(file, prefix);
                }
            }
            Pragma::Id { name, id } => self.set_id(name, id, false, scope),
            Pragma::Version { name, version } => self.set_version(name, version, scope),
        }
    }

    pub(super) fn type_id(&mut self, name: &Name, id: &StringArg, scope: ScopeId) {
        self.set_id(name, id, true, scope);
    }

    fn set_id(&mut self, name: &Name, id: &StringArg, declared: bool, scope: ScopeId) {
        let Some(def) = self.identified(name, scope) else { return };
        if !self.check_id(id) {
            return;
        }
        let state = &self.states[def.index()].id;
        let conflict = match (&state.explicit, &state.version) {
            (Some(before), _) if before.declared && declared => {
                Some((before.span, "the first `typeid` is here"))
            }
            (Some(before), _) if before.id != id.text => Some((before.span, "set here before")),
            (Some(_), _) => None,
            (None, Some((_, span))) if self.repository_id(def) != id.text => {
                Some((*span, "its version was set here before"))
            }
            (None, _) => None,
        };
        if let Some((span, label)) = conflict {
            let message = format!("the repository id of `{}` is set a second time", name.text());
            self.report(Diagnostic::error("repository-id", id.span, message).and(span, label));
            return;
        }
        self.states[def.index()].id.explicit =
            Some(Explicit { id: id.text.clone(), span: id.span, declared });
    }

    fn set_version(&mut self, name: &Name, version: &StringArg, scope: ScopeId) {
        let Some(def) = self.identified(name, scope) else { return };
        let parts: Vec<&str> = version.text.split('.').collect();
        let number = |part: &str| {
            !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit()) && part.parse::<u16>().is_ok()
        };
        if parts.len() != 2 || !parts.iter().all(|part| number(part)) {
            let message = format!("`{}` is not a version", version.text);
            let error = Diagnostic::error("bad-pragma", version.span, message);
            self.report(error.note("a version is `major.minor`, two numbers up to 65535"));
            return;
        }
        let state = &self.states[def.index()].id;
        let conflict = match (&state.explicit, &state.version) {
            (Some(explicit), _) if !explicit.id.ends_with(&format!(":{}", version.text)) => {
                Some((explicit.span, "the whole id was set here"))
            }
            (None, Some((before, span))) if *before != version.text => Some((*span, "set here before")),
            _ => None,
        };
        if let Some((span, label)) = conflict {
            let message = format!("the version of `{}` is set a second time", name.text());
            self.report(Diagnostic::error("repository-id", version.span, message).and(span, label));
            return;
        }
        self.states[def.index()].id.version = Some((version.text.clone(), version.span));
    }

    pub(super) fn type_prefix(&mut self, name: &Name, prefix: &StringArg, scope: ScopeId) {
        let Some(def) = self.identified(name, scope) else { return };
        let Some(inside) = self.scope_of(Entity::Def(def)) else {
            let message = format!("`{}` is not a scope", name.text());
            let error = Diagnostic::error("repository-id", name.span, message);
            let error = error.and(self.model.def(def).span, "declared here");
            self.report(
                error.note("`typeprefix` names a module, interface, value type, struct, union or exception"),
            );
            return;
        };
        let Some(text) = self.checked_prefix(prefix) else { return };
        if let Some(first) = self.states[def.index()].id.type_prefix {
            let message = format!("a second `typeprefix` for `{}`", name.text());
            self.report(
                Diagnostic::error("repository-id", prefix.span, message).and(first, "the first is here"),
            );
            return;
        }
        self.states[def.index()].id.type_prefix = Some(prefix.span);
        let inside = self.scope_mut(inside);
        inside.prefixes.clear();
        inside.type_prefix = Some(text.clone());
        self.apply_prefix(def, &text);
    }

    /// Gives a definition and all inside it a prefix, except what has one of its own.
    fn apply_prefix(&mut self, root: DefId, prefix: &str) {
        self.states[root.index()].id.prefix = prefix.to_owned();
        // A definition comes after its parent in the arena, so one pass reaches all of them.
        let mut inside = vec![false; self.model.defs.len()];
        inside[root.index()] = true;
        for index in root.index() + 1..self.model.defs.len() {
            let within = self.model.defs[index].parent.is_some_and(|parent| inside[parent.index()]);
            if within && self.states[index].id.type_prefix.is_none() {
                inside[index] = true;
                self.states[index].id.prefix = prefix.to_owned();
                if let Some(scope) = self.states[index].scope {
                    self.scope_mut(scope).prefixes.clear();
                }
            }
        }
    }

    /// A module opened again: what it declares now gets the prefix that holds now, the module keeps its id.
    pub(super) fn reenter_prefix(&mut self, def: DefId, name: &Ident, scope: ScopeId) {
        let prefix = self.prefix(scope, name.span);
        let state = &self.states[def.index()];
        let (Some(inside), None) = (state.scope, state.id.type_prefix) else { return };
        if state.id.prefix != prefix {
            let message = format!("module `{}` is opened again under another prefix", name.text);
            let warning = Diagnostic::warning("repository-id", name.span, message);
            let warning = warning
                .and(self.model.def(def).span, format!("first opened with prefix \"{}\"", state.id.prefix));
            self.report(warning.note(format!("what is declared here gets the prefix \"{prefix}\"")));
        }
        self.scope_mut(inside).prefixes.remove(&name.span.file);
    }

    /// A definition must stand under the prefix its forward declaration stood under.
    pub(super) fn check_forward_prefix(&mut self, def: DefId, name: &Ident, scope: ScopeId) {
        let state = &self.states[def.index()];
        let prefix = self.prefix(scope, name.span);
        if state.id.explicit.is_none() && state.id.prefix != prefix {
            let message =
                format!("`{}` has another repository id prefix than where it was declared before", name.text);
            let error = Diagnostic::error("repository-id", name.span, message);
            let error = error
                .and(self.model.def(def).span, format!("declared here with prefix \"{}\"", state.id.prefix));
            let error = error.note(format!("the prefix is \"{prefix}\" now"));
            self.report(error);
        }
    }

    /// The definition a pragma or `typeid` names.
    fn identified(&mut self, name: &Name, scope: ScopeId) -> Option<DefId> {
        match self.lookup(name, scope)? {
            Entity::Def(def) => Some(def),
            entity => {
                let error =
                    self.wrong_kind(entity, name, "repository-id", "a definition with a repository id");
                self.report(error);
                None
            }
        }
    }

    fn check_id(&mut self, id: &StringArg) -> bool {
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
            let error = Diagnostic::error(
                "repository-id",
                id.span,
                format!("\"{}\" is not a repository id", id.text.escape_debug()),
            );
            self.report(
                error.note(
                    "a repository id is `format:text`; the usual format is `IDL:scope/name:major.minor`",
                ),
            );
            return false;
        }
        true
    }

    /// A prefix is made of the characters of an id and does not end the name part early.
    fn checked_prefix(&mut self, prefix: &StringArg) -> Option<String> {
        let fits = prefix.text.bytes().all(|c| c.is_ascii_graphic() && c != b':');
        let slashes = prefix.text.starts_with('/') || prefix.text.ends_with('/');
        if !fits || slashes {
            let message = format!("\"{}\" is not a prefix of repository ids", prefix.text.escape_debug());
            let error = Diagnostic::error("bad-pragma", prefix.span, message);
            self.report(
                error.note("a prefix has no blanks, no `:`, and no `/` at its ends; a `/` is put after it"),
            );
            return None;
        }
        Some(prefix.text.clone())
    }
}
