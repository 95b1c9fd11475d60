//! Questions asked of a model: names, inheritance, reachability.

use std::collections::HashSet;

use super::{
    Attribute, Const, Def, DefId, DefKind, Docs, Enum, Interface, Model, Operation, Primitive, Struct, Type,
    TypeId, Typedef, Union, VendorPragma,
};
use crate::diagnostic::Diagnostics;
use crate::source::{Sources, Span};

impl Model {
    /// File-level definitions in source order. Walk `members` and `nested` for what is inside them.
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// All definitions, each after its parent.
    pub fn defs(&self) -> &[Def] {
        &self.defs
    }

    /// The definition of this id. The id must come from this model.
    pub fn def(&self, id: DefId) -> &Def {
        &self.defs[id.index()]
    }

    /// The type of this id, typedefs not looked through. The id must come from this model.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }

    /// Documentation of the whole text: `//!` comments at file level.
    pub fn docs(&self) -> &Docs {
        &self.docs
    }

    /// What the compiler found worth saying though it is no error.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// `#pragma` lines of vendors, in source order.
    pub fn pragmas(&self) -> &[VendorPragma] {
        &self.pragmas
    }

    /// The definition stands in a file that was included and is none of those that the compiler was given. A module
    /// that several files open is where it is opened first; what an interface or type declares is where that is.
    pub fn is_included(&self, id: DefId) -> bool {
        let mut at = id;
        while let Some(parent) =
            self.def(at).parent.filter(|id| !matches!(self.def(*id).kind, DefKind::Module(_)))
        {
            at = parent;
        }
        self.sources.is_included(self.def(at).span)
    }

    /// The texts the spans point into.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The Rust span of an IDL span: the token itself for the token form, a part of the literal (or, where rustc does
    /// not offer that, the whole literal) for text inside a macro, the call site for anything else.
    pub fn rust_span(&self, span: Span) -> proc_macro2::Span {
        self.sources.rust_span(span)
    }

    /// Definitions declared directly inside this one, in source order; empty for what has no scope.
    pub fn children(&self, id: DefId) -> &[DefId] {
        match &self.def(id).kind {
            DefKind::Module(m) => &m.members,
            DefKind::Interface(i) => &i.members,
            DefKind::Struct(s) | DefKind::Exception(s) => &s.nested,
            DefKind::Union(u) => &u.nested,
            _ => &[],
        }
    }

    /// IDL names from file level down to this definition, its own last.
    pub fn path(&self, id: DefId) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let def = self.def(id);
            path.push(def.name.as_str());
            at = def.parent;
        }
        path.reverse();
        path
    }

    /// Scoped name without leading `::`, e.g. `Bank::Account`.
    pub fn scoped_name(&self, id: DefId) -> String {
        self.path(id).join("::")
    }

    /// The definition of this scoped name (leading `::` optional), spelled exactly.
    pub fn find(&self, scoped_name: &str) -> Option<DefId> {
        let mut names = scoped_name.trim_start_matches("::").split("::");
        let first = names.next()?;
        let named = |ids: &[DefId], name: &str| ids.iter().copied().find(|id| self.def(*id).name == name);
        names.try_fold(named(&self.roots, first)?, |scope, name| named(self.children(scope), name))
    }

    /// The type behind all typedefs: never [`Type::Named`] of a typedef. Element types are not touched.
    pub fn strip(&self, id: TypeId) -> TypeId {
        let mut id = id;
        while let Type::Named(def) = self.ty(id) {
            let DefKind::Typedef(alias) = &self.def(*def).kind else { break };
            id = alias.ty;
        }
        id
    }

    /// Shorthand for the type itself behind all typedefs.
    pub fn stripped(&self, id: TypeId) -> &Type {
        self.ty(self.strip(id))
    }

    /// The type is an object reference: an interface or `Object`, possibly through typedefs.
    pub fn is_reference(&self, id: TypeId) -> bool {
        match self.stripped(id) {
            Type::Object => true,
            Type::Named(def) => matches!(self.def(*def).kind, DefKind::Interface(_)),
            _ => false,
        }
    }

    /// The interface body, if this is an interface.
    pub fn interface(&self, id: DefId) -> Option<&Interface> {
        if let DefKind::Interface(i) = &self.def(id).kind { Some(i) } else { None }
    }

    /// The operation, if this is one.
    pub fn operation(&self, id: DefId) -> Option<&Operation> {
        if let DefKind::Operation(o) = &self.def(id).kind { Some(o) } else { None }
    }

    /// The attribute, if this is one.
    pub fn attribute(&self, id: DefId) -> Option<&Attribute> {
        if let DefKind::Attribute(a) = &self.def(id).kind { Some(a) } else { None }
    }

    /// The body of a struct or exception, if this is one.
    pub fn structure(&self, id: DefId) -> Option<&Struct> {
        if let DefKind::Struct(s) | DefKind::Exception(s) = &self.def(id).kind { Some(s) } else { None }
    }

    /// The union, if this is one.
    pub fn union(&self, id: DefId) -> Option<&Union> {
        if let DefKind::Union(u) = &self.def(id).kind { Some(u) } else { None }
    }

    /// The enum, if this is one.
    pub fn enumeration(&self, id: DefId) -> Option<&Enum> {
        if let DefKind::Enum(e) = &self.def(id).kind { Some(e) } else { None }
    }

    /// The typedef, if this is one.
    pub fn typedef(&self, id: DefId) -> Option<&Typedef> {
        if let DefKind::Typedef(t) = &self.def(id).kind { Some(t) } else { None }
    }

    /// The constant, if this is one.
    pub fn constant(&self, id: DefId) -> Option<&Const> {
        if let DefKind::Const(c) = &self.def(id).kind { Some(c) } else { None }
    }

    /// All interfaces this one inherits from, directly or not, each once: depth first, bases in the order listed, a
    /// base after its own bases. The interface itself is not among them.
    pub fn all_bases(&self, interface: DefId) -> Vec<DefId> {
        let mut order = Vec::new();
        self.add_bases(interface, &mut HashSet::new(), &mut order);
        order
    }

    fn add_bases(&self, interface: DefId, seen: &mut HashSet<DefId>, order: &mut Vec<DefId>) {
        for &base in self.interface(interface).map_or(&[][..], |i| &i.bases) {
            if seen.insert(base) {
                self.add_bases(base, seen, order);
                order.push(base);
            }
        }
    }

    /// Operations and attributes of the interface, inherited ones first in the order of [`Model::all_bases`], then its
    /// own, each once. The owner is the definition's `parent`.
    pub fn all_members(&self, interface: DefId) -> impl Iterator<Item = &Def> + '_ {
        let mut owners = self.all_bases(interface);
        owners.push(interface);
        owners
            .into_iter()
            .flat_map(|owner| self.children(owner))
            .map(|id| self.def(*id))
            .filter(|def| matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_)))
    }

    /// The operations among [`Model::all_members`].
    pub fn all_operations(&self, interface: DefId) -> impl Iterator<Item = (&Def, &Operation)> + '_ {
        self.all_members(interface).filter_map(|def| match &def.kind {
            DefKind::Operation(operation) => Some((def, operation)),
            _ => None,
        })
    }

    /// The attributes among [`Model::all_members`].
    pub fn all_attributes(&self, interface: DefId) -> impl Iterator<Item = (&Def, &Attribute)> + '_ {
        self.all_members(interface).filter_map(|def| match &def.kind {
            DefKind::Attribute(attribute) => Some((def, attribute)),
            _ => None,
        })
    }

    /// The struct, union or typedef contains itself through a sequence.
    pub fn is_recursive(&self, def: DefId) -> bool {
        self.recursive.get(def.index()).copied().unwrap_or(false)
    }

    /// Every value of the type has the same CDR size but for alignment: basic types (not `wchar`, whose size depends
    /// on the GIOP version), enums, and arrays, structs and typedefs of those. `boolean` and enums count, though not
    /// every bit pattern is a value of them.
    pub fn is_fixed_size(&self, id: TypeId) -> bool {
        self.every_part(id, |ty| match ty {
            Type::Primitive(p) => *p != Primitive::WChar,
            Type::Array { .. } => true,
            Type::Named(def) => !matches!(self.def(*def).kind, DefKind::Union(_) | DefKind::Interface(_)),
            Type::String(_) | Type::WString(_) | Type::Sequence { .. } | Type::Object => false,
        })
    }

    /// A `float`, `double` or `long double` is reachable from the type through members, elements and typedefs.
    pub fn contains_float(&self, id: TypeId) -> bool {
        !self.every_part(id, |ty| !matches!(ty, Type::Primitive(p) if p.is_float()))
    }

    /// An object reference is reachable from the type through members, elements and typedefs.
    pub fn contains_reference(&self, id: TypeId) -> bool {
        !self.every_part(id, |ty| match ty {
            Type::Object => false,
            Type::Named(def) => !matches!(self.def(*def).kind, DefKind::Interface(_)),
            _ => true,
        })
    }

    /// The type can be compared for equality and hashed: no floating type is reachable. (`any` and value types, which
    /// forbid it too, are not part of the language yet.)
    pub fn is_hashable(&self, id: TypeId) -> bool {
        !self.contains_float(id)
    }

    /// The members of this struct, exception or union have types which all can be hashed.
    pub fn is_hashable_def(&self, id: DefId) -> bool {
        self.member_types(id).into_iter().all(|ty| self.is_hashable(ty))
    }

    /// Types of the members of a struct, exception or union in order (a union's discriminator not included), or the
    /// type a typedef names; empty for other definitions.
    pub fn member_types(&self, id: DefId) -> Vec<TypeId> {
        match &self.def(id).kind {
            DefKind::Struct(s) | DefKind::Exception(s) => s.members.iter().map(|m| m.ty).collect(),
            DefKind::Union(u) => u.cases.iter().map(|c| c.member.ty).collect(),
            DefKind::Typedef(t) => vec![t.ty],
            _ => Vec::new(),
        }
    }

    /// Tests the type and all it is made of, each once, so that recursive types end.
    fn every_part(&self, id: TypeId, test: impl Fn(&Type) -> bool) -> bool {
        let mut seen = HashSet::from([id]);
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let ty = self.ty(id);
            if !test(ty) {
                return false;
            }
            let parts = match ty {
                Type::Sequence { element, .. } | Type::Array { element, .. } => vec![*element],
                Type::Named(def) => self.member_types(*def),
                _ => Vec::new(),
            };
            todo.extend(parts.into_iter().filter(|part| seen.insert(*part)));
        }
        true
    }

    /// The type as IDL spells it, names scoped: `sequence<M::T, 5>`; an array as `long[2][3]`.
    pub fn describe(&self, id: TypeId) -> String {
        let bounded = |name: &str, bound: &Option<u32>| match bound {
            Some(n) => format!("{name}<{n}>"),
            None => name.to_owned(),
        };
        match self.ty(id) {
            Type::Primitive(p) => p.idl_name().to_owned(),
            Type::String(bound) => bounded("string", bound),
            Type::WString(bound) => bounded("wstring", bound),
            Type::Sequence { element, bound: Some(n) } => {
                format!("sequence<{}, {n}>", self.describe(*element))
            }
            Type::Sequence { element, bound: None } => format!("sequence<{}>", self.describe(*element)),
            Type::Array { element, dims } => {
                let dims: String = dims.iter().map(|d| format!("[{d}]")).collect();
                format!("{}{dims}", self.describe(*element))
            }
            Type::Named(def) => self.scoped_name(*def),
            Type::Object => "Object".to_owned(),
        }
    }
}
