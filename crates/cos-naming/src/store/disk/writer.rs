//! The thread that makes changes, with all pending changes in one transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::super::{Change, ChangeError, ContextId, Refused, StoreError};
use super::changes::{self, Stage};
use super::files::Files;
use super::journal::{Effect, Journal};
use super::outage::{Health, Outage};
use super::tables::Version;
use super::{Broken, Opened, Shared, guarded};

/// The maximum number of changes in one transaction, which limits the wait of the first of them.
const MOST: usize = 10_000;

/// The maximum number of bytes of names and references in one transaction, unless it is a single change.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The wait for more changes is the duration of the last transaction divided by this number.
const GATHER: u32 = 4;

/// A change whose outcome is awaited.
pub(super) struct Job {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<Option<ContextId>, ChangeError>>,
}

/// The results of a transaction, and its effects.
pub(super) type Made = (Vec<Result<Option<ContextId>, Refused>>, Vec<Effect>);

/// The failure of a transaction.
struct Failed {
    what: String,
    /// True if it is unknown whether the changes are on disk.
    is_open: bool,
}

impl Failed {
    fn not_made(Broken(what): Broken) -> Self {
        Self { what, is_open: false }
    }
}

/// Makes changes, and reopens the files after a disk failure.
pub(super) struct Writer {
    files: Arc<dyn Files>,
    shared: Arc<Shared>,
    journal: Option<Journal>,
    version: Version,
    outage: Option<Outage>,
}

impl Writer {
    pub(super) fn new(
        files: Arc<dyn Files>,
        shared: Arc<Shared>,
        journal: Option<Journal>,
        version: Version,
    ) -> Self {
        Self { files, shared, journal, version, outage: None }
    }

    /// Makes changes until no handle is left that could request one.
    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        // The number of changes expected together: those of the last transaction, and those received
        // meanwhile.
        let (mut expected, mut took) = (1, Duration::ZERO);
        let mut batch: Vec<Job> = Vec::new();
        loop {
            if batch.is_empty() {
                match self.wait(queue) {
                    Ok(Some(first)) => batch.push(first),
                    Ok(None) => continue,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            // A caller that was just answered may be about to send the next change. Without this short wait,
            // callers split into two groups that wait for each other's transactions, and each change waits
            // for two disk synchronizations.
            let until = Instant::now() + took / GATHER;
            let mut bytes: usize = batch.iter().map(|job| job.change.size()).sum();
            while batch.len() < MOST && bytes < MOST_BYTES {
                let more = match queue.try_recv() {
                    Err(_) if batch.len() >= expected => break,
                    Err(_) => queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
                    Ok(job) => Some(job),
                };
                let Some(more) = more else { break };
                bytes += more.change.size();
                batch.push(more);
            }
            let (changes, replies): (Vec<_>, Vec<_>) =
                batch.drain(..).map(|job| (job.change, job.reply)).unzip();
            let begin = Instant::now();
            let made = self.make(changes);
            took = begin.elapsed();
            let mut more = 0;
            while more < MOST_BYTES && batch.len() < MOST {
                let Ok(job) = queue.try_recv() else { break };
                more += job.change.size();
                batch.push(job);
            }
            expected = replies.len() + batch.len();
            match made {
                Ok((results, _)) => {
                    for (reply, result) in replies.into_iter().zip(results) {
                        // A caller that was dropped needs no answer.
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
            && journal.sync_at().is_some()
        {
            let _ = journal.sync();
        }
    }

    /// Waits for a change, and meanwhile does what is due without one.
    fn wait(&mut self, queue: &Receiver<Job>) -> Result<Option<Job>, RecvTimeoutError> {
        let sync = self.journal.as_ref().and_then(Journal::sync_at);
        let due = match (self.outage.as_ref().map(Outage::next), sync) {
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
                    // The outcome is in the log and in the health.
                    let _ = self.attempt(Vec::new());
                }
                self.sync_if_due();
                Ok(None)
            }
            Err(RecvTimeoutError::Disconnected) => Err(RecvTimeoutError::Disconnected),
        }
    }

    /// Synchronizes the journal if it is due.
    fn sync_if_due(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        if journal.sync_at().is_some_and(|due| due <= Instant::now())
            && let Err(error) = journal.sync()
        {
            tracing::error!(%error, path = %self.files.path().display(), "the journal of the names is not written; it is made anew");
            // It is unknown how much of it is on disk.
            self.journal = None;
        }
    }

    /// Makes changes; in an outage only when the next attempt is due.
    fn make(&mut self, changes: Vec<Change>) -> Result<Made, StoreError> {
        match &self.outage {
            Some(outage) if !outage.is_due() => Err(StoreError::NotWritten { what: outage.what().into() }),
            _ => self.attempt(changes),
        }
    }

    /// Makes changes. Without changes, tests whether the disk accepts writes.
    fn attempt(&mut self, changes: Vec<Change>) -> Result<Made, StoreError> {
        let begin = Instant::now();
        // Guarded, because a damaged page may make the database panic.
        let made = guarded(|| self.write(changes));
        let made = made.unwrap_or_else(|what| {
            self.close();
            Err(Failed { what, is_open: true })
        });
        let path = self.files.path();
        match made {
            Ok(made) => {
                if let Some(outage) = self.outage.take() {
                    self.shared.health.set(None);
                    let seconds = outage.began().elapsed().as_secs();
                    tracing::warn!(path = %path.display(), seconds, "names are stored again");
                }
                self.compact();
                Ok(made)
            }
            Err(Failed { what, is_open }) => {
                let outage = match self.outage.take() {
                    None => {
                        tracing::error!(
                            error = %what,
                            path = %path.display(),
                            "names are not stored: changes are refused until the disk takes them, which is tried again and again"
                        );
                        Outage::new(what.clone())
                    }
                    Some(outage) => outage.again(what.clone(), begin.elapsed()),
                };
                self.shared.health.set(Some(Health::of(path, &what)));
                self.outage = Some(outage);
                let what = what.into();
                Err(if is_open { StoreError::Broken(what) } else { StoreError::NotWritten { what } })
            }
        }
    }

    /// Makes changes. Afterwards both files and the index have them, or none has.
    fn write(&mut self, changes: Vec<Change>) -> Result<Made, Failed> {
        if self.shared.slot.is_empty() {
            self.reopen().map_err(Failed::not_made)?;
        }
        let probes = self.outage.is_some();
        let shared = Arc::clone(&self.shared);
        let slot = shared.slot.read();
        let Some(db) = slot.as_ref() else {
            return Err(Failed { what: "the database is not open".to_owned(), is_open: false });
        };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(Journal::rewrite(&*self.files, db).map_err(Failed::not_made)?),
        };
        let committed = changes::commit(db, journal, self.version, changes, probes);
        drop(slot);
        let (stage, what) = match committed {
            Ok((made, version)) => {
                self.version = version;
                let (results, effects) = made;
                effects.into_iter().for_each(|effect| effect.tell(&self.shared.index));
                return Ok((results, Vec::new()));
            }
            Err(failed) => failed,
        };
        if let Stage::Journal { is_lost } = stage {
            if is_lost {
                self.journal = None;
            }
            return Err(Failed { what, is_open: false });
        }
        // The database stops working after a disk error, and only the file shows whether it has the changes.
        self.close();
        let reopened = self.reopen();
        match (stage, reopened) {
            (Stage::Commit(made, version), Ok(())) if self.version == version => Ok(made),
            (_, Ok(())) => Err(Failed { what, is_open: false }),
            (Stage::Commit(..), Err(_)) => Err(Failed { what, is_open: true }),
            (_, Err(_)) => Err(Failed { what, is_open: false }),
        }
    }

    /// Closes the database.
    fn close(&self) {
        let db = self.shared.slot.write().take();
        // Closing the database may write.
        let _ = guarded(|| drop(db));
    }

    /// Reopens the files, and updates the index from their contents.
    fn reopen(&mut self) -> Result<(), Broken> {
        self.close();
        let opened = super::open_existing(&*self.files).map_err(|error| Broken(error.to_string()))?;
        let Opened { db, index, version } = opened;
        let differences = self.shared.index.assign(&index);
        if differences > 0 {
            // Changes that were not acknowledged, because it was unknown whether they are on disk.
            tracing::warn!(path = %self.files.path().display(), differences, "the file has names that were not acknowledged");
        }
        self.version = version;
        if let Some(journal) = &mut self.journal
            && !journal.agree_with(version)
        {
            self.journal = None;
        }
        *self.shared.slot.write() = Some(db);
        Ok(())
    }

    /// Rewrites the journal if it has become long.
    fn compact(&mut self) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.is_long()) else { return };
        let slot = self.shared.slot.read();
        let Some(db) = slot.as_ref() else { return };
        match guarded(|| Journal::rewrite(&*self.files, db)) {
            Ok(Ok(rewritten)) => *journal = rewritten,
            Ok(Err(Broken(error))) | Err(error) => {
                tracing::warn!(%error, path = %self.files.path().display(), "the journal of the names is not made shorter");
                journal.postpone();
            }
        }
    }
}
