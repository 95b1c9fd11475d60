//! What can be said only when everything is known.

use super::{Progress, Resolver};
use crate::diagnostic::Diagnostic;
use crate::model::{DefId, Type, TypeId};

impl Resolver<'_> {
    pub(super) fn finish(&mut self) {
        self.report_undefined();
        for index in 0..self.model.defs.len() {
            let id = DefId(index as u32);
            self.check_definition(id);
            let repository_id = self.repository_id(id);
            self.model.defs[index].repository_id = repository_id;
        }
        self.mark_recursive();
    }

    /// Forward declarations must be followed by definitions.
    fn report_undefined(&mut self) {
        let mut errors = Vec::new();
        for (def, state) in self.model.defs.iter().zip(&self.states) {
            if let Progress::Forward(span) = state.progress {
                let what = def.kind.what();
                let message = format!("{what} `{}` is declared but never defined", def.name);
                let help = format!("define it in the same scope: `{what} {} {{ ... }};`", def.name);
                errors.push(Diagnostic::error("never-defined", span, message).help(help));
            }
        }
        errors.into_iter().for_each(|error| self.report_unless_incomplete(error));
    }

    /// Finds the definitions that reach themselves. Only sequences of incomplete types can close such a circle.
    fn mark_recursive(&mut self) {
        let count = self.model.defs.len();
        self.model.recursive = vec![false; count];
        if !self.recursion_possible {
            return;
        }
        for index in 0..count {
            let id = DefId(index as u32);
            if !self.model.member_types(id).is_empty() {
                self.model.recursive[index] = self.reaches_itself(id);
            }
        }
    }

    fn reaches_itself(&self, start: DefId) -> bool {
        let mut seen = vec![false; self.model.types.len()];
        let mut todo: Vec<TypeId> = self.model.parts(&Type::Named(start));
        while let Some(ty) = todo.pop() {
            if std::mem::replace(&mut seen[ty.index()], true) {
                continue;
            }
            match self.model.ty(ty) {
                Type::Named(def) if *def == start => return true,
                ty => todo.extend(self.model.parts(ty)),
            }
        }
        false
    }
}
