//! The rules for declaring names in scopes.

use super::repository_id;
use super::scope::{Entity, Entry, Scope, ScopeId, TEMPLATE_PARAMETER, full_name, with_article};
use super::symbols::{Progress, Symbols};
use crate::ast::Ident;
use crate::diagnostic::{Diagnostic, Severity};
use crate::model::{DefId, DefKind};
use crate::work;

/// The help of warnings that become errors with strict names.
const PORTABILITY_HELP: &str = "zorb accepts this; other IDL compilers may not";

impl Symbols<'_> {
    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    pub(super) fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.scopes[id.0]
    }

    pub(super) fn open_scope(&mut self, owner: DefId, parent: ScopeId) -> ScopeId {
        let id = self.open_inner_scope(Some(owner), parent);
        self.states[owner.index()].scope = Some(id);
        self.scope_mut(id).opened_in = Some(self.model.def(owner).span.file);
        repository_id::apply_early_prefixes(self, owner);
        id
    }

    /// Opens a scope without a name, for example for parameters.
    pub(super) fn open_inner_scope(&mut self, owner: Option<DefId>, parent: ScopeId) -> ScopeId {
        work::count_step();
        self.scopes.push(Scope { owner, parent: Some(parent), ..Scope::file() });
        ScopeId(self.scopes.len() - 1)
    }

    /// Returns the entity that the scope itself declares with this name, ignoring case.
    pub(super) fn declared(&self, scope: ScopeId, name: &str) -> Option<Entity> {
        let entry = self.scope(scope).name(&name.to_ascii_lowercase())?;
        (!entry.used).then_some(entry.entity)
    }

    /// Declares a type, constant, exception, module or enumerator; `false` if the name is taken.
    pub(super) fn declare(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        entity: Entity,
        what: &'static str,
    ) -> bool {
        self.declare_entry(scope, name, entity, what, false)
    }

    /// Declares a local name: an operation, attribute or parameter, or a member, field or flag of a type. It
    /// may repeat the name of something that the scope only uses; otherwise like [`Symbols::declare`].
    pub(super) fn declare_local(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        entity: Entity,
        what: &'static str,
    ) -> bool {
        self.declare_entry(scope, name, entity, what, true)
    }

    fn declare_entry(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        entity: Entity,
        what: &'static str,
        is_local: bool,
    ) -> bool {
        work::count_step();
        let lower = name.text.to_ascii_lowercase();
        let entry = Entry { name: name.text.clone(), span: name.span, entity, what, used: false };
        let inside = self.scope(scope);
        let earlier = match is_local {
            true => inside.local(&lower).or(inside.name(&lower)),
            false => inside.name(&lower).or(inside.local(&lower)),
        };
        let earlier = earlier.cloned();
        let clashes = self.clashes_with_scope(scope, name, what, is_local)
            || earlier.is_some_and(|earlier| self.clashes_with_entry(&entry, &earlier, is_local))
            || self.clashes_with_inherited(scope, &entry);
        if !clashes {
            let inside = self.scope_mut(scope);
            let entries = if is_local { &mut inside.locals } else { &mut inside.names };
            entries.insert(lower, entry);
        }
        !clashes
    }

    /// Declares a definition and, if the name is free, lists it under its parent.
    pub(super) fn declare_def(
        &mut self,
        id: DefId,
        scope: ScopeId,
        name: &Ident,
        what: &'static str,
    ) -> bool {
        let declared = self.declare(scope, name, Entity::Def(id), what);
        if declared {
            self.add_child(id, scope);
        }
        declared
    }

    /// Declares an operation or attribute and, if the name is free, lists it under its parent.
    pub(super) fn declare_local_def(&mut self, id: DefId, scope: ScopeId, name: &Ident, what: &'static str) {
        if self.declare_local(scope, name, Entity::Def(id), what) {
            self.add_child(id, scope);
        }
    }

    /// Moves the location of a forward declaration to its definition.
    pub(super) fn move_declaration(&mut self, scope: ScopeId, name: &Ident) {
        if let Some(entry) = self.scope_mut(scope).names.get_mut(&name.text.to_ascii_lowercase()) {
            entry.span = name.span;
        }
    }

    /// Reports a name that repeats the name of the enclosing scope. A local name that differs from it in case
    /// is only a warning, unless names are strict: a file of the OMG contains
    /// `struct Right { string right; };`. Returns whether there is an error.
    fn clashes_with_scope(&mut self, scope: ScopeId, name: &Ident, what: &str, is_local: bool) -> bool {
        let Some(owner) = self.scope(scope).owner.map(|owner| self.model.def(owner)) else { return false };
        if !owner.name.eq_ignore_ascii_case(&name.text) {
            return false;
        }
        let strict = self.conditions.strict_names || !is_local || owner.name == name.text;
        let message =
            format!("{what} `{}` has the name of the enclosing {}", name.text, owner.kind.description());
        let mut found = Diagnostic::error("enclosing-scope-name", name.span, message);
        found = found.and(owner.span, format!("{} `{}`", owner.kind.description(), owner.name));
        found = found.note("a scope cannot directly contain its own name, not even in another case");
        if !strict {
            found.severity = Severity::Warning;
            found = found.help(PORTABILITY_HELP);
        }
        self.report(found);
        strict
    }

    /// Reports that a name is taken. If a local name is the name of something that the scope only uses, this
    /// is a warning, unless names are strict. Returns whether there is an error.
    fn clashes_with_entry(&mut self, new: &Entry, earlier: &Entry, is_local: bool) -> bool {
        let Entry { name, what, .. } = new;
        let differs_in_case = *name != earlier.name;
        if earlier.what == TEMPLATE_PARAMETER {
            let message = format!("`{name}` is the name of a parameter of this template module");
            let error = Diagnostic::error("redefinition", new.span, message);
            self.report(error.and(earlier.span, "declared here"));
            return true;
        }
        if earlier.used {
            return self.clashes_with_use(new, earlier, is_local);
        }
        if earlier.entity == Entity::Bad {
            return true;
        }
        let error = if differs_in_case {
            let message =
                format!("{what} `{name}` and {} `{}` differ only in case", earlier.what, earlier.name);
            let error = Diagnostic::error("case-collision", new.span, message);
            error.note("IDL names in one scope must differ in more than case")
        } else {
            Diagnostic::error("redefinition", new.span, format!("`{name}` is already declared in this scope"))
        };
        let mut error = error.and(earlier.span, format!("declared here as {}", with_article(earlier.what)));
        if matches!(earlier.entity, Entity::Template(_)) && new.what.ends_with("module") {
            error = error.note("a template module cannot be opened again");
        }
        self.report(self.implied.with_origin_notes(error, [new, earlier]));
        // This was probably meant as the definition, so the forward declaration must not be reported too.
        if let Entity::Def(def) = earlier.entity
            && matches!(self.states[def.index()].progress, Progress::Forward(_))
        {
            self.states[def.index()].progress = Progress::Complete;
        }
        true
    }

    fn clashes_with_use(&mut self, new: &Entry, earlier: &Entry, is_local: bool) -> bool {
        let strict = !is_local || self.conditions.strict_names;
        let message = match new.name == earlier.name {
            true => {
                format!("{} `{}` is declared after its name was used for something else", new.what, new.name)
            }
            false => format!(
                "{} `{}` and the name `{}` used here differ only in case",
                new.what, new.name, earlier.name
            ),
        };
        let mut diagnostic = Diagnostic::error("use-then-define", new.span, message);
        if !strict {
            diagnostic.severity = Severity::Warning;
        }
        let diagnostic = diagnostic.and(earlier.span, format!("`{}` is used here", earlier.name));
        let diagnostic =
            diagnostic.note("a name that is used in a scope cannot be declared there with another meaning");
        let help = match strict {
            true => match full_name(&self.model, earlier.entity) {
                Some(full) => {
                    format!("choose another name, or write `{full}` for the earlier meaning")
                }
                None => "choose another name".to_owned(),
            },
            false => PORTABILITY_HELP.to_owned(),
        };
        self.report(diagnostic.help(help));
        strict
    }

    /// Reports a name that a base interface, value, struct or bitset declares.
    fn clashes_with_inherited(&mut self, scope: ScopeId, new: &Entry) -> bool {
        let Some(owner) = self.scope(scope).owner else { return false };
        let Some((base, entry)) = self.inherited_local(scope, owner, &new.name.to_ascii_lowercase()) else {
            return false;
        };
        let base = self.model.scoped_name(base);
        let message = format!(
            "{} `{}` redefines {} `{}` inherited from `{base}`",
            new.what, new.name, entry.what, entry.name
        );
        let error = Diagnostic::error("inherited-redefinition", new.span, message);
        let error = error.and(entry.span, format!("{} of `{base}`", with_article(entry.what)));
        self.report(self.implied.with_origin_notes(error, [new, &entry]));
        true
    }

    /// Returns the scope inside a definition, if it has one in which names can be looked up.
    pub(super) fn scope_of(&self, entity: Entity) -> Option<ScopeId> {
        match entity {
            Entity::Def(def) if !matches!(self.model.def(def).kind, DefKind::Operation(_)) => {
                self.states[def.index()].scope
            }
            Entity::Template(index) => self.states[self.enclosing_instance(index)?.index()].scope,
            _ => None,
        }
    }
}
