//! The definitions from which a scope inherits names, cached while a definition is resolved. With many bases,
//! an index avoids searching each base for each name.

use std::collections::HashMap;
use std::rc::Rc;

use super::scope::{Entry, FACTORY, ScopeId};
use super::symbols::Symbols;
use crate::model::{DefId, Model};
use crate::work;

#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// All direct and indirect bases of the scope's definition, in search order.
    pub(super) bases: Vec<DefId>,
    /// If there are many bases: the bases that declare a name, by its lower-case spelling.
    index: Option<HashMap<String, Vec<DefId>>>,
}

const MAX_UNINDEXED_BASES: usize = 8;

impl Lineage {
    /// Returns the bases that may declare a name, given in lower case.
    pub(super) fn bases_declaring(&self, lower: &str) -> &[DefId] {
        match &self.index {
            Some(index) => index.get(lower).map_or(&[], Vec::as_slice),
            None => &self.bases,
        }
    }
}

pub(super) fn has_bases(model: &Model, owner: DefId) -> bool {
    model.direct_bases(owner).next().is_some()
        || model.structure(owner).is_some_and(|body| body.base.is_some())
        || model.bitset(owner).is_some_and(|body| body.base.is_some())
}

impl Symbols<'_> {
    /// Returns the definitions from which the scope inside a definition inherits names.
    pub(super) fn lineage(&self, scope: ScopeId, owner: DefId) -> Rc<Lineage> {
        if let Some(lineage) = self.lineages.borrow().get(&scope) {
            return Rc::clone(lineage);
        }
        let bit_base = |id: DefId| self.model.bitset(id).and_then(|body| body.base);
        let mut bases = self.model.all_bases(owner);
        bases.extend(self.model.struct_bases(owner));
        bases.extend(std::iter::successors(bit_base(owner), |base| bit_base(*base)));
        let index = (bases.len() > MAX_UNINDEXED_BASES).then(|| self.build_index(&bases));
        let lineage = Rc::new(Lineage { bases, index });
        self.lineages.borrow_mut().insert(scope, Rc::clone(&lineage));
        lineage
    }

    fn build_index(&self, bases: &[DefId]) -> HashMap<String, Vec<DefId>> {
        let mut index: HashMap<String, Vec<DefId>> = HashMap::new();
        for base in bases {
            let Some(scope) = self.states[base.index()].scope else { continue };
            for name in self.scope(scope).declared_names() {
                work::count_step();
                let declaring = index.entry(name.clone()).or_default();
                if declaring.last() != Some(base) {
                    declaring.push(*base);
                }
            }
        }
        index
    }

    /// Returns the operation, attribute or member of this name that a base declares, and the base.
    pub(super) fn inherited_local(
        &self,
        scope: ScopeId,
        owner: DefId,
        lower: &str,
    ) -> Option<(DefId, Entry)> {
        if !has_bases(&self.model, owner) {
            return None;
        }
        self.lineage(scope, owner).bases_declaring(lower).iter().find_map(|base| {
            work::count_step();
            let entry = self.scope(self.states[base.index()].scope?).local(lower)?;
            (entry.what != FACTORY).then(|| (*base, entry.clone()))
        })
    }
}
