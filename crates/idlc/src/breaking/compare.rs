//! Comparison of two models, definition by definition.

use std::collections::HashMap;

use idl_compiler::Model;
use idl_compiler::model::{
    Bitmask, Bitset, Case, ConstValue, Def, DefId, DefKind, Enum, Label, Member, Union, Value, ValueModifier,
    Visibility,
};
use serde_json::{Value as Json, json};

use super::rules::{self, Rule};
use super::types::{Difference, Pair};

/// A breaking change.
pub(super) struct Change {
    pub(super) rule: &'static Rule,
    /// Scoped name of the changed item, as in the old IDL unless only the new one has it.
    pub(super) name: String,
    pub(super) message: String,
    /// The location in the old IDL: `file`, `line` and `column`.
    pub(super) old: Json,
    /// The location in the new IDL.
    pub(super) new: Json,
}

impl Change {
    /// Returns `file:line:column`, in the new IDL if the item exists there.
    pub(super) fn place(&self) -> String {
        let place = if self.new.is_null() { &self.old } else { &self.new };
        let part = |name: &str| place.get(name).cloned().unwrap_or_default();
        format!("{}:{}:{}", part("file").as_str().unwrap_or("?"), part("line"), part("column"))
    }
}

/// The location of a change.
#[derive(Clone, Copy)]
pub(super) enum Place<'m> {
    Old(&'m Def),
    New(&'m Def),
    Both(&'m Def, &'m Def),
}

/// A comparison in progress.
pub(super) struct Comparison<'m> {
    pub(super) pair: Pair<'m>,
    changes: Vec<Change>,
}

/// Returns all changes between two models: those of definitions of the old one in its order, then those of
/// definitions that only the new one has.
pub(super) fn changes(old: &Model, new: &Model) -> Vec<Change> {
    let mut comparison = Comparison { pair: Pair { old, new }, changes: Vec::new() };
    let by_name: HashMap<String, &Def> =
        new.defs().iter().map(|def| (new.scoped_name(def.id), def)).collect();
    for def in old.defs().iter().filter(|def| is_compared(def)) {
        let name = old.scoped_name(def.id);
        match by_name.get(&name) {
            Some(other) => comparison.definition(def, other, &name),
            None => comparison.missing(def, &name),
        }
    }
    comparison.changes
}

/// Returns whether a definition is compared by itself. Members of interfaces are compared with their
/// interface, and modules consist of their contents.
fn is_compared(def: &Def) -> bool {
    !matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_) | DefKind::Module(_))
}

impl<'m> Comparison<'m> {
    pub(super) fn add(&mut self, rule: &'static Rule, name: &str, place: Place<'m>, message: String) {
        let at = |model: &Model, def: &Def| {
            let position = model.sources().position(def.span);
            json!({ "file": position.file, "line": position.line, "column": position.column })
        };
        let (old, new) = match place {
            Place::Old(def) => (at(self.pair.old, def), Json::Null),
            Place::New(def) => (Json::Null, at(self.pair.new, def)),
            Place::Both(old, new) => (at(self.pair.old, old), at(self.pair.new, new)),
        };
        self.changes.push(Change { rule, name: name.to_owned(), message, old, new });
    }

    /// Handles a definition whose name does not exist in the new model.
    fn missing(&mut self, def: &'m Def, name: &str) {
        let pair = self.pair;
        let is_typedef = matches!(def.kind, DefKind::Typedef(_));
        let is_version = |other: &&Def| {
            !is_typedef
                && std::mem::discriminant(&other.kind) == std::mem::discriminant(&def.kind)
                && other.repository_id == def.repository_id
        };
        if let Some(other) = pair.new.defs().iter().find(is_version) {
            let now = pair.new.scoped_name(other.id);
            self.add(&rules::RENAMED, name, Place::Both(def, other), format!("`{name}` is `{now}` now"));
            return self.contents(def, other, name);
        }
        let what = def.kind.what();
        let rule = match def.kind {
            DefKind::Typedef(_) | DefKind::Native => &rules::TYPEDEF_REMOVED,
            DefKind::Const(_) => &rules::CONSTANT_REMOVED,
            _ => &rules::TYPE_REMOVED,
        };
        self.add(rule, name, Place::Old(def), format!("{what} `{name}` is gone"));
    }

    /// Compares two definitions of the same name.
    fn definition(&mut self, old: &'m Def, new: &'m Def, name: &str) {
        let is_constant = matches!(old.kind, DefKind::Const(_) | DefKind::Native);
        if old.repository_id != new.repository_id && !is_constant {
            let message = format!(
                "the repository id of `{name}` was `{}` and is `{}`",
                old.repository_id, new.repository_id
            );
            self.add(&rules::REPOSITORY_ID, name, Place::Both(old, new), message);
        }
        self.contents(old, new, name);
    }

    fn contents(&mut self, old: &'m Def, new: &'m Def, name: &str) {
        let pair = self.pair;
        let place = Place::Both(old, new);
        match (&old.kind, &new.kind) {
            (DefKind::Interface(a), DefKind::Interface(b)) => {
                if a.flavour != b.flavour {
                    let message = format!("`{name}` was {} and is {}", with_article(old), with_article(new));
                    self.add(&rules::KIND_CHANGED, name, place, message);
                }
                self.members_of_interface(old, new);
            }
            (DefKind::Struct(_), DefKind::Struct(_)) | (DefKind::Exception(_), DefKind::Exception(_)) => {
                for base in pair.old.struct_bases(old.id) {
                    if !pair.new.struct_bases(new.id).iter().any(|other| pair.is_same(base, *other)) {
                        let base = pair.old.scoped_name(base);
                        self.add(
                            &rules::BASE_REMOVED,
                            name,
                            place,
                            format!("`{name}` lacks its base `{base}`"),
                        );
                    }
                }
                let members = |model: &'m Model, id| model.all_struct_members(id);
                self.members(&members(pair.old, old.id), &members(pair.new, new.id), name, place);
            }
            (DefKind::Union(a), DefKind::Union(b)) => self.union((old, a), (new, b), name),
            (DefKind::Enum(a), DefKind::Enum(b)) => self.enumeration(a, b, name, place),
            (DefKind::Typedef(a), DefKind::Typedef(b)) => self.use_of(
                (&old.annotations, a.ty),
                (&new.annotations, b.ty),
                &rules::TYPEDEF_CHANGED,
                name,
                place,
                &format!("typedef `{name}`"),
            ),
            (DefKind::Const(a), DefKind::Const(b)) => {
                if pair.difference(a.ty, b.ty) != Difference::None {
                    let (was, is) = pair.named(a.ty, b.ty);
                    let message = format!("constant `{name}` was of type `{was}` and is of type `{is}`");
                    self.add(&rules::CONSTANT_REMOVED, name, place, message);
                } else if !self.is_equal(&a.value, &b.value) {
                    self.add(
                        &rules::CONSTANT_CHANGED,
                        name,
                        place,
                        format!("constant `{name}` has another value"),
                    );
                }
            }
            (DefKind::Value(a), DefKind::Value(b)) => self.value((old, a), (new, b), name),
            (DefKind::ValueBox(a), DefKind::ValueBox(b)) => self.use_of(
                (&old.annotations, a.ty),
                (&new.annotations, b.ty),
                &rules::MEMBER_TYPE,
                name,
                place,
                &format!("the content of `{name}`"),
            ),
            (DefKind::Bitset(a), DefKind::Bitset(b)) => self.bitset(a, b, name, place),
            (DefKind::Bitmask(a), DefKind::Bitmask(b)) => self.bitmask(a, b, name, place),
            (DefKind::Native, DefKind::Native) => {}
            _ => {
                let message = format!("`{name}` was {} and is {}", with_article(old), with_article(new));
                self.add(&rules::KIND_CHANGED, name, place, message);
            }
        }
    }

    /// Compares members that are encoded in order.
    fn members(&mut self, old: &[&'m Member], new: &[&'m Member], name: &str, place: Place<'m>) {
        let pair = self.pair;
        let position =
            |members: &[&Member], name: &str| members.iter().position(|member| member.name == name);
        let lost: Vec<&Member> = old.iter().copied().filter(|m| position(new, &m.name).is_none()).collect();
        let gained: Vec<&Member> = new.iter().copied().filter(|m| position(old, &m.name).is_none()).collect();
        // Renamed: the same position and type, but another name.
        let is_renamed = lost.len() == gained.len()
            && lost.iter().zip(&gained).all(|(a, b)| {
                position(old, &a.name) == position(new, &b.name)
                    && pair.difference(a.ty, b.ty) == Difference::None
            });
        for (a, b) in lost.iter().zip(&gained).filter(|_| is_renamed) {
            let message = format!("member `{}` of `{name}` is named `{}` now", a.name, b.name);
            self.add(&rules::MEMBER_RENAMED, &format!("{name}::{}", a.name), place, message);
        }
        for member in lost.iter().filter(|_| !is_renamed) {
            let message = format!("`{name}` lacks its member `{}`", member.name);
            self.add(&rules::MEMBER_REMOVED, &format!("{name}::{}", member.name), place, message);
        }
        for member in gained.iter().filter(|_| !is_renamed) {
            let message = format!("`{name}` has the new member `{}`", member.name);
            self.add(&rules::MEMBER_ADDED, &format!("{name}::{}", member.name), place, message);
        }
        let kept = |members: &[&'m Member], others: &[&Member]| -> Vec<&'m Member> {
            members.iter().copied().filter(|member| position(others, &member.name).is_some()).collect()
        };
        let (before, after) = (kept(old, new), kept(new, old));
        if before.iter().zip(&after).any(|(a, b)| a.name != b.name) {
            let names: Vec<&str> = new.iter().map(|member| member.name.as_str()).collect();
            let message = format!("the members of `{name}` are in another order: {}", names.join(", "));
            self.add(&rules::MEMBER_ORDER, name, place, message);
        }
        for a in before {
            let Some(b) = after.iter().find(|b| b.name == a.name) else { continue };
            let full = format!("{name}::{}", a.name);
            let told = format!("member `{}` of `{name}`", a.name);
            self.use_of(
                (&a.annotations, a.ty),
                (&b.annotations, b.ty),
                &rules::MEMBER_TYPE,
                &full,
                place,
                &told,
            );
        }
    }

    fn enumeration(&mut self, old: &Enum, new: &Enum, name: &str, place: Place<'m>) {
        let position = |body: &Enum, name: &str| body.enumerators.iter().position(|e| e.name == name);
        let mut lost = false;
        for (at, enumerator) in old.enumerators.iter().enumerate() {
            let full = format!("{name}::{}", enumerator.name);
            match position(new, &enumerator.name) {
                None => {
                    lost = true;
                    let message = format!("enum `{name}` lacks its enumerator `{}`", enumerator.name);
                    self.add(&rules::ENUMERATOR_REMOVED, &full, place, message);
                }
                Some(now) if now != at => {
                    let message = format!(
                        "enumerator `{}` of `{name}` was number {at} and is number {now}",
                        enumerator.name
                    );
                    self.add(&rules::ENUMERATOR_ORDER, &full, place, message);
                }
                Some(_) => {}
            }
        }
        for enumerator in &new.enumerators {
            if position(old, &enumerator.name).is_none() && !lost {
                let message = format!("enum `{name}` has the new enumerator `{}`", enumerator.name);
                self.add(&rules::ENUMERATOR_ADDED, &format!("{name}::{}", enumerator.name), place, message);
            }
        }
    }

    fn union(&mut self, (old, a): (&'m Def, &'m Union), (new, b): (&'m Def, &'m Union), name: &str) {
        let pair = self.pair;
        let place = Place::Both(old, new);
        if pair.difference(a.discriminator, b.discriminator) != Difference::None {
            let (was, is) = pair.named(a.discriminator, b.discriminator);
            let message = format!("the discriminator of `{name}` was `{was}` and is `{is}`");
            // With another type of discriminator, all labels differ.
            return self.add(&rules::DISCRIMINATOR, name, place, message);
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
        let mut uses = Vec::new();
        let mut renamed = Vec::new();
        for x in &a.cases {
            let member = &x.member;
            let full = format!("{name}::{}", member.name);
            match b.cases.iter().find(|y| y.member.name == member.name) {
                Some(y) => {
                    if !same_labels(x, y) {
                        let message = format!("case `{}` of `{name}` has other labels", member.name);
                        found.push((&rules::CASE_LABELS, full.clone(), message));
                    }
                    uses.push((member, &y.member, full));
                }
                None => match b.cases.iter().find(|y| same_labels(x, y)) {
                    Some(y) if !a.cases.iter().any(|other| other.member.name == y.member.name) => {
                        let message =
                            format!("case `{}` of `{name}` is named `{}` now", member.name, y.member.name);
                        found.push((&rules::MEMBER_RENAMED, full.clone(), message));
                        uses.push((member, &y.member, full));
                        renamed.push(y.member.name.as_str());
                    }
                    _ => {
                        let message = format!("union `{name}` lacks its case `{}`", member.name);
                        found.push((&rules::CASE_REMOVED, full, message));
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
        for (rule, full, message) in found {
            self.add(rule, &full, place, message);
        }
        for (x, y, full) in uses {
            let told = format!("case `{}` of `{name}`", x.name);
            self.use_of(
                (&x.annotations, x.ty),
                (&y.annotations, y.ty),
                &rules::CASE_TYPE,
                &full,
                place,
                &told,
            );
        }
    }

    fn value(&mut self, (old, a): (&'m Def, &'m Value), (new, b): (&'m Def, &'m Value), name: &str) {
        let place = Place::Both(old, new);
        let told = |value: &Value| {
            let modifier = match value.modifier {
                ValueModifier::Plain => "plain",
                ValueModifier::Abstract => "abstract",
                ValueModifier::Custom => "custom",
            };
            let truncatable = if value.truncatable { ", truncatable" } else { "" };
            let event = if value.is_event { ", an event" } else { "" };
            format!("{modifier}{truncatable}{event}")
        };
        if told(a) != told(b) {
            let message = format!("value type `{name}` was {} and is {}", told(a), told(b));
            self.add(&rules::VALUE_CHANGED, name, place, message);
        }
        self.members_of_interface(old, new);
        let state = |value: &'m Value| -> Vec<&'m Member> { value.state.iter().map(|s| &s.member).collect() };
        self.members(&state(a), &state(b), name, place);
        for x in &a.state {
            let Some(y) = b.state.iter().find(|y| y.member.name == x.member.name) else { continue };
            if x.visibility != y.visibility {
                let is = if y.visibility == Visibility::Private { "private" } else { "public" };
                let message = format!("member `{}` of `{name}` is {is} now", x.member.name);
                self.add(&rules::VISIBILITY_CHANGED, &format!("{name}::{}", x.member.name), place, message);
            }
        }
        self.factories(old, new, &a.factories, &b.factories);
    }

    fn bitset(&mut self, a: &Bitset, b: &Bitset, name: &str, place: Place<'m>) {
        let pair = self.pair;
        let base = match (a.base, b.base) {
            (Some(x), Some(y)) => pair.is_same(x, y),
            (x, y) => x.is_none() && y.is_none(),
        };
        let layout = |body: &Bitset| -> Vec<(u8, String, bool)> {
            body.fields.iter().map(|f| (f.width, format!("{:?}", f.ty), f.name.is_some())).collect()
        };
        if !base || layout(a) != layout(b) {
            return self.add(&rules::BITS_CHANGED, name, place, format!("bitset `{name}` has other fields"));
        }
        for (x, y) in a.fields.iter().zip(&b.fields) {
            if let (Some(x), Some(y)) = (&x.name, &y.name)
                && x != y
            {
                let message = format!("field `{x}` of `{name}` is named `{y}` now");
                self.add(&rules::MEMBER_RENAMED, &format!("{name}::{x}"), place, message);
            }
        }
    }

    fn bitmask(&mut self, a: &Bitmask, b: &Bitmask, name: &str, place: Place<'m>) {
        if a.bit_bound != b.bit_bound {
            let message = format!("bitmask `{name}` had {} bits and has {}", a.bit_bound, b.bit_bound);
            self.add(&rules::BITS_CHANGED, name, place, message);
        }
        for flag in &a.flags {
            let full = format!("{name}::{}", flag.name);
            let same = b.flags.iter().find(|other| other.name == flag.name);
            match (same, b.flags.iter().find(|other| other.position == flag.position)) {
                (Some(same), _) if same.position == flag.position => {}
                (None, Some(other)) if !a.flags.iter().any(|flag| flag.name == other.name) => {
                    let message = format!("flag `{}` of `{name}` is named `{}` now", flag.name, other.name);
                    self.add(&rules::MEMBER_RENAMED, &full, place, message);
                }
                (Some(same), _) => {
                    let message = format!(
                        "flag `{}` of `{name}` was bit {} and is bit {}",
                        flag.name, flag.position, same.position
                    );
                    self.add(&rules::BITS_CHANGED, &full, place, message);
                }
                (None, _) => {
                    let message = format!("bitmask `{name}` lacks its flag `{}`", flag.name);
                    self.add(&rules::BITS_CHANGED, &full, place, message);
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
    let what = def.kind.what();
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {what}")
}
