//! Iterators over the bindings of a context that did not fit the reply to `list`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use zorb::cos_naming::naming_context::BindError;
use zorb::cos_naming::{Binding, BindingIteratorServant, BindingType};
use zorb::poa::ObjectId;
use zorb::{SystemException, SystemExceptionKind};

use super::fault::{Fault, system};
use super::service::{Service, wire_binding};
use crate::store::{ContextId, Key, Store};

/// An iterator only stores the last key that it returned. Later bindings are read on demand.
pub(crate) struct Iterators {
    max_count: usize,
    timeout: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    by_id: BTreeMap<u64, Cursor>,
}

struct Cursor {
    context: ContextId,
    /// Locked while a page is read, so that two callers do not get the same page.
    after: Arc<tokio::sync::Mutex<Option<Key>>>,
    last_used: Instant,
}

/// The context that an iterator lists, and the last key that it returned.
type Position = (ContextId, Arc<tokio::sync::Mutex<Option<Key>>>);

impl Iterators {
    pub(crate) fn new(max_count: usize, timeout: Duration) -> Self {
        Self { max_count: max_count.max(1), timeout, table: Mutex::default() }
    }

    /// Creates an iterator that starts after a key. If there are too many, drops the least recently used one.
    pub(super) fn create(&self, context: ContextId, after: Option<Key>) -> ObjectId {
        let now = Instant::now();
        let mut table = self.lock_table(now);
        while table.by_id.len() >= self.max_count {
            let oldest = table.by_id.iter().min_by_key(|(_, cursor)| cursor.last_used).map(|(id, _)| *id);
            oldest.and_then(|id| table.by_id.remove(&id));
        }
        let id = table.next_id;
        table.next_id += 1;
        let after = Arc::new(tokio::sync::Mutex::new(after));
        table.by_id.insert(id, Cursor { context, after, last_used: now });
        ObjectId::from(id.to_be_bytes().as_slice())
    }

    /// Returns the position of an iterator, which counts as used now.
    fn find(&self, id: &[u8]) -> Option<Position> {
        let now = Instant::now();
        let mut table = self.lock_table(now);
        let cursor = table.by_id.get_mut(&iterator_id(id)?)?;
        cursor.last_used = now;
        Some((cursor.context, Arc::clone(&cursor.after)))
    }

    fn remove(&self, id: &[u8]) -> bool {
        let mut table = self.lock_table(Instant::now());
        iterator_id(id).is_some_and(|id| table.by_id.remove(&id).is_some())
    }

    /// Locks the table and drops expired iterators.
    fn lock_table(&self, now: Instant) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_id.retain(|_, cursor| now.duration_since(cursor.last_used) < self.timeout);
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
        let service = self.service.upgrade().ok_or_else(iterator_gone)?;
        let (context, after) =
            service.iterators.find(zorb::request().object_id()).ok_or_else(iterator_gone)?;
        let mut after = after.lock().await;
        let page = service.store.page(context, after.as_ref(), service.limit(how_many)).await;
        // A destroyed context has no bindings.
        let page = page.map_err(|error| BindError::from(Fault::from(error)))?.unwrap_or_default().bindings;
        if let Some((last, _)) = page.last() {
            *after = Some(last.clone());
        }
        Ok(page.iter().map(wire_binding).collect())
    }
}

#[cold]
fn iterator_gone() -> SystemException {
    let text =
        "the iterator does not exist: it was destroyed, timed out, or was replaced by a newer iterator";
    system(SystemExceptionKind::ObjectNotExist, text)
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
            return Err(system(SystemExceptionKind::BadParam, text));
        }
        let page = self.next(how_many).await?;
        Ok((!page.is_empty(), page))
    }

    async fn destroy(&self) -> Result<(), SystemException> {
        let service = self.service.upgrade().ok_or_else(iterator_gone)?;
        match service.iterators.remove(zorb::request().object_id()) {
            true => Ok(()),
            false => Err(iterator_gone()),
        }
    }
}
