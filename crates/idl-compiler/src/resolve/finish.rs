//! Checks that are only possible after all definitions are resolved.

use super::symbols::{Progress, Resolver, Symbols};
use super::{annotation, flavour, import, port, repository_id};
use crate::diagnostic::{Diagnostic, Severity};
use crate::model::{Construct, DefId, DefKind, Model, Type, TypeId};

impl Resolver<'_> {
    pub(super) fn finish(&mut self) {
        report_undefined(&mut self.symbols, 0);
        port::report_undefined_port_types(&mut self.symbols);
        flavour::check_restricted_uses(&mut self.symbols);
        for index in 0..self.symbols.model.defs.len() {
            let id = DefId(index as u32);
            self.symbols.current_def = Some(id);
            annotation::check_definition(&mut self.symbols, id);
            let repository_id = repository_id::repository_id(&self.symbols, id);
            repository_id::check_id_length(&mut self.symbols, id, &repository_id);
            self.symbols.model.defs[index].repository_id = repository_id;
        }
        self.symbols.current_def = None;
        import::check_imported_texts(&mut self.symbols);
        repository_id::report_early_prefixes(&mut self.symbols);
        self.mark_recursive();
    }

    /// Finds the definitions that contain themselves, for example through a value type or a sequence.
    fn mark_recursive(&mut self) {
        self.symbols.model.recursive = vec![false; self.symbols.model.defs.len()];
        if !self.recursion_possible {
            return;
        }
        let mut finder = CycleFinder::new(&self.symbols.model);
        for index in 0..self.symbols.model.types.len() {
            finder.visit(TypeId(index as u32));
        }
        for ty in finder.cyclic {
            if let Type::Named(def) = *self.symbols.model.ty(ty) {
                self.symbols.model.recursive[def.index()] = true;
            }
        }
    }
}

/// Reports forward declarations without a definition, starting at the definition with index `first`. For
/// interfaces, this is an error only with strict names, because files of the OMG often declare interfaces
/// that other files define, and references to them need no definition.
pub(super) fn report_undefined(symbols: &mut Symbols<'_>, first: usize) {
    let (mut found, mut only_declared) = (Vec::new(), Vec::new());
    for (def, state) in symbols.model.defs.iter().zip(&symbols.states).skip(first) {
        if let Progress::Forward(span) = state.progress {
            let what = def.kind.description();
            let message = format!("{what} `{}` is declared but never defined", def.name);
            let word = match &def.kind {
                // Its event type is undefined as well, and is reported instead.
                DefKind::Interface(body) if body.construct == Construct::EventConsumer => continue,
                DefKind::Interface(_) => def.kind.description(),
                kind => kind.keyword(),
            };
            let help = format!("define it in the same scope: `{word} {} {{ ... }};`", def.name);
            let mut diagnostic = Diagnostic::error("never-defined", span, message);
            if matches!(def.kind, DefKind::Interface(_)) && !symbols.conditions.strict_names {
                diagnostic.severity = Severity::Warning;
                diagnostic = diagnostic.note("references to it have no operations");
                only_declared.push(def.id);
            }
            found.push((def.id, diagnostic.help(help)));
        }
    }
    let outer_def = symbols.current_def;
    for (id, diagnostic) in found {
        symbols.current_def = Some(id);
        symbols.report_unless_incomplete(diagnostic);
    }
    symbols.current_def = outer_def;
    for id in only_declared {
        symbols.states[id.index()].progress = Progress::Complete;
        if let DefKind::Interface(interface) = &mut symbols.model.defs[id.index()].kind {
            interface.only_declared = true;
        }
        symbols.insert_child(id);
    }
}

/// Finds types that contain themselves: Tarjan's algorithm, in one pass, without recursion.
struct CycleFinder<'m> {
    model: &'m Model,
    /// Visit number of each type, from 1; 0 if not yet visited.
    visit_numbers: Vec<u32>,
    /// The lowest reachable visit number on the stack; `u32::MAX` in a complete strongly connected component.
    low_links: Vec<u32>,
    visit_count: u32,
    /// Types whose strongly connected component is not complete.
    stack: Vec<TypeId>,
    cyclic: Vec<TypeId>,
}

impl<'m> CycleFinder<'m> {
    fn new(model: &'m Model) -> Self {
        let none = vec![0; model.types.len()];
        let (stack, cyclic) = (Vec::new(), Vec::new());
        CycleFinder { model, visit_numbers: none.clone(), low_links: none, visit_count: 0, stack, cyclic }
    }

    fn visit(&mut self, start: TypeId) {
        if self.visit_numbers[start.index()] != 0 {
            return;
        }
        // The types from the start to the current one, each with its parts and the index of the next part.
        let mut path = vec![self.enter(start)];
        while let Some((ty, parts, done)) = path.last_mut() {
            let ty = *ty;
            if let Some(part) = parts.get(*done).copied() {
                *done += 1;
                if self.visit_numbers[part.index()] == 0 {
                    path.push(self.enter(part));
                } else if self.low_links[part.index()] != u32::MAX {
                    self.low_links[ty.index()] =
                        self.low_links[ty.index()].min(self.visit_numbers[part.index()]);
                }
                continue;
            }
            let contains_itself = parts.contains(&ty);
            path.pop();
            let low = self.low_links[ty.index()];
            if let Some((before, ..)) = path.last() {
                self.low_links[before.index()] = self.low_links[before.index()].min(low);
            }
            if low == self.visit_numbers[ty.index()] {
                let at = self.stack.iter().rposition(|other| *other == ty).unwrap_or(0);
                let component = self.stack.split_off(at);
                component.iter().for_each(|ty| self.low_links[ty.index()] = u32::MAX);
                if component.len() > 1 || contains_itself {
                    self.cyclic.extend(component);
                }
            }
        }
    }

    fn enter(&mut self, ty: TypeId) -> (TypeId, Vec<TypeId>, usize) {
        self.visit_count += 1;
        self.visit_numbers[ty.index()] = self.visit_count;
        self.low_links[ty.index()] = self.visit_count;
        self.stack.push(ty);
        (ty, self.model.parts(self.model.ty(ty)), 0)
    }
}
