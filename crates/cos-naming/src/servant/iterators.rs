//! Iterators over the bindings of a context that did not fit in the reply to `list`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use zorb::cos_naming::naming_context::BindError;
use zorb::cos_naming::{Binding, BindingIteratorServant, BindingType};
use zorb::poa::ObjectId;
use zorb::{SystemException, SystemExceptionKind};

use super::fault::{Fault, system_exception};
use super::service::{Service, wire_binding};
use crate::store::{ContextId, Key, Store};

/// The iterators of a service. Each stores only its position; the bindings after it are read on demand.
pub(crate) struct Iterators {
    max_count: usize,
    /// The time after which an iterator that is not used is dropped.
    timeout: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    by_id: BTreeMap<u64, IteratorState>,
}

struct IteratorState {
    position: Position,
    last_used: Instant,
}

#[derive(Clone)]
struct Position {
    /// The context whose bindings are listed.
    context: ContextId,
    /// The last key that was returned. Locked while a page is read, so that callers get different pages.
    last_key: Arc<tokio::sync::Mutex<Option<Key>>>,
}

impl Iterators {
    pub(crate) fn new(max_count: usize, timeout: Duration) -> Self {
        Self { max_count: max_count.max(1), timeout, table: Mutex::default() }
    }

    /// Creates an iterator that starts after `last_key`. May drop the least recently used iterator.
    pub(super) fn create(&self, context: ContextId, last_key: Option<Key>) -> ObjectId {
        let now = Instant::now();
        let mut table = self.lock_table(now);
        while table.by_id.len() >= self.max_count {
            let oldest = table.by_id.iter().min_by_key(|(_, iterator)| iterator.last_used).map(|(id, _)| *id);
            oldest.and_then(|id| table.by_id.remove(&id));
        }
        let id = table.next_id;
        table.next_id += 1;
        let position = Position { context, last_key: Arc::new(tokio::sync::Mutex::new(last_key)) };
        table.by_id.insert(id, IteratorState { position, last_used: now });
        ObjectId::from(id.to_be_bytes().as_slice())
    }

    /// Returns the position of an iterator, and records that the iterator is used now.
    fn find(&self, id: &[u8]) -> Option<Position> {
        let now = Instant::now();
        let mut table = self.lock_table(now);
        let iterator = table.by_id.get_mut(&iterator_id(id)?)?;
        iterator.last_used = now;
        Some(iterator.position.clone())
    }

    fn remove(&self, id: &[u8]) -> bool {
        let mut table = self.lock_table(Instant::now());
        iterator_id(id).is_some_and(|id| table.by_id.remove(&id).is_some())
    }

    /// Locks the table and drops expired iterators.
    fn lock_table(&self, now: Instant) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_id.retain(|_, iterator| now.duration_since(iterator.last_used) < self.timeout);
        table
    }

    pub(crate) fn count(&self) -> usize {
        self.lock_table(Instant::now()).by_id.len()
    }
}

fn iterator_id(id: &[u8]) -> Option<u64> {
    id.try_into().ok().map(u64::from_be_bytes)
}

pub(crate) struct IteratorServant<S> {
    service: Weak<Service<S>>,
}

impl<S: Store> IteratorServant<S> {
    pub(crate) fn new(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service) }
    }

    async fn next(&self, how_many: u32) -> Result<Vec<Binding>, SystemException> {
        let service = self.service.upgrade().ok_or_else(no_iterator)?;
        let Position { context, last_key } =
            service.iterators.find(zorb::request().object_id()).ok_or_else(no_iterator)?;
        let mut last_key = last_key.lock().await;
        let page = service.store.page(context, last_key.as_ref(), service.page_limit(how_many)).await;
        // A destroyed context has no bindings.
        let page = page.map_err(|error| BindError::from(Fault::from(error)))?.unwrap_or_default().bindings;
        if let Some((key, _)) = page.last() {
            *last_key = Some(key.clone());
        }
        Ok(page.iter().map(wire_binding).collect())
    }
}

#[cold]
fn no_iterator() -> SystemException {
    let text = "the iterator does not exist: it was destroyed, timed out, or was replaced by a newer \
        iterator, or the naming service has restarted";
    system_exception(SystemExceptionKind::ObjectNotExist, text)
}

impl<S: Store> BindingIteratorServant for IteratorServant<S> {
    async fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let nothing = || Binding { binding_name: Vec::new(), binding_type: BindingType::Nobject };
        let next = self.next(1).await?.pop();
        Ok((next.is_some(), next.unwrap_or_else(nothing)))
    }

    async fn next_n(&self, how_many: u32) -> Result<(bool, Vec<Binding>), SystemException> {
        if how_many == 0 {
            let text = "the requested number of bindings must not be 0";
            return Err(system_exception(SystemExceptionKind::BadParam, text));
        }
        let page = self.next(how_many).await?;
        Ok((!page.is_empty(), page))
    }

    async fn destroy(&self) -> Result<(), SystemException> {
        let service = self.service.upgrade().ok_or_else(no_iterator)?;
        match service.iterators.remove(zorb::request().object_id()) {
            true => Ok(()),
            false => Err(no_iterator()),
        }
    }
}
