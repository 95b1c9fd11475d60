//! The Rust names of the output, which are determined before anything is emitted.
//!
//! Names in the IDL have priority. If two of them are the same in Rust, the later one in the IDL gets a
//! trailing underscore, with a warning. If the user chose the later name with `rename` or `@rust_name`, this
//! is an error instead. Derived names (`AccountRef`, `WithdrawError`, the module of an interface) are changed
//! if they clash with names in the IDL.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::external::External;
use super::ident::{Case, RustName, is_identifier};
use super::options::Options;
use crate::diagnostic::Diagnostic;
use crate::model::{
    AnnotationValue, Annotations, ConstValue, Def, DefId, DefKind, Direction, Member, Model, Type,
};
use crate::source::Span;
use crate::work;

/// The Rust names of one definition. Names that do not apply to it are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct DefNames {
    /// The path of the module that contains the definition's items, from the root of the output.
    pub(super) scope: Rc<[RustName]>,
    /// The item itself: type, trait, constant, method, or the module of an IDL module.
    pub(super) item: RustName,
    /// The module of the definitions inside this one.
    pub(super) module: RustName,
    pub(super) reference: RustName,
    pub(super) servant: RustName,
    /// For an interface: the trait of the handlers that receive its replies.
    pub(super) handler: RustName,
    /// For a value type or abstract interface: the trait of the operations of values.
    pub(super) operations_trait: RustName,
    /// For a value type: the trait of its factories.
    pub(super) factory_trait: RustName,
    /// For a value type: the field with the state of the base.
    pub(super) base_field: RustName,
    /// For a value type: the names of the factories in order.
    pub(super) factories: Vec<FactoryNames>,
    /// For an operation or attribute: the error type, if it raises exceptions.
    pub(super) error_enum: RustName,
    /// For an attribute: the error type of its set operation.
    pub(super) set_error_enum: RustName,
    pub(super) result_struct: RustName,
    /// For a typedef: the function that returns its type code.
    pub(super) type_code: RustName,
    pub(super) setter: RustName,
    /// The members, enumerators, cases or parameters in order.
    pub(super) members: Vec<RustName>,
    /// For a union: the variant of the implicit default.
    pub(super) other_variant: RustName,
}

#[derive(Clone, Debug)]
pub(super) struct FactoryNames {
    pub(super) item: RustName,
    pub(super) error_enum: RustName,
    pub(super) params: Vec<RustName>,
}

#[derive(Debug)]
pub(super) struct Names(Vec<DefNames>);

impl std::ops::Index<DefId> for Names {
    type Output = DefNames;

    fn index(&self, id: DefId) -> &DefNames {
        &self.0[id.index()]
    }
}

/// Maximum number of values that an operation returns as a tuple.
pub(super) const MAX_TUPLE_LEN: usize = 3;

impl Names {
    /// Determines all names. Reports clashes of chosen names in `problems`, and changed names in `warnings`.
    pub(super) fn new(
        model: &Model,
        options: &Options,
        external: &External,
        problems: &mut Vec<Diagnostic>,
        warnings: &mut Vec<Diagnostic>,
    ) -> Self {
        let names = vec![DefNames::default(); model.defs().len()];
        let mut namer =
            Namer { model, options, external, problems, warnings, names, with_chosen_name: HashSet::new() };
        // Definitions are in source order, so base structs come before the structs derived from them.
        model.defs().iter().for_each(|def| namer.name_members(def));
        let _ = namer.name_scope(model.roots(), &Rc::from([]));
        let called = |def: &&Def| matches!(def.kind, DefKind::Interface(_) | DefKind::Value(_));
        model.defs().iter().filter(called).for_each(|def| namer.separate_methods(def));
        Names(namer.names)
    }
}

/// A Rust namespace. The name of a unit struct is in both.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Namespace {
    Types,
    Values,
}

/// The names in one Rust scope, with the location and name of the IDL item, or `None` for derived names.
#[derive(Default)]
struct UsedNames {
    names: HashMap<(Namespace, RustName), Option<(Span, String)>>,
    /// True if changed names are not reported, because the scope is not part of the output.
    is_silent: bool,
}

struct Namer<'a> {
    model: &'a Model,
    options: &'a Options,
    external: &'a External,
    problems: &'a mut Vec<Diagnostic>,
    warnings: &'a mut Vec<Diagnostic>,
    names: Vec<DefNames>,
    /// Definitions whose names were chosen by `rename` or `@rust_name`.
    with_chosen_name: HashSet<DefId>,
}

/// The Rust name for an IDL item, before clashes are resolved.
struct ProposedName {
    name: RustName,
    /// True if the user chose the name with `rename`, `@rust_name` or the path of an external definition.
    is_chosen: bool,
}

impl Namer<'_> {
    /// Determines the names of the definitions in one IDL scope, which is one Rust module.
    fn name_scope(&mut self, ids: &[DefId], path: &Rc<[RustName]>) -> UsedNames {
        let model = self.model;
        // External definitions are in another module, and their clashes are reported there.
        let mut taken = [UsedNames { is_silent: true, ..UsedNames::default() }, UsedNames::default()];
        for &id in ids {
            let def = model.def(id);
            let taken = &mut taken[usize::from(self.external.is_emitted(id))];
            let case = match def.kind {
                DefKind::Module(_) | DefKind::Operation(_) | DefKind::Attribute(_) => Case::Snake,
                DefKind::Const(_) => Case::Shouty,
                _ => Case::Camel,
            };
            let scoped = model.scoped_name(id);
            let item = match self.external.name(id) {
                Some(name) => {
                    ProposedName { name: RustName::verbatim(name.trim_start_matches("r#")), is_chosen: true }
                }
                None => self.propose(&scoped, &def.name, case, &def.annotations),
            };
            if item.is_chosen {
                self.with_chosen_name.insert(id);
            }
            let item = self.claim(taken, namespaces(def), item, def.span, &scoped);
            let names = &mut self.names[id.index()];
            names.scope = Rc::clone(path);
            names.item = item;
        }
        for &id in ids {
            self.derive_names(model.def(id), &mut taken[usize::from(self.external.is_emitted(id))]);
        }
        for &id in ids {
            let children = model.children(id);
            let factories = model.value(id).is_some_and(|value| !value.factories.is_empty());
            if !children.is_empty() || factories {
                let inner: Rc<[RustName]> =
                    path.iter().cloned().chain([self.names[id.index()].module.clone()]).collect();
                let mut taken = self.name_scope(children, &inner);
                self.name_factories(model.def(id), &mut taken);
            }
        }
        let [_, emitted] = taken;
        emitted
    }

    fn name_factories(&mut self, def: &Def, taken: &mut UsedNames) {
        let Some(value) = self.model.value(def.id) else { return };
        let scoped = self.model.scoped_name(def.id);
        let is_silent = !self.external.is_emitted(def.id);
        let mut methods = UsedNames { is_silent, ..UsedNames::default() };
        let mut all = Vec::with_capacity(value.factories.len());
        for factory in &value.factories {
            let full = format!("{scoped}::{}", factory.name);
            let item = self.propose(&full, &factory.name, Case::Snake, &factory.annotations);
            let item = self.claim(&mut methods, &[Namespace::Values], item, factory.span, &full);
            let camel = RustName::convert(item.as_str().trim_end_matches('_'), Case::Camel);
            let error = match factory.raises.is_empty() {
                true => RustName::default(),
                false => taken.derive_error(camel.as_str()),
            };
            let mut names = UsedNames { is_silent, ..UsedNames::default() };
            let mut params = Vec::with_capacity(factory.params.len());
            for param in &factory.params {
                let full = format!("{full}::{}", param.name);
                let name = self.propose(&full, &param.name, Case::Snake, &param.annotations);
                params.push(self.claim(&mut names, &[Namespace::Values], name, param.span, &full));
            }
            all.push(FactoryNames { item, error_enum: error, params });
        }
        self.names[def.id.index()].factories = all;
    }

    /// Derives further names from the Rust name of a definition, such that they do not clash with others.
    fn derive_names(&mut self, def: &Def, taken: &mut UsedNames) {
        let stem = self.names[def.id.index()].item.as_str().trim_end_matches('_').to_owned();
        let names = &mut self.names[def.id.index()];
        match &def.kind {
            DefKind::Module(_) => names.module = names.item.clone(),
            DefKind::Interface(_) => {
                taken.derive_interface(names, &stem, self.model.is_abstract_interface(def.id));
                if self.options.has_handlers(self.model, def.id) {
                    names.handler = taken.derive(&format!("Ami{stem}Handler"));
                }
            }
            DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) => {
                names.module = taken.derive_module(&stem);
            }
            DefKind::Typedef(_) => {
                let function = format!("{}_type_code", RustName::convert(&stem, Case::Snake).as_str());
                names.type_code = taken.derive_in(Namespace::Values, RustName::verbatim(&function));
                // The items of an interface are re-exported under the names of its alias.
                if let Some(interface) = aliased_interface(self.model, def.id) {
                    taken.derive_interface(names, &stem, self.model.is_abstract_interface(interface));
                }
            }
            DefKind::Operation(operation) => {
                let camel = RustName::convert(&stem, Case::Camel);
                if operation.raises_any || !operation.raises.is_empty() {
                    names.error_enum = taken.derive_error(camel.as_str());
                }
                let outs = operation.params.iter().filter(|p| p.direction != Direction::In).count();
                if outs + usize::from(operation.result.is_some()) > MAX_TUPLE_LEN {
                    names.result_struct = taken.derive(&format!("{camel}Reply"));
                }
            }
            DefKind::Attribute(attribute) => {
                let camel = RustName::convert(&stem, Case::Camel);
                if !attribute.get_raises.is_empty() {
                    names.error_enum = taken.derive_error(camel.as_str());
                }
                if !attribute.set_raises.is_empty() {
                    names.set_error_enum = taken.derive_error(&format!("Set{camel}"));
                }
                names.setter = RustName::verbatim(&format!("set_{stem}"));
            }
            DefKind::Value(value) => {
                names.operations_trait = taken.derive(&format!("{stem}Ops"));
                if !value.factories.is_empty() {
                    names.factory_trait = taken.derive(&format!("{stem}Factory"));
                }
                names.module = taken.derive_module(&stem);
                let members = &names.members;
                names.base_field = RustName::verbatim("base").until_free(|name| members.contains(name));
            }
            _ => {}
        }
    }

    fn name_members(&mut self, def: &Def) {
        let case = match &def.kind {
            DefKind::Enum(_) | DefKind::Union(_) => Case::Camel,
            DefKind::Bitmask(_) => Case::Shouty,
            DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Value(_) => Case::Snake,
            DefKind::Bitset(_) | DefKind::Operation(_) => Case::Snake,
            _ => return,
        };
        let scope = self.model.scoped_name(def.id);
        let mut taken = UsedNames { is_silent: !self.external.is_emitted(def.id), ..UsedNames::default() };
        for base in self.model.struct_bases(def.id) {
            let base_scope = self.model.scoped_name(base);
            let members = self.model.structure(base).map_or(&[][..], |body| &body.members);
            let named = self.names[base.index()].members.clone();
            for (member, rust) in members.iter().zip(named) {
                let full = format!("{base_scope}::{}", member.name);
                let rust = ProposedName { name: rust, is_chosen: true };
                self.claim(&mut taken, &[Namespace::Values], rust, member.span, &full);
            }
        }
        let mut members = Vec::new();
        for Part(name, annotations, span) in parts(def) {
            let full = format!("{scope}::{name}");
            let rust = self.propose(&full, name, case, annotations);
            members.push(self.claim(&mut taken, &[Namespace::Values], rust, span, &full));
        }
        if let DefKind::Bitset(_) = def.kind {
            self.separate_accessors(def, &mut members);
        }
        if let DefKind::Union(_) = def.kind {
            self.names[def.id.index()].other_variant =
                RustName::verbatim("Other").until_free(|name| members.contains(name));
        }
        self.names[def.id.index()].members = members;
    }

    /// Changes field names of a bitset such that the methods of all fields, and other methods, are distinct.
    fn separate_accessors(&mut self, def: &Def, members: &mut [RustName]) {
        let Some(body) = self.model.bitset(def.id) else { return };
        let mut taken: HashSet<String> = ["bits", "from_bits"].map(str::to_owned).into();
        let accessor_names =
            |name: &RustName| [name.to_string(), format!("with_{name}"), format!("set_{name}")];
        let named = body.fields.iter().filter(|field| field.name.is_some());
        for (field, name) in named.zip(members) {
            let before = name.clone();
            let is_taken = |name: &RustName| accessor_names(name).iter().any(|method| taken.contains(method));
            *name = name.clone().until_free(is_taken);
            taken.extend(accessor_names(name));
            if *name != before && self.external.is_emitted(def.id) {
                let field_name = field.name.as_deref().unwrap_or_default();
                let scoped = format!("{}::{field_name}", self.model.scoped_name(def.id));
                let message = format!(
                    "field `{scoped}` is `{name}` in Rust, because methods for `{before}` would clash with other methods of the bitset"
                );
                self.warnings.push(
                    Diagnostic::warning("rust-name-clash", field.span, message).help(rename_help(&scoped)),
                );
            }
        }
    }

    /// Makes all methods of a reference or value distinct, including inherited ones.
    fn separate_methods(&mut self, interface: &Def) {
        let mut taken: HashMap<RustName, (&Def, String)> = HashMap::new();
        for def in self.model.all_members(interface.id) {
            let scoped = self.model.scoped_name(def.id);
            let setter = self.model.attribute(def.id).is_some_and(|attribute| !attribute.readonly);
            for is_setter in [false, true].into_iter().filter(|is_setter| setter || !is_setter) {
                let what = match is_setter {
                    true => format!("the set operation of `{scoped}`"),
                    false => format!("`{scoped}`"),
                };
                let names = &mut self.names[def.id.index()];
                let name = if is_setter { &mut names.setter } else { &mut names.item };
                let before = name.clone();
                // The names of external definitions cannot be changed.
                let is_ours = self.external.is_emitted(def.id) || !self.external.is_emitted(interface.id);
                if is_ours && taken.contains_key(&before) && !self.with_chosen_name.contains(&def.id) {
                    *name = before.clone().until_free(|name| taken.contains_key(name));
                }
                let name = name.clone();
                let clash = taken.get(&before).cloned();
                taken.entry(name.clone()).or_insert((def, what.clone()));
                let Some((earlier, earlier_what)) = clash else { continue };
                // For an external interface, clashes are reported where its Rust is emitted.
                if !self.external.is_emitted(interface.id) {
                    continue;
                }
                let (span, help) = (def.span, rename_help(&scoped));
                if name == before {
                    let message = format!("{earlier_what} and {what} both become the Rust method `{name}`");
                    let error = Diagnostic::error("rust-name-clash", span, message);
                    self.problems.push(error.and(earlier.span, "the other one").help(help));
                } else {
                    let message =
                        format!("{what} is the Rust method `{name}`, because {earlier_what} is `{before}`");
                    let warning = Diagnostic::warning("rust-name-clash", span, message);
                    self.warnings.push(warning.and(earlier.span, "the other one").help(help));
                }
            }
        }
    }

    /// Returns the Rust name of an IDL item: the name that the user chose, or else the converted name.
    fn propose(&mut self, scoped: &str, idl: &str, case: Case, annotations: &Annotations) -> ProposedName {
        if let Some((_, name)) =
            self.options.rename.iter().find(|(idl, _)| idl.trim_start_matches("::") == scoped)
        {
            return ProposedName { name: RustName::verbatim(name), is_chosen: true };
        }
        let converted = ProposedName { name: RustName::convert(idl, case), is_chosen: false };
        let Some(annotation) = annotations.get("rust_name") else { return converted };
        if let [arg] = annotation.args.as_slice()
            && let AnnotationValue::Const(ConstValue::String(name)) | AnnotationValue::Name(name) = &arg.value
            && is_identifier(name)
        {
            return ProposedName { name: RustName::verbatim(name), is_chosen: true };
        }
        self.problems.push(
            Diagnostic::error("rust-name", annotation.span, "`@rust_name` requires one Rust identifier")
                .help("write it as `@rust_name(\"assign_a\")`"),
        );
        converted
    }

    /// Adds the name of an IDL item to a scope. If the name is already used, appends underscores, or reports
    /// an error if the user chose the name.
    fn claim(
        &mut self,
        taken: &mut UsedNames,
        spaces: &[Namespace],
        ProposedName { name, is_chosen }: ProposedName,
        span: Span,
        scoped: &str,
    ) -> RustName {
        let (mut free, mut clash) = (name.clone(), None);
        work::count_step();
        while let Some(earlier) = spaces.iter().find_map(|space| taken.conflicting(*space, &free, span)) {
            clash.get_or_insert_with(|| earlier.clone());
            if is_chosen {
                break;
            }
            work::count_step();
            free = free.underscored();
        }
        for space in spaces {
            taken.names.entry((*space, free.clone())).or_insert_with(|| Some((span, scoped.to_owned())));
        }
        if let Some((earlier, other)) = clash.filter(|_| !taken.is_silent) {
            let found = match is_chosen {
                true => {
                    let message = format!("`{other}` and `{scoped}` both become `{name}` in Rust");
                    Diagnostic::error("rust-name-clash", span, message)
                }
                false => {
                    let message = format!("`{scoped}` is `{free}` in Rust, because `{other}` is `{name}`");
                    Diagnostic::warning("rust-name-clash", span, message)
                }
            };
            let found = found.and(earlier, "the other one").help(rename_help(scoped));
            if is_chosen { self.problems.push(found) } else { self.warnings.push(found) }
        }
        free
    }
}

impl UsedNames {
    /// Adds a derived name of a type or module, with underscores appended if it is used.
    fn derive(&mut self, name: &str) -> RustName {
        self.derive_in(Namespace::Types, RustName::verbatim(name))
    }

    fn derive_in(&mut self, space: Namespace, name: RustName) -> RustName {
        let name = name.until_free(|name| self.has(space, name));
        self.names.insert((space, name.clone()), None);
        name
    }

    /// Adds the name of an error type: `WithdrawError`, or `WithdrawRaises` if that is already used.
    fn derive_error(&mut self, stem: &str) -> RustName {
        let usual = RustName::verbatim(&format!("{stem}Error"));
        let is_used = self.has(Namespace::Types, &usual);
        self.derive_in(
            Namespace::Types,
            if is_used { RustName::verbatim(&format!("{stem}Raises")) } else { usual },
        )
    }

    fn derive_module(&mut self, stem: &str) -> RustName {
        self.derive(RustName::convert(stem, Case::Snake).as_str())
    }

    fn derive_interface(&mut self, names: &mut DefNames, stem: &str, is_abstract: bool) {
        names.reference = self.derive(&format!("{stem}Ref"));
        names.servant = self.derive(&format!("{stem}Servant"));
        if is_abstract {
            names.operations_trait = self.derive(&format!("{stem}Ops"));
        }
        names.module = self.derive_module(stem);
    }

    /// Returns the location and name of another IDL item that has this Rust name.
    fn conflicting(&self, space: Namespace, name: &RustName, span: Span) -> Option<&(Span, String)> {
        self.names.get(&(space, name.clone()))?.as_ref().filter(|(earlier, _)| *earlier != span)
    }

    fn has(&self, space: Namespace, name: &RustName) -> bool {
        self.names.contains_key(&(space, name.clone()))
    }
}

/// The name, annotations and location of a member, case, enumerator, field, flag or parameter.
struct Part<'a>(&'a str, &'a Annotations, Span);

fn parts(def: &Def) -> Vec<Part<'_>> {
    fn member(member: &Member) -> Part<'_> {
        Part(&member.name, &member.annotations, member.span)
    }
    match &def.kind {
        DefKind::Struct(s) | DefKind::Exception(s) => s.members.iter().map(member).collect(),
        DefKind::Union(u) => u.cases.iter().map(|case| member(&case.member)).collect(),
        DefKind::Value(v) => v.state.iter().map(|state| member(&state.member)).collect(),
        DefKind::Enum(e) => e.enumerators.iter().map(|m| Part(&m.name, &m.annotations, m.span)).collect(),
        DefKind::Bitmask(b) => b.flags.iter().map(|m| Part(&m.name, &m.annotations, m.span)).collect(),
        DefKind::Operation(o) => o.params.iter().map(|m| Part(&m.name, &m.annotations, m.span)).collect(),
        DefKind::Bitset(b) => {
            let named = b.fields.iter().filter_map(|m| Some((m.name.as_deref()?, m)));
            named.map(|(name, m)| Part(name, &m.annotations, m.span)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the namespaces that contain the item of a definition.
fn namespaces(def: &Def) -> &'static [Namespace] {
    match &def.kind {
        DefKind::Operation(_) | DefKind::Attribute(_) => &[],
        DefKind::Const(_) => &[Namespace::Values],
        DefKind::Struct(s) | DefKind::Exception(s) if s.members.is_empty() && s.base.is_none() => {
            &[Namespace::Types, Namespace::Values]
        }
        DefKind::Value(v) if v.state.is_empty() => &[Namespace::Types, Namespace::Values],
        DefKind::ValueBox(_) => &[Namespace::Types, Namespace::Values],
        _ => &[Namespace::Types],
    }
}

pub(super) fn aliased_interface(model: &Model, id: DefId) -> Option<DefId> {
    let alias = model.typedef(id)?;
    match model.stripped(alias.ty) {
        Type::Named(def) => model.interface(*def).map(|_| *def),
        _ => None,
    }
}

/// Returns the scoped names of all items that can be renamed: definitions, their parts, and factories.
pub(super) fn renamable_names(model: &Model) -> HashSet<String> {
    let mut known = HashSet::new();
    for def in model.defs() {
        let scoped = model.scoped_name(def.id);
        known.extend(parts(def).into_iter().map(|Part(part, ..)| format!("{scoped}::{part}")));
        for factory in model.value(def.id).map_or(&[][..], |value| &value.factories) {
            let scoped = format!("{scoped}::{}", factory.name);
            known.extend(factory.params.iter().map(|param| format!("{scoped}::{}", param.name)));
            known.insert(scoped);
        }
        known.insert(scoped);
    }
    known
}

fn rename_help(scoped: &str) -> String {
    format!(
        "choose a Rust name: `rename(\"{scoped}\" = \"...\")` in the macro, or `@rust_name(\"...\")` before the declaration"
    )
}
