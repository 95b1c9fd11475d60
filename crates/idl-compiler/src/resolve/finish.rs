//! What can be said only when everything is known.

use super::{Progress, Resolver};
use crate::diagnostic::{Diagnostic, Severity};
use crate::model::{DefId, DefKind, Type, TypeId};

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

    /// Forward declarations must be followed by definitions. An interface may do without unless names are strict: a file
    /// of the OMG's own that is compiled alone often declares what another defines, and references need no more.
    fn report_undefined(&mut self) {
        let (mut found, mut only_declared) = (Vec::new(), Vec::new());
        for (def, state) in self.model.defs.iter().zip(&self.states) {
            if let Progress::Forward(span) = state.progress {
                let what = def.kind.what();
                let message = format!("{what} `{}` is declared but never defined", def.name);
                let help = format!("define it in the same scope: `{what} {} {{ ... }};`", def.name);
                let mut diagnostic = Diagnostic::error("never-defined", span, message);
                if matches!(def.kind, DefKind::Interface(_)) && !self.conditions.strict_names {
                    diagnostic.severity = Severity::Warning;
                    diagnostic = diagnostic.note("references to it have no operations");
                    only_declared.push(def.id);
                }
                found.push(diagnostic.help(help));
            }
        }
        found.into_iter().for_each(|diagnostic| self.report_unless_incomplete(diagnostic));
        for id in only_declared {
            self.states[id.index()].progress = Progress::Complete;
            if let DefKind::Interface(interface) = &mut self.model.defs[id.index()].kind {
                interface.only_declared = true;
            }
            self.insert_child(id);
        }
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
