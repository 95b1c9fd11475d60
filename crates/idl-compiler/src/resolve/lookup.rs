//! Name lookup.

use std::collections::{HashMap, HashSet};

use super::scope::{
    Entity, Entry, FACTORY, ScopeId, TEMPLATE_PARAMETER, USED_TEMPLATE_PARAMETER, with_article,
};
use super::symbols::Symbols;
use super::{lineage, scope};
use crate::ast::{Ident, Item, ItemKind, Name, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::model::{Def, DefId, DefKind, Model};
use crate::source::Span;
use crate::suggest::closest;
use crate::token::KEYWORDS;
use crate::work;

const DECLARED_ONLY: bool = false;
const INCLUDE_USED: bool = true;

enum Answer {
    Found(Entry),
    /// Found with a different spelling in case.
    OtherCase(Entry),
    /// Inherited from several bases with different meanings.
    Ambiguous(Vec<(DefId, Entry)>),
    Missing,
}

impl Answer {
    fn from_entry(entry: Entry, name: &str) -> Answer {
        if entry.name == name { Answer::Found(entry) } else { Answer::OtherCase(entry) }
    }
}

impl Symbols<'_> {
    /// Resolves a name. An undeclared or invalid name is reported, unless an earlier error may explain it.
    pub(super) fn lookup(&mut self, name: &Name, scope: ScopeId) -> Option<Entity> {
        let (first, rest) = name.parts.split_first()?;
        let mut found = if name.absolute {
            let answer = self.search(ScopeId::FILE, &first.text, DECLARED_ONLY);
            self.entry_or_report(answer, name, 0, ScopeId::FILE)?
        } else {
            let found = self.lookup_first(name, first, scope)?;
            if !found.entity.is_predeclared() {
                let mut used = Entry { name: first.text.clone(), span: first.span, ..found.clone() };
                if used.what == TEMPLATE_PARAMETER {
                    used.what = USED_TEMPLATE_PARAMETER;
                }
                self.scope_mut(scope).introduce(used);
            }
            found
        };
        for index in 1..=rest.len() {
            if found.entity == Entity::Bad {
                self.templates.unknown_name_count += 1;
                return None;
            }
            let part = name.parts.get(index)?;
            if found.entity == Entity::Corba {
                found = self.lookup_in_predeclared_corba(part)?;
                continue;
            }
            let Some(inside) = self.scope_of(found.entity) else {
                let outer = name.parts.get(index - 1)?;
                let message =
                    format!("`{}` is {}, which has no names inside", outer.text, with_article(found.what));
                let error = Diagnostic::error("not-a-scope", outer.span, message);
                let declared = (!found.entity.is_predeclared()).then_some(found.span);
                let error = error.and_if(declared, "declared here");
                self.report(match found.what {
                    "enum" => error.help("enumerators belong to the scope around their enum"),
                    "template module" => error.help("name an instance of it: `module M<...> Instance;`"),
                    _ => error,
                });
                return None;
            };
            let answer = self.search(inside, &part.text, DECLARED_ONLY);
            found = self.entry_or_report(answer, name, index, inside)?;
        }
        if found.entity == Entity::Bad {
            self.templates.unknown_name_count += 1;
            return None;
        }
        Some(found.entity)
    }

    /// Resolves a name if it is declared. Reports nothing, and does not introduce the name into the scope.
    pub(super) fn lookup_silently(&self, name: &Name, scope: ScopeId) -> Option<Entity> {
        let mut at = if name.absolute { Some(ScopeId::FILE) } else { Some(scope) };
        let first = name.parts.first()?;
        let mut found = loop {
            match self.search(at?, &first.text, !name.absolute) {
                Answer::Missing if name.absolute => return None,
                Answer::Missing => at = self.scope(at?).parent,
                Answer::Found(entry) => break entry.entity,
                Answer::OtherCase(_) | Answer::Ambiguous(_) => return Some(Entity::Bad),
            }
        };
        for part in name.parts.iter().skip(1) {
            let Some(inside) = self.scope_of(found) else {
                return (found != Entity::Corba).then_some(Entity::Bad);
            };
            found = match self.search(inside, &part.text, DECLARED_ONLY) {
                Answer::Missing => return None,
                Answer::Found(entry) => entry.entity,
                Answer::OtherCase(_) | Answer::Ambiguous(_) => return Some(Entity::Bad),
            };
        }
        Some(found)
    }

    /// Resolves a relative name's first part: in this scope, its bases, then the enclosing scopes.
    fn lookup_first(&mut self, name: &Name, first: &Ident, scope: ScopeId) -> Option<Entry> {
        let mut at = Some(scope);
        while let Some(id) = at {
            match self.search(id, &first.text, INCLUDE_USED) {
                Answer::Missing => at = self.scope(id).parent,
                answer => return self.entry_or_report(answer, name, 0, id),
            }
        }
        self.entry_or_report(Answer::Missing, name, 0, scope)
    }

    /// Searches a scope and its bases and, with `include_used`, the names that the scope only uses.
    fn search(&self, scope: ScopeId, name: &str, include_used: bool) -> Answer {
        match self.search_known(scope, name, include_used) {
            Answer::Missing if self.scope(scope).may_inherit_unknown => {
                let (name, span) = (name.to_owned(), Span::START);
                Answer::Found(Entry { name, span, entity: Entity::Bad, what: "name", used: true })
            }
            answer => answer,
        }
    }

    fn search_known(&self, scope: ScopeId, name: &str, include_used: bool) -> Answer {
        work::count_step();
        let lower = name.to_ascii_lowercase();
        let inside = self.scope(scope);
        if let Some(entry) = inside.local(&lower).filter(|entry| entry.name == name) {
            return Answer::Found(entry.clone());
        }
        if let Some(entry) = inside.name(&lower).filter(|entry| include_used || !entry.used) {
            return Answer::from_entry(entry.clone(), name);
        }
        if let Some(entity) = self.predeclared(scope, name) {
            return Answer::Found(predeclared_entry(entity));
        }
        let Some(owner) = inside.owner.filter(|owner| lineage::has_bases(&self.model, *owner)) else {
            return Answer::Missing;
        };
        let lineage = self.lineage(scope, owner);
        if lineage.bases_declaring(&lower).is_empty() {
            return Answer::Missing;
        }
        let (mut seen, mut inherited) = (HashSet::new(), Vec::new());
        self.search_bases(owner, name, &lower, &mut seen, &mut inherited);
        if inherited.len() > 1 {
            return Answer::Ambiguous(inherited);
        }
        inherited.pop().map_or(Answer::Missing, |(_, entry)| Answer::from_entry(entry, name))
    }

    /// Returns an entity that is known without a declaration: `CORBA`, or `TypeCode` in it.
    fn predeclared(&self, scope: ScopeId, name: &str) -> Option<Entity> {
        match self.scope(scope).owner.map(|owner| self.model.def(owner)) {
            None if name == "CORBA" && scope == ScopeId::FILE => Some(Entity::Corba),
            Some(def) if name == "TypeCode" && def.name == "CORBA" && def.parent.is_none() => {
                matches!(def.kind, DefKind::Module(_)).then_some(Entity::TypeCode)
            }
            _ => None,
        }
    }

    /// Resolves a name after `CORBA::` if the text does not declare this module.
    fn lookup_in_predeclared_corba(&mut self, part: &Ident) -> Option<Entry> {
        if part.text == "TypeCode" {
            return Some(predeclared_entry(Entity::TypeCode));
        }
        if self.conditions.only_files_missing {
            self.add_undeclared_name(format!("CORBA::{}", part.text));
        } else if !self.conditions.incomplete {
            let message = format!("`{}` is not declared in `CORBA`", part.text);
            let error = Diagnostic::error("not-found", part.span, message);
            self.report(match part.text.eq_ignore_ascii_case("TypeCode") {
                true => error.help("did you mean `TypeCode`?"),
                false => error.help(missing_include("orb.idl")),
            });
        }
        None
    }

    /// Collects the entries of this name in the bases, each entity once. An entry of a base hides those in
    /// the bases of this base.
    fn search_bases(
        &self,
        interface: DefId,
        name: &str,
        lower: &str,
        seen: &mut HashSet<DefId>,
        found: &mut Vec<(DefId, Entry)>,
    ) {
        for base in self.model.direct_bases(interface) {
            work::count_step();
            if !seen.insert(base) {
                continue;
            }
            let Some(inside) = self.states[base.index()].scope.map(|scope| self.scope(scope)) else {
                continue;
            };
            let local = inside.local(lower).filter(|entry| entry.name == name && entry.what != FACTORY);
            match local.or(inside.name(lower).filter(|entry| !entry.used)) {
                Some(entry) => {
                    if found.iter().all(|(_, other)| other.entity != entry.entity) {
                        found.push((base, entry.clone()));
                    }
                }
                None => self.search_bases(base, name, lower, seen, found),
            }
        }
    }

    /// Returns the entry that was found for one part of a name, or reports why there is none.
    fn entry_or_report(
        &mut self,
        answer: Answer,
        name: &Name,
        index: usize,
        scope: ScopeId,
    ) -> Option<Entry> {
        let part = name.parts.get(index)?;
        match answer {
            Answer::Found(entry) => Some(entry),
            Answer::OtherCase(entry) => {
                let message = format!("`{}` is spelled differently from `{}`", part.text, entry.name);
                let error = Diagnostic::error("case-mismatch", part.span, message);
                let error = error.and(entry.span, format!("declared here as `{}`", entry.name));
                let help = format!("write `{}`: every use must be spelled like the definition", entry.name);
                self.report(error.help(help));
                None
            }
            Answer::Ambiguous(entries) => {
                let message = format!("`{}` is ambiguous", part.text);
                let mut error = Diagnostic::error("ambiguous", part.span, message);
                let bases = entries.iter().map(|(base, _)| self.model.scoped_name(*base));
                let bases: Vec<String> = bases.collect();
                for (base, (_, entry)) in bases.iter().zip(&entries) {
                    error = error.and(entry.span, format!("inherited from `{base}`"));
                }
                let first = bases.first().map_or("", String::as_str);
                self.report(error.help(format!("write the base too, such as `{first}::{}`", part.text)));
                None
            }
            Answer::Missing => {
                if self.conditions.only_files_missing {
                    self.report_missing_or_misspelt(name, index, scope);
                } else if !self.conditions.incomplete {
                    let error = self.not_found(name, index, scope);
                    self.report(error);
                }
                None
            }
        }
    }

    /// Handles an undeclared name if an included file is missing. A name is reported if it resembles a
    /// declared name, or is declared later or in another scope. Any other name is listed in the message about
    /// the missing file.
    fn report_missing_or_misspelt(&mut self, name: &Name, index: usize, scope: ScopeId) {
        let error = self.not_found(name, index, scope);
        if error.helps.iter().any(|help| !help.starts_with(MISSING_INCLUDE)) {
            self.report(error.note("an included file that was not found may declare it, too"));
        } else {
            self.add_undeclared_name(name.text());
        }
    }

    fn add_undeclared_name(&mut self, name: String) {
        if !self.undeclared_names.contains(&name) {
            self.undeclared_names.push(name);
        }
    }

    /// Adds a note to the error of the first missing file, with the names that it may declare.
    pub(super) fn note_undeclared_names(&mut self) {
        let names: Vec<String> =
            self.undeclared_names.iter().take(MAX_LISTED_NAMES).map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            return;
        }
        let more = match self.undeclared_names.len().saturating_sub(MAX_LISTED_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.diagnostics.note("include", format!("names that it may declare: {}{more}", names.join(", ")));
    }

    fn not_found(&self, name: &Name, index: usize, scope: ScopeId) -> Diagnostic {
        let Some(part) = name.parts.get(index) else {
            return Diagnostic::error("not-found", name.span, "this name is not declared");
        };
        let text = part.text.as_str();
        let qualified = index > 0 || name.absolute;
        let message = match self.scope(scope).owner.filter(|_| qualified) {
            Some(owner) => format!("`{text}` is not declared in `{}`", self.model.scoped_name(owner)),
            None if qualified => format!("`{text}` is not declared at file level"),
            None => format!("`{text}` is not declared"),
        };
        let error = Diagnostic::error("not-found", part.span, message);
        if self.diagnostics.is_full() {
            return error;
        }
        let own_components = |owner: DefId| {
            let owner = self.model.def(owner);
            owner.name == "Components"
                && owner.parent.is_none()
                && !self.model.sources.is_predeclared(owner.span)
        };
        if name.absolute && index == 1 && self.scope(scope).owner.is_some_and(own_components) {
            return error.help(
                "this text declares its own module `Components`: declare in it what the component model needs, or remove it",
            );
        }
        let visible = self.visible_names(scope, !qualified);
        let is_single_part = name.parts.len() == 1 && !qualified;
        let words = KEYWORDS.iter().copied().filter(|_| is_single_part);
        let first_declaration = self.first_declarations.get(text);
        if let Some(later) = first_declaration.filter(|later| !qualified && **later > part.span) {
            let error = error.and(*later, "declared only here");
            return error.help("move the declaration before its first use");
        }
        if let Some(elsewhere) = full_name_anywhere(&self.model, text) {
            return error.help(format!("there is `{elsewhere}`: write its full name in this scope"));
        }
        if let Some(nearest) = closest(text, visible.iter().map(String::as_str).chain(words)) {
            return error.help(format!("did you mean `{nearest}`?"));
        }
        match text {
            "PortableServer" if index == 0 => error.help(missing_include("poa.idl")),
            _ if index == 0 && text.starts_with("Cos") => error.help(missing_include(&format!("{text}.idl"))),
            _ if index == 0 => error.note("IDL names must be declared before they are used"),
            _ => error,
        }
    }

    /// Returns the names declared in this scope and its bases, and optionally in all enclosing scopes.
    fn visible_names(&self, scope: ScopeId, with_enclosing: bool) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = Some(scope);
        while let Some(id) = at {
            let inside = self.scope(id);
            names.extend(inside.declared().map(|entry| entry.name.clone()));
            for base in inside.owner.map_or(Vec::new(), |owner| self.model.all_bases(owner)) {
                if let Some(scope) = self.states[base.index()].scope {
                    names.extend(self.scope(scope).declared().map(|entry| entry.name.clone()));
                }
            }
            at = inside.parent.filter(|_| with_enclosing);
        }
        names
    }
}

/// Returns the full name of a definition or enumerator of exactly this name in any scope.
fn full_name_anywhere(model: &Model, name: &str) -> Option<String> {
    let has_name =
        |def: &&Def| def.name == name && !matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_));
    if let Some(def) = model.defs.iter().find(has_name) {
        return scope::full_name(model, Entity::Def(def.id));
    }
    model.defs.iter().find_map(|def| {
        let enumerators = &model.enumeration(def.id)?.enumerators;
        let ordinal = enumerators.iter().position(|enumerator| enumerator.name == name)?;
        scope::full_name(model, Entity::Enumerator(def.id, u32::try_from(ordinal).ok()?))
    })
}

/// Start of help texts that name a file to include.
const MISSING_INCLUDE: &str = "include";

/// Maximum number of names in the note about a missing file.
const MAX_LISTED_NAMES: usize = 12;

fn predeclared_entry(entity: Entity) -> Entry {
    let (name, what) = if entity == Entity::Corba { ("CORBA", "module") } else { ("TypeCode", "type") };
    Entry { name: name.to_owned(), span: Span::START, entity, what, used: false }
}

fn missing_include(file: &str) -> String {
    format!("{MISSING_INCLUDE} the OMG's file, `#include <{file}>`, or declare what you need in this text")
}

/// Returns where each name is declared, to find names that are used before their declaration.
pub(super) fn first_declarations(items: &[Item]) -> HashMap<String, Span> {
    let mut locations = HashMap::new();
    let mut todo: Vec<&[Item]> = vec![items];
    while let Some(items) = todo.pop() {
        for item in items {
            let names = match &item.kind {
                ItemKind::Module { name, items } | ItemKind::Interface { name, items, .. } => {
                    todo.push(items);
                    vec![name]
                }
                ItemKind::Value(value) => {
                    todo.push(&value.items);
                    vec![&value.name]
                }
                ItemKind::Component(component) => vec![&component.name],
                ItemKind::Template(template) => vec![&template.name],
                ItemKind::Instance(instance) => vec![&instance.name],
                ItemKind::Home(home) => vec![&home.name],
                ItemKind::Connector { name, .. }
                | ItemKind::PortType { name, .. }
                | ItemKind::ForwardComponent(name)
                | ItemKind::ForwardPortType(name) => vec![name],
                ItemKind::Bitset(bitset) => vec![&bitset.name],
                ItemKind::Bitmask(bitmask) => vec![&bitmask.name],
                ItemKind::Const { name, .. }
                | ItemKind::Exception { name, .. }
                | ItemKind::ForwardInterface { name, .. }
                | ItemKind::ForwardValue { name, .. }
                | ItemKind::ValueBox { name, .. }
                | ItemKind::Native(name) => vec![name],
                ItemKind::Type(ty) => match &ty.kind {
                    TypeKind::Struct { name, .. } | TypeKind::Enum { name, .. } => vec![name],
                    TypeKind::Union(union) => vec![&union.name],
                    _ => Vec::new(),
                },
                ItemKind::Typedef { declarators, .. } => {
                    declarators.iter().map(|declarator| &declarator.name).collect()
                }
                _ => Vec::new(),
            };
            for name in names {
                locations.entry(name.text.clone()).or_insert(name.span);
            }
        }
    }
    locations
}
