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
    /// Its declaration was reported, so its uses are not.
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
    /// Returns whether the entity is known without a declaration. A use does not introduce the name, so the
    /// text may declare its own later.
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
    /// The number of the text that opened it last; `None` for the file.
    pub(super) opened_in: Option<u32>,
    /// Prefixes of repository ids for the following declarations, by the number of the text that sets them.
    /// The effect of a `#pragma prefix` ends with its file.
    pub(super) prefixes: HashMap<u32, Rc<str>>,
    /// The scope may inherit unknown names.
    pub(super) is_open_ended: bool,
    /// The prefix that a `typeprefix` sets, regardless of the file.
    pub(super) type_prefix: Option<Rc<str>>,
    /// Types, constants, exceptions, modules, enumerators, and names used here, by lower-case spelling,
    /// because names that differ in case only collide.
    names: HashMap<String, Entry>,
    /// Operations, attributes, members, parameters, by lower-case spelling. They are separate, because they
    /// hide a type of the same name from later uses only if spelled identically.
    locals: HashMap<String, Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) entity: Entity,
    pub(super) what: &'static str,
    /// Not declared here, but used here, which takes the name as well.
    pub(super) used: bool,
}

/// Note on warnings that strict rules turn into errors.
const LENIENT: &str = "zorb accepts this; other IDL compilers may not";

impl Scope {
    pub(super) fn file() -> Self {
        let (names, locals) = (HashMap::new(), HashMap::new());
        let (prefixes, type_prefix) = (HashMap::new(), None);
        let is_open_ended = false;
        Scope {
            owner: None,
            parent: None,
            opened_in: None,
            prefixes,
            is_open_ended,
            type_prefix,
            names,
            locals,
        }
    }

    /// Returns the entry of this name in any case.
    pub(super) fn name(&self, lower: &str) -> Option<&Entry> {
        self.names.get(lower)
    }

    /// Returns the operation, attribute or member of this name in any case.
    pub(super) fn local(&self, lower: &str) -> Option<&Entry> {
        self.locals.get(lower)
    }

    /// Returns the lower-case spellings of all names declared here.
    pub(super) fn known(&self) -> impl Iterator<Item = &String> {
        let names = self.names.iter().filter(|(_, entry)| !entry.used).map(|(name, _)| name);
        names.chain(self.locals.keys())
    }

    /// Returns all declarations that have a meaning outside the scope.
    pub(super) fn declared(&self) -> impl Iterator<Item = &Entry> {
        self.names.values().filter(|entry| !entry.used)
    }

    /// Introduces a name that is used here as the first part of a scoped name.
    pub(super) fn introduce(&mut self, entry: Entry) {
        self.names.entry(entry.name.to_ascii_lowercase()).or_insert(Entry { used: true, ..entry });
    }

    /// Removes used names. Those in the body of a template module come from the scope of the template, and a
    /// further opening of the instance uses a different scope.
    pub(super) fn forget_uses(&mut self) {
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

    /// Opens a scope without a name, e.g. for parameters.
    pub(super) fn inner_scope(&mut self, owner: Option<DefId>, parent: ScopeId) -> ScopeId {
        work::step();
        self.scopes.push(Scope { owner, parent: Some(parent), ..Scope::file() });
        ScopeId(self.scopes.len() - 1)
    }

    /// Returns the entity that this name, in any case, is declared as in the scope itself.
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
        work::step();
        let lower = name.text.to_ascii_lowercase();
        let entry = Entry { name: name.text.clone(), span: name.span, entity, what, used: false };
        let inside = self.scope(scope);
        let clash = inside.name(&lower).or(inside.local(&lower)).cloned();
        let reported = self.clashes_with_scope(scope, name, what, false)
            || clash.is_some_and(|earlier| self.clash(&entry, &earlier, false))
            || self.clashes_with_inherited(scope, &entry);
        if !reported {
            self.scope_mut(scope).names.insert(lower, entry);
        }
        !reported
    }

    /// Declares an operation, attribute, member or parameter.
    pub(super) fn declare_local(
        &mut self,
        scope: ScopeId,
        name: &Ident,
        entity: Entity,
        what: &'static str,
    ) -> bool {
        work::step();
        let lower = name.text.to_ascii_lowercase();
        let entry = Entry { name: name.text.clone(), span: name.span, entity, what, used: false };
        let inside = self.scope(scope);
        let clash = inside.local(&lower).or(inside.name(&lower)).cloned();
        let reported = self.clashes_with_scope(scope, name, what, true)
            || clash.is_some_and(|earlier| self.clash(&entry, &earlier, true))
            || self.clashes_with_inherited(scope, &entry);
        if !reported {
            self.scope_mut(scope).locals.insert(lower, entry);
        }
        !reported
    }

    /// Moves the location of a forward declaration to its definition.
    pub(super) fn move_declaration(&mut self, scope: ScopeId, name: &Ident) {
        if let Some(entry) = self.scope_mut(scope).names.get_mut(&name.text.to_ascii_lowercase()) {
            entry.span = name.span;
        }
    }

    /// Reports a name that repeats that of the enclosing scope. `lenient` is set for members, operations and
    /// attributes, which may differ from it in case only (`struct Right { string right; };` is in an OMG
    /// file).
    fn clashes_with_scope(&mut self, scope: ScopeId, name: &Ident, what: &str, lenient: bool) -> bool {
        let Some(owner) = self.scope(scope).owner.map(|owner| self.model.def(owner)) else { return false };
        if !owner.name.eq_ignore_ascii_case(&name.text) {
            return false;
        }
        let strict = self.conditions.strict_names || !lenient || owner.name == name.text;
        let message = format!("{what} `{}` has the name of the {} around it", name.text, owner.kind.what());
        let mut found = Diagnostic::error("enclosing-scope-name", name.span, message);
        found = found.and(owner.span, format!("{} `{}`", owner.kind.what(), owner.name));
        found = found.note("the name of a scope cannot be used again immediately inside it, in any case");
        if !strict {
            found.severity = Severity::Warning;
            found = found.help(LENIENT);
        }
        self.report(found);
        strict
    }

    /// Reports that a name is taken. `lenient` is set for declarations that may repeat the name of a type
    /// used here. In that case this may only warn, and returns `false`.
    fn clash(&mut self, new: &Entry, earlier: &Entry, lenient: bool) -> bool {
        let Entry { name, what, .. } = new;
        let case = *name != earlier.name;
        if earlier.what == PARAMETER {
            let message = format!("`{name}` is the name of a parameter of this template module");
            let error = Diagnostic::error("redefinition", new.span, message);
            self.report(error.and(earlier.span, "declared here"));
            return true;
        }
        if earlier.used {
            return self.clash_with_use(new, earlier, lenient);
        }
        if earlier.entity == Entity::Bad {
            return true;
        }
        let error = if case {
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
        // The definition of the forward declaration exists, although its name clashed.
        if let Entity::Def(def) = earlier.entity
            && matches!(self.states[def.index()].progress, Progress::Forward(_))
        {
            self.states[def.index()].progress = Progress::Complete;
        }
        true
    }

    fn clash_with_use(&mut self, new: &Entry, earlier: &Entry, lenient: bool) -> bool {
        let strict = !lenient || self.conditions.strict_names;
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
            false => LENIENT.to_owned(),
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
            Entity::Template(index) => self.states[self.instance_around(index)?.index()].scope,
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
