//! A store that ends with its process.

use std::collections::BTreeMap;
use std::ops::Bound as Edge;
use std::sync::{Arc, RwLock};

use zorb::cos_naming::BindingType;

use super::{
    Bound, Change, ChangeError, ContextId, Group, Key, Lookup, Member, Over, Page, PageLimit, Refused, Store,
    StoreError, Target,
};

/// A store of contexts and bindings in memory: for tests, and for names that need not outlive their service.
#[derive(Debug)]
pub struct MemoryStore {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    contexts: BTreeMap<ContextId, BTreeMap<Key, Arc<Bound>>>,
    next: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let contexts = BTreeMap::from([(ContextId::ROOT, BTreeMap::new())]);
        Self { state: RwLock::new(State { contexts, next: 1 }) }
    }
}

impl MemoryStore {
    /// Creates a store with only the root context, without bindings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        let state = self.state.read().map_err(StoreError::new)?;
        Ok(match state.contexts.get(&context) {
            None => Lookup::NoContext,
            Some(bindings) => match bindings.get(key) {
                Some(bound) => Lookup::Bound(Arc::clone(bound)),
                None => Lookup::Free,
            },
        })
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        Ok(self.state.read().map_err(StoreError::new)?.contexts.contains_key(&context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        let state = self.state.read().map_err(StoreError::new)?;
        let Some(bindings) = state.contexts.get(&context) else { return Ok(None) };
        let begin = after.map_or(Edge::Unbounded, Edge::Excluded);
        let all = bindings.range((begin, Edge::Unbounded));
        Page::of(all.map(|(key, bound)| Ok((key.clone(), bound.target.binding_type()))), limit).map(Some)
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        let mut state = self.state.write().map_err(StoreError::new)?;
        let State { contexts, next } = &mut *state;
        let mut fresh = || {
            let id = ContextId(*next);
            *next += 1;
            id
        };
        match change {
            Change::NewContext => {
                let id = fresh();
                contexts.insert(id, BTreeMap::new());
                return Ok(Some(id));
            }
            Change::BindNewContext { context, key } => {
                let bindings = contexts.get_mut(&context).ok_or(Refused::NoContext)?;
                may_bind(bindings.get(&key).map(|bound| &bound.target), Over::Nothing)?;
                let id = fresh();
                bindings.insert(key, Arc::new(Bound::new(Target::Context(id))));
                contexts.insert(id, BTreeMap::new());
                return Ok(Some(id));
            }
            Change::Bind { context, key, target, over } => {
                let bindings = contexts.get_mut(&context).ok_or(Refused::NoContext)?;
                may_bind(bindings.get(&key).map(|bound| &bound.target), over)?;
                bindings.insert(key, Arc::new(Bound::new(target)));
            }
            Change::BindFor { .. } => return Err(Refused::NoLeases.into()),
            Change::Unbind { context, key } => {
                let bindings = contexts.get_mut(&context).ok_or(Refused::NoContext)?;
                bindings.remove(&key).ok_or(Refused::Free)?;
            }
            Change::Destroy { context } => {
                may_destroy(context, contexts.get(&context).map(|bindings| !bindings.is_empty()))?;
                contexts.remove(&context);
            }
            Change::Join { context, ref key, .. } | Change::Leave { context, ref key, .. } => {
                let bindings = contexts.get_mut(&context).ok_or(Refused::NoContext)?;
                let group = regroup(bindings.get(key).map(|bound| &bound.target), &change)?;
                bindings.insert(key.clone(), Arc::new(Bound::new(Target::Group(group))));
            }
        }
        Ok(None)
    }
}

/// Checks whether a binding may replace `found`.
pub(super) fn may_bind(found: Option<&Target>, over: Over) -> Result<(), Refused> {
    let Some(found) = found else { return Ok(()) };
    match (over, found.binding_type()) {
        (Over::Nothing, _) => Err(Refused::AlreadyBound),
        (Over::Object, BindingType::Ncontext) => Err(Refused::IsContext),
        (Over::Context, BindingType::Nobject) => Err(Refused::IsObject),
        _ => Ok(()),
    }
}

/// Checks whether a context may be destroyed. `has_bindings` is `None` if it does not exist.
pub(super) fn may_destroy(context: ContextId, has_bindings: Option<bool>) -> Result<(), Refused> {
    match has_bindings {
        _ if context == ContextId::ROOT => Err(Refused::Root),
        None => Err(Refused::NoContext),
        Some(true) => Err(Refused::NotEmpty),
        Some(false) => Ok(()),
    }
}

/// Returns the group after a change.
pub(super) fn regroup(found: Option<&Target>, change: &Change) -> Result<Group, Refused> {
    let mut group = match found {
        None => return Err(Refused::Free),
        Some(Target::Group(group)) => group.clone(),
        Some(Target::Object(_)) => return Err(Refused::NoGroup),
        Some(Target::Context(_) | Target::Foreign(_)) => return Err(Refused::IsContext),
    };
    let members = &mut group.members;
    match change {
        Change::Join { member, .. } => {
            let full = members.len() >= Group::MAX_MEMBERS;
            match members.iter_mut().find(|other| other.name == member.name) {
                Some(other) => *other = member.clone(),
                None if full => return Err(Refused::Full),
                None => members.push(member.clone()),
            }
            // All members are in one record, and in one answer.
            if members.iter().map(Member::size).sum::<usize>() > Group::MAX_BYTES {
                return Err(Refused::Full);
            }
        }
        Change::Leave { member, .. } => {
            let place = members.iter().position(|other| other.name == *member);
            members.remove(place.ok_or(Refused::NoMember)?);
        }
        _ => {}
    }
    Ok(group)
}
