//! Scopes and the names in them.

use std::collections::HashMap;
use std::rc::Rc;

use crate::model::{DefId, Model, TypeId};
use crate::source::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(pub(super) usize);

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
    /// Index in [`super::implied::Implied::port_types`].
    PortType(usize),
    /// Index in [`super::known_templates::Templates`].
    Template(usize),
    /// A parameter of a template module that stands for a type without a name.
    Type(TypeId),
    /// A parameter of a template module that stands for a value: its index in
    /// [`super::known_templates::Templates`].
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
    pub(super) names: HashMap<String, Entry>,
    /// Operations, attributes, members and parameters, by lower-case spelling. They are separate, because
    /// they hide a type of the same name from later uses only if spelled identically.
    pub(super) locals: HashMap<String, Entry>,
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
