//! [`MemoryStore`], and the rules for changes that all stores share.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLock};

use zorb::cos_naming::BindingType;

use super::{
    Change, ChangeError, ContextId, Group, Key, Lookup, MayReplace, Member, Page, PageLimit, Refusal, Store,
    StoreError, StoredBinding, Target,
};

/// A store in memory, for tests and for names that need not outlive the process.
#[derive(Debug)]
pub struct MemoryStore {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    contexts: BTreeMap<ContextId, BTreeMap<Key, Arc<StoredBinding>>>,
    next_id: u64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let contexts = BTreeMap::from([(ContextId::ROOT, BTreeMap::new())]);
        Self { state: RwLock::new(State { contexts, next_id: 1 }) }
    }
}

impl MemoryStore {
    /// Creates a store that contains only the root context, without bindings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        let state = self.state.read().map_err(StoreError::broken)?;
        Ok(match state.contexts.get(&context) {
            None => Lookup::NoContext,
            Some(bindings) => match bindings.get(key) {
                Some(bound) => Lookup::Bound(Arc::clone(bound)),
                None => Lookup::NotBound,
            },
        })
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        Ok(self.state.read().map_err(StoreError::broken)?.contexts.contains_key(&context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        let state = self.state.read().map_err(StoreError::broken)?;
        let Some(bindings) = state.contexts.get(&context) else { return Ok(None) };
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = bindings.range((start, Bound::Unbounded));
        Page::from_bindings(all.map(|(key, bound)| Ok((key.clone(), bound.target.binding_type()))), limit)
            .map(Some)
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        let mut state = self.state.write().map_err(StoreError::broken)?;
        let State { contexts, next_id } = &mut *state;
        let mut new_id = || {
            let id = ContextId(*next_id);
            *next_id += 1;
            id
        };
        match change {
            Change::NewContext => {
                let id = new_id();
                contexts.insert(id, BTreeMap::new());
                return Ok(Some(id));
            }
            Change::BindNewContext { context, key } => {
                let bindings = contexts.get_mut(&context).ok_or(Refusal::NoContext)?;
                check_bind(bindings.get(&key).map(|bound| &bound.target), MayReplace::Nothing)?;
                let id = new_id();
                bindings.insert(key, Arc::new(StoredBinding::new(Target::Context(id))));
                contexts.insert(id, BTreeMap::new());
                return Ok(Some(id));
            }
            Change::Bind { context, key, target, may_replace } => {
                let bindings = contexts.get_mut(&context).ok_or(Refusal::NoContext)?;
                check_bind(bindings.get(&key).map(|bound| &bound.target), may_replace)?;
                bindings.insert(key, Arc::new(StoredBinding::new(target)));
            }
            Change::BindFor { .. } => return Err(Refusal::TimeLimitUnsupported.into()),
            Change::Unbind { context, key } => {
                let bindings = contexts.get_mut(&context).ok_or(Refusal::NoContext)?;
                bindings.remove(&key).ok_or(Refusal::NotBound)?;
            }
            Change::Destroy { context } => {
                check_destroy(context, contexts.get(&context).map(|bindings| !bindings.is_empty()))?;
                contexts.remove(&context);
            }
            Change::Join { context, ref key, .. } | Change::Leave { context, ref key, .. } => {
                let bindings = contexts.get_mut(&context).ok_or(Refusal::NoContext)?;
                let group = changed_group(bindings.get(key).map(|bound| &bound.target), &change)?;
                bindings.insert(key.clone(), Arc::new(StoredBinding::new(Target::Group(group))));
            }
        }
        Ok(None)
    }
}

/// Checks whether a name may be bound. `found` is the target to which it is bound now.
pub(super) fn check_bind(found: Option<&Target>, may_replace: MayReplace) -> Result<(), Refusal> {
    let Some(found) = found else { return Ok(()) };
    match (may_replace, found.binding_type()) {
        (MayReplace::Nothing, _) => Err(Refusal::AlreadyBound),
        (MayReplace::Object, BindingType::Ncontext) => Err(Refusal::IsContext),
        (MayReplace::Context, BindingType::Nobject) => Err(Refusal::IsObject),
        _ => Ok(()),
    }
}

/// Checks whether a context may be destroyed. `has_bindings` is `None` if the context does not exist.
pub(super) fn check_destroy(context: ContextId, has_bindings: Option<bool>) -> Result<(), Refusal> {
    match has_bindings {
        _ if context == ContextId::ROOT => Err(Refusal::IsRoot),
        None => Err(Refusal::NoContext),
        Some(true) => Err(Refusal::NotEmpty),
        Some(false) => Ok(()),
    }
}

/// Returns the group after a member has joined or left. `found` is the target to which its name is bound.
pub(super) fn changed_group(found: Option<&Target>, change: &Change) -> Result<Group, Refusal> {
    let mut group = match found {
        None => return Err(Refusal::NotBound),
        Some(Target::Group(group)) => group.clone(),
        Some(Target::Object(_)) => return Err(Refusal::NotGroup),
        Some(Target::Context(_) | Target::RemoteContext(_)) => return Err(Refusal::IsContext),
    };
    let members = &mut group.members;
    match change {
        Change::Join { member, .. } => {
            let is_full = members.len() >= Group::MAX_MEMBERS;
            match members.iter_mut().find(|other| other.name == member.name) {
                Some(other) => *other = member.clone(),
                None if is_full => return Err(Refusal::GroupFull),
                None => members.push(member.clone()),
            }
            // All members must fit in one record of a store, and in one reply.
            if members.iter().map(Member::byte_size).sum::<usize>() > Group::MAX_BYTES {
                return Err(Refusal::GroupFull);
            }
        }
        Change::Leave { member, .. } => {
            let index = members.iter().position(|other| other.name == *member);
            members.remove(index.ok_or(Refusal::NoMember)?);
        }
        _ => {}
    }
    Ok(group)
}
