//! Comparison of two models, definition by definition.

use std::collections::HashMap;

use idl_compiler::Model;
use idl_compiler::model::{
    Bitmask, Bitset, Case, ConstValue, Def, DefId, DefKind, Enum, Label, Member, Union, Value, ValueModifier,
    Visibility,
};
use serde_json::{Value as Json, json};

use super::rules::{self, Rule};
use super::types::{Difference, ModelPair};

pub(super) struct Change {
    pub(super) rule: &'static Rule,
    /// The scoped name of the changed item, from the old IDL if the item exists there.
    pub(super) name: String,
    pub(super) message: String,
    /// The location in the old IDL (`file`, `line` and `column`), or null if the item does not exist there.
    pub(super) old: Json,
    /// The location in the new IDL, or null if the item does not exist there.
    pub(super) new: Json,
}

impl Change {
    /// Returns `file:line:column`, in the new IDL if the item exists there.
    pub(super) fn location(&self) -> String {
        let location = if self.new.is_null() { &self.old } else { &self.new };
        let part = |name: &str| location.get(name).cloned().unwrap_or_default();
        format!("{}:{}:{}", part("file").as_str().unwrap_or("?"), part("line"), part("column"))
    }
}

/// The changed definition in the old model, the new model, or both.
#[derive(Clone, Copy)]
pub(super) enum ChangedDef<'m> {
    Old(&'m Def),
    New(&'m Def),
    Both(&'m Def, &'m Def),
}

pub(super) struct Comparison<'m> {
    pub(super) pair: ModelPair<'m>,
    changes: Vec<Change>,
}

/// Returns all breaking changes between two models, in the order of the definitions in the old model.
pub(super) fn changes(old: &Model, new: &Model) -> Vec<Change> {
    let mut comparison = Comparison { pair: ModelPair { old, new }, changes: Vec::new() };
    let by_name: HashMap<String, &Def> =
        new.defs().iter().map(|def| (new.scoped_name(def.id), def)).collect();
    for def in old.defs().iter().filter(|def| is_compared(def)) {
        let name = old.scoped_name(def.id);
        match by_name.get(&name) {
            Some(other) => comparison.compare_definition(def, other, &name),
            None => comparison.add_missing(def, &name),
        }
    }
    comparison.changes
}

/// Returns whether a definition is compared on its own. Operations and attributes are compared with their
/// interface, and modules have nothing to compare.
fn is_compared(def: &Def) -> bool {
    !matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_) | DefKind::Module(_))
}

impl<'m> Comparison<'m> {
    pub(super) fn add(&mut self, rule: &'static Rule, name: &str, changed: ChangedDef<'m>, message: String) {
        let location = |model: &Model, def: &Def| {
            let position = model.sources().position(def.span);
            json!({ "file": position.file, "line": position.line, "column": position.column })
        };
        let (old, new) = match changed {
            ChangedDef::Old(def) => (location(self.pair.old, def), Json::Null),
            ChangedDef::New(def) => (Json::Null, location(self.pair.new, def)),
            ChangedDef::Both(old, new) => (location(self.pair.old, old), location(self.pair.new, new)),
        };
        self.changes.push(Change { rule, name: name.to_owned(), message, old, new });
    }

    /// Adds the change for a definition that was renamed or removed.
    fn add_missing(&mut self, def: &'m Def, name: &str) {
        let pair = self.pair;
        let is_typedef = matches!(def.kind, DefKind::Typedef(_));
        let is_renamed = |other: &&Def| {
            !is_typedef
                && std::mem::discriminant(&other.kind) == std::mem::discriminant(&def.kind)
                && other.repository_id == def.repository_id
        };
        if let Some(other) = pair.new.defs().iter().find(is_renamed) {
            let now = pair.new.scoped_name(other.id);
            self.add(&rules::RENAMED, name, ChangedDef::Both(def, other), format!("`{name}` is `{now}` now"));
            return self.compare_contents(def, other, name);
        }
        let kind = def.kind.description();
        let rule = match def.kind {
            DefKind::Typedef(_) | DefKind::Native => &rules::TYPEDEF_REMOVED,
            DefKind::Const(_) => &rules::CONSTANT_REMOVED,
            _ => &rules::TYPE_REMOVED,
        };
        self.add(rule, name, ChangedDef::Old(def), format!("{kind} `{name}` was removed"));
    }

    fn compare_definition(&mut self, old: &'m Def, new: &'m Def, name: &str) {
        let is_constant = matches!(old.kind, DefKind::Const(_) | DefKind::Native);
        if old.repository_id != new.repository_id && !is_constant {
            let (was, is) = (&old.repository_id, &new.repository_id);
            let message = format!("the repository id of `{name}` was `{was}` and is `{is}`");
            self.add(&rules::REPOSITORY_ID, name, ChangedDef::Both(old, new), message);
        }
        self.compare_contents(old, new, name);
    }

    /// Compares everything except the name and the repository id.
    fn compare_contents(&mut self, old: &'m Def, new: &'m Def, name: &str) {
        let pair = self.pair;
        let changed = ChangedDef::Both(old, new);
        match (&old.kind, &new.kind) {
            (DefKind::Interface(a), DefKind::Interface(b)) => {
                if a.flavour != b.flavour {
                    let message = format!("`{name}` was {} and is {}", with_article(old), with_article(new));
                    self.add(&rules::KIND_CHANGED, name, changed, message);
                }
                self.compare_interface(old, new);
            }
            (DefKind::Struct(_), DefKind::Struct(_)) | (DefKind::Exception(_), DefKind::Exception(_)) => {
                for base in pair.old.struct_bases(old.id) {
                    if !pair.new.struct_bases(new.id).iter().any(|other| pair.is_same(base, *other)) {
                        let base = pair.old.scoped_name(base);
                        let message = format!("`{name}` no longer has the base `{base}`");
                        self.add(&rules::BASE_REMOVED, name, changed, message);
                    }
                }
                let members = |model: &'m Model, id| model.all_struct_members(id);
                self.compare_members(&members(pair.old, old.id), &members(pair.new, new.id), name, changed);
            }
            (DefKind::Union(a), DefKind::Union(b)) => self.compare_union((old, a), (new, b), name),
            (DefKind::Enum(a), DefKind::Enum(b)) => self.compare_enum(a, b, name, changed),
            (DefKind::Typedef(a), DefKind::Typedef(b)) => {
                let types = ((&old.annotations, a.ty), (&new.annotations, b.ty));
                self.compare_type(
                    types,
                    &rules::TYPEDEF_CHANGED,
                    name,
                    changed,
                    &format!("typedef `{name}`"),
                );
            }
            (DefKind::Const(a), DefKind::Const(b)) => {
                if pair.difference(a.ty, b.ty) != Difference::None {
                    let (was, is) = pair.type_names(a.ty, b.ty);
                    let message = format!("constant `{name}` was of type `{was}` and is of type `{is}`");
                    self.add(&rules::CONSTANT_REMOVED, name, changed, message);
                } else if !self.is_equal(&a.value, &b.value) {
                    let message = format!("constant `{name}` has another value");
                    self.add(&rules::CONSTANT_CHANGED, name, changed, message);
                }
            }
            (DefKind::Value(a), DefKind::Value(b)) => self.compare_value((old, a), (new, b), name),
            (DefKind::ValueBox(a), DefKind::ValueBox(b)) => {
                let types = ((&old.annotations, a.ty), (&new.annotations, b.ty));
                let description = format!("the content of `{name}`");
                self.compare_type(types, &rules::MEMBER_TYPE, name, changed, &description);
            }
            (DefKind::Bitset(a), DefKind::Bitset(b)) => self.compare_bitset(a, b, name, changed),
            (DefKind::Bitmask(a), DefKind::Bitmask(b)) => self.compare_bitmask(a, b, name, changed),
            (DefKind::Native, DefKind::Native) => {}
            _ => {
                let message = format!("`{name}` was {} and is {}", with_article(old), with_article(new));
                self.add(&rules::KIND_CHANGED, name, changed, message);
            }
        }
    }

    /// Compares members that are encoded in order.
    fn compare_members(
        &mut self,
        old: &[&'m Member],
        new: &[&'m Member],
        name: &str,
        changed: ChangedDef<'m>,
    ) {
        let pair = self.pair;
        let position =
            |members: &[&Member], name: &str| members.iter().position(|member| member.name == name);
        let removed: Vec<&Member> =
            old.iter().copied().filter(|m| position(new, &m.name).is_none()).collect();
        let added: Vec<&Member> = new.iter().copied().filter(|m| position(old, &m.name).is_none()).collect();
        // If the removed and the added members have the same positions and types, they were renamed.
        let is_renamed = removed.len() == added.len()
            && removed.iter().zip(&added).all(|(a, b)| {
                position(old, &a.name) == position(new, &b.name)
                    && pair.difference(a.ty, b.ty) == Difference::None
            });
        for (a, b) in removed.iter().zip(&added).filter(|_| is_renamed) {
            let message = format!("member `{}` of `{name}` is named `{}` now", a.name, b.name);
            self.add(&rules::MEMBER_RENAMED, &format!("{name}::{}", a.name), changed, message);
        }
        for member in removed.iter().filter(|_| !is_renamed) {
            let message = format!("`{name}` no longer has the member `{}`", member.name);
            self.add(&rules::MEMBER_REMOVED, &format!("{name}::{}", member.name), changed, message);
        }
        for member in added.iter().filter(|_| !is_renamed) {
            let message = format!("`{name}` has the new member `{}`", member.name);
            self.add(&rules::MEMBER_ADDED, &format!("{name}::{}", member.name), changed, message);
        }
        let common = |members: &[&'m Member], others: &[&Member]| -> Vec<&'m Member> {
            members.iter().copied().filter(|member| position(others, &member.name).is_some()).collect()
        };
        let (before, after) = (common(old, new), common(new, old));
        if before.iter().zip(&after).any(|(a, b)| a.name != b.name) {
            let names: Vec<&str> = new.iter().map(|member| member.name.as_str()).collect();
            let message = format!("the members of `{name}` are in another order: {}", names.join(", "));
            self.add(&rules::MEMBER_ORDER, name, changed, message);
        }
        for a in before {
            let Some(b) = after.iter().find(|b| b.name == a.name) else { continue };
            let full_name = format!("{name}::{}", a.name);
            let description = format!("member `{}` of `{name}`", a.name);
            let types = ((&a.annotations, a.ty), (&b.annotations, b.ty));
            self.compare_type(types, &rules::MEMBER_TYPE, &full_name, changed, &description);
        }
    }

    fn compare_enum(&mut self, old: &Enum, new: &Enum, name: &str, changed: ChangedDef<'m>) {
        let position = |body: &Enum, name: &str| body.enumerators.iter().position(|e| e.name == name);
        let mut has_removed = false;
        for (index, enumerator) in old.enumerators.iter().enumerate() {
            let full_name = format!("{name}::{}", enumerator.name);
            match position(new, &enumerator.name) {
                None => {
                    has_removed = true;
                    let message = format!("enum `{name}` no longer has the enumerator `{}`", enumerator.name);
                    self.add(&rules::ENUMERATOR_REMOVED, &full_name, changed, message);
                }
                Some(new_index) if new_index != index => {
                    let name_and_enum = format!("enumerator `{}` of `{name}`", enumerator.name);
                    let message = format!("{name_and_enum} was number {index} and is number {new_index}");
                    self.add(&rules::ENUMERATOR_ORDER, &full_name, changed, message);
                }
                Some(_) => {}
            }
        }
        for enumerator in &new.enumerators {
            if position(old, &enumerator.name).is_none() && !has_removed {
                let message = format!("enum `{name}` has the new enumerator `{}`", enumerator.name);
                self.add(&rules::ENUMERATOR_ADDED, &format!("{name}::{}", enumerator.name), changed, message);
            }
        }
    }

    fn compare_union(&mut self, (old, a): (&'m Def, &'m Union), (new, b): (&'m Def, &'m Union), name: &str) {
        let pair = self.pair;
        let changed = ChangedDef::Both(old, new);
        if pair.difference(a.discriminator, b.discriminator) != Difference::None {
            let (was, is) = pair.type_names(a.discriminator, b.discriminator);
            let message = format!("the discriminator of `{name}` was `{was}` and is `{is}`");
            // The cases are not compared, because all labels differ if the discriminator has another type.
            return self.add(&rules::DISCRIMINATOR, name, changed, message);
        }
        let same_labels = |x: &Case, y: &Case| {
            let has = |labels: &[Label], value: &ConstValue| {
                labels.iter().any(|label| self.is_equal(&label.value, value))
            };
            x.is_default == y.is_default
                && x.labels.len() == y.labels.len()
                && x.labels.iter().all(|label| has(&y.labels, &label.value))
        };
        let mut found: Vec<(&'static Rule, String, String)> = Vec::new();
        let mut matched = Vec::new();
        let mut renamed = Vec::new();
        for x in &a.cases {
            let member = &x.member;
            let full_name = format!("{name}::{}", member.name);
            match b.cases.iter().find(|y| y.member.name == member.name) {
                Some(y) => {
                    if !same_labels(x, y) {
                        let message = format!("case `{}` of `{name}` has other labels", member.name);
                        found.push((&rules::CASE_LABELS, full_name.clone(), message));
                    }
                    matched.push((member, &y.member, full_name));
                }
                None => match b.cases.iter().find(|y| same_labels(x, y)) {
                    Some(y) if !a.cases.iter().any(|other| other.member.name == y.member.name) => {
                        let message =
                            format!("case `{}` of `{name}` is named `{}` now", member.name, y.member.name);
                        found.push((&rules::MEMBER_RENAMED, full_name.clone(), message));
                        matched.push((member, &y.member, full_name));
                        renamed.push(y.member.name.as_str());
                    }
                    _ => {
                        let message = format!("union `{name}` no longer has the case `{}`", member.name);
                        found.push((&rules::CASE_REMOVED, full_name, message));
                    }
                },
            }
        }
        for y in &b.cases {
            let is_known = a.cases.iter().any(|x| x.member.name == y.member.name);
            if !is_known && !renamed.contains(&y.member.name.as_str()) {
                let message = format!("union `{name}` has the new case `{}`", y.member.name);
                found.push((&rules::CASE_ADDED, format!("{name}::{}", y.member.name), message));
            }
        }
        for (rule, full_name, message) in found {
            self.add(rule, &full_name, changed, message);
        }
        for (x, y, full_name) in matched {
            let description = format!("case `{}` of `{name}`", x.name);
            let types = ((&x.annotations, x.ty), (&y.annotations, y.ty));
            self.compare_type(types, &rules::CASE_TYPE, &full_name, changed, &description);
        }
    }

    fn compare_value(&mut self, (old, a): (&'m Def, &'m Value), (new, b): (&'m Def, &'m Value), name: &str) {
        let changed = ChangedDef::Both(old, new);
        let describe = |value: &Value| {
            let modifier = match value.modifier {
                ValueModifier::Plain => "plain",
                ValueModifier::Abstract => "abstract",
                ValueModifier::Custom => "custom",
            };
            let truncatable = if value.truncatable { ", truncatable" } else { "" };
            let event = if value.is_event { ", an event" } else { "" };
            format!("{modifier}{truncatable}{event}")
        };
        if describe(a) != describe(b) {
            let message = format!("value type `{name}` was {} and is {}", describe(a), describe(b));
            self.add(&rules::VALUE_CHANGED, name, changed, message);
        }
        self.compare_interface(old, new);
        let state = |value: &'m Value| -> Vec<&'m Member> { value.state.iter().map(|s| &s.member).collect() };
        self.compare_members(&state(a), &state(b), name, changed);
        for x in &a.state {
            let Some(y) = b.state.iter().find(|y| y.member.name == x.member.name) else { continue };
            if x.visibility != y.visibility {
                let is = if y.visibility == Visibility::Private { "private" } else { "public" };
                let message = format!("member `{}` of `{name}` is {is} now", x.member.name);
                self.add(&rules::VISIBILITY_CHANGED, &format!("{name}::{}", x.member.name), changed, message);
            }
        }
        self.compare_factories(old, new, &a.factories, &b.factories);
    }

    fn compare_bitset(&mut self, a: &Bitset, b: &Bitset, name: &str, changed: ChangedDef<'m>) {
        let pair = self.pair;
        let is_same_base = match (a.base, b.base) {
            (Some(x), Some(y)) => pair.is_same(x, y),
            (x, y) => x.is_none() && y.is_none(),
        };
        let layout = |body: &Bitset| -> Vec<(u8, String, bool)> {
            body.fields.iter().map(|f| (f.width, format!("{:?}", f.ty), f.name.is_some())).collect()
        };
        if !is_same_base || layout(a) != layout(b) {
            let message = format!("bitset `{name}` has other fields");
            return self.add(&rules::BITS_CHANGED, name, changed, message);
        }
        for (x, y) in a.fields.iter().zip(&b.fields) {
            if let (Some(x), Some(y)) = (&x.name, &y.name)
                && x != y
            {
                let message = format!("field `{x}` of `{name}` is named `{y}` now");
                self.add(&rules::MEMBER_RENAMED, &format!("{name}::{x}"), changed, message);
            }
        }
    }

    fn compare_bitmask(&mut self, a: &Bitmask, b: &Bitmask, name: &str, changed: ChangedDef<'m>) {
        if a.bit_bound != b.bit_bound {
            let message = format!("bitmask `{name}` had {} bits and has {}", a.bit_bound, b.bit_bound);
            self.add(&rules::BITS_CHANGED, name, changed, message);
        }
        for flag in &a.flags {
            let full_name = format!("{name}::{}", flag.name);
            let same_name = b.flags.iter().find(|other| other.name == flag.name);
            match (same_name, b.flags.iter().find(|other| other.position == flag.position)) {
                (Some(same), _) if same.position == flag.position => {}
                (None, Some(other)) if !a.flags.iter().any(|flag| flag.name == other.name) => {
                    let message = format!("flag `{}` of `{name}` is named `{}` now", flag.name, other.name);
                    self.add(&rules::MEMBER_RENAMED, &full_name, changed, message);
                }
                (Some(same), _) => {
                    let (flag_name, was, is) = (&flag.name, flag.position, same.position);
                    let message = format!("flag `{flag_name}` of `{name}` was bit {was} and is bit {is}");
                    self.add(&rules::BITS_CHANGED, &full_name, changed, message);
                }
                (None, _) => {
                    let message = format!("bitmask `{name}` no longer has the flag `{}`", flag.name);
                    self.add(&rules::BITS_CHANGED, &full_name, changed, message);
                }
            }
        }
    }

    /// Returns whether two constants are equal. Enumerators are compared by name.
    fn is_equal(&self, old: &ConstValue, new: &ConstValue) -> bool {
        let name = |model: &Model, def: DefId, ordinal: u32| {
            let body = model.enumeration(def)?;
            body.enumerators.get(ordinal as usize).map(|enumerator| enumerator.name.clone())
        };
        match (old, new) {
            (ConstValue::Enum { def: a, ordinal: m }, ConstValue::Enum { def: b, ordinal: n }) => {
                self.pair.is_same(*a, *b) && name(self.pair.old, *a, *m) == name(self.pair.new, *b, *n)
            }
            (a, b) => a == b,
        }
    }
}

/// Returns the kind of a definition, with an article.
fn with_article(def: &Def) -> String {
    let kind = def.kind.description();
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}
