//! [`Writer`], the thread that makes changes. It makes all pending changes in one transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::{Change, ChangeError, ContextId, Refusal, StoreError};
use super::changes::{self, FailedStage};
use super::files::Files;
use super::journal::{Effect, Journal};
use super::outage::{Health, Outage};
use super::tables::Version;
use super::{Failure, OpenDatabase, Shared, catch_panic};

/// The maximum number of changes in one transaction. It limits how long the first of these changes waits.
const MAX_BATCH_CHANGES: usize = 10_000;

/// If the names and references of a transaction have at least this number of bytes, no change is added to it.
const MAX_BATCH_BYTES: usize = 64 * 1024 * 1024;

/// The writer waits for further changes for at most the duration of the last transaction, divided by this
/// number.
const GATHER_DIVISOR: u32 = 4;

pub(super) struct Job {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<Option<ContextId>, ChangeError>>,
}

/// The result of each change of a batch, in their order.
pub(super) type ChangeResults = Vec<Result<Option<ContextId>, Refusal>>;

/// The result of a batch of changes.
pub(super) struct BatchResults {
    pub(super) results: ChangeResults,
    /// The effects of all changes together.
    pub(super) effects: Vec<Effect>,
}

struct BatchFailure {
    reason: String,
    /// True if the changes may have been made in spite of the failure.
    may_be_made: bool,
}

impl BatchFailure {
    fn not_made(Failure(reason): Failure) -> Self {
        Self { reason, may_be_made: false }
    }
}

/// The state of the thread that makes changes, and that reopens the database after a disk failure.
pub(super) struct Writer {
    pub(super) files: Arc<dyn Files>,
    pub(super) shared: Arc<Shared>,
    /// `None` if the whole journal must be written again.
    pub(super) journal: Option<Journal>,
    /// The version of the store after the last batch.
    pub(super) version: Version,
    pub(super) outage: Option<Outage>,
}

impl Writer {
    /// Makes changes until the store is dropped.
    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        // The number of changes in the last batch, plus those that were received while it was written.
        let (mut expected, mut last_duration) = (1, Duration::ZERO);
        let mut batch: Vec<Job> = Vec::new();
        loop {
            if batch.is_empty() {
                match self.wait(queue) {
                    Ok(Some(first)) => batch.push(first),
                    Ok(None) => continue,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            // A caller whose change was just made may be about to send the next one. Without this short wait,
            // the transactions of two groups of callers would alternate, and each change would wait for two
            // of them.
            let deadline = Instant::now() + last_duration / GATHER_DIVISOR;
            let mut bytes: usize = batch.iter().map(|job| job.change.byte_size()).sum();
            while batch.len() < MAX_BATCH_CHANGES && bytes < MAX_BATCH_BYTES {
                let job = match queue.try_recv() {
                    Err(_) if batch.len() >= expected => break,
                    Err(_) => queue.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
                    Ok(job) => Some(job),
                };
                let Some(job) = job else { break };
                bytes += job.change.byte_size();
                batch.push(job);
            }
            let (changes, replies): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|job| (job.change, job.reply)).unzip();
            let start = Instant::now();
            let result = self.make_changes(changes);
            last_duration = start.elapsed();
            let mut received_bytes = 0;
            while received_bytes < MAX_BATCH_BYTES && batch.len() < MAX_BATCH_CHANGES {
                let Ok(job) = queue.try_recv() else { break };
                received_bytes += job.change.byte_size();
                batch.push(job);
            }
            expected = replies.len() + batch.len();
            match result {
                Ok(results) => {
                    for (reply, result) in replies.into_iter().zip(results) {
                        // Fails if the future of the caller was dropped.
                        let _ = reply.send(result.map_err(ChangeError::Refused));
                    }
                }
                Err(error) => {
                    for reply in replies {
                        let _ = reply.send(Err(error.clone().into()));
                    }
                }
            }
            self.sync_if_due();
        }
        if let Some(journal) = &mut self.journal
            && journal.sync_time().is_some()
        {
            let _ = journal.sync();
        }
    }

    /// Waits for a change. Returns `None` after an attempt to write or a synchronization that was due first.
    fn wait(&mut self, queue: &Receiver<Job>) -> Result<Option<Job>, RecvTimeoutError> {
        let sync_time = self.journal.as_ref().and_then(Journal::sync_time);
        let due = match (self.outage.as_ref().map(Outage::next_attempt), sync_time) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let Some(due) = due else {
            return queue.recv().map(Some).map_err(|_| RecvTimeoutError::Disconnected);
        };
        match queue.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(job) => Ok(Some(job)),
            Err(RecvTimeoutError::Timeout) => {
                if self.outage.as_ref().is_some_and(Outage::is_due) {
                    // The result is logged and stored in `Health`.
                    let _ = self.try_changes(Vec::new());
                }
                self.sync_if_due();
                Ok(None)
            }
            Err(RecvTimeoutError::Disconnected) => Err(RecvTimeoutError::Disconnected),
        }
    }

    fn sync_if_due(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        if journal.sync_time().is_some_and(|due| due <= Instant::now())
            && let Err(error) = journal.sync()
        {
            tracing::error!(%error, path = %self.files.path().display(), "cannot synchronize the journal of the names; writing it again");
            // It is not known which part of the journal is on disk.
            self.journal = None;
        }
    }

    /// Makes changes. During an outage, fails unless the next attempt is due.
    fn make_changes(&mut self, changes: Vec<Change>) -> Result<ChangeResults, StoreError> {
        match &self.outage {
            Some(outage) if !outage.is_due() => {
                Err(StoreError::NotWritten { reason: outage.last_error().into() })
            }
            _ => self.try_changes(changes),
        }
    }

    /// Makes changes, and starts or ends an outage. Without changes, tests whether the disk accepts writes.
    fn try_changes(&mut self, changes: Vec<Change>) -> Result<ChangeResults, StoreError> {
        let start = Instant::now();
        // A damaged page may make the database panic.
        let result = catch_panic(|| self.write_batch(changes));
        let result = result.unwrap_or_else(|reason| {
            self.close();
            Err(BatchFailure { reason, may_be_made: true })
        });
        let path = self.files.path();
        match result {
            Ok(results) => {
                if let Some(outage) = self.outage.take() {
                    self.shared.health.set(None);
                    let seconds = outage.start().elapsed().as_secs();
                    tracing::warn!(path = %path.display(), seconds, "the disk accepts writes again");
                }
                self.rewrite_long_journal();
                Ok(results)
            }
            Err(BatchFailure { reason, may_be_made }) => {
                let outage = match self.outage.take() {
                    None => {
                        tracing::error!(
                            error = %reason,
                            path = %path.display(),
                            "names cannot be stored: changes are rejected until the disk accepts writes again"
                        );
                        Outage::new(reason.clone())
                    }
                    Some(outage) => outage.after_failed_attempt(reason.clone(), start.elapsed()),
                };
                self.shared.health.set(Some(Health::describe(path, &reason)));
                self.outage = Some(outage);
                let reason = reason.into();
                Err(if may_be_made { StoreError::Broken(reason) } else { StoreError::NotWritten { reason } })
            }
        }
    }

    /// Makes changes in the journal, the database and the index. If the database fails, reopens it.
    fn write_batch(&mut self, changes: Vec<Change>) -> Result<ChangeResults, BatchFailure> {
        if self.shared.database.is_empty() {
            self.reopen().map_err(BatchFailure::not_made)?;
        }
        let always_writes = self.outage.is_some();
        let shared = Arc::clone(&self.shared);
        let database = shared.database.read();
        let Some(db) = database.as_ref() else {
            return Err(BatchFailure { reason: "the database is not open".to_owned(), may_be_made: false });
        };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(Journal::rewrite(&*self.files, db).map_err(BatchFailure::not_made)?),
        };
        let committed = changes::commit(db, journal, self.version, changes, always_writes);
        drop(database);
        let (stage, reason) = match committed {
            Ok((BatchResults { results, effects }, version)) => {
                self.version = version;
                effects.into_iter().for_each(|effect| effect.apply_to(&self.shared.index));
                return Ok(results);
            }
            Err(failure) => failure,
        };
        if let FailedStage::Journal { is_unusable } = stage {
            if is_unusable {
                self.journal = None;
            }
            return Err(BatchFailure { reason, may_be_made: false });
        }
        // After a failure, the database must be reopened. Its version then shows whether it has the changes.
        self.close();
        let reopened = self.reopen();
        match (stage, reopened) {
            (FailedStage::Commit(batch, version), Ok(())) if self.version == version => Ok(batch.results),
            (FailedStage::Commit(..), Err(_)) => Err(BatchFailure { reason, may_be_made: true }),
            _ => Err(BatchFailure { reason, may_be_made: false }),
        }
    }

    fn close(&self) {
        let db = self.shared.database.write().take();
        // Closing may write to the file, and may panic if that fails.
        let _ = catch_panic(|| drop(db));
    }

    fn reopen(&mut self) -> Result<(), Failure> {
        self.close();
        let opened = super::open_existing(&*self.files).map_err(|error| Failure(error.to_string()))?;
        let OpenDatabase { db, index, version } = opened;
        let differences = self.shared.index.replace_contents(&index);
        if differences > 0 {
            // Changes were reported as failed because their outcome was not known, but they are on disk.
            tracing::warn!(path = %self.files.path().display(), differences, "the file contains changes that were not acknowledged");
        }
        self.version = version;
        if let Some(journal) = &mut self.journal
            && !journal.roll_back_to(version)
        {
            self.journal = None;
        }
        *self.shared.database.write() = Some(db);
        Ok(())
    }

    /// Rewrites the journal if it has become too long.
    fn rewrite_long_journal(&mut self) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.is_too_long()) else { return };
        let database = self.shared.database.read();
        let Some(db) = database.as_ref() else { return };
        match catch_panic(|| Journal::rewrite(&*self.files, db)) {
            Ok(Ok(rewritten)) => *journal = rewritten,
            Ok(Err(Failure(error))) | Err(error) => {
                tracing::warn!(%error, path = %self.files.path().display(), "cannot shorten the journal of the names");
                journal.postpone_rewrite();
            }
        }
    }
}
