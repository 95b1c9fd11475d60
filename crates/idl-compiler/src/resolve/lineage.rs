//! The definitions from which a scope inherits names, computed once for each scope. With many bases, an index
//! avoids a query of each base for each name.

use std::collections::HashMap;
use std::rc::Rc;

use super::scope::{Entry, ScopeId};
use super::symbols::Symbols;
use super::value::FACTORY;
use crate::model::{DefId, Model};
use crate::work;

/// The scopes that names are inherited from, in search order.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// Bases of an interface or value type, or structs or bitsets that this one extends.
    pub(super) owners: Vec<DefId>,
    /// With more than [`FEW`] bases: the owners that declare a name, by its lower-case spelling.
    known: Option<HashMap<String, Vec<DefId>>>,
}

/// Maximum number of bases that are searched one after the other.
const FEW: usize = 8;

impl Lineage {
    /// Returns the owners that may declare a name.
    pub(super) fn knowing(&self, lower: &str) -> &[DefId] {
        match &self.known {
            Some(known) => known.get(lower).map_or(&[], Vec::as_slice),
            None => &self.owners,
        }
    }
}

/// Returns whether a definition inherits from others.
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
        let mut owners = self.model.all_bases(owner);
        owners.extend(self.model.struct_bases(owner));
        owners.extend(std::iter::successors(bit_base(owner), |base| bit_base(*base)));
        let known = (owners.len() > FEW).then(|| self.known_in(&owners));
        let lineage = Rc::new(Lineage { owners, known });
        self.lineages.borrow_mut().insert(scope, Rc::clone(&lineage));
        lineage
    }

    fn known_in(&self, owners: &[DefId]) -> HashMap<String, Vec<DefId>> {
        let mut known: HashMap<String, Vec<DefId>> = HashMap::new();
        for owner in owners {
            let Some(scope) = self.states[owner.index()].scope else { continue };
            for name in self.scope(scope).known() {
                work::step();
                let owners = known.entry(name.clone()).or_default();
                if owners.last() != Some(owner) {
                    owners.push(*owner);
                }
            }
        }
        known
    }

    /// Returns the inherited operation, attribute, state member or member with this lower-case name, and the
    /// base that has it.
    pub(super) fn inherited_local(
        &self,
        scope: ScopeId,
        owner: DefId,
        lower: &str,
    ) -> Option<(DefId, Entry)> {
        if !has_bases(&self.model, owner) {
            return None;
        }
        self.lineage(scope, owner).knowing(lower).iter().find_map(|base| {
            work::step();
            let entry = self.scope(self.states[base.index()].scope?).local(lower)?;
            (entry.what != FACTORY).then(|| (*base, entry.clone()))
        })
    }
}
