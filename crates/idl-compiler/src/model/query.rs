//! Queries of a model: names, inheritance, reachability.

use std::collections::HashSet;

use super::reach::Fact;
use super::{
    AnnotationType, Attribute, BitField, Bitmask, Bitset, Const, Def, DefId, DefKind, Docs, Enum, Flavour,
    Interface, Member, Model, Operation, Primitive, Struct, Type, TypeId, Typedef, Union, Value, ValueBox,
    ValueModifier, VendorPragma,
};
use crate::diagnostic::Diagnostics;
use crate::source::{Sources, Span};
use crate::work;

impl Model {
    /// Returns the file-level definitions in source order. [`Model::children`] returns nested ones.
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// Returns all definitions, each after its parent.
    pub fn defs(&self) -> &[Def] {
        &self.defs
    }

    /// Returns the definition of this id. The id must come from this model.
    pub fn def(&self, id: DefId) -> &Def {
        &self.defs[id.index()]
    }

    /// Returns the type of this id without resolving typedefs. The id must come from this model.
    pub fn ty(&self, id: TypeId) -> &Type {
        &self.types[id.index()]
    }

    /// Returns the documentation of the whole text: `//!` comments at file level.
    pub fn docs(&self) -> &Docs {
        &self.docs
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Returns the annotations that the text declares, in source order.
    pub fn annotation_types(&self) -> &[AnnotationType] {
        &self.annotation_types
    }

    /// Returns the `#pragma` lines without a meaning in IDL, in source order.
    pub fn pragmas(&self) -> &[VendorPragma] {
        &self.pragmas
    }

    /// Returns whether the definition is in an included file that is not one of the compiler's input files.
    /// A module counts as located at its first opening. A definition inside an interface, a type or an
    /// instance of a template module counts as located where that interface, type or instance is declared.
    pub fn is_included(&self, id: DefId) -> bool {
        let mut at = id;
        while let Some(parent) = self.def(at).parent.filter(|id| !self.is_module(*id)) {
            at = parent;
        }
        let enclosing = std::iter::successors(Some(at), |id| self.def(*id).parent);
        let instance = enclosing
            .filter(|id| matches!(&self.def(*id).kind, DefKind::Module(module) if module.template.is_some()));
        self.sources.is_included(self.def(instance.last().unwrap_or(at)).span)
    }

    /// Returns the texts that the spans refer to.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Returns the Rust span of an IDL span, as [`Sources::rust_span`] does.
    pub fn rust_span(&self, span: Span) -> proc_macro2::Span {
        self.sources.rust_span(span)
    }

    /// Returns the definitions directly inside this one, in source order; empty if it has no scope.
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

    /// Returns the IDL names of the enclosing definitions, the outermost first, and of the definition itself.
    pub fn path(&self, id: DefId) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            work::count_step();
            let def = self.def(id);
            path.push(def.name.as_str());
            at = def.parent;
        }
        path.reverse();
        path
    }

    /// Returns the scoped name without leading `::`, for example `Bank::Account`.
    pub fn scoped_name(&self, id: DefId) -> String {
        self.path(id).join("::")
    }

    /// Returns the definition of this scoped name (leading `::` optional), spelled exactly.
    pub fn find(&self, scoped_name: &str) -> Option<DefId> {
        let mut names = scoped_name.trim_start_matches("::").split("::");
        let first = names.next()?;
        let named = |ids: &[DefId], name: &str| ids.iter().copied().find(|id| self.def(*id).name == name);
        names.try_fold(named(&self.roots, first)?, |scope, name| named(self.children(scope), name))
    }

    /// Returns the type after following all typedefs: never [`Type::Named`] with a typedef. Typedefs of
    /// element types remain.
    pub fn strip(&self, id: TypeId) -> TypeId {
        let mut id = id;
        while let Type::Named(def) = self.ty(id) {
            let DefKind::Typedef(alias) = &self.def(*def).kind else { break };
            id = alias.ty;
        }
        id
    }

    /// Returns the type after following all typedefs, as [`Model::strip`] does.
    pub fn stripped(&self, id: TypeId) -> &Type {
        self.ty(self.strip(id))
    }

    /// Returns whether the type is an interface or `Object`, possibly through typedefs. An abstract interface
    /// counts, although it can also hold a value type.
    pub fn is_reference(&self, id: TypeId) -> bool {
        match self.stripped(id) {
            Type::Object => true,
            Type::Named(def) => self.interface(*def).is_some(),
            _ => false,
        }
    }

    /// Returns whether the type is a value type, a value box or `ValueBase`, possibly through typedefs. An
    /// abstract interface does not count, although it can also hold a value type.
    pub fn is_value(&self, id: TypeId) -> bool {
        match self.stripped(id) {
            Type::ValueBase => true,
            Type::Named(def) => matches!(self.def(*def).kind, DefKind::Value(_) | DefKind::ValueBox(_)),
            _ => false,
        }
    }

    /// Returns the interface body, if this is an interface.
    pub fn interface(&self, id: DefId) -> Option<&Interface> {
        if let DefKind::Interface(i) = &self.def(id).kind { Some(i) } else { None }
    }

    pub(crate) fn is_abstract_interface(&self, id: DefId) -> bool {
        self.interface(id).is_some_and(|interface| interface.flavour == Flavour::Abstract)
    }

    pub(crate) fn is_local_interface(&self, id: DefId) -> bool {
        self.interface(id).is_some_and(|interface| interface.flavour == Flavour::Local)
    }

    pub(crate) fn is_module(&self, id: DefId) -> bool {
        matches!(self.def(id).kind, DefKind::Module(_))
    }

    /// Returns the operation, if this is one.
    pub fn operation(&self, id: DefId) -> Option<&Operation> {
        if let DefKind::Operation(o) = &self.def(id).kind { Some(o) } else { None }
    }

    /// Returns the attribute, if this is one.
    pub fn attribute(&self, id: DefId) -> Option<&Attribute> {
        if let DefKind::Attribute(a) = &self.def(id).kind { Some(a) } else { None }
    }

    /// Returns the body, if this is a struct or an exception.
    pub fn structure(&self, id: DefId) -> Option<&Struct> {
        if let DefKind::Struct(s) | DefKind::Exception(s) = &self.def(id).kind { Some(s) } else { None }
    }

    /// Returns the union, if this is one.
    pub fn union(&self, id: DefId) -> Option<&Union> {
        if let DefKind::Union(u) = &self.def(id).kind { Some(u) } else { None }
    }

    /// Returns the enum, if this is one.
    pub fn enumeration(&self, id: DefId) -> Option<&Enum> {
        if let DefKind::Enum(e) = &self.def(id).kind { Some(e) } else { None }
    }

    /// Returns the typedef, if this is one.
    pub fn typedef(&self, id: DefId) -> Option<&Typedef> {
        if let DefKind::Typedef(t) = &self.def(id).kind { Some(t) } else { None }
    }

    /// Returns the constant, if this is one.
    pub fn constant(&self, id: DefId) -> Option<&Const> {
        if let DefKind::Const(c) = &self.def(id).kind { Some(c) } else { None }
    }

    /// Returns the value type, if this is one.
    pub fn value(&self, id: DefId) -> Option<&Value> {
        if let DefKind::Value(v) = &self.def(id).kind { Some(v) } else { None }
    }

    /// Returns the value box, if this is one.
    pub fn value_box(&self, id: DefId) -> Option<&ValueBox> {
        if let DefKind::ValueBox(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// Returns the bitset, if this is one.
    pub fn bitset(&self, id: DefId) -> Option<&Bitset> {
        if let DefKind::Bitset(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// Returns the bitmask, if this is one.
    pub fn bitmask(&self, id: DefId) -> Option<&Bitmask> {
        if let DefKind::Bitmask(b) = &self.def(id).kind { Some(b) } else { None }
    }

    /// Returns the definitions from which this one directly inherits names: the bases of an interface, or the
    /// bases and then the supported interfaces of a value type; empty for other definitions.
    pub fn direct_bases(&self, id: DefId) -> impl Iterator<Item = DefId> + '_ {
        let (bases, supports) = match &self.def(id).kind {
            DefKind::Interface(i) => (&i.bases[..], &[][..]),
            DefKind::Value(v) => (&v.bases[..], &v.supports[..]),
            _ => (&[][..], &[][..]),
        };
        bases.iter().chain(supports).copied()
    }

    /// Returns all direct and indirect bases of an interface, or of a value type, including the interfaces
    /// that it and its bases support. Each is returned once. The order is depth first: direct bases as
    /// listed, and each base after its own bases.
    pub fn all_bases(&self, id: DefId) -> Vec<DefId> {
        let mut order = Vec::new();
        self.add_bases(id, &mut HashSet::new(), &mut order);
        order
    }

    /// Returns all bases of an interface or value type, and the definition itself as the last.
    pub(crate) fn lineage(&self, id: DefId) -> Vec<DefId> {
        let mut lineage = self.all_bases(id);
        lineage.push(id);
        lineage
    }

    fn add_bases(&self, id: DefId, seen: &mut HashSet<DefId>, order: &mut Vec<DefId>) {
        for base in self.direct_bases(id) {
            work::count_step();
            if seen.insert(base) {
                self.add_bases(base, seen, order);
                order.push(base);
            }
        }
    }

    /// Returns whether this is an abstract value type, which has no state.
    pub fn is_abstract_value(&self, id: DefId) -> bool {
        self.value(id).is_some_and(|value| value.modifier == ValueModifier::Abstract)
    }

    /// Returns the base value type that is not abstract. Its state precedes the value type's own state.
    pub fn concrete_base(&self, id: DefId) -> Option<DefId> {
        self.value(id)?.bases.first().copied().filter(|base| !self.is_abstract_value(*base))
    }

    /// Returns whether programs marshal the state, because the type or a concrete base is `custom`.
    pub fn is_custom(&self, id: DefId) -> bool {
        // Terminates, because a base is defined before the types that derive from it.
        let mut lineage = std::iter::successors(Some(id), |id| self.concrete_base(*id));
        lineage.any(|id| self.value(id).is_some_and(|value| value.modifier == ValueModifier::Custom))
    }

    /// Returns all base structs of a struct. The direct base is the last.
    pub fn struct_bases(&self, id: DefId) -> Vec<DefId> {
        let base = |id: DefId| self.structure(id).and_then(|body| body.base);
        // Terminates, because only a complete definition can be a base.
        let mut bases: Vec<DefId> = std::iter::successors(base(id), |at| base(*at)).collect();
        work::count_steps(bases.len());
        bases.reverse();
        bases
    }

    /// Returns all base structs of a struct, and the struct itself as the last.
    pub(crate) fn struct_lineage(&self, id: DefId) -> Vec<DefId> {
        let mut lineage = self.struct_bases(id);
        lineage.push(id);
        lineage
    }

    /// Returns all fields of a bitset, inherited fields first; empty for other definitions.
    pub fn all_bit_fields(&self, id: DefId) -> Vec<&BitField> {
        let base = |id: DefId| self.bitset(id).and_then(|body| body.base);
        // Terminates, because only a complete definition can be a base.
        let mut owners: Vec<DefId> = std::iter::successors(Some(id), |at| base(*at)).collect();
        owners.reverse();
        owners.into_iter().filter_map(|owner| self.bitset(owner)).flat_map(|body| &body.fields).collect()
    }

    /// Returns the integer type that holds a bitset or bitmask in memory and in CDR: the smallest unsigned
    /// one with enough bits. `uint8` for other definitions.
    pub fn holder_type(&self, id: DefId) -> Primitive {
        let bits = match &self.def(id).kind {
            DefKind::Bitset(_) => {
                self.all_bit_fields(id).into_iter().map(|field| u32::from(field.width)).sum()
            }
            DefKind::Bitmask(body) => u32::from(body.bit_bound),
            _ => 0,
        };
        match bits {
            0..=8 => Primitive::UInt8,
            9..=16 => Primitive::UShort,
            17..=32 => Primitive::ULong,
            _ => Primitive::ULongLong,
        }
    }

    /// Returns all members of a struct or exception, inherited members first; empty for other definitions.
    pub fn all_struct_members(&self, id: DefId) -> Vec<&Member> {
        let bodies = self.struct_lineage(id).into_iter().filter_map(|owner| self.structure(owner));
        let members: Vec<&Member> = bodies.flat_map(|body| &body.members).collect();
        work::count_steps(members.len());
        members
    }

    /// Returns the operations and attributes of the interface or value type, each once: inherited ones in the
    /// order of [`Model::all_bases`], then its own.
    pub fn all_members(&self, interface: DefId) -> impl Iterator<Item = &Def> + '_ {
        self.lineage(interface)
            .into_iter()
            .flat_map(|owner| self.children(owner))
            .inspect(|_| work::count_step())
            .map(|id| self.def(*id))
            .filter(|def| matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_)))
    }

    /// Returns the operations among [`Model::all_members`].
    pub fn all_operations(&self, interface: DefId) -> impl Iterator<Item = (&Def, &Operation)> + '_ {
        self.all_members(interface).filter_map(|def| match &def.kind {
            DefKind::Operation(operation) => Some((def, operation)),
            _ => None,
        })
    }

    /// Returns the attributes among [`Model::all_members`].
    pub fn all_attributes(&self, interface: DefId) -> impl Iterator<Item = (&Def, &Attribute)> + '_ {
        self.all_members(interface).filter_map(|def| match &def.kind {
            DefKind::Attribute(attribute) => Some((def, attribute)),
            _ => None,
        })
    }

    /// Returns whether the type contains itself through elements, members or the state of value types.
    pub fn is_recursive(&self, def: DefId) -> bool {
        self.recursive.get(def.index()).copied().unwrap_or(false)
    }

    /// Returns whether every value of the type has the same CDR size, apart from alignment. This holds for
    /// basic types except `wchar`, for enums, bitsets and bitmasks, and for arrays, structs and typedefs of
    /// those. Structs without members or with optional members are excluded, and so is `fixed`, for which
    /// some ORBs send fewer bytes than the digits of the type need.
    pub fn is_fixed_size(&self, id: TypeId) -> bool {
        !self.reaches(id, Fact::VariableSize)
    }

    /// Returns whether a `float`, `double` or `long double` is reachable from the type through members,
    /// elements, state and typedefs. The unknown contents of an `any` or of a derived value type do not
    /// count.
    pub fn contains_float(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Float)
    }

    /// Returns whether an object reference may be reachable from the type through members, elements, state
    /// and typedefs. An `any`, an abstract interface or a value counts, because it may contain a reference.
    pub fn contains_reference(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Reference)
    }

    /// Returns whether a value may be reachable from the type through members, elements and typedefs. An
    /// `any` or an abstract interface counts, because it may contain a value.
    pub fn contains_value(&self, id: TypeId) -> bool {
        self.reaches(id, Fact::Value)
    }

    /// Returns whether values of the type can be compared for equality and hashed: no floating type, `any`,
    /// value, abstract interface or native type is reachable.
    pub fn is_hashable(&self, id: TypeId) -> bool {
        !self.reaches(id, Fact::Unhashable)
    }

    /// Returns whether the types of all members of this struct, exception or union can be hashed.
    pub fn is_hashable_def(&self, id: DefId) -> bool {
        self.member_types(id).into_iter().all(|ty| self.is_hashable(ty))
    }

    /// Returns the types that a definition directly consists of; empty for kinds that are not in this list:
    ///
    /// * all members of a struct or exception, inherited members first
    /// * the members of a union in order, without its discriminator
    /// * the own state of a value type in order
    /// * the type in a value box
    /// * the type that a typedef names
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

    /// Returns the types that a type directly consists of. For a value type, this includes inherited state.
    pub(crate) fn parts(&self, ty: &Type) -> Vec<TypeId> {
        match ty {
            Type::Sequence { element, .. } | Type::Array { element, .. } => vec![*element],
            Type::Map { key, value, .. } => vec![*key, *value],
            Type::Named(def) => match &self.def(*def).kind {
                DefKind::Value(_) => {
                    self.lineage(*def).into_iter().flat_map(|owner| self.member_types(owner)).collect()
                }
                _ => self.member_types(*def),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the type as in IDL, with scoped names: `sequence<M::T, 5>`, or `long[2][3]` for an array.
    pub fn describe(&self, id: TypeId) -> String {
        let bounded = |name: &str, bound: &Option<u32>| match bound {
            Some(n) => format!("{name}<{n}>"),
            None => name.to_owned(),
        };
        let last_argument = |bound: &Option<u32>| bound.map(|n| format!(", {n}")).unwrap_or_default();
        match self.ty(id) {
            Type::Primitive(p) => p.idl_name().to_owned(),
            Type::String(bound) => bounded("string", bound),
            Type::WString(bound) => bounded("wstring", bound),
            Type::Sequence { element, bound } => {
                format!("sequence<{}{}>", self.describe(*element), last_argument(bound))
            }
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
                format!("map<{}, {}{}>", self.describe(*key), self.describe(*value), last_argument(bound))
            }
        }
    }
}
