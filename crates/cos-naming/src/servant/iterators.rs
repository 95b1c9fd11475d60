//! Iterators: the part of a `list` result that was not returned at once, read from the store page by page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use zorb::cos_naming::naming_context::BindError;
use zorb::cos_naming::{Binding, BindingIteratorServant, BindingType};
use zorb::poa::ObjectId;
use zorb::{SystemException, SystemExceptionKind};

use super::fault::{Fault, system};
use super::service::{Service, binding};
use crate::store::{ContextId, Key, Store};

/// All iterators of a service. An iterator holds its current key, and none of its remaining results.
pub(crate) struct Iterators {
    most: usize,
    timeout: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    by_id: BTreeMap<u64, Cursor>,
}

struct Cursor {
    context: ContextId,
    /// Locked while a page is read, so that two callers do not get the same page.
    after: Arc<tokio::sync::Mutex<Option<Key>>>,
    used: Instant,
}

type Place = (ContextId, Arc<tokio::sync::Mutex<Option<Key>>>);

impl Iterators {
    pub(crate) fn new(most: usize, timeout: Duration) -> Self {
        Self { most: most.max(1), timeout, table: Mutex::default() }
    }

    /// Creates an iterator that starts after a key. If there are too many iterators, the least recently used
    /// one is dropped.
    pub(super) fn begin(&self, context: ContextId, after: Option<Key>) -> ObjectId {
        let now = Instant::now();
        let mut table = self.table(now);
        while table.by_id.len() >= self.most {
            let oldest = table.by_id.iter().min_by_key(|(_, cursor)| cursor.used).map(|(id, _)| *id);
            oldest.and_then(|id| table.by_id.remove(&id));
        }
        let id = table.next;
        table.next += 1;
        let after = Arc::new(tokio::sync::Mutex::new(after));
        table.by_id.insert(id, Cursor { context, after, used: now });
        ObjectId::from(id.to_be_bytes().as_slice())
    }

    fn find(&self, id: &[u8]) -> Option<Place> {
        let now = Instant::now();
        let mut table = self.table(now);
        let cursor = table.by_id.get_mut(&number(id)?)?;
        cursor.used = now;
        Some((cursor.context, Arc::clone(&cursor.after)))
    }

    fn end(&self, id: &[u8]) -> bool {
        let mut table = self.table(Instant::now());
        number(id).is_some_and(|id| table.by_id.remove(&id).is_some())
    }

    /// Locks the table and drops expired iterators.
    fn table(&self, now: Instant) -> MutexGuard<'_, Table> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_id.retain(|_, cursor| now.duration_since(cursor.used) < self.timeout);
        table
    }

    /// Returns the number of iterators.
    pub(crate) fn count(&self) -> usize {
        self.table(Instant::now()).by_id.len()
    }
}

fn number(id: &[u8]) -> Option<u64> {
    id.try_into().ok().map(u64::from_be_bytes)
}

/// The servant of all iterators.
pub(crate) struct Iterating<S> {
    service: Weak<Service<S>>,
}

impl<S: Store> Iterating<S> {
    pub(crate) fn new(service: &Weak<Service<S>>) -> Self {
        Self { service: Weak::clone(service) }
    }

    async fn next(&self, how_many: u32) -> Result<Vec<Binding>, SystemException> {
        let service = self.service.upgrade().ok_or_else(gone)?;
        let (context, after) = service.iterators.find(zorb::request().object_id()).ok_or_else(gone)?;
        let mut after = after.lock().await;
        let page = service.store.page(context, after.as_ref(), service.limit(how_many)).await;
        // Nothing is left of a context that was destroyed.
        let page = page.map_err(|error| BindError::from(Fault::from(error)))?.unwrap_or_default().bindings;
        if let Some((last, _)) = page.last() {
            *after = Some(last.clone());
        }
        Ok(page.iter().map(binding).collect())
    }
}

#[cold]
fn gone() -> SystemException {
    let text =
        "the iterator was destroyed, or dropped because it was not used for long or there were too many";
    system(SystemExceptionKind::ObjectNotExist, text)
}

impl<S: Store> BindingIteratorServant for Iterating<S> {
    async fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let nothing = || Binding { binding_name: Vec::new(), binding_type: BindingType::Nobject };
        let next = self.next(1).await?.pop();
        Ok((next.is_some(), next.unwrap_or_else(nothing)))
    }

    async fn next_n(&self, how_many: u32) -> Result<(bool, Vec<Binding>), SystemException> {
        if how_many == 0 {
            return Err(system(SystemExceptionKind::BadParam, "how many bindings are wanted is 0"));
        }
        let page = self.next(how_many).await?;
        Ok((!page.is_empty(), page))
    }

    async fn destroy(&self) -> Result<(), SystemException> {
        let service = self.service.upgrade().ok_or_else(gone)?;
        match service.iterators.end(zorb::request().object_id()) {
            true => Ok(()),
            false => Err(gone()),
        }
    }
}
