//! What a scope inherits names from, found once for each scope: with many bases, and many names, nothing is asked of each base for each
//! name.

use std::collections::HashMap;
use std::rc::Rc;

use super::Resolver;
use super::scope::{Entry, ScopeId};
use super::value::FACTORY;
use crate::model::DefId;
use crate::work;

/// The scopes that names are inherited from, in the order in which they are asked.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// Bases of an interface or value type, structs or bitsets that this one extends.
    pub(super) owners: Vec<DefId>,
    /// Where many are to be asked: those that know a name, by its lower-case spelling.
    known: Option<HashMap<String, Vec<DefId>>>,
}

/// So many bases are asked one after the other.
const FEW: usize = 8;

impl Lineage {
    /// The owners that may know a name.
    pub(super) fn knowing(&self, lower: &str) -> &[DefId] {
        match &self.known {
            Some(known) => known.get(lower).map_or(&[], Vec::as_slice),
            None => &self.owners,
        }
    }
}

impl Resolver<'_> {
    /// A definition inherits from others.
    pub(super) fn has_bases(&self, owner: DefId) -> bool {
        self.model.direct_bases(owner).next().is_some()
            || self.model.structure(owner).is_some_and(|body| body.base.is_some())
            || self.model.bitset(owner).is_some_and(|body| body.base.is_some())
    }

    /// What the scope inside of a definition inherits names from.
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

    /// The operation, attribute, state or member of this lower-case name that a scope inherits, and the base that has it.
    pub(super) fn inherited_local(
        &self,
        scope: ScopeId,
        owner: DefId,
        lower: &str,
    ) -> Option<(DefId, Entry)> {
        if !self.has_bases(owner) {
            return None;
        }
        self.lineage(scope, owner).knowing(lower).iter().find_map(|base| {
            work::step();
            let entry = self.scope(self.states[base.index()].scope?).local(lower)?;
            (entry.what != FACTORY).then(|| (*base, entry.clone()))
        })
    }
}
