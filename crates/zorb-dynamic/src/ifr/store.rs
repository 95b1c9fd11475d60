//! The definitions of an Interface Repository.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use orb_runtime::dynamic::{AttributeInfo, Dynamic, Interface, OperationInfo};
use orb_runtime::types::{TcKind, TypeCode, Visibility};

use crate::idl::{Definition, DefinitionKind, Idl};
use crate::value_info::ValueInfo;

use super::kind::Kind;

#[derive(Debug)]
pub(super) struct Def {
    pub(super) kind: Kind,
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    /// The scoped name, which starts with `::`.
    pub(super) absolute_name: Box<str>,
    /// The index of the enclosing definition, or `None` at file level.
    pub(super) parent: Option<usize>,
    /// The indexes of the enclosed definitions.
    pub(super) contents: Vec<usize>,
    pub(super) details: Details,
}

/// The properties that depend on the kind of a definition.
#[derive(Debug)]
pub(super) enum Details {
    Module,
    Type(TypeCode),
    Interface(Arc<Interface>),
    Value(Arc<ValueInfo>),
    Operation(Arc<OperationInfo>),
    Attribute(Box<AttributeInfo>),
    Constant(Box<Dynamic>),
    ValueMember(TypeCode, Visibility),
}

/// All definitions. Each comes after its enclosing definition.
#[derive(Debug, Default)]
pub(super) struct Store {
    defs: Vec<Def>,
    roots: Vec<usize>,
    by_id: HashMap<Box<str>, usize>,
    by_name: HashMap<Box<str>, usize>,
}

impl Def {
    /// Returns the type. For an interface, this is the type of references to it.
    pub(super) fn type_code(&self) -> TypeCode {
        match &self.details {
            Details::Type(code) | Details::ValueMember(code, _) => code.clone(),
            Details::Value(value) => value.code.clone(),
            Details::Attribute(attribute) => attribute.code.clone(),
            Details::Constant(constant) => constant.code.clone(),
            Details::Operation(operation) => operation.result.clone(),
            Details::Interface(interface) => {
                let create = match interface.kind() {
                    TcKind::AbstractInterface => TypeCode::create_abstract_interface,
                    TcKind::LocalInterface => TypeCode::create_local_interface,
                    TcKind::Component => TypeCode::create_component,
                    TcKind::Home => TypeCode::create_home,
                    _ => TypeCode::create_interface,
                };
                create(interface.id(), interface.name()).unwrap_or(TypeCode::OBJECT)
            }
            Details::Module => TypeCode::VOID,
        }
    }

    pub(super) fn version(&self) -> &str {
        version_of(&self.id)
    }
}

/// Returns the version at the end of a repository id, or 1.0 if the id is not in IDL format.
pub(super) fn version_of(id: &str) -> &str {
    id.strip_prefix("IDL:").and_then(|path| path.rsplit_once(':')).map_or("1.0", |(_, version)| version)
}

impl Store {
    pub(super) fn get(&self, index: usize) -> Option<&Def> {
        self.defs.get(index)
    }

    pub(super) fn find_id(&self, id: &str) -> Option<(usize, &Def)> {
        let index = *self.by_id.get(id)?;
        Some((index, self.defs.get(index)?))
    }

    /// Finds a definition by its name. A name such as `::M::T` is absolute. A name such as `T` or `M::T` is
    /// looked up in the scope, and then in its enclosing scopes. A scope includes inherited definitions.
    pub(super) fn find_name(&self, scope: Option<usize>, name: &str) -> Option<usize> {
        if name.starts_with("::") {
            return self.find_absolute(name);
        }
        let mut next = scope;
        loop {
            let scope = next.and_then(|index| self.defs.get(index));
            let scope_name = scope.map_or("", |def| &*def.absolute_name);
            let found = self.find_absolute(&format!("{scope_name}::{name}"));
            match (found, scope) {
                (None, Some(scope)) => next = scope.parent,
                (found, _) => return found,
            }
        }
    }

    fn find_absolute(&self, name: &str) -> Option<usize> {
        if let Some(found) = self.by_name.get(name) {
            return Some(*found);
        }
        let (scope, last) = name.rsplit_once("::")?;
        self.bases(*self.by_name.get(scope)?).into_iter().find_map(|base| {
            let base = self.defs.get(base)?;
            self.by_name.get(format!("{}::{last}", base.absolute_name).as_str()).copied()
        })
    }

    /// Returns the contents of a scope. If `scope` is `None`, returns the definitions at file level.
    pub(super) fn contents(&self, scope: Option<usize>, inherited: bool) -> Vec<usize> {
        let Some(scope) = scope else { return self.roots.clone() };
        let own = self.defs.get(scope).map_or(&[][..], |def| &def.contents);
        let mut all = own.to_vec();
        if inherited {
            for base in self.bases(scope) {
                let inherited = |index: &&usize| {
                    let kind = self.defs.get(**index).map(|def| def.kind);
                    matches!(kind, Some(Kind::Operation | Kind::Attribute | Kind::ValueMember))
                };
                all.extend(self.defs.get(base).map_or(&[][..], |def| &def.contents).iter().filter(inherited));
            }
        }
        all
    }

    /// Returns all bases of an interface or value type, and the interfaces that it supports, each once.
    pub(super) fn bases(&self, index: usize) -> Vec<usize> {
        let (mut seen, mut all, mut pending) = (HashSet::from([index]), Vec::new(), self.direct_bases(index));
        pending.reverse();
        while let Some(base) = pending.pop() {
            if seen.insert(base) {
                all.push(base);
                pending.extend(self.direct_bases(base).into_iter().rev());
            }
        }
        all
    }

    fn direct_bases(&self, index: usize) -> Vec<usize> {
        let find = |id: &str| self.by_id.get(id).copied();
        match self.defs.get(index).map(|def| &def.details) {
            Some(Details::Interface(interface)) => {
                interface.bases().iter().filter_map(|base| find(base.id())).collect()
            }
            Some(Details::Value(value)) => {
                let concrete = value.concrete_base().and_then(|base| find(base.id().ok()?));
                let others = value.abstract_bases.iter().chain(&value.supports).filter_map(|id| find(id));
                concrete.into_iter().chain(others).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Adds the definitions of IDL, except those whose repository ids are already present.
    pub(super) fn add_idl(&mut self, idl: &Idl) {
        for root in idl.roots() {
            self.add_definition(root, None);
        }
    }

    fn add_definition(&mut self, definition: Definition<'_>, parent: Option<usize>) {
        let known = self.by_id.get(definition.id()).copied();
        let index = match known {
            // A module may have several parts. Other definitions with the same id are assumed to be equal.
            Some(index) if definition.kind() == DefinitionKind::Module => index,
            Some(_) => return,
            None => match kind_and_details(definition, parent.and_then(|parent| self.defs.get(parent))) {
                Some((kind, details)) => {
                    self.push(kind, (definition.id(), definition.name()), parent, details)
                }
                None => return,
            },
        };
        if let Some(code) = definition.type_code().filter(|_| definition.kind() == DefinitionKind::Value) {
            self.add_state_members(index, code);
        }
        for content in definition.contents() {
            self.add_definition(content, Some(index));
        }
    }

    /// Adds an interface, its bases, and the types that it uses.
    pub(super) fn add_interface(&mut self, interface: &Arc<Interface>) {
        if self.by_id.contains_key(interface.id()) {
            return;
        }
        interface.bases().iter().for_each(|base| self.add_interface(base));
        let parent = self.scope_of(interface.id());
        let details = Details::Interface(Arc::clone(interface));
        let index = self.push(interface_kind(interface), (interface.id(), interface.name()), parent, details);
        for operation in interface.operations() {
            let types = operation.params.iter().map(|param| &param.code).chain(&operation.raises);
            types.chain([&operation.result]).for_each(|code| self.add_type(code, 0));
            let details = Details::Operation(Arc::clone(operation));
            self.push(Kind::Operation, (&operation.id, &operation.name), Some(index), details);
        }
        for attribute in interface.attributes() {
            let types = attribute.get_raises.iter().chain(&attribute.set_raises).chain([&attribute.code]);
            types.for_each(|code| self.add_type(code, 0));
            let details = Details::Attribute(Box::new(attribute.clone()));
            self.push(Kind::Attribute, (&attribute.id, &attribute.name), Some(index), details);
        }
    }

    /// Adds a type if it has a name, and the types that it contains.
    fn add_type(&mut self, code: &TypeCode, depth: usize) {
        /// The maximum nesting of types. Type codes cannot be nested more deeply.
        const MAX_DEPTH: usize = 64;
        let (id, name) = (code.id().unwrap_or_default(), code.name().unwrap_or_default());
        if depth > MAX_DEPTH || (!id.is_empty() && self.by_id.contains_key(id)) {
            return;
        }
        let kind = match code.kind() {
            TcKind::Struct => Some(Kind::Struct),
            TcKind::Union => Some(Kind::Union),
            TcKind::Enum => Some(Kind::Enum),
            TcKind::Alias => Some(Kind::Alias),
            TcKind::Except => Some(Kind::Exception),
            TcKind::Value | TcKind::Event => Some(Kind::Value),
            TcKind::ValueBox => Some(Kind::ValueBox),
            TcKind::Native => Some(Kind::Native),
            _ => None,
        };
        if let Some(kind) = kind.filter(|_| !id.is_empty() && !name.is_empty()) {
            let parent = self.scope_of(id);
            let details = match kind {
                Kind::Value => Details::Value(Arc::new(ValueInfo::of_code(code))),
                _ => Details::Type(code.clone()),
            };
            let index = self.push(kind, (id, name), parent, details);
            if kind == Kind::Value {
                self.add_state_members(index, code);
            }
        }
        if let Ok(content) = code.content_type() {
            self.add_type(&content, depth + 1);
        }
        if let Ok(base) = code.concrete_base_type() {
            base.iter().for_each(|base| self.add_type(base, depth + 1));
        }
        if let Ok(discriminator) = code.discriminator_type() {
            self.add_type(&discriminator, depth + 1);
        }
        for index in 0..code.member_count().unwrap_or(0) {
            if let Ok(member) = code.member_type(index) {
                self.add_type(&member, depth + 1);
            }
        }
    }

    /// Adds the state members of a value type.
    fn add_state_members(&mut self, owner: usize, code: &TypeCode) {
        let Some(id) = self.defs.get(owner).map(|def| def.id.clone()) else { return };
        for index in 0..code.member_count().unwrap_or(0) {
            let (Ok(member), Ok(name)) = (code.member_type(index), code.member_name(index)) else { continue };
            let member_id = match id.rsplit_once(':').filter(|_| id.starts_with("IDL:")) {
                Some((path, _)) => format!("{path}/{name}:1.0"),
                None => format!("{id}/{name}"),
            };
            let access = code.member_visibility(index).unwrap_or_default();
            if !self.by_id.contains_key(member_id.as_str()) {
                let details = Details::ValueMember(member, access);
                self.push(Kind::ValueMember, (&member_id, name), Some(owner), details);
            }
        }
    }

    /// Returns the scope that a repository id names. Creates each missing scope, as a module.
    fn scope_of(&mut self, id: &str) -> Option<usize> {
        let (path, _) = id.strip_prefix("IDL:")?.rsplit_once(':')?;
        let (scope, _) = path.rsplit_once('/')?;
        let mut parent = None;
        let mut so_far = String::new();
        for name in scope.split('/') {
            if !so_far.is_empty() {
                so_far.push('/');
            }
            so_far.push_str(name);
            // A prefix such as `omg.org` is not a scope.
            if name.contains('.') || name.is_empty() {
                continue;
            }
            let id = format!("IDL:{so_far}:1.0");
            let index = match self.by_id.get(id.as_str()) {
                Some(index) => *index,
                None => self.push(Kind::Module, (&id, name), parent, Details::Module),
            };
            parent = Some(index);
        }
        parent
    }

    fn push(
        &mut self,
        kind: Kind,
        (id, name): (&str, &str),
        parent: Option<usize>,
        details: Details,
    ) -> usize {
        let index = self.defs.len();
        let scope_name =
            parent.and_then(|parent| self.defs.get(parent)).map_or("", |def| &*def.absolute_name);
        let absolute_name: Box<str> = format!("{scope_name}::{name}").into();
        match parent.and_then(|parent| self.defs.get_mut(parent)) {
            Some(parent) => parent.contents.push(index),
            None => self.roots.push(index),
        }
        self.by_id.entry(id.into()).or_insert(index);
        self.by_name.entry(absolute_name.clone()).or_insert(index);
        let (id, name) = (id.into(), name.into());
        self.defs.push(Def { kind, id, name, absolute_name, parent, contents: Vec::new(), details });
        index
    }
}

fn interface_kind(interface: &Interface) -> Kind {
    match interface.kind() {
        TcKind::AbstractInterface => Kind::AbstractInterface,
        TcKind::LocalInterface => Kind::LocalInterface,
        _ => Kind::Interface,
    }
}

/// Returns the kind and details of an IDL definition.
fn kind_and_details(definition: Definition<'_>, parent: Option<&Def>) -> Option<(Kind, Details)> {
    let kind = match definition.kind() {
        DefinitionKind::Module => return Some((Kind::Module, Details::Module)),
        DefinitionKind::Interface => {
            let interface = definition.interface()?;
            return Some((interface_kind(interface), Details::Interface(Arc::clone(interface))));
        }
        DefinitionKind::Operation | DefinitionKind::Attribute => {
            let (operations, attributes) = match &parent?.details {
                Details::Interface(interface) => (interface.operations(), interface.attributes()),
                Details::Value(value) => (&*value.operations, &*value.attributes),
                _ => return None,
            };
            if definition.kind() == DefinitionKind::Operation {
                let found = operations.iter().find(|operation| *operation.name == *definition.name())?;
                return Some((Kind::Operation, Details::Operation(Arc::clone(found))));
            }
            let found = attributes.iter().find(|attribute| *attribute.name == *definition.name())?;
            return Some((Kind::Attribute, Details::Attribute(Box::new(found.clone()))));
        }
        DefinitionKind::Const => {
            return Some((Kind::Constant, Details::Constant(Box::new(definition.constant()?.clone()))));
        }
        DefinitionKind::Struct => Kind::Struct,
        DefinitionKind::Exception => Kind::Exception,
        DefinitionKind::Union => Kind::Union,
        DefinitionKind::Enum => Kind::Enum,
        DefinitionKind::Value => return Some((Kind::Value, Details::Value(Arc::clone(definition.value()?)))),
        DefinitionKind::ValueBox => Kind::ValueBox,
        DefinitionKind::Native => Kind::Native,
        // Typedefs, bitsets and bitmasks. Type codes represent all of these as aliases.
        _ => Kind::Alias,
    };
    Some((kind, Details::Type(definition.type_code()?.clone())))
}
