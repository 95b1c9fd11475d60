//! The data of the resolver: definitions with their scopes and repository ids, template modules, errors. Most
//! files beside this one are named after the IDL constructs that they resolve.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::implied::Implied;
use super::lineage::Lineage;
use super::scope::{Entity, Scope, ScopeId, with_article};
use crate::ast::{Name, Preamble, StringArg, Template};
use crate::diagnostic::{Collector, Diagnostic};
use crate::limits::MAX_DEPTH;
use crate::model::{ConstValue, DefId, DefKind, Model, Type, TypeId};
use crate::source::Span;

pub(crate) struct Conditions {
    /// See [`crate::Compiler::strict_names`].
    pub(crate) strict_names: bool,
    /// Whether parts of the text are missing because of errors. Then undeclared names are not reported.
    pub(crate) incomplete: bool,
    /// Whether the only missing parts are included files, which may declare an undeclared name.
    pub(crate) only_files_missing: bool,
}

/// The resolver: its symbols, and the annotations that the text declares.
pub(super) struct Resolver<'o> {
    pub(super) symbols: Symbols<'o>,
    /// Annotations for which it was already reported that CORBA does not use the requested encoding.
    pub(super) warned_encodings: HashSet<&'static str>,
    /// Declared annotations, by scope and lower-case name.
    pub(super) annotation_types: HashMap<(ScopeId, String), DeclaredAnnotation>,
    /// The keys of `annotation_types`, in the order of their declarations.
    pub(super) annotation_keys: Vec<(ScopeId, String)>,
    /// Whether a type was used before it was complete, so that types may contain themselves.
    pub(super) recursion_possible: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredAnnotation {
    /// Index in [`Model::annotation_types`](crate::model::Model::annotation_types).
    pub(super) index: usize,
    /// The scope in which names in arguments are looked up first.
    pub(super) inner_scope: ScopeId,
}

/// The model under construction, with the names that its scopes declare.
pub(super) struct Symbols<'o> {
    pub(super) model: Model,
    /// One entry for each definition of the model.
    pub(super) states: Vec<DefState>,
    pub(super) scopes: Vec<Scope>,
    pub(super) conditions: Conditions,
    /// Undeclared names that a missing file may declare.
    pub(super) undeclared_names: Vec<String>,
    /// The location of the first declaration of each name in the whole text.
    pub(super) first_declarations: HashMap<String, Span>,
    /// The `typeprefix` declarations of scopes that are not declared yet.
    pub(super) early_prefixes: EarlyPrefixes,
    /// The bases from which each scope inherits names, cached for the current definition.
    pub(super) lineages: RefCell<HashMap<ScopeId, Rc<Lineage>>>,
    pub(super) implied: Implied,
    pub(super) templates: Templates,
    /// The instance of a template module that is being resolved. At the end, the definition being checked.
    pub(super) current_def: Option<DefId>,
    pub(super) diagnostics: &'o mut Collector,
}

/// The resolver's data of a definition, in addition to the model.
pub(super) struct DefState {
    pub(super) progress: Progress,
    /// Nesting depth of the definition: members of members, typedefs of typedefs, bases of bases.
    pub(super) depth: usize,
    pub(super) scope: Option<ScopeId>,
    pub(super) repository_id: RepositoryIdState,
    /// Definitions directly inside, including those that are only declared or whose name was taken.
    pub(super) inner_defs: Vec<DefId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Declared forward at this location, not yet defined.
    Forward(Span),
    /// Its body is being resolved.
    Open,
    Complete,
}

pub(super) struct RepositoryIdState {
    pub(super) prefix: Rc<str>,
    pub(super) version: Option<(String, Span)>,
    /// Set by `#pragma ID` or `typeid`.
    pub(super) explicit: Option<ExplicitId>,
    /// The location of a `typeprefix` that names the definition itself.
    pub(super) type_prefix: Option<Span>,
}

/// A repository id that replaces the id that is built from the scoped name.
pub(super) struct ExplicitId {
    pub(super) id: String,
    pub(super) span: Span,
    /// Whether it was set by `typeid`, which is allowed only once for each definition.
    pub(super) by_typeid: bool,
}

/// A `typeprefix` of a scope that is declared later.
#[derive(Debug)]
pub(super) struct EarlyPrefix {
    pub(super) name: Name,
    pub(super) prefix: StringArg,
    pub(super) scope: ScopeId,
}

/// The prefixes that are not yet applied, by the scoped name of their scope.
#[derive(Debug, Default)]
pub(super) struct EarlyPrefixes(pub(super) HashMap<String, Vec<EarlyPrefix>>);

impl RepositoryIdState {
    pub(super) fn new(prefix: Rc<str>) -> Self {
        RepositoryIdState { prefix, version: None, explicit: None, type_prefix: None }
    }
}

#[derive(Default)]
pub(super) struct Templates {
    pub(super) all: Vec<KnownTemplate>,
    /// Values of `const` parameters.
    pub(super) values: Vec<(TypeId, ConstValue)>,
    /// Number of tokens of all instances so far.
    pub(super) instance_tokens: usize,
    /// Nesting depth of template modules that are being checked.
    pub(super) checking_depth: usize,
    /// Number of names whose meaning was unknown so far.
    pub(super) unknown_name_count: usize,
    /// The index of the first definition of the body that is being checked.
    pub(super) checked_from: usize,
    /// The template module of each instance.
    pub(super) instances: HashMap<DefId, usize>,
    /// Location and code of the warnings about bodies. Each is reported once, not for each instance.
    pub(super) warned: HashSet<(Span, &'static str)>,
}

/// A template module, and whether its body is valid.
pub(super) struct KnownTemplate {
    pub(super) template: Rc<Template>,
    pub(super) preamble: Preamble,
    pub(super) scope: ScopeId,
    pub(super) state: CheckState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckState {
    Unchecked,
    /// The body is being checked, as the body of this module.
    Checking(DefId),
    Valid,
    /// The body contains errors, which were reported.
    Invalid,
}

impl Templates {
    /// Returns whether a body is being checked and the definition is not part of it.
    pub(super) fn is_outside_checked_body(&self, def: DefId) -> bool {
        self.checking_depth > 0 && def.index() < self.checked_from
    }
}

impl<'o> Symbols<'o> {
    pub(super) fn new(
        model: Model,
        conditions: Conditions,
        first_declarations: HashMap<String, Span>,
        diagnostics: &'o mut Collector,
    ) -> Self {
        Symbols {
            model,
            states: Vec::new(),
            scopes: vec![Scope::file()],
            conditions,
            undeclared_names: Vec::new(),
            first_declarations,
            early_prefixes: EarlyPrefixes::default(),
            lineages: RefCell::default(),
            implied: Implied::default(),
            templates: Templates::default(),
            current_def: None,
            diagnostics,
        }
    }
}

impl Symbols<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if let Some(diagnostic) = self.with_instances(diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    pub(super) fn reject<T>(&mut self, error: Diagnostic) -> Option<T> {
        self.report(error);
        None
    }

    /// Lists a definition under its parent, in source order.
    pub(super) fn add_child(&mut self, id: DefId, scope: ScopeId) {
        debug_assert_eq!(self.model.def(id).parent, self.scope(scope).owner, "declared in this scope");
        if let Some(siblings) = self.siblings(id) {
            siblings.push(id);
        }
    }

    /// Lists a definition, which need not be the last of its scope, under its parent in source order.
    pub(super) fn insert_child(&mut self, id: DefId) {
        let mut siblings = self.siblings(id).map(std::mem::take).unwrap_or_default();
        let span = self.model.def(id).span;
        let after = siblings.iter().position(|sibling| self.model.def(*sibling).span > span);
        siblings.insert(after.unwrap_or(siblings.len()), id);
        if let Some(place) = self.siblings(id) {
            *place = siblings;
        }
    }

    fn siblings(&mut self, id: DefId) -> Option<&mut Vec<DefId>> {
        let parent = self.model.def(id).parent;
        children_mut(&mut self.model, parent)
    }

    /// Returns the definition that an entity is, resolving typedefs.
    pub(super) fn stripped_def(&mut self, entity: Entity) -> Option<DefId> {
        let Entity::Def(def) = entity else { return None };
        let ty = self.intern(Type::Named(def));
        match self.model.stripped(ty) {
            Type::Named(def) => Some(*def),
            _ => None,
        }
    }

    pub(super) fn intern(&mut self, ty: Type) -> TypeId {
        if let Some(id) = self.model.interned.get(&ty) {
            return *id;
        }
        let id = TypeId(u32::try_from(self.model.types.len()).unwrap_or(u32::MAX));
        self.model.types.push(ty.clone());
        self.model.interned.insert(ty, id);
        id
    }

    /// Reports an error, unless it could be caused by parts of the text that were left out.
    pub(super) fn report_unless_incomplete(&mut self, error: Diagnostic) {
        if !self.conditions.incomplete {
            self.report(error);
        }
    }

    pub(super) fn reject_wrong_kind<T>(
        &mut self,
        entity: Entity,
        name: &Name,
        code: &'static str,
        wanted: &str,
    ) -> Option<T> {
        let error = self.wrong_kind(entity, name, code, wanted);
        self.reject(error)
    }

    /// Returns an error about a name that does not refer to the kind of entity that is required.
    pub(super) fn wrong_kind(
        &self,
        entity: Entity,
        name: &Name,
        code: &'static str,
        wanted: &str,
    ) -> Diagnostic {
        let (what, declared) = match entity {
            Entity::Def(def) => (self.model.def(def).kind.description(), Some(self.model.def(def).span)),
            Entity::Enumerator(def, ordinal) => {
                let body = self.model.enumeration(def);
                ("enumerator", body.and_then(|body| body.enumerators.get(ordinal as usize)).map(|e| e.span))
            }
            Entity::PortType(index) => ("port type", self.implied.port_types.get(index).map(|ty| ty.span)),
            Entity::Template(_) => ("template module", None),
            Entity::TemplateType(_) => ("type", None),
            Entity::TemplateValue(_) => ("constant", None),
            Entity::Corba => ("module", None),
            Entity::TypeCode => ("type", None),
            Entity::Member | Entity::Bad => ("member or parameter", None),
        };
        let message = format!("`{}` is {}, not {wanted}", name.text(), with_article(what));
        Diagnostic::error(code, name.span, message)
            .and_if(declared, format!("declared here as {}", with_article(what)))
    }

    /// Records the nesting depth of a finished definition, and rejects it if it is too deep.
    pub(super) fn set_depth(&mut self, id: DefId) {
        let of_bases = self.model.direct_bases(id).chain(self.model.structure(id).and_then(|body| body.base));
        let of_bases = of_bases.chain(self.model.bitset(id).and_then(|body| body.base));
        let of_bases = of_bases.map(|base| self.states[base.index()].depth);
        let parts = self.model.member_types(id);
        let depth = 1 + of_bases.chain(parts.into_iter().map(|ty| self.type_depth(ty))).max().unwrap_or(0);
        self.states[id.index()].depth = depth;
        if depth > MAX_DEPTH {
            let def = self.model.def(id);
            let (what, name) = (def.kind.description(), &def.name);
            let message = format!("{what} `{name}` is nested more than {MAX_DEPTH} levels deep");
            let error = Diagnostic::error("too-deep", def.span, message);
            self.report(error.note("members, elements, typedefs and bases count as levels"));
            self.clear_parts(id);
        }
    }

    /// Removes the parts of a definition, so that definitions that contain it are not reported as well.
    fn clear_parts(&mut self, id: DefId) {
        self.states[id.index()].depth = 0;
        let stand_in = self.intern(Type::Object);
        match &mut self.model.defs[id.index()].kind {
            DefKind::Interface(interface) => interface.bases.clear(),
            DefKind::Value(value) => {
                value.bases.clear();
                value.supports.clear();
                value.state.clear();
            }
            DefKind::ValueBox(boxed) => boxed.ty = stand_in,
            DefKind::Bitset(bitset) => bitset.base = None,
            DefKind::Struct(body) | DefKind::Exception(body) => {
                body.base = None;
                body.members.clear();
            }
            DefKind::Union(union) => union.cases.clear(),
            DefKind::Typedef(alias) => alias.ty = stand_in,
            _ => {}
        }
    }

    fn type_depth(&self, ty: TypeId) -> usize {
        match self.model.ty(ty) {
            Type::Sequence { element, .. } | Type::Array { element, .. } => 1 + self.type_depth(*element),
            Type::Map { key, value, .. } => 1 + self.type_depth(*key).max(self.type_depth(*value)),
            // Types refer to interfaces and value types without containing them.
            Type::Named(def) if self.model.interface(*def).is_none() && self.model.value(*def).is_none() => {
                self.states[def.index()].depth
            }
            _ => 0,
        }
    }
}

/// Returns the list of the definitions directly in a definition, or at file level.
pub(super) fn children_mut(model: &mut Model, parent: Option<DefId>) -> Option<&mut Vec<DefId>> {
    let Some(parent) = parent else { return Some(&mut model.roots) };
    match &mut model.defs[parent.index()].kind {
        DefKind::Module(module) => Some(&mut module.members),
        DefKind::Interface(interface) => Some(&mut interface.members),
        DefKind::Value(value) => Some(&mut value.members),
        DefKind::Struct(body) | DefKind::Exception(body) => Some(&mut body.nested),
        DefKind::Union(union) => Some(&mut union.nested),
        _ => None,
    }
}
