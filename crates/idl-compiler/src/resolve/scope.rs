//! Scopes and the names in them, and the words that describe them in messages.

use std::collections::HashMap;
use std::rc::Rc;

use crate::model::{DefId, Model, TypeId};
use crate::source::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(pub(super) usize);

impl ScopeId {
    pub(super) const FILE: ScopeId = ScopeId(0);
}

/// What a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Def(DefId),
    /// An enumerator: its enum, and its index in the enum.
    Enumerator(DefId, u32),
    /// A member or parameter. Its name is taken, but has no meaning outside of the scope.
    Member,
    /// Unknown, because the declaration is invalid or depends on template arguments. Uses are not reported.
    Bad,
    /// Index in [`super::implied::Implied::port_types`].
    PortType(usize),
    /// Index in [`super::symbols::Templates`].
    Template(usize),
    /// A parameter of a template module whose argument is a type without a name.
    TemplateType(TypeId),
    /// A `const` parameter of a template module: the index of its value in [`super::symbols::Templates`].
    TemplateValue(usize),
    /// `CORBA` if the text does not open a module of this name.
    Corba,
    /// `CORBA::TypeCode` if the text does not declare it.
    TypeCode,
}

impl Entity {
    /// Returns whether the entity needs no declaration. The text may still declare its name later.
    pub(super) fn is_predeclared(self) -> bool {
        matches!(self, Entity::Corba | Entity::TypeCode)
    }
}

/// A scope of the file, of a definition with members, or of an operation's parameters.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) owner: Option<DefId>,
    pub(super) parent: Option<ScopeId>,
    /// The index in `Sources` of the file that opened the scope last; `None` for a scope without an owner.
    pub(super) opened_in: Option<u32>,
    /// Prefixes of repository ids for the following declarations, by the file that sets them. The effect of a
    /// `#pragma prefix` ends with its file.
    pub(super) prefixes: HashMap<u32, Rc<str>>,
    /// Whether a base depends on a parameter of a template module, so that the scope may inherit any name.
    pub(super) may_inherit_unknown: bool,
    /// The prefix that a `typeprefix` sets, regardless of the file.
    pub(super) type_prefix: Option<Rc<str>>,
    /// Types, constants, exceptions, modules, enumerators, and names used here, by lower-case spelling,
    /// because names that differ only in case collide.
    pub(super) names: HashMap<String, Entry>,
    /// Operations, attributes, members and parameters, by lower-case spelling. They are separate, because
    /// they hide a type of the same name from later uses only if spelled identically.
    pub(super) locals: HashMap<String, Entry>,
}

/// A name in a scope, and what it refers to.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) entity: Entity,
    /// The description of the kind of entity in messages.
    pub(super) what: &'static str,
    /// Whether the name is only used in the scope. It cannot be declared there with another meaning.
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

    pub(super) fn name(&self, lower: &str) -> Option<&Entry> {
        self.names.get(lower)
    }

    pub(super) fn local(&self, lower: &str) -> Option<&Entry> {
        self.locals.get(lower)
    }

    /// Returns the names of all declarations and locals, in lower case.
    pub(super) fn declared_names(&self) -> impl Iterator<Item = &String> {
        let names = self.names.iter().filter(|(_, entry)| !entry.used).map(|(name, _)| name);
        names.chain(self.locals.keys())
    }

    /// Returns the declarations whose names can be used outside the scope.
    pub(super) fn declared(&self) -> impl Iterator<Item = &Entry> {
        self.names.values().filter(|entry| !entry.used)
    }

    /// Records a name that is used here as the first part of a scoped name.
    pub(super) fn introduce(&mut self, entry: Entry) {
        self.names.entry(entry.name.to_ascii_lowercase()).or_insert(Entry { used: true, ..entry });
    }

    /// Removes the names that are only used. A further opening of a template's instance looks them up again.
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
        _ => None,
    }
}

/// The description of a parameter of a template module, in the scope of the parameters.
pub(super) const TEMPLATE_PARAMETER: &str = "parameter of a template module";

/// The description of a parameter of a template module, in a scope that uses it and does not declare it.
pub(super) const USED_TEMPLATE_PARAMETER: &str = "template parameter";

/// The description of factories, which unlike other members are not inherited.
pub(super) const FACTORY: &str = "factory";

/// Prefixes a word with `a` or `an`.
pub(super) fn with_article(what: &str) -> String {
    let vowel = what.starts_with(['a', 'e', 'i', 'o', 'u']) && !what.starts_with("union");
    format!("{} {what}", if vowel { "an" } else { "a" })
}
