//! Structs, exceptions and enums.

use super::known::AnnotatedKind;
use super::scope::{Entity, ScopeId};
use super::symbols::{Progress, Resolver, Symbols};
use super::{annotation, repository_id, typed_annotation, types};
use crate::ast::{self, Ident, MemberKind, Name, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, DefKind, Enum, Enumerator, Member, Struct};
use crate::work;

impl Resolver<'_> {
    pub(super) fn structure(
        &mut self,
        preamble: Preamble,
        name: &Ident,
        base: Option<&Name>,
        members: Vec<ast::Member>,
        scope: ScopeId,
    ) -> Option<DefId> {
        // The base is looked up in the enclosing scope, before the struct's own name counts as defined.
        let base = base.and_then(|base| struct_base(&mut self.symbols, base, scope));
        let (id, declared) = self.begin(&preamble, name, DefKind::Struct(Struct::default()), scope);
        if let DefKind::Struct(body) = &mut self.symbols.model.defs[id.index()].kind {
            body.base = base;
        }
        if let Some(base) = base {
            work::count_inherited(
                1 + self.symbols.model.struct_bases(base).len()
                    + self.symbols.model.all_struct_members(base).len(),
            );
        }
        self.members(id, members);
        declared.then_some(id)
    }

    pub(super) fn exception(
        &mut self,
        preamble: Preamble,
        name: &Ident,
        items: Vec<ast::Member>,
        scope: ScopeId,
    ) {
        let (id, _) = self.begin(&preamble, name, DefKind::Exception(Struct::default()), scope);
        self.members(id, items);
    }

    fn members(&mut self, id: DefId, members: Vec<ast::Member>) {
        let Some(scope) = self.symbols.states[id.index()].scope else { return };
        for member in members {
            work::count_step();
            let (ty, declarators) = match member.kind {
                MemberKind::Pragma(pragma) => {
                    repository_id::pragma(&mut self.symbols, &pragma, scope);
                    continue;
                }
                MemberKind::Data { ty, declarators } => (ty, declarators),
            };
            let base = self.type_spec(ty, scope);
            for declarator in declarators {
                let ty = base.and_then(|base| types::array(&mut self.symbols, base, &declarator.dims, scope));
                let declared = self.symbols.declare_local(scope, &declarator.name, Entity::Member, "member");
                let Some(ty) = ty.filter(|_| declared) else { continue };
                let mut annotations = self.annotations(&member.preamble, scope, AnnotatedKind::Member);
                typed_annotation::evaluate(&mut self.symbols, &member.preamble, &mut annotations, ty, scope);
                annotation::check_non_nil(&mut self.symbols, &annotations, Some(ty));
                let Ident { text, span } = declarator.name;
                let member = Member { name: text, ty, docs: member.preamble.docs.clone(), annotations, span };
                if let DefKind::Struct(body) | DefKind::Exception(body) =
                    &mut self.symbols.model.defs[id.index()].kind
                {
                    body.members.push(member);
                }
            }
        }
        self.symbols.states[id.index()].progress = Progress::Complete;
        self.symbols.set_depth(id);
    }

    /// Resolves an enum. Its enumerators are declared in the enclosing scope.
    pub(super) fn enumeration(
        &mut self,
        preamble: Preamble,
        name: &Ident,
        enumerators: Vec<ast::Enumerator>,
        scope: ScopeId,
    ) -> Option<DefId> {
        let id = self.new_def(&preamble, name, DefKind::Enum(Enum::default()), scope);
        let declared = self.symbols.declare_def(id, scope, name, "enum");
        for (ordinal, enumerator) in (0u32..).zip(enumerators) {
            self.symbols.declare(scope, &enumerator.name, Entity::Enumerator(id, ordinal), "enumerator");
            let annotations = self.annotations(&enumerator.preamble, scope, AnnotatedKind::Enumerator);
            let Ident { text, span } = enumerator.name;
            let enumerator = Enumerator { name: text, docs: enumerator.preamble.docs, annotations, span };
            if let DefKind::Enum(body) = &mut self.symbols.model.defs[id.index()].kind {
                body.enumerators.push(enumerator);
            }
        }
        annotation::check_enum(&mut self.symbols, id);
        declared.then_some(id)
    }
}

fn struct_base(symbols: &mut Symbols<'_>, name: &Name, scope: ScopeId) -> Option<DefId> {
    let entity = symbols.lookup(name, scope)?;
    let base = symbols.stripped_def(entity);
    let Some(base) = base.filter(|def| matches!(symbols.model.def(*def).kind, DefKind::Struct(_))) else {
        return symbols.reject_wrong_kind(entity, name, "not-a-base", "a struct");
    };
    if symbols.states[base.index()].progress == Progress::Complete {
        return Some(base);
    }
    let message = format!("base struct `{}` is not defined yet", name.text());
    let error = Diagnostic::error("incomplete", name.span, message);
    let error = error.and(symbols.model.def(base).span, "only declared here");
    symbols.reject(error.help("define the base before the structs that derive from it"))
}
