//! The thread that makes changes: as many as wait in one transaction.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable, Table};
use tokio::sync::oneshot;

use super::super::index::Index;
use super::super::memory::{may_bind, may_destroy, regroup};
use super::super::{Bound, Change, ChangeError, ContextId, Key, Over, Refused, StoreError, Target};
use super::Broken;
use super::tables::{BINDINGS, CONTEXTS, Counts, META, behind, open_record, record, seal};

/// The most changes of one transaction, so that the first of them does not wait for ever.
const MOST: usize = 10_000;

/// Which part of the time of a transaction is waited for more changes.
const GATHER: u32 = 4;

/// A change that somebody waits for.
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<Option<ContextId>, ChangeError>>,
}

/// What the index is told when the transaction is on the disk.
enum Effect {
    Context(ContextId),
    NoContext(ContextId),
    Bind(ContextId, Key, Target),
    Unbind(ContextId, Key),
}

/// Makes changes until nobody is left who could ask for one.
pub(super) fn run(db: &Database, index: &Index, queue: &Receiver<Job>) {
    // How many may come together: those that were made together last, and those that came meanwhile.
    let (mut expected, mut took) = (1, Duration::ZERO);
    let mut batch: Vec<Job> = Vec::new();
    loop {
        if batch.is_empty() {
            let Ok(first) = queue.recv() else { return };
            batch.push(first);
        }
        // Who was answered just now may be about to ask again. Without a moment's wait callers fall into two parts that wait for each
        // other's transactions, and each for two waits of the disk.
        let until = Instant::now() + took / GATHER;
        while batch.len() < MOST {
            let more = match queue.try_recv() {
                Err(_) if batch.len() >= expected => break,
                Err(_) => queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
                Ok(job) => Some(job),
            };
            let Some(more) = more else { break };
            batch.push(more);
        }
        let (changes, replies): (Vec<_>, Vec<_>) = batch.drain(..).map(|job| (job.change, job.reply)).unzip();
        let begin = Instant::now();
        let made = commit(db, changes);
        took = begin.elapsed();
        batch.extend(queue.try_iter().take(MOST));
        expected = replies.len() + batch.len();
        match made {
            Ok((results, effects)) => {
                effects.into_iter().for_each(|effect| tell(index, effect));
                for (reply, result) in replies.into_iter().zip(results) {
                    // Who gave up does not hear of it.
                    let _ = reply.send(result.map_err(ChangeError::Refused));
                }
            }
            Err(Broken(error)) => {
                tracing::error!(%error, changes = replies.len(), "names are not stored");
                let error = StoreError::new(error);
                for reply in replies {
                    let _ = reply.send(Err(error.clone().into()));
                }
            }
        }
    }
}

fn tell(index: &Index, effect: Effect) {
    match effect {
        Effect::Context(id) => index.add_context(id),
        Effect::NoContext(id) => index.remove_context(id),
        Effect::Bind(context, key, target) => index.bind(context, key, Bound::new(target)),
        Effect::Unbind(context, key) => index.unbind(context, &key),
    }
}

type Made = (Vec<Result<Option<ContextId>, Refused>>, Vec<Effect>);

/// Makes the changes that can be made; they are on the disk when this is done. In an error none is made.
fn commit(db: &Database, changes: Vec<Change>) -> Result<Made, Broken> {
    let txn = db.begin_write()?;
    let made = {
        let mut meta = txn.open_table(META)?;
        let counts = Counts::read(&meta)?;
        let counts = counts.ok_or_else(|| Broken("nothing says how much there is".to_owned()))?;
        let (contexts, bindings) = (txn.open_table(CONTEXTS)?, txn.open_table(BINDINGS)?);
        let mut making = Making { contexts, bindings, counts, effects: Vec::new() };
        let results = changes.into_iter().map(|change| match making.make(change) {
            Ok(id) => Ok(Ok(id)),
            Err(Stop::Refused(refused)) => Ok(Err(refused)),
            Err(Stop::Broken(error)) => Err(error),
        });
        let results = results.collect::<Result<Vec<_>, Broken>>()?;
        making.counts.write(&mut meta)?;
        (results, making.effects)
    };
    // What changes nothing need not wait for the disk.
    if made.1.is_empty() {
        txn.abort()?
    } else {
        txn.commit()?
    }
    Ok(made)
}

/// Why a change is not made; none of it is then, or nothing of the transaction.
enum Stop {
    Refused(Refused),
    Broken(Broken),
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<redb::StorageError> for Stop {
    fn from(error: redb::StorageError) -> Self {
        Self::Broken(error.into())
    }
}

struct Making<'t> {
    contexts: Table<'t, u64, u32>,
    bindings: Table<'t, (u64, &'static str), &'static [u8]>,
    counts: Counts,
    effects: Vec<Effect>,
}

impl Making<'_> {
    fn make(&mut self, change: Change) -> Result<Option<ContextId>, Stop> {
        match change {
            Change::NewContext => return Ok(Some(self.new_context()?)),
            Change::BindNewContext { context, key } => {
                may_bind(self.find(context, &key)?.as_ref(), Over::Nothing)?;
                let id = self.new_context()?;
                self.bind(context, key, Target::Context(id))?;
                return Ok(Some(id));
            }
            Change::Bind { context, key, target, over } => {
                may_bind(self.find(context, &key)?.as_ref(), over)?;
                self.bind(context, key, target)?;
            }
            Change::BindFor { .. } => return Err(Refused::NoLeases.into()),
            Change::Unbind { context, key } => {
                self.find(context, &key)?.ok_or(Refused::Free)?;
                self.bindings.remove((context.0, key.text()))?;
                self.counts.bindings -= 1;
                self.effects.push(Effect::Unbind(context, key));
            }
            Change::Destroy { context } => {
                let has_bindings = match self.contexts.get(context.0)? {
                    Some(_) => Some(self.bindings.range(behind(context, None))?.next().is_some()),
                    None => None,
                };
                may_destroy(context, has_bindings)?;
                self.contexts.remove(context.0)?;
                self.counts.contexts -= 1;
                self.effects.push(Effect::NoContext(context));
            }
            Change::Join { context, ref key, .. } | Change::Leave { context, ref key, .. } => {
                let group = regroup(self.find(context, key)?.as_ref(), &change)?;
                self.bind(context, key.clone(), Target::Group(group))?;
            }
        }
        Ok(None)
    }

    fn new_context(&mut self) -> Result<ContextId, Stop> {
        let id = ContextId(self.counts.next);
        self.counts.next += 1;
        self.counts.contexts += 1;
        self.contexts.insert(id.0, seal(id.0))?;
        self.effects.push(Effect::Context(id));
        Ok(id)
    }

    fn bind(&mut self, context: ContextId, key: Key, target: Target) -> Result<(), Stop> {
        let octets = record(context.0, key.text(), &target);
        if self.bindings.insert((context.0, key.text()), octets.as_slice())?.is_none() {
            self.counts.bindings += 1;
        }
        self.effects.push(Effect::Bind(context, key, target));
        Ok(())
    }

    /// What is bound in a context that must be there.
    fn find(&self, context: ContextId, key: &Key) -> Result<Option<Target>, Stop> {
        if self.contexts.get(context.0)?.is_none() {
            return Err(Refused::NoContext.into());
        }
        let Some(found) = self.bindings.get((context.0, key.text()))? else { return Ok(None) };
        let target = open_record(context.0, key.text(), found.value());
        let broken =
            || Broken(format!("the binding `{key}` of context {} is not what was written", context.0));
        Ok(Some(target.ok_or_else(|| Stop::Broken(broken()))?))
    }
}
