//! The resolver: binds names, evaluates constants, checks every rule, and builds the model.
//!
//! IDL declares names before their use, so one pass in source order is enough. A name that cannot be bound,
//! or that belongs to something already reported, yields `None`. Everything that depends on it is left out
//! without a further message.
//!
//! Some rules of the OMG specification about names are relaxed, because existing IDL often breaks them.
//! [`crate::Compiler::strict_names`] lists these rules, and can enforce them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{Declarator, Ident, Item, ItemKind, Preamble, TypeKind, TypeSpec};
use crate::diagnostic::Collector;
use crate::model::{
    Const, Construct, Def, DefId, DefKind, Flavour, Interface, Model, Module, Struct, Type, TypeId, Typedef,
};
use crate::parse::Parsed;
use crate::source::Sources;
use crate::work;

mod annotation;
mod annotation_types;
mod bits;
mod component;
mod constant;
mod constructed;
mod declare;
mod event;
mod expr;
mod finish;
mod fixed;
mod flavour;
mod home;
mod implied;
mod import;
mod interface;
mod known;
mod lineage;
mod lookup;
mod port;
mod real;
mod repository_id;
mod scope;
mod symbols;
mod template;
mod typed_annotation;
mod types;
mod union;
mod value;

pub(crate) use symbols::Conditions;

use known::AnnotatedKind;
use scope::{Entity, ScopeId};
use symbols::{DefState, Progress, RepositoryIdState, Resolver, Symbols};

/// Builds the model. The model is valid only if the collector has no error at the end.
pub(crate) fn resolve(
    parsed: Parsed,
    sources: Rc<Sources>,
    conditions: Conditions,
    out: &mut Collector,
) -> Model {
    let model = Model::new(sources, parsed.docs);
    let first_declarations = lookup::first_declarations(&parsed.items);
    let mut resolver = Resolver {
        symbols: Symbols::new(model, conditions, first_declarations, out),
        warned_encodings: HashSet::new(),
        annotation_types: HashMap::new(),
        annotation_keys: Vec::new(),
        recursion_possible: false,
    };
    resolver.items(parsed.items, ScopeId::FILE);
    resolver.finish();
    resolver.symbols.note_undeclared_names();
    resolver.symbols.model
}

impl Resolver<'_> {
    fn items(&mut self, items: Vec<Item>, scope: ScopeId) {
        let owner = self.symbols.scope(scope).owner;
        let is_module = owner.is_none_or(|owner| self.symbols.model.is_module(owner));
        for Item { preamble, kind } in items {
            match kind {
                // Modules are handled here and not in `item`, because they nest and its stack frame is large.
                ItemKind::Module { name, items } => self.module(preamble, &name, items, scope),
                ItemKind::Instance(instance) => self.instance(preamble, *instance, scope),
                ItemKind::Template(template) => self.template(preamble, template, scope),
                kind => self.item(Item { preamble, kind }, scope),
            }
            if is_module {
                self.symbols.lineages.get_mut().clear();
            }
        }
    }

    fn item(&mut self, item: Item, scope: ScopeId) {
        work::count_step();
        let preamble = item.preamble;
        match item.kind {
            ItemKind::ForwardInterface { .. }
            | ItemKind::ForwardStruct(_)
            | ItemKind::ForwardUnion(_)
            | ItemKind::ForwardComponent(_)
            | ItemKind::ForwardPortType(_)
            | ItemKind::ForwardValue { .. } => {
                drop(self.annotations(&preamble, scope, AnnotatedKind::Forward))
            }
            ItemKind::TypeId { .. }
            | ItemKind::TypePrefix { .. }
            | ItemKind::Import(_)
            | ItemKind::PortType { .. } => {
                drop(self.annotations(&preamble, scope, AnnotatedKind::Directive));
            }
            _ => {}
        }
        match item.kind {
            ItemKind::Module { name, items } => self.module(preamble, &name, items, scope),
            ItemKind::Interface { flavour, name, bases, items } => {
                self.interface(preamble, flavour, &name, &bases, items, scope);
            }
            ItemKind::ForwardInterface { flavour, name } => {
                let body = Interface { flavour, ..Interface::default() };
                self.forward(&name, DefKind::Interface(body), scope);
            }
            ItemKind::ForwardStruct(name) => self.forward(&name, DefKind::Struct(Struct::default()), scope),
            ItemKind::ForwardUnion(name) => {
                // Until the union is defined, the discriminator is a placeholder that is never read.
                let placeholder = union::empty(&mut self.symbols);
                self.forward(&name, DefKind::Union(placeholder), scope);
            }
            ItemKind::Type(ty) => {
                self.constructed(preamble, ty, scope);
            }
            ItemKind::Typedef { ty, declarators } => self.typedef(preamble, ty, declarators, scope),
            ItemKind::Const { ty, name, value } => self.constant(preamble, &ty, &name, &value, scope),
            ItemKind::Exception { name, members } => self.exception(preamble, &name, members, scope),
            ItemKind::Operation(operation) => self.operation(preamble, operation, scope),
            ItemKind::Attribute(attribute) => self.attribute(preamble, attribute, scope),
            ItemKind::TypeId { name, id } => repository_id::type_id(&mut self.symbols, &name, &id, scope),
            ItemKind::TypePrefix { name, prefix } => {
                repository_id::type_prefix(&mut self.symbols, &name, &prefix, scope)
            }
            ItemKind::Pragma(pragma) => repository_id::pragma(&mut self.symbols, &pragma, scope),
            ItemKind::Native(name) => {
                let id = self.new_def(&preamble, &name, DefKind::Native, scope);
                self.symbols.declare_def(id, scope, &name, "native type");
            }
            ItemKind::Value(value) => self.value(preamble, *value, scope),
            ItemKind::ForwardValue { is_abstract, is_event, name } => {
                self.forward_value(&name, is_abstract, is_event, scope);
            }
            ItemKind::ValueBox { name, ty } => self.value_box(preamble, &name, ty, scope),
            ItemKind::State(state) => self.state(&preamble, state, scope),
            ItemKind::Factory(factory) => self.factory(preamble, factory, scope),
            ItemKind::Bitset(bitset) => self.bitset(preamble, bitset, scope),
            ItemKind::Bitmask(bitmask) => self.bitmask(preamble, bitmask, scope),
            ItemKind::AnnotationDef(def) => self.annotation_def(&preamble, def, scope),
            ItemKind::Import(import) => import::import(&mut self.symbols, import),
            ItemKind::Component(component) => self.component(preamble, component, scope),
            ItemKind::ForwardComponent(name) => {
                let body = Interface { construct: Construct::Component, ..Interface::default() };
                self.forward(&name, DefKind::Interface(body), scope);
            }
            ItemKind::Connector { name, base, items } => self.connector(preamble, &name, base, items, scope),
            ItemKind::Home(home) => self.home(preamble, *home, scope),
            ItemKind::Template(template) => self.template(preamble, template, scope),
            ItemKind::Instance(instance) => self.instance(preamble, *instance, scope),
            ItemKind::PortType { name, items } => self.port_type(&name, items, scope),
            ItemKind::ForwardPortType(name) => {
                port::declare_port_type(&mut self.symbols, &name, true, scope);
            }
            // These occur only in port types, connectors, components and homes, which handle them.
            ItemKind::Port(_) | ItemKind::Finder(_) => {}
        }
    }

    fn module(&mut self, preamble: Preamble, name: &Ident, items: Vec<Item>, scope: ScopeId) {
        let open = self.same_declaration(name, &DefKind::Module(Module::default()), scope);
        let id = match open {
            Some(id) => {
                self.reopen(id, &preamble, name, scope);
                id
            }
            None => {
                let id = self.new_def(&preamble, name, DefKind::Module(Module::default()), scope);
                if !self.symbols.declare_def(id, scope, name, "module") {
                    return self.resolve_undeclared_body(id, items, scope);
                }
                self.symbols.open_scope(id, scope);
                id
            }
        };
        let Some(inner) = self.symbols.states[id.index()].scope else { return };
        // Names in an instance of a template module are looked up in the scope of the template. A further
        // opening uses its own enclosing scope.
        let parent = self.symbols.scope_mut(inner).parent.replace(scope);
        self.items(items, inner);
        self.symbols.scope_mut(inner).parent = parent;
        self.symbols.states[id.index()].progress = Progress::Complete;
    }

    fn reopen(&mut self, id: DefId, preamble: &Preamble, name: &Ident, scope: ScopeId) {
        let annotations = self.annotations(preamble, scope, AnnotatedKind::Module);
        if let Some(def) = self.symbols.model.defs.get_mut(id.index()) {
            if !def.docs.is_empty() && !preamble.docs.is_empty() {
                def.docs.lines.push(String::new());
            }
            def.docs.lines.extend(preamble.docs.lines.iter().cloned());
            def.annotations.0.extend(annotations.0);
        }
        repository_id::update_prefix_of_reopened_module(&mut self.symbols, id, name, scope);
    }

    /// Resolves the body of a module whose name could not be declared, to report the errors inside.
    fn resolve_undeclared_body(&mut self, id: DefId, items: Vec<Item>, scope: ScopeId) {
        let inner = self.symbols.open_scope(id, scope);
        self.items(items, inner);
    }

    /// Handles a forward declaration, which may be repeated before and after the definition.
    fn forward(&mut self, name: &Ident, kind: DefKind, scope: ScopeId) {
        if let Some(id) = self.same_declaration(name, &kind, scope) {
            flavour::check_same_flavour(&mut self.symbols, id, name, &kind);
            return repository_id::check_forward_prefix(&mut self.symbols, id, name, scope);
        }
        let what = kind.description();
        let id = self.new_def(&Preamble::default(), name, kind, scope);
        if self.symbols.declare(scope, name, Entity::Def(id), what) {
            self.symbols.states[id.index()].progress = Progress::Forward(name.span);
        }
    }

    /// Returns the definition of this name and kind that the scope itself declares, if there is one.
    fn same_declaration(&self, name: &Ident, kind: &DefKind, scope: ScopeId) -> Option<DefId> {
        let Some(Entity::Def(id)) = self.symbols.declared(scope, &name.text) else { return None };
        let def = self.symbols.model.def(id);
        let is_same = std::mem::discriminant(&def.kind) == std::mem::discriminant(kind);
        (is_same && def.name == name.text).then_some(id)
    }

    /// Starts the body of a new or forward-declared definition. Also returns whether the name was free.
    fn begin(&mut self, preamble: &Preamble, name: &Ident, kind: DefKind, scope: ScopeId) -> (DefId, bool) {
        if let Some(id) = self.same_declaration(name, &kind, scope)
            && matches!(self.symbols.states[id.index()].progress, Progress::Forward(_))
        {
            flavour::check_same_flavour(&mut self.symbols, id, name, &kind);
            repository_id::check_forward_prefix(&mut self.symbols, id, name, scope);
            let annotations = self.annotations(preamble, scope, AnnotatedKind::of(&kind));
            if let Some(def) = self.symbols.model.defs.get_mut(id.index()) {
                (def.docs, def.annotations, def.span) = (preamble.docs.clone(), annotations, name.span);
                def.kind = kind;
            }
            self.symbols.move_declaration(scope, name);
            self.symbols.states[id.index()].progress = Progress::Open;
            self.symbols.open_scope(id, scope);
            self.symbols.add_child(id, scope);
            return (id, true);
        }
        let what = kind.description();
        let id = self.new_def(preamble, name, kind, scope);
        self.symbols.states[id.index()].progress = Progress::Open;
        let declared = self.symbols.declare(scope, name, Entity::Def(id), what);
        self.symbols.open_scope(id, scope);
        if declared {
            self.symbols.add_child(id, scope);
        }
        (id, declared)
    }

    fn typedef(&mut self, preamble: Preamble, ty: TypeSpec, declarators: Vec<Declarator>, scope: ScopeId) {
        let base = self.type_spec(ty, scope);
        for declarator in declarators {
            let array = base.and_then(|base| types::array(&mut self.symbols, base, &declarator.dims, scope));
            let Some(ty) = array else {
                self.symbols.declare(scope, &declarator.name, Entity::Bad, "typedef");
                continue;
            };
            let id = self.new_def(&preamble, &declarator.name, DefKind::Typedef(Typedef { ty }), scope);
            typed_annotation::evaluate_def(&mut self.symbols, &preamble, id, ty, scope);
            self.symbols.set_depth(id);
            self.symbols.declare_def(id, scope, &declarator.name, "typedef");
        }
    }

    fn constant(
        &mut self,
        preamble: Preamble,
        ty: &TypeSpec,
        name: &Ident,
        value: &crate::ast::Expr,
        scope: ScopeId,
    ) {
        let value_span = value.span;
        let value = match ty.kind {
            TypeKind::Fixed(None) => fixed::unbounded_fixed(&mut self.symbols, value, scope),
            _ => self
                .constant_type(ty, scope)
                .and_then(|ty| Some((ty, constant::constant_value(&mut self.symbols, value, ty, scope)?))),
        };
        let Some((ty, value)) = value else {
            self.symbols.declare(scope, name, Entity::Bad, "constant");
            return;
        };
        typed_annotation::check_in_bounds(&mut self.symbols, ty, &value, value_span);
        let id = self.new_def(&preamble, name, DefKind::Const(Const { ty, value }), scope);
        self.symbols.declare_def(id, scope, name, "constant");
    }

    /// Adds a definition to the arena. It is not yet declared in a scope nor listed under its parent.
    fn new_def(&mut self, preamble: &Preamble, name: &Ident, kind: DefKind, scope: ScopeId) -> DefId {
        let id = DefId(u32::try_from(self.symbols.model.defs.len()).unwrap_or(u32::MAX));
        let annotations = self.annotations(preamble, scope, AnnotatedKind::of(&kind));
        self.symbols.model.defs.push(Def {
            id,
            name: name.text.clone(),
            parent: self.symbols.scope(scope).owner,
            repository_id: String::new(),
            docs: preamble.docs.clone(),
            annotations,
            span: name.span,
            kind,
        });
        let prefix = repository_id::prefix(&self.symbols, scope, name.span);
        if let Some(parent) = self.symbols.scope(scope).owner {
            self.symbols.states[parent.index()].inner_defs.push(id);
        }
        self.symbols.states.push(DefState {
            progress: Progress::Complete,
            depth: 0,
            scope: None,
            repository_id: RepositoryIdState::new(prefix),
            inner_defs: Vec::new(),
        });
        id
    }

    fn constructed(&mut self, preamble: Preamble, ty: TypeSpec, scope: ScopeId) -> Option<TypeId> {
        let id = match ty.kind {
            TypeKind::Struct { name, base, members } => {
                self.structure(preamble, &name, base.as_ref(), members, scope)
            }
            TypeKind::Union(union) => self.union(preamble, *union, scope),
            TypeKind::Enum { name, enumerators } => self.enumeration(preamble, &name, enumerators, scope),
            _ => None,
        }?;
        Some(self.symbols.intern(Type::Named(id)))
    }
}

impl DefKind {
    /// Returns the kind of definition, for messages (`interface`, `value type`).
    pub fn description(&self) -> &'static str {
        match self {
            DefKind::Const(_) => "constant",
            DefKind::Interface(interface) => match interface.flavour {
                Flavour::Plain => match interface.construct {
                    Construct::Component => "component",
                    Construct::Connector => "connector",
                    Construct::Home => "home",
                    _ => "interface",
                },
                Flavour::Abstract => "abstract interface",
                Flavour::Local => "local interface",
            },
            DefKind::Value(value) if value.is_event => "event type",
            DefKind::Value(_) => "value type",
            DefKind::ValueBox(_) => "value box",
            DefKind::Native => "native type",
            other => other.keyword(),
        }
    }

    /// Returns the IDL keyword of the kind; `operation` for operations, which have none.
    pub fn keyword(&self) -> &'static str {
        match self {
            DefKind::Module(_) => "module",
            DefKind::Interface(_) => "interface",
            DefKind::Operation(_) => "operation",
            DefKind::Attribute(_) => "attribute",
            DefKind::Struct(_) => "struct",
            DefKind::Exception(_) => "exception",
            DefKind::Union(_) => "union",
            DefKind::Enum(_) => "enum",
            DefKind::Typedef(_) => "typedef",
            DefKind::Const(_) => "const",
            DefKind::Value(value) if value.is_event => "eventtype",
            DefKind::Value(_) | DefKind::ValueBox(_) => "valuetype",
            DefKind::Native => "native",
            DefKind::Bitset(_) => "bitset",
            DefKind::Bitmask(_) => "bitmask",
        }
    }
}
