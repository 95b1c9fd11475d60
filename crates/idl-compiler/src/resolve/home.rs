//! Homes. Each consists of three interfaces: the explicit one with the declarations of the body, the implicit
//! one with the operations of every home, and one that inherits from both (OMG component model, clause
//! "Homes", "Equivalent Interfaces").

use super::component;
use super::implied::{Home, absolute_name, components_name, implied_operation};
use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::value;
use crate::ast::{
    self, Factory, Ident, Item, ItemKind, Name, Operation, Preamble, Raises, TypeKind, TypeSpec,
};
use crate::diagnostic::Diagnostic;
use crate::model::{Construct, DefId, Docs, Interface, Visibility};

impl Resolver<'_> {
    pub(super) fn home(&mut self, preamble: Preamble, home: ast::Home, scope: ScopeId) {
        let ast::Home { name, base, supports, manages, primary_key, items } = home;
        let span = name.span;
        let base = base.as_ref().and_then(|base| {
            let id = component::find_construct(&mut self.symbols, base, Construct::Home, scope)?;
            Some((base, *self.symbols.implied.homes.get(&id)?))
        });
        let managed = component::find_construct(&mut self.symbols, &manages, Construct::Component, scope);
        check_managed(&mut self.symbols, &name, base, managed, &manages);
        let component = managed.map_or(TypeKind::Object, |id| {
            TypeKind::Name(absolute_name(&self.symbols.model, id, manages.span))
        });
        let component = TypeSpec { kind: component, span: manages.span };
        let mut bases = vec![match base {
            Some((_, base)) => absolute_name(&self.symbols.model, base.explicit_interface, span),
            None => components_name("CCMHome", span),
        }];
        bases.extend(supports);
        let (explicit, inside) = self.open_part(&name, "Explicit", Construct::HomeExplicit, &bases, scope);
        if let Some(inside) = inside {
            for item in items {
                let (factory, failure) = match item.kind {
                    ItemKind::Factory(factory) => (factory, "CreateFailure"),
                    ItemKind::Finder(finder) => (finder, "FinderFailure"),
                    _ => {
                        self.item(item, inside);
                        continue;
                    }
                };
                self.operation(item.preamble, home_operation(factory, component.clone(), failure), inside);
            }
        }
        self.symbols.states[explicit.index()].progress = Progress::Complete;
        let implicit = self.define_implicit(&name, &component, primary_key.as_ref(), scope);
        let bases = [
            absolute_name(&self.symbols.model, explicit, span),
            absolute_name(&self.symbols.model, implicit, span),
        ];
        let body = Interface { construct: Construct::Home, ..Interface::default() };
        let (id, _) = self.open_interface(&preamble, body, &name, &bases, scope);
        self.symbols.states[id.index()].progress = Progress::Complete;
        let home = Home { explicit_interface: explicit, managed_component: managed };
        self.symbols.implied.homes.insert(id, home);
    }

    /// Opens the interface `HExplicit` or `HImplicit` of the home `H`.
    fn open_part(
        &mut self,
        home: &Ident,
        suffix: &str,
        construct: Construct,
        bases: &[Name],
        scope: ScopeId,
    ) -> (DefId, Option<ScopeId>) {
        let name = Ident { text: format!("{}{suffix}", home.text), span: home.span };
        let origin = format!("home `{}` also declares `{}`", home.text, name.text);
        self.symbols.implied.note_origin(&name, origin);
        let verb = if construct == Construct::HomeExplicit { "declares" } else { "has like every home" };
        let docs = Docs { lines: vec![format!("The operations that the home `{}` {verb}.", home.text)] };
        let preamble = Preamble { docs, annotations: Vec::new() };
        self.open_interface(&preamble, Interface { construct, ..Interface::default() }, &name, bases, scope)
    }

    /// Defines `HImplicit`: `create` and, with a primary key, the operations that take or return a key.
    fn define_implicit(
        &mut self,
        home: &Ident,
        component: &TypeSpec,
        key: Option<&Name>,
        scope: ScopeId,
    ) -> DefId {
        let span = home.span;
        let key_type = key.and_then(|key| primary_key(&mut self.symbols, key, scope));
        let bases = if key.is_none() { vec![components_name("KeylessCCMHome", span)] } else { Vec::new() };
        let (id, inside) = self.open_part(home, "Implicit", Construct::HomeImplicit, &bases, scope);
        let mut operations: Vec<Operation> = Vec::new();
        let mut add = |name: &str, result: &TypeSpec, params: &[(&str, TypeSpec)], raises: &[&str]| {
            let name = Ident { text: name.to_owned(), span };
            operations.push(implied_operation(name, result.clone(), params, raises));
        };
        match key_type {
            None if key.is_some() => {}
            None => add("create", component, &[], &["CreateFailure"]),
            Some(key) => {
                let key_type =
                    TypeSpec { kind: TypeKind::Name(absolute_name(&self.symbols.model, key, span)), span };
                let by_key = [("key", key_type.clone())];
                let void = TypeSpec { kind: TypeKind::Void, span };
                add("create", component, &by_key, &["CreateFailure", "DuplicateKeyValue", "InvalidKey"]);
                let failures = ["FinderFailure", "UnknownKeyValue", "InvalidKey"];
                add("find_by_primary_key", component, &by_key, &failures);
                add("remove", &void, &by_key, &["RemoveFailure", "UnknownKeyValue", "InvalidKey"]);
                add("get_primary_key", &key_type, &[("comp", component.clone())], &[]);
            }
        }
        for operation in operations {
            let name = &operation.name;
            let origin = format!("home `{}` also declares `{}`", home.text, name.text);
            self.symbols.implied.note_origin(name, origin);
            let item = Item { preamble: Preamble::default(), kind: ItemKind::Operation(operation) };
            if let Some(inside) = inside {
                self.item(item, inside);
            }
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        id
    }
}

/// Checks that a derived home manages the same component as its base home, or one that derives from it.
fn check_managed(
    symbols: &mut Symbols<'_>,
    name: &Ident,
    base: Option<(&Name, Home)>,
    managed: Option<DefId>,
    manages: &Name,
) {
    let Some((base_name, base)) = base else { return };
    let (Some(of_base), Some(managed)) = (base.managed_component, managed) else { return };
    if of_base == managed || symbols.model.all_bases(managed).contains(&of_base) {
        return;
    }
    let of_base = symbols.model.scoped_name(of_base);
    let message =
        format!("home `{}` manages `{}`, which is not derived from `{of_base}`", name.text, manages.text());
    let error = Diagnostic::error("home-inheritance", manages.span, message);
    let error = error.and(base_name.span, format!("this base manages `{of_base}`"));
    symbols.report(error.note("clients of the base home expect its components to be of that type"));
}

/// Checks a primary key: a concrete value type derived from `Components::PrimaryKeyBase`, whose state is
/// public and contains no references (OMG component model, clause "Primary Key Declarations").
fn primary_key(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<DefId> {
    let entity = symbols.lookup(name, scope)?;
    let Some(key) = value::value_type_of(symbols, entity) else {
        return symbols.reject_wrong_kind(entity, name, "not-a-value", "a value type");
    };
    let def = symbols.model.def(key);
    let bases = symbols.model.all_bases(key);
    let module = symbols.declared(ScopeId::FILE, "Components").and_then(|module| symbols.scope_of(module));
    let base = module.and_then(|module| match symbols.declared(module, "PrimaryKeyBase") {
        Some(Entity::Def(base)) => Some(base),
        _ => None,
    });
    let state: Vec<_> =
        bases.iter().chain([&key]).filter_map(|id| symbols.model.value(*id)).flat_map(|v| &v.state).collect();
    let error = |message: String| Diagnostic::error("primary-key", name.span, message);
    let text = name.text();
    let found = if symbols.states[key.index()].progress != Progress::Complete {
        let message = format!("primary key `{text}` is not defined yet");
        Some(Diagnostic::error("incomplete", name.span, message).and(def.span, "only declared here"))
    } else if symbols.model.is_abstract_value(key) {
        Some(error(format!("primary key `{text}` must not be abstract")).and(def.span, "declared here"))
    } else if !base.is_some_and(|base| bases.contains(&base)) {
        let found = error(format!("primary key `{text}` must inherit from `::Components::PrimaryKeyBase`"));
        let found = found.and(def.span, "declared here");
        Some(found.help(format!("write `valuetype {} : ::Components::PrimaryKeyBase`", def.name)))
    } else if let Some(private) = state.iter().find(|state| state.visibility == Visibility::Private) {
        let found = error(format!("primary key `{text}` must not have private state"));
        Some(found.and(private.member.span, "this member is private"))
    } else {
        let is_reference = |ty| symbols.model.is_reference(ty);
        state.iter().find(|state| is_reference(state.member.ty)).map(|state| {
            let found = error(format!("primary key `{text}` must not contain a reference"));
            found.and(state.member.span, "this member is a reference")
        })
    };
    if let Some(found) = found {
        symbols.report(found);
    }
    Some(key)
}

fn home_operation(factory: Factory, component: TypeSpec, failure: &str) -> Operation {
    let Factory { name, params, raises } = factory;
    let span = name.span;
    let mut names = vec![components_name(failure, span)];
    let raises_span = raises.as_ref().map_or(span, |raises| raises.span);
    names.extend(raises.into_iter().flat_map(|raises| raises.names));
    let raises = Some(Raises { names, span: raises_span });
    Operation { oneway: None, result: component, name, params, raises, context: Vec::new() }
}
