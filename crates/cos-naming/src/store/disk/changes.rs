//! Changes, and their effects on the tables of the database.

use std::io;

use redb::{Database, ReadableTable, Table, WriteTransaction};

use super::super::memory::{may_bind, may_destroy, regroup};
use super::super::{Change, ContextId, Key, Over, Refused, Target};
use super::Broken;
use super::journal::{Batch, Effect, Journal};
use super::tables::{BINDINGS, CONTEXTS, Counts, META, Version, behind, open_record, record, seal};
use super::writer::Made;

/// The stage at which a batch failed.
pub(super) enum Stage {
    /// The database rejected the changes.
    Prepare,
    /// The journal rejected the changes. If it is lost, its contents are unknown.
    Journal { is_lost: bool },
    /// The database failed during the commit. The changes may be made, and the store may have that version.
    Commit(Made, Version),
}

/// Makes the changes that can be made. They are on disk when this returns. If there are none to make and
/// `probes` is set, something is written in any case.
pub(super) fn commit(
    db: &Database,
    journal: &mut Journal,
    version: Version,
    changes: Vec<Change>,
    probes: bool,
) -> Result<(Made, Version), (Stage, String)> {
    let prepared = prepare(db, version, changes, probes);
    let (txn, made, batch) = prepared.map_err(|Broken(what)| (Stage::Prepare, what))?;
    // A batch that changes nothing need not wait for the disk.
    let Some(batch) = batch else {
        return match txn.abort() {
            Ok(()) => Ok((made, version)),
            Err(error) => Err((Stage::Prepare, error.to_string())),
        };
    };
    // The journal is written first: a change that is in the database is in both files.
    if let Err((error, is_lost)) = journal.append(&batch) {
        let _ = txn.abort();
        return Err((Stage::Journal { is_lost }, said(&error)));
    }
    match txn.commit() {
        Ok(()) => Ok((made, batch.version)),
        Err(error) => Err((Stage::Commit(made, batch.version), error.to_string())),
    }
}

fn said(error: &io::Error) -> String {
    format!("the journal: {error}")
}

type Prepared = (WriteTransaction, Made, Option<Batch>);

fn prepare(db: &Database, version: Version, changes: Vec<Change>, probes: bool) -> Result<Prepared, Broken> {
    let txn = db.begin_write()?;
    let (made, batch) = {
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
        let batch = (probes || !making.effects.is_empty())
            .then(|| Batch::new(version, &making.counts, &making.effects));
        if let Some(batch) = &batch {
            making.counts.write(&mut meta)?;
            batch.version.write(&mut meta)?;
        }
        ((results, making.effects), batch)
    };
    Ok((txn, made, batch))
}

/// Makes the changes of a batch that is in the journal but not in the database.
pub(super) fn replay(
    db: &Database,
    effects: &[Effect],
    counts: &Counts,
    version: Version,
) -> Result<(), Broken> {
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        let (mut contexts, mut bindings) = (txn.open_table(CONTEXTS)?, txn.open_table(BINDINGS)?);
        for effect in effects {
            match effect {
                Effect::Context(ContextId(id)) => drop(contexts.insert(*id, seal(*id))?),
                Effect::NoContext(ContextId(id)) => drop(contexts.remove(*id)?),
                Effect::Bind(ContextId(id), key, target) => {
                    drop(bindings.insert((*id, key.text()), record(*id, key.text(), target).as_slice())?);
                }
                Effect::Unbind(ContextId(id), key) => drop(bindings.remove((*id, key.text()))?),
            }
        }
        counts.write(&mut meta)?;
        version.write(&mut meta)?;
    }
    txn.commit()?;
    Ok(())
}

/// The reason why a change is not made. Then no part of it is made, or nothing of the transaction.
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

    /// Returns the binding of a key in a context, which must exist.
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
