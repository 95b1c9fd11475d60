//! Makes the changes of a batch in the journal and in the database.

use std::io;

use redb::{Database, ReadableTable, Table, WriteTransaction};

use super::super::memory::{changed_group, check_bind, check_destroy};
use super::super::{Change, ContextId, Key, MayReplace, Refusal, Target};
use super::Failure;
use super::journal::{AppendError, Batch, Effect, Journal};
use super::tables::{
    BINDINGS, CONTEXTS, Counts, META, Version, bindings_after, context_checksum, decode_record, encode_record,
};
use super::writer::BatchResults;

pub(super) enum FailedStage {
    Prepare,
    /// The journal could not be written. If `is_unusable` is true, its contents are not known.
    Journal {
        is_unusable: bool,
    },
    /// The database failed during the commit. If the file has this version, it contains the changes.
    Commit(BatchResults, Version),
}

/// Makes the changes that the contents of the store allow, and waits until they are on disk. If none is
/// allowed, nothing is written, unless `always_writes` is true.
pub(super) fn commit(
    db: &Database,
    journal: &mut Journal,
    version: Version,
    changes: Vec<Change>,
    always_writes: bool,
) -> Result<(BatchResults, Version), (FailedStage, String)> {
    let prepared = prepare(db, version, changes, always_writes);
    let PreparedBatch { txn, results, batch } =
        prepared.map_err(|Failure(reason)| (FailedStage::Prepare, reason))?;
    let Some(batch) = batch else {
        return match txn.abort() {
            Ok(()) => Ok((results, version)),
            Err(error) => Err((FailedStage::Prepare, error.to_string())),
        };
    };
    // The journal is written first, so that every change in the database is also in the journal.
    if let Err(AppendError { error, is_unusable }) = journal.append(&batch) {
        let _ = txn.abort();
        return Err((FailedStage::Journal { is_unusable }, journal_error(&error)));
    }
    match txn.commit() {
        Ok(()) => Ok((results, batch.version)),
        Err(error) => Err((FailedStage::Commit(results, batch.version), error.to_string())),
    }
}

fn journal_error(error: &io::Error) -> String {
    format!("cannot write the journal: {error}")
}

/// A transaction that is not committed yet.
struct PreparedBatch {
    txn: WriteTransaction,
    results: BatchResults,
    /// The batch to write to the journal, or `None` if nothing is to be written.
    batch: Option<Batch>,
}

/// Makes changes in a transaction, without committing it, and encodes them for the journal.
fn prepare(
    db: &Database,
    version: Version,
    changes: Vec<Change>,
    always_writes: bool,
) -> Result<PreparedBatch, Failure> {
    let txn = db.begin_write()?;
    let (results, batch) = {
        let mut meta = txn.open_table(META)?;
        let counts = Counts::read(&meta)?;
        let counts =
            counts.ok_or_else(|| Failure("the numbers of contexts and bindings are missing".to_owned()))?;
        let (contexts, bindings) = (txn.open_table(CONTEXTS)?, txn.open_table(BINDINGS)?);
        let mut builder = BatchBuilder { contexts, bindings, counts, effects: Vec::new() };
        let results = changes.into_iter().map(|change| match builder.make(change) {
            Ok(id) => Ok(Ok(id)),
            Err(ChangeFailure::Refused(refusal)) => Ok(Err(refusal)),
            Err(ChangeFailure::Database(failure)) => Err(failure),
        });
        let results = results.collect::<Result<Vec<_>, Failure>>()?;
        let batch = (always_writes || !builder.effects.is_empty())
            .then(|| Batch::new(version, &builder.counts, &builder.effects));
        if let Some(batch) = &batch {
            builder.counts.write(&mut meta)?;
            batch.version.write(&mut meta)?;
        }
        (BatchResults { results, effects: builder.effects }, batch)
    };
    Ok(PreparedBatch { txn, results, batch })
}

/// Makes changes in the database that are only in the journal. `counts` and `version` are the final ones.
pub(super) fn replay(
    db: &Database,
    effects: &[Effect],
    counts: &Counts,
    version: Version,
) -> Result<(), Failure> {
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        let (mut contexts, mut bindings) = (txn.open_table(CONTEXTS)?, txn.open_table(BINDINGS)?);
        for effect in effects {
            match effect {
                Effect::AddContext(ContextId(id)) => drop(contexts.insert(*id, context_checksum(*id))?),
                Effect::RemoveContext(ContextId(id)) => drop(contexts.remove(*id)?),
                Effect::Bind(ContextId(id), key, target) => {
                    let record = encode_record(*id, key.text(), target);
                    bindings.insert((*id, key.text()), record.as_slice())?;
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

enum ChangeFailure {
    /// The contents of the store do not allow the change. The other changes of the batch are still made.
    Refused(Refusal),
    Database(Failure),
}

impl From<Refusal> for ChangeFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<redb::StorageError> for ChangeFailure {
    fn from(error: redb::StorageError) -> Self {
        Self::Database(error.into())
    }
}

struct BatchBuilder<'t> {
    contexts: Table<'t, u64, u32>,
    bindings: Table<'t, (u64, &'static str), &'static [u8]>,
    counts: Counts,
    effects: Vec<Effect>,
}

impl BatchBuilder<'_> {
    fn make(&mut self, change: Change) -> Result<Option<ContextId>, ChangeFailure> {
        match change {
            Change::NewContext => return Ok(Some(self.new_context()?)),
            Change::BindNewContext { context, key } => {
                check_bind(self.find(context, &key)?.as_ref(), MayReplace::Nothing)?;
                let id = self.new_context()?;
                self.bind(context, key, Target::Context(id))?;
                return Ok(Some(id));
            }
            Change::Bind { context, key, target, may_replace } => {
                check_bind(self.find(context, &key)?.as_ref(), may_replace)?;
                self.bind(context, key, target)?;
            }
            Change::BindFor { .. } => return Err(Refusal::TimeLimitUnsupported.into()),
            Change::Unbind { context, key } => {
                self.find(context, &key)?.ok_or(Refusal::NotBound)?;
                self.bindings.remove((context.0, key.text()))?;
                self.counts.bindings -= 1;
                self.effects.push(Effect::Unbind(context, key));
            }
            Change::Destroy { context } => {
                let has_bindings = match self.contexts.get(context.0)? {
                    Some(_) => Some(self.bindings.range(bindings_after(context, None))?.next().is_some()),
                    None => None,
                };
                check_destroy(context, has_bindings)?;
                self.contexts.remove(context.0)?;
                self.counts.contexts -= 1;
                self.effects.push(Effect::RemoveContext(context));
            }
            Change::Join { context, ref key, .. } | Change::Leave { context, ref key, .. } => {
                let group = changed_group(self.find(context, key)?.as_ref(), &change)?;
                self.bind(context, key.clone(), Target::Group(group))?;
            }
        }
        Ok(None)
    }

    fn new_context(&mut self) -> Result<ContextId, ChangeFailure> {
        let id = ContextId(self.counts.next_context);
        self.counts.next_context += 1;
        self.counts.contexts += 1;
        self.contexts.insert(id.0, context_checksum(id.0))?;
        self.effects.push(Effect::AddContext(id));
        Ok(id)
    }

    fn bind(&mut self, context: ContextId, key: Key, target: Target) -> Result<(), ChangeFailure> {
        let record = encode_record(context.0, key.text(), &target);
        if self.bindings.insert((context.0, key.text()), record.as_slice())?.is_none() {
            self.counts.bindings += 1;
        }
        self.effects.push(Effect::Bind(context, key, target));
        Ok(())
    }

    /// Returns the target to which a name is bound. Fails with a refusal if the context does not exist.
    fn find(&self, context: ContextId, key: &Key) -> Result<Option<Target>, ChangeFailure> {
        if self.contexts.get(context.0)?.is_none() {
            return Err(Refusal::NoContext.into());
        }
        let Some(found) = self.bindings.get((context.0, key.text()))? else { return Ok(None) };
        let target = decode_record(context.0, key.text(), found.value());
        let damaged = || Failure(format!("the binding `{key}` of context {} is damaged", context.0));
        Ok(Some(target.ok_or_else(|| ChangeFailure::Database(damaged()))?))
    }
}
