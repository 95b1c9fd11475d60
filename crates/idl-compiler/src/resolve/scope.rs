//! Scopes and the rules for declaring names in them.

use std::collections::HashMap;
use std::rc::Rc;

use super::symbols::Symbols;
use super::template::PARAMETER;
use super::{Progress, article, repository_id};
use crate::ast::Ident;
use crate::diagnostic::{Diagnostic, Severity};
use crate::model::{DefId, DefKind, Model, TypeId};
use crate::source::Span;
use crate::work;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(usize);

impl ScopeId {
    pub(super) const FILE: ScopeId = ScopeId(0);
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Def(DefId),
    /// The enum, and the index in it.
    Enumerator(DefId, u32),
    /// A member or parameter. The name is taken, but has no meaning outside.
    Member,
    /// The declaration is invalid and was reported, so uses are not reported.
    Bad,
    /// Index in [`super::component::Implied::port_types`].
    PortType(usize),
    /// Index in [`super::template::Templates`].
    Template(usize),
    /// A parameter of a template module that stands for a type without a name.
    Type(TypeId),
    /// A parameter of a template module that stands for a value: its index in [`super::template::Templates`].
    Value(usize),
    /// `CORBA` if the text does not open a module of this name.
    Corba,
    /// `CORBA::TypeCode` if the text does not declare it.
    TypeCode,
}

impl Entity {
    /// Returns whether the entity is known without a declaration. Uses of such an entity do not prevent that
    /// the text declares the name itself later.
    pub(super) fn is_predeclared(self) -> bool {
        matches!(self, Entity::Corba | Entity::TypeCode)
    }
}

/// A scope: the file, a module, an interface, a value type, a struct, union or exception, or the parameters
/// of an operation.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) owner: Option<DefId>,
    pub(super) parent: Option<ScopeId>,
    /// The number of the text that opened the scope last; `None` for the scope of the file.
    pub(super) opened_in: Option<u32>,
    /// Prefixes of repository ids for the following declarations, by the number of the text that sets them.
    /// The effect of a `#pragma prefix` ends with its file.
    pub(super) prefixes: HashMap<u32, Rc<str>>,
    /// A base depends on a parameter of a template module, so the scope may inherit any name.
    pub(super) may_inherit_unknown: bool,
    /// The prefix that a `typeprefix` sets, regardless of the file.
    pub(super) type_prefix: Option<Rc<str>>,
    /// Types, constants, exceptions, modules, enumerators, and names used here, by lower-case spelling,
    /// because names that differ in case only collide.
    names: HashMap<String, Entry>,
    /// Operations, attributes, members and parameters, by lower-case spelling. They are separate, because
    /// they hide a type of the same name from later uses only if spelled identically.
    locals: HashMap<String, Entry>,
}

/// A name in a scope.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) entity: Entity,
    /// The description of the kind of entity in messages.
    pub(super) what: &'static str,
    /// The name is only used in the scope. It cannot be declared there with another meaning.
    pub(super) used: bool,
}

/// The help of warnings that strict names turn into errors.
const PORTABILITY_HELP: &str = "zorb accepts this; other IDL compilers may not";

impl Scope {
    pub(super) fn file() -> Self {
        Scope {
            owner: None,
            parent: None,
            opened_in: None,
            prefixes: HashMap::new(),
            may_inherit_unknown: false,
            type_prefix: None,
            names: HashMap::new(),
            locals: HashMap::new(),
        }
    }

    /// Returns the entry with this lower-case name.
    pub(super) fn name(&self, lower: &str) -> Option<&Entry> {
        self.names.get(lower)
    }

    /// Returns the operation, attribute, member or parameter with this lower-case name.
    pub(super) fn local(&self, lower: &str) -> Option<&Entry> {
        self.locals.get(lower)
    }

    /// Returns the lower-case spellings of all names declared here.
    pub(super) fn declared_names(&self) -> impl Iterator<Item = &String> {
        let names = self.names.iter().filter(|(_, entry)| !entry.used).map(|(name, _)| name);
        names.chain(self.locals.keys())
    }

    /// Returns all declarations that have a meaning outside the scope.
    pub(super) fn declared(&self) -> impl Iterator<Item = &Entry> {
        self.names.values().filter(|entry| !entry.used)
    }

    /// Records a name that is used here as the first part of a scoped name.
    pub(super) fn introduce(&mut self, entry: Entry) {
        self.names.entry(entry.name.to_ascii_lowercase()).or_insert(Entry { used: true, ..entry });
    }

    /// Removes the names that are only used. In an instance of a template module they come from the scope of
    /// the template, but a further opening of the instance looks names up in its own enclosing scope.
    pub(super) fn remove_used_names(&mut self) {
        self.names.retain(|_, entry| !entry.used);
    }
}

impl Symbols<'_> {
    pub(super) fn scope(&self, id: ScopeId) -> &Scope {
        &self.scopes[id.0]
    }

    pub(super) fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.scopes[id.0]
    }

    /// Opens the scope inside a definition.
    pub(super) fn open_scope(&mut self, owner: DefId, parent: ScopeId) -> ScopeId {
        let id = self.inner_scope(Some(owner), parent);
        self.states[owner.index()].scope = Some(id);
        self.scope_mut(id).opened_in = Some(self.model.def(owner).span.file);
        repository_id::apply_early_prefixes(self, owner);
        id
    }

    /// Opens a scope without a name, for example for parameters.
    pub(super) fn inner_scope(&mut self, owner: Option<DefId>, parent: ScopeId) -> ScopeId {
        work::step();
        self.scopes.push(Scope { owner, parent: Some(parent), ..Scope::file() });
        ScopeId(self.scopes.len() - 1)
    }

    /// Returns the entity that the scope itself declares with this name, ignoring case.
    pub(super) fn declared(&self, scope: ScopeId, name: &str) -> Option<Entity> {
        let entry = self.scope(scope).name(&name.to_ascii_lowercase())?;
        (!entry.used).then_some(entry.entity)
    }

    /// Declares a type, constant, exception, module or enumerator. If the name is taken, reports an error,
    /// returns `false`, and keeps the earlier declaration.
    pub(super) fn declare(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        entity: Entity,
        what: &'static str,
    ) -> bool {
        self.declare_entry(scope, name, entity, what, false)
    }

    /// Declares an operation, attribute, member or parameter; otherwise like [`Symbols::declare`].
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
        work::step();
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

    /// Reports a name that repeats the name of the enclosing scope. A local name may differ from it only in
    /// case, with a warning: a file of the OMG contains `struct Right { string right; };`. Returns whether
    /// there is an error.
    fn clashes_with_scope(&mut self, scope: ScopeId, name: &Ident, what: &str, is_local: bool) -> bool {
        let Some(owner) = self.scope(scope).owner.map(|owner| self.model.def(owner)) else { return false };
        if !owner.name.eq_ignore_ascii_case(&name.text) {
            return false;
        }
        let strict = self.conditions.strict_names || !is_local || owner.name == name.text;
        let message =
            format!("{what} `{}` has the name of the {} around it", name.text, owner.kind.description());
        let mut found = Diagnostic::error("enclosing-scope-name", name.span, message);
        found = found.and(owner.span, format!("{} `{}`", owner.kind.description(), owner.name));
        found = found.note("the name of a scope cannot be used again immediately inside it, in any case");
        if !strict {
            found.severity = Severity::Warning;
            found = found.help(PORTABILITY_HELP);
        }
        self.report(found);
        strict
    }

    /// Reports that a name is taken. A local name may be that of a type used in the scope, with a warning.
    /// Returns whether there is an error.
    fn clashes_with_entry(&mut self, new: &Entry, earlier: &Entry, is_local: bool) -> bool {
        let Entry { name, what, .. } = new;
        let differs_in_case = *name != earlier.name;
        if earlier.what == PARAMETER {
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
                format!("{what} `{name}` and {} `{}` differ in case only", earlier.what, earlier.name);
            let error = Diagnostic::error("case-collision", new.span, message);
            error.note("IDL names in one scope must differ in more than case")
        } else {
            Diagnostic::error("redefinition", new.span, format!("`{name}` is already declared in this scope"))
        };
        let mut error = error.and(earlier.span, format!("declared here as {}", article(earlier.what)));
        if matches!(earlier.entity, Entity::Template(_)) && new.what.ends_with("module") {
            error = error.note("a template module cannot be opened again");
        }
        self.report(self.implied.explain(error, [new, earlier]));
        // The new entry may be the definition of the forward declaration, which must not be reported as
        // undefined.
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
                "{} `{}` and the name `{}` used here differ in case only",
                new.what, new.name, earlier.name
            ),
        };
        let mut diagnostic = Diagnostic::error("use-then-define", new.span, message);
        if !strict {
            diagnostic.severity = Severity::Warning;
        }
        let diagnostic = diagnostic.and(earlier.span, format!("`{}` is used here", earlier.name));
        let diagnostic = diagnostic
            .note("a name used in a scope belongs to the scope and cannot mean another thing there");
        let help = match strict {
            true => match full_name(&self.model, earlier.entity) {
                Some(full) => format!("choose another name, or write `{full}` where the other is used"),
                None => "choose another name".to_owned(),
            },
            false => PORTABILITY_HELP.to_owned(),
        };
        self.report(diagnostic.help(help));
        strict
    }

    /// Reports a declaration that repeats an operation, attribute or state member of a base, or a member of a
    /// base struct or bitset.
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
        let error = error.and(entry.span, format!("{} of `{base}`", article(entry.what)));
        self.report(self.implied.explain(error, [new, &entry]));
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

/// Returns the absolute name, `::M::Name`.
pub(super) fn full_name(model: &Model, entity: Entity) -> Option<String> {
    match entity {
        Entity::Def(def) => Some(format!("::{}", model.scoped_name(def))),
        Entity::Enumerator(def, ordinal) => {
            let enumerator = model.enumeration(def)?.enumerators.get(ordinal as usize)?;
            let scope = model.def(def).parent.map(|parent| format!("::{}", model.scoped_name(parent)));
            Some(format!("{}::{}", scope.unwrap_or_default(), enumerator.name))
        }
        Entity::TypeCode => Some("::CORBA::TypeCode".to_owned()),
        Entity::Member
        | Entity::PortType(_)
        | Entity::Template(_)
        | Entity::Type(_)
        | Entity::Value(_)
        | Entity::Bad
        | Entity::Corba => None,
    }
}
