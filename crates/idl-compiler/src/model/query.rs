//! Questions asked of a model: names, inheritance, reachability.

use std::collections::HashSet;

use super::reach::Fact;
use super::{
    AnnotationType, Attribute, Bitmask, Bitset, Const, Def, DefId, DefKind, Docs, Enum, Interface, Member,
    Model, Operation, Struct, Type, TypeId, Typedef, Union, Value, ValueBox, ValueModifier, VendorPragma,
};
use crate::diagnostic::Diagnostics;
use crate::source::{Sources, Span};
use crate::work;

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

    /// Annotations that the text declares, in source order. Those of the standard and of zorb are not among them.
    pub fn annotation_types(&self) -> &[AnnotationType] {
        &self.annotation_types
    }

    /// `#pragma` lines of vendors, in source order.
    pub fn pragmas(&self) -> &[VendorPragma] {
        &self.pragmas
    }

    /// The definition stands in a file that was included and is none of those that the compiler was given. A module
    /// that several files open is where it is opened first; what an interface or type declares is where that is; what an instance
    /// of a template module declares is where the instance is.
    pub fn is_included(&self, id: DefId) -> bool {
        let is_module = |id: DefId| matches!(self.def(id).kind, DefKind::Module(_));
        let mut at = id;
        while let Some(parent) = self.def(at).parent.filter(|id| !is_module(*id)) {
            at = parent;
        }
        let around = std::iter::successors(Some(at), |id| self.def(*id).parent);
        let instance = around
            .filter(|id| matches!(&self.def(*id).kind, DefKind::Module(module) if module.template.is_some()));
        self.sources.is_included(self.def(instance.last().unwrap_or(at)).span)
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
            DefKind::Value(v) => &v.members,
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
            work::step();
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

    /// The type is an object reference, possibly through typedefs: an interface or `Object`. Of an abstract interface it may be a
    /// value as well.
    pub fn is_reference(&self, id: TypeId) -> bool {
        match self.stripped(id) {
            Type::Object => true,
            Type::Named(def) => self.interface(*def).is_some(),
            _ => false,
        }
    }

    /// The type is a value that may be shared and null, possibly through typedefs: a value type, a value box or
    /// `ValueBase`. An abstract interface, which may hold one, is none.
    pub fn is_value(&self, id: TypeId) -> bool {
        match self.stripped(id) {
            Type::ValueBase => true,
            Type::Named(def) => matches!(self.def(*def).kind, DefKind::Value(_) | DefKind::ValueBox(_)),
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

    /// The value type, if this is one.
    pub fn value(&self, id: DefId) -> Option<&Value> {
        if let DefKind::Value(v) = &self.def(id).kind { Some(v) } else { None }
    }

    /// The value box, if this is one.
    pub fn value_box(&self, id: DefId) -> Option<&ValueBox> {
        if let DefKind::ValueBox(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// The bitset, if this is one.
    pub fn bitset(&self, id: DefId) -> Option<&Bitset> {
        if let DefKind::Bitset(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// The bitmask, if this is one.
    pub fn bitmask(&self, id: DefId) -> Option<&Bitmask> {
        if let DefKind::Bitmask(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// What a definition inherits names from, directly: bases of an interface; bases of a value type, then what it
    /// supports; empty for all others.
    pub fn direct_bases(&self, id: DefId) -> impl Iterator<Item = DefId> + '_ {
        let (bases, supports) = match &self.def(id).kind {
            DefKind::Interface(i) => (&i.bases[..], &[][..]),
            DefKind::Value(v) => (&v.bases[..], &v.supports[..]),
            _ => (&[][..], &[][..]),
        };
        bases.iter().chain(supports).copied()
    }

    /// All interfaces this one inherits from, directly or not, each once: depth first, bases in the order listed, a
    /// base after its own bases. The interface itself is not among them. Of a value type: its bases and what it and they
    /// support, alike.
    pub fn all_bases(&self, id: DefId) -> Vec<DefId> {
        let mut order = Vec::new();
        self.add_bases(id, &mut HashSet::new(), &mut order);
        order
    }

    fn add_bases(&self, id: DefId, seen: &mut HashSet<DefId>, order: &mut Vec<DefId>) {
        for base in self.direct_bases(id) {
            work::step();
            if seen.insert(base) {
                self.add_bases(base, seen, order);
                order.push(base);
            }
        }
    }

    /// An abstract value type: it has no state.
    pub fn is_abstract_value(&self, id: DefId) -> bool {
        self.value(id).is_some_and(|value| value.modifier == ValueModifier::Abstract)
    }

    /// The base value type whose state comes first in that of a value type.
    pub fn concrete_base(&self, id: DefId) -> Option<DefId> {
        self.value(id)?.bases.first().copied().filter(|base| !self.is_abstract_value(*base))
    }

    /// The program marshals the state of the value type: it or a base with state is `custom`.
    pub fn is_custom(&self, id: DefId) -> bool {
        // A base is defined before what is derived from it: this ends.
        let mut lineage = std::iter::successors(Some(id), |id| self.concrete_base(*id));
        lineage.any(|id| self.value(id).is_some_and(|value| value.modifier == ValueModifier::Custom))
    }

    /// The base structs of a struct from the outermost base down to the direct one; the struct itself is not among them.
    pub fn struct_bases(&self, id: DefId) -> Vec<DefId> {
        let base = |id: DefId| self.structure(id).and_then(|body| body.base);
        // Only what is defined is a base, so this ends.
        let mut bases: Vec<DefId> = std::iter::successors(base(id), |at| base(*at)).collect();
        work::steps(bases.len());
        bases.reverse();
        bases
    }

    /// All members of a struct or exception, those of its bases first; empty for other definitions.
    pub fn all_struct_members(&self, id: DefId) -> Vec<&Member> {
        let mut owners = self.struct_bases(id);
        owners.push(id);
        let bodies = owners.into_iter().filter_map(|owner| self.structure(owner));
        let members: Vec<&Member> = bodies.flat_map(|body| &body.members).collect();
        work::steps(members.len());
        members
    }

    /// Operations and attributes of the interface or value type, inherited ones first in the order of [`Model::all_bases`], then its
    /// own, each once. The owner is the definition's `parent`.
    pub fn all_members(&self, interface: DefId) -> impl Iterator<Item = &Def> + '_ {
        let mut owners = self.all_bases(interface);
        owners.push(interface);
        owners
            .into_iter()
            .flat_map(|owner| self.children(owner))
            .inspect(|_| work::step())
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

    /// The struct, union or typedef contains itself through a sequence or a value, the value type or box itself through
    /// its state.
    pub fn is_recursive(&self, def: DefId) -> bool {
        self.recursive.get(def.index()).copied().unwrap_or(false)
    }

    /// Every value of the type has the same CDR size but for alignment: basic types (not `wchar`, whose size depends
    /// on the GIOP version), enums, bitsets, bitmasks, and arrays, structs and typedefs of those. `boolean` and enums
    /// count, though not every bit pattern is a value of them; a struct without members, or with optional ones, does not, and neither does
    /// `fixed`, of which some ORBs send fewer octets than its digits need.
    pub fn is_fixed_size(&self, id: TypeId) -> bool {
        !self.reaches(id, Fact::Variable)
    }

    /// A `float`, `double` or `long double` is reachable from the type through members, elements, state and typedefs. What
    /// an `any` or a value of a derived type holds is not known and not counted.
    pub fn contains_float(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Float)
    }

    /// An object reference may be reachable from the type through members, elements, state and typedefs: there is one, or
    /// something that may hold one, an `any`, an abstract interface, a value.
    pub fn contains_reference(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Reference)
    }

    /// A value may be reachable from the type through members, elements and typedefs: there is one, or something that may hold one, an
    /// `any` or an abstract interface. Values of a message may refer to each other.
    pub fn contains_value(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Value)
    }

    /// A local interface that is reachable from the type through members, elements, state and typedefs: then values of the
    /// type never leave the process.
    pub fn local_part(&self, id: TypeId) -> Option<DefId> {
        self.reached_local(id)
    }

    /// The type can be compared for equality and hashed: no floating type, `any`, value, abstract interface or native
    /// type is reachable.
    pub fn is_hashable(&self, id: TypeId) -> bool {
        !self.reaches(id, Fact::Unhashable)
    }

    /// The members of this struct, exception or union have types which all can be hashed.
    pub fn is_hashable_def(&self, id: DefId) -> bool {
        self.member_types(id).into_iter().all(|ty| self.is_hashable(ty))
    }

    /// Types of all members of a struct or exception, those of its bases first; of the members of a union in order (its
    /// discriminator not included); of a value type's own state in order; the type in a value box; the type a typedef
    /// names; empty for other definitions.
    pub fn member_types(&self, id: DefId) -> Vec<TypeId> {
        match &self.def(id).kind {
            DefKind::Struct(_) | DefKind::Exception(_) => {
                self.all_struct_members(id).into_iter().map(|m| m.ty).collect()
            }
            DefKind::Union(u) => u.cases.iter().map(|c| c.member.ty).collect(),
            DefKind::Typedef(t) => vec![t.ty],
            DefKind::Value(v) => v.state.iter().map(|s| s.member.ty).collect(),
            DefKind::ValueBox(b) => vec![b.ty],
            _ => Vec::new(),
        }
    }

    /// The types that a type is built of, one level down. State of a value type's bases counts as its own.
    pub(crate) fn parts(&self, ty: &Type) -> Vec<TypeId> {
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => vec![*element],
            Type::Map { key, value, .. } => vec![*key, *value],
            Type::Named(def) => match &self.def(*def).kind {
                DefKind::Value(_) => {
                    let mut owners = self.all_bases(*def);
                    owners.push(*def);
                    owners.into_iter().flat_map(|owner| self.member_types(owner)).collect()
                }
                _ => self.member_types(*def),
            },
            _ => Vec::new(),
        }
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
            Type::Any => "any".to_owned(),
            Type::TypeCode => "CORBA::TypeCode".to_owned(),
            Type::ValueBase => "ValueBase".to_owned(),
            Type::Fixed { digits, scale } => format!("fixed<{digits}, {scale}>"),
            Type::Map { key, value, bound } => {
                let (key, value) = (self.describe(*key), self.describe(*value));
                match bound {
                    Some(n) => format!("map<{key}, {value}, {n}>"),
                    None => format!("map<{key}, {value}>"),
                }
            }
        }
    }
}
