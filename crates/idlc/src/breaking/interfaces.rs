//! Comparison of the operations, attributes and bases of interfaces and value types.

use idl_compiler::Model;
use idl_compiler::model::{Annotations, Attribute, Def, DefId, DefKind, Factory, Operation, Param, TypeId};

use super::compare::{ChangedDef, Comparison};
use super::rules::{self, Rule};
use super::types::Difference;

impl<'m> Comparison<'m> {
    pub(super) fn compare_interface(&mut self, old: &'m Def, new: &'m Def) {
        let pair = self.pair;
        self.compare_bases(old, new);
        for old_member in own_members(pair.old, old.id) {
            let new_member = pair.new.all_members(new.id).find(|def| def.name == old_member.name);
            let name = pair.old.scoped_name(old_member.id);
            let kind = member_kind(&old_member.kind);
            match new_member {
                None => {
                    let message = format!("{kind} `{name}` was removed");
                    self.add(&rules::OPERATION_REMOVED, &name, ChangedDef::Old(old_member), message);
                }
                Some(new_member) => {
                    if new_member.parent != Some(new.id) {
                        let owner = new_member.parent.map(|owner| pair.new.scoped_name(owner));
                        let message =
                            format!("{kind} `{name}` is inherited from `{}` now", owner.unwrap_or_default());
                        self.add(
                            &rules::OPERATION_MOVED,
                            &name,
                            ChangedDef::Both(old_member, new_member),
                            message,
                        );
                    }
                    self.compare_member(old_member, new_member);
                }
            }
        }
        for new_member in own_members(pair.new, new.id) {
            let name = pair.new.scoped_name(new_member.id);
            let kind = member_kind(&new_member.kind);
            match pair.old.all_members(old.id).find(|def| def.name == new_member.name) {
                None => {
                    let message = format!("{kind} `{name}` is new");
                    self.add(&rules::OPERATION_ADDED, &name, ChangedDef::New(new_member), message);
                }
                Some(inherited) if inherited.parent != Some(old.id) => {
                    let owner = inherited.parent.map(|owner| pair.old.scoped_name(owner));
                    let owner = owner.unwrap_or_default();
                    let message = format!("{kind} `{name}` is no longer inherited from `{owner}`");
                    self.add(
                        &rules::OPERATION_MOVED,
                        &name,
                        ChangedDef::Both(inherited, new_member),
                        message,
                    );
                }
                Some(_) => {}
            }
        }
    }

    /// Compares the direct and indirect bases, and the supported interfaces.
    fn compare_bases(&mut self, old: &'m Def, new: &'m Def) {
        let name = self.pair.old.scoped_name(old.id);
        let (before, after) = (self.pair.old.all_bases(old.id), self.pair.new.all_bases(new.id));
        for base in &before {
            if !after.iter().any(|other| self.pair.is_same(*base, *other)) {
                let base = self.pair.old.scoped_name(*base);
                let message = format!("`{name}` no longer has the base `{base}`");
                self.add(&rules::BASE_REMOVED, &name, ChangedDef::Both(old, new), message);
            }
        }
        for base in &after {
            if !before.iter().any(|other| self.pair.is_same(*other, *base)) {
                let base = self.pair.new.scoped_name(*base);
                let message = format!("`{name}` has the new base `{base}`");
                self.add(&rules::BASE_ADDED, &name, ChangedDef::Both(old, new), message);
            }
        }
    }

    fn compare_member(&mut self, old: &'m Def, new: &'m Def) {
        let name = self.pair.old.scoped_name(old.id);
        match (&old.kind, &new.kind) {
            (DefKind::Operation(a), DefKind::Operation(b)) => {
                self.compare_operation((old, a), (new, b), &name)
            }
            (DefKind::Attribute(a), DefKind::Attribute(b)) => {
                self.compare_attribute((old, a), (new, b), &name)
            }
            (a, b) => {
                let (was, is) = (member_kind(a), member_kind(b));
                let message = format!("`{name}` was an {was} and is an {is}");
                self.add(&rules::OPERATION_REMOVED, &name, ChangedDef::Both(old, new), message);
            }
        }
    }

    fn compare_operation(
        &mut self,
        (old, a): (&'m Def, &'m Operation),
        (new, b): (&'m Def, &'m Operation),
        name: &str,
    ) {
        let changed = ChangedDef::Both(old, new);
        if a.oneway != b.oneway {
            let is = if b.oneway { "is oneway now" } else { "is no longer oneway" };
            self.add(&rules::ONEWAY_CHANGED, name, changed, format!("operation `{name}` {is}"));
        }
        match (a.result, b.result) {
            (Some(x), Some(y)) => {
                let types = ((&old.annotations, x), (&new.annotations, y));
                let description = format!("the result of `{name}`");
                self.compare_type(types, &rules::RESULT_CHANGED, name, changed, &description);
            }
            (None, None) => {}
            (x, y) => {
                let type_name = |ty: Option<String>| ty.unwrap_or_else(|| "void".to_owned());
                let x = type_name(x.map(|ty| self.pair.old.describe(ty)));
                let y = type_name(y.map(|ty| self.pair.new.describe(ty)));
                let message = format!("the result of `{name}` was `{x}` and is `{y}`");
                self.add(&rules::RESULT_CHANGED, name, changed, message);
            }
        }
        self.compare_parameters(a, b, name, changed);
        self.compare_raises(&a.raises, &b.raises, name, changed, "");
        if a.context != b.context {
            self.add(&rules::CONTEXT_CHANGED, name, changed, format!("`{name}` has another context clause"));
        }
    }

    fn compare_parameters(&mut self, a: &Operation, b: &Operation, name: &str, changed: ChangedDef<'m>) {
        let names = |operation: &Operation| -> Vec<String> {
            operation.params.iter().map(|param| param.name.clone()).collect()
        };
        let (before, after) = (names(a), names(b));
        if a.params.len() != b.params.len() || (before != after && sorted(&before) == sorted(&after)) {
            let message = format!("`{name}` took ({}) and takes ({})", before.join(", "), after.join(", "));
            self.add(&rules::PARAMETERS_CHANGED, name, changed, message);
            return;
        }
        for (x, y) in a.params.iter().zip(&b.params) {
            let full_name = format!("{name}::{}", x.name);
            if x.direction != y.direction {
                let (was, is) = (x.direction.keyword(), y.direction.keyword());
                let message = format!("parameter `{}` of `{name}` was `{was}` and is `{is}`", x.name);
                self.add(&rules::DIRECTION_CHANGED, &full_name, changed, message);
            }
            let description = format!("parameter `{}` of `{name}`", x.name);
            let types = ((&x.annotations, x.ty), (&y.annotations, y.ty));
            self.compare_type(types, &rules::PARAMETER_TYPE, &full_name, changed, &description);
        }
    }

    fn compare_attribute(
        &mut self,
        (old, a): (&'m Def, &'m Attribute),
        (new, b): (&'m Def, &'m Attribute),
        name: &str,
    ) {
        let changed = ChangedDef::Both(old, new);
        match (a.readonly, b.readonly) {
            (false, true) => {
                let message = format!("attribute `{name}` is readonly now");
                self.add(&rules::OPERATION_REMOVED, name, changed, message);
            }
            (true, false) => {
                let message = format!("attribute `{name}` is no longer readonly");
                self.add(&rules::OPERATION_ADDED, name, changed, message);
            }
            _ => {}
        }
        let description = format!("attribute `{name}`");
        let types = ((&old.annotations, a.ty), (&new.annotations, b.ty));
        self.compare_type(types, &rules::RESULT_CHANGED, name, changed, &description);
        self.compare_raises(&a.get_raises, &b.get_raises, name, changed, " when it is read");
        if !a.readonly && !b.readonly {
            self.compare_raises(&a.set_raises, &b.set_raises, name, changed, " when it is set");
        }
    }

    fn compare_raises(&mut self, a: &[DefId], b: &[DefId], name: &str, changed: ChangedDef<'m>, when: &str) {
        for id in a {
            if !b.iter().any(|other| self.pair.is_same(*id, *other)) {
                let exception = self.pair.old.scoped_name(*id);
                let message = format!("`{name}` no longer raises `{exception}`{when}");
                self.add(&rules::RAISES_CHANGED, name, changed, message);
            }
        }
        for id in b {
            if !a.iter().any(|other| self.pair.is_same(*other, *id)) {
                let exception = self.pair.new.scoped_name(*id);
                let message = format!("`{name}` raises `{exception}`{when} now");
                self.add(&rules::RAISES_CHANGED, name, changed, message);
            }
        }
    }

    /// Compares the old and the new type of an item, and their annotations. Messages call the item
    /// `description`. `type_rule` is the rule for a change of the type.
    pub(super) fn compare_type(
        &mut self,
        (old, new): ((&Annotations, TypeId), (&Annotations, TypeId)),
        type_rule: &'static Rule,
        name: &str,
        changed: ChangedDef<'m>,
        description: &str,
    ) {
        let (was, is) = self.pair.type_names(old.1, new.1);
        match self.pair.difference(old.1, new.1) {
            Difference::Type => {
                let message = format!("{description} was `{was}` and is `{is}`");
                return self.add(type_rule, name, changed, message);
            }
            Difference::Bound => {
                let message = format!("{description} was `{was}` and is `{is}`");
                self.add(&rules::BOUND_CHANGED, name, changed, message);
            }
            Difference::None if self.pair.range_differs(old, new) => {
                self.add(&rules::BOUND_CHANGED, name, changed, format!("{description} has another range"));
            }
            Difference::None => {}
        }
        for (annotation, rule, what) in [
            ("non_nil", &rules::NIL_CHANGED, "`@non_nil`"),
            ("stream", &rules::STREAM_CHANGED, "a `@stream`"),
            ("optional", &rules::OPTIONAL_CHANGED, "`@optional`"),
        ] {
            let has = |annotations: &Annotations| match annotation {
                "optional" => annotations.is_optional(),
                name => annotations.has(name) || annotations.get(name).is_some(),
            };
            match (has(old.0), has(new.0)) {
                (false, true) => self.add(rule, name, changed, format!("{description} is {what} now")),
                (true, false) => self.add(rule, name, changed, format!("{description} is no longer {what}")),
                _ => {}
            }
        }
    }

    pub(super) fn compare_factories(&mut self, old: &'m Def, new: &'m Def, a: &[Factory], b: &[Factory]) {
        let name = self.pair.old.scoped_name(old.id);
        let is_equal = |x: &Factory, y: &Factory| {
            let raises = |ids: &[DefId], others: &[DefId]| {
                ids.len() == others.len()
                    && ids.iter().zip(others).all(|(id, other)| self.pair.is_same(*id, *other))
            };
            let is_same_type =
                |(p, q): (&Param, &Param)| self.pair.difference(p.ty, q.ty) == Difference::None;
            x.name == y.name
                && x.params.len() == y.params.len()
                && x.params.iter().zip(&y.params).all(is_same_type)
                && raises(&x.raises, &y.raises)
        };
        if a.len() != b.len() || !a.iter().all(|x| b.iter().any(|y| is_equal(x, y))) {
            let message = format!("the factories of `{name}` differ");
            self.add(&rules::FACTORY_CHANGED, &name, ChangedDef::Both(old, new), message);
        }
    }
}

/// Returns the operations and attributes that an interface or value type declares itself.
fn own_members(model: &Model, id: DefId) -> Vec<&Def> {
    let is_member = |def: &&Def| matches!(def.kind, DefKind::Operation(_) | DefKind::Attribute(_));
    model.children(id).iter().map(|id| model.def(*id)).filter(is_member).collect()
}

fn sorted(names: &[String]) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_unstable();
    names
}

fn member_kind(kind: &DefKind) -> &'static str {
    if matches!(kind, DefKind::Attribute(_)) { "attribute" } else { "operation" }
}
