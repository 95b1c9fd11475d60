//! Structs, exceptions and enums.

use super::known::Place;
use super::scope::{Entity, ScopeId};
use super::{Progress, Resolver};
use crate::ast::{self, Head, Ident, MemberKind, Name};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Enum, Enumerator, Member, Struct, Type};
use crate::work;

impl Resolver<'_> {
    pub(super) fn structure(
        &mut self,
        head: Head,
        name: &Ident,
        base: Option<&Name>,
        members: Vec<ast::Member>,
        scope: ScopeId,
    ) -> Option<DefId> {
        // The base is looked up in the enclosing scope, before the struct's own name counts as defined.
        let base = base.and_then(|base| self.struct_base(base, scope));
        let (id, declared) = self.begin(&head, name, DefKind::Struct(Struct::default()), scope);
        if let DefKind::Struct(body) = &mut self.model.defs[id.index()].kind {
            body.base = base;
        }
        if let Some(base) = base {
            work::inherited(
                1 + self.model.struct_bases(base).len() + self.model.all_struct_members(base).len(),
            );
        }
        self.members(id, members);
        declared.then_some(id)
    }

    pub(super) fn exception(&mut self, head: Head, name: &Ident, members: Vec<ast::Member>, scope: ScopeId) {
        let (id, _) = self.begin(&head, name, DefKind::Exception(Struct::default()), scope);
        self.members(id, members);
    }

    fn struct_base(&mut self, name: &Name, scope: ScopeId) -> Option<DefId> {
        let entity = self.lookup(name, scope)?;
        if let Entity::Def(def) = entity {
            let ty = self.intern(Type::Named(def));
            if let Type::Named(def) = *self.model.stripped(ty)
                && matches!(self.model.def(def).kind, DefKind::Struct(_))
            {
                if self.states[def.index()].progress == Progress::Complete {
                    return Some(def);
                }
                let message = format!("base struct `{}` is not defined yet", name.text());
                let error = Diagnostic::error("incomplete", name.span, message);
                let error = error.and(self.model.def(def).span, "only declared here");
                self.report(error.help("the definition of a base comes before the structs derived from it"));
                return None;
            }
        }
        let error = self.wrong_kind(entity, name, "not-a-base", "a struct");
        self.report(error);
        None
    }

    fn members(&mut self, id: DefId, members: Vec<ast::Member>) {
        let Some(scope) = self.states[id.index()].scope else { return };
        for member in members {
            work::step();
            let (ty, declarators) = match member.kind {
                MemberKind::Pragma(pragma) => {
                    self.pragma(&pragma, scope);
                    continue;
                }
                MemberKind::Data { ty, declarators } => (ty, declarators),
            };
            let base = self.type_spec(ty, scope);
            for declarator in declarators {
                let ty = base.and_then(|base| self.array(base, &declarator.dims, scope));
                let declared = self.declare_local(scope, &declarator.name, Entity::Member, "member");
                let Some(ty) = ty.filter(|_| declared) else { continue };
                let mut annotations = self.annotations(&member.head, scope, Place::Member);
                self.act_on(&member.head, &mut annotations, ty, scope);
                self.check_non_nil(&annotations, Some(ty));
                let Ident { text, span } = declarator.name;
                let member = Member { name: text, ty, docs: member.head.docs.clone(), annotations, span };
                if let DefKind::Struct(body) | DefKind::Exception(body) =
                    &mut self.model.defs[id.index()].kind
                {
                    body.members.push(member);
                }
            }
        }
        self.states[id.index()].progress = Progress::Complete;
        self.set_depth(id);
    }

    /// Resolves an enum. Its enumerators are declared in the enclosing scope.
    pub(super) fn enumeration(
        &mut self,
        head: Head,
        name: &Ident,
        enumerators: Vec<ast::Enumerator>,
        scope: ScopeId,
    ) -> Option<DefId> {
        let id = self.new_def(&head, name, DefKind::Enum(Enum::default()), scope);
        let declared = self.declare(scope, name, Entity::Def(id), "enum");
        if declared {
            self.add_child(id, scope);
        }
        for (ordinal, enumerator) in (0u32..).zip(enumerators) {
            self.declare(scope, &enumerator.name, Entity::Enumerator(id, ordinal), "enumerator");
            let annotations = self.annotations(&enumerator.head, scope, Place::Enumerator);
            let Ident { text, span } = enumerator.name;
            let enumerator = Enumerator { name: text, docs: enumerator.head.docs, annotations, span };
            if let DefKind::Enum(body) = &mut self.model.defs[id.index()].kind {
                body.enumerators.push(enumerator);
            }
        }
        self.check_enum(id);
        declared.then_some(id)
    }

    /// Reports an error, unless parts of the text were left out, which could be its cause.
    pub(super) fn report_unless_incomplete(&mut self, error: Diagnostic) {
        if !self.conditions.incomplete {
            self.report(error);
        }
    }
}
