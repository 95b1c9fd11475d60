//! The store in a file: a `redb` database, with an index of all data in memory for lookups.

mod changes;
mod files;
mod journal;
mod outage;
mod repair;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use redb::{Database, DatabaseError, ReadableTable, StorageError as DbError, TableHandle};
use tokio::sync::oneshot;

use self::files::{DiskFiles, Files, open_database, open_overlay};
use self::journal::{Journal, Scan};
use self::outage::Health;
use self::tables::{BINDINGS, CONTEXTS, Counts, META, Version, binding_type_of, decode_record};
use self::writer::{Job, Writer};
use super::index::Index;
use super::{Change, ChangeError, ContextId, Key, Lookup, Page, PageLimit, Store, StoreError, StoredBinding};

pub use self::repair::{RepairError, RepairSummary};

/// A store of contexts and bindings in a file. If the process is killed, no acknowledged change is lost. The
/// same is true for a loss of power if the disk keeps synchronized data.
///
/// A separate thread makes the changes. It makes all pending changes in one transaction with one disk
/// synchronization, and then acknowledges them. Lookups never wait for changes: they use an index in memory,
/// which takes about 200 bytes for each binding in addition to its reference. [`page`](Store::page) reads a
/// snapshot of the file. Only one process at a time can open the file.
///
/// The journal `FILE.journal` is a second copy of all data. [`repair`](Self::repair) restores the names from
/// it if the file is damaged. The journal is at most about twice as long as the contents of the store.
///
/// If the disk rejects writes, for example because it is full, changes fail with [`StoreError::NotWritten`],
/// and lookups continue. The store tries to write until the disk accepts writes again. Meanwhile
/// [`problem`](Store::problem) describes the failure.
///
/// Dropping the store waits for changes in progress.
pub struct DiskStore {
    shared: Arc<Shared>,
    /// `None` while the store is being dropped.
    jobs: Option<std::sync::mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// The reason why a [`DiskStore`] cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another store of this process, has opened the file.
    #[error("{} is in use by another naming service", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged. It was not changed.
    #[error(
        "{} is damaged and was not changed: {reason}. Replace it by a copy from a backup, or recreate it from its journal with DiskStore::repair (`zorb names repair`)",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// The file was written by another version of the service.
    #[error("{} has format {found}, but this naming service supports only format {}", path.display(), tables::FORMAT)]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
    },
    /// The operating system reported an error.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

struct Shared {
    database: DatabaseSlot,
    index: Index,
    health: Health,
}

/// The database, or `None` while it is closed after a disk failure.
struct DatabaseSlot(RwLock<Option<Database>>);

impl DatabaseSlot {
    fn read(&self) -> RwLockReadGuard<'_, Option<Database>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.read().is_none()
    }
}

impl DiskStore {
    /// Opens a file and reads it completely, or creates it.
    ///
    /// # Errors
    /// [`OpenError`]. A damaged file is not changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_files(Arc::new(DiskFiles::new(path.as_ref())))
    }

    fn open_files(files: Arc<dyn Files>) -> Result<Self, OpenError> {
        let (Opened { db, index, version }, journal) = open(&*files)?;
        let path = files.path().to_owned();
        let shared = Arc::new(Shared {
            database: DatabaseSlot(RwLock::new(Some(db))),
            index,
            health: Health::default(),
        });
        let (jobs, queue) = std::sync::mpsc::channel();
        let writer = Writer { files, shared: Arc::clone(&shared), journal, version, outage: None };
        let thread = std::thread::Builder::new().name("names-store".to_owned());
        let thread = thread.spawn(move || writer.run(&queue));
        let thread = thread.map_err(|source| OpenError::Io { path, source })?;
        Ok(Self { shared, jobs: Some(jobs), writer: Some(thread) })
    }

    /// Recreates a damaged file from its journal. If the journal is damaged too, also uses the readable parts
    /// of the file. The damaged file is kept as `FILE.damaged`.
    ///
    /// # Errors
    /// [`RepairError`]. The file is then unchanged.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairSummary, RepairError> {
        repair::repair(path.as_ref())
    }
}

/// An open database, with its contents.
struct Opened {
    db: Database,
    index: Index,
    version: Version,
}

fn open(files: &dyn Files) -> Result<(Opened, Option<Journal>), OpenError> {
    let path = files.path();
    // An empty file is the result of a crash before anything was written.
    if !path.metadata().is_ok_and(|file| file.len() > 0) {
        create(files)?;
    }
    let mut opened = open_existing(files)?;
    let journal = match reconcile_journal(files, &mut opened)? {
        Some(journal) => Some(journal),
        None => match guarded(|| Journal::rewrite(files, &opened.db)) {
            Ok(Ok(journal)) => Some(journal),
            Ok(Err(Failure(error))) | Err(error) => {
                // The first change writes the journal again, and fails if this fails.
                tracing::error!(%error, path = %path.display(), "cannot write the journal of the names: if their file is damaged, they are lost");
                None
            }
        },
    };
    Ok((opened, journal))
}

fn create(files: &dyn Files) -> Result<(), OpenError> {
    let path = files.path();
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(mut journal) = files.journal().map_err(io)? {
        let scan = Scan::read(&mut *journal, Version::default()).map_err(io)?;
        if scan.version != Version::default() {
            return Err(OpenError::Damaged {
                path: path.to_owned(),
                reason: "the file is missing or empty, but its journal contains names".to_owned(),
            });
        }
    }
    let failed = |error| open_error(path, error);
    let file = files.database().map_err(failed)?;
    let db = open_database(file).map_err(failed)?;
    let created = guarded(|| tables::create(&db)).unwrap_or_else(|reason| Err(Failure(reason)));
    created.map_err(|Failure(reason)| OpenError::Io {
        path: path.to_owned(),
        source: io::Error::other(reason),
    })?;
    // Otherwise a loss of power could remove the new file from its directory.
    files::sync_directory(path).map_err(io)
}

fn open_error(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
        DatabaseError::Storage(DbError::Io(source)) if is_system_error(&source) => {
            OpenError::Io { path, source }
        }
        other => OpenError::Damaged { path, reason: other.to_string() },
    }
}

/// Opens an existing file. Reads it first without writing, so that a damaged file is not changed.
fn open_existing(files: &dyn Files) -> Result<Opened, OpenError> {
    let path = files.path();
    let failed = |error| open_error(path, error);
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    let file = files.database().map_err(failed)?;
    let checked = guarded(|| {
        let mut db = open_overlay(Arc::clone(&file), None).map_err(failed)?;
        // Verifies the checksums of all pages. A damaged page could refer to any page, even in a cycle.
        if !db.check_integrity().map_err(failed)? {
            return Err(damaged("its pages are damaged".to_owned()));
        }
        load(&db).map_err(|error| match error {
            LoadError::Format(found) => OpenError::Format { path: path.to_owned(), found },
            LoadError::Damaged(reason) => damaged(reason),
        })
    });
    let (index, version) = checked.map_err(damaged)??;
    let db = guarded(|| open_database(file)).map_err(damaged)?.map_err(failed)?;
    Ok(Opened { db, index, version })
}

/// Returns the journal if it matches the database. One batch that is only in the journal is applied, which
/// happens if the process is killed between the two writes, or if the database discards an incomplete commit.
fn reconcile_journal(files: &dyn Files, opened: &mut Opened) -> Result<Option<Journal>, OpenError> {
    let path = files.path();
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    let Some(mut file) = files.journal().map_err(io)? else { return Ok(None) };
    let scan = Scan::read(&mut *file, opened.version).map_err(io)?;
    match (scan.found, scan.batches_after_found) {
        (Some(_), 0) => Ok(Journal::resume(file, &scan).ok()),
        (Some(start), 1) => {
            let Some((effects, counts, version)) = journal::last_batch(&mut *file, start).map_err(io)? else {
                return Ok(None);
            };
            let replayed = guarded(|| changes::replay(&opened.db, &effects, &counts, version));
            replayed
                .unwrap_or_else(|reason| Err(Failure(reason)))
                .map_err(|Failure(reason)| damaged(reason))?;
            effects.into_iter().for_each(|effect| effect.apply_to(&opened.index));
            opened.version = version;
            Ok(Journal::resume(file, &scan).ok())
        }
        _ if scan.version.number > opened.version.number => Err(damaged(format!(
            "it is older than its journal, which has {} more batches of changes; repair the file to get the newer names, or move the journal away to keep the older ones",
            scan.version.number - opened.version.number
        ))),
        _ => {
            if scan.version.number == opened.version.number || !scan.is_complete {
                tracing::warn!(path = %path.display(), "the journal of the names is damaged, or belongs to another file; writing it again");
            }
            Ok(None)
        }
    }
}

/// Returns whether the operating system reported the error. Otherwise the contents of the file are invalid.
fn is_system_error(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

thread_local! {
    /// True while [`guarded`] runs on this thread.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns a panic, which the database has for some kinds of damage, as an error, without printing it.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                previous_hook(info);
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    IS_GUARDED.set(was_guarded);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "the database panicked because of damaged pages".to_owned())
    })
}

/// The description of an error of a file. It replaces the many large error types of the database.
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

enum LoadError {
    /// The file has this unsupported format.
    Format(u64),
    Damaged(String),
}

impl<E: std::error::Error> From<E> for LoadError {
    fn from(error: E) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Reads the contents of a file, and verifies them.
fn load(db: &Database) -> Result<(Index, Version), LoadError> {
    let txn = db.begin_read()?;
    let meta = txn.open_table(META)?;
    let version = Version::read(&meta)?;
    let counts = Counts::read(&meta)?.ok_or_else(|| {
        LoadError::Damaged(format!("the table `{}` lacks the numbers of contexts and bindings", META.name()))
    })?;
    if !matches!(counts.format, tables::FORMAT | tables::UNVERSIONED) {
        return Err(LoadError::Format(counts.format));
    }
    let index = Index::default();
    let (mut contexts, mut bindings) = (0, 0);
    for entry in txn.open_table(CONTEXTS)?.iter()? {
        let (id, sum) = entry?;
        let id = id.value();
        if tables::context_checksum(id) != sum.value() || id >= counts.next_context {
            return Err(LoadError::Damaged(format!("the entry of context {id}")));
        }
        index.add_context(ContextId(id));
        contexts += 1;
    }
    for entry in txn.open_table(BINDINGS)?.iter()? {
        let (id, record) = entry?;
        let (context, text) = id.value();
        let damaged =
            || LoadError::Damaged(format!("the binding `{}` of context {context}", text.escape_debug()));
        let key = Key::from_text(text).ok_or_else(damaged)?;
        let target = decode_record(context, text, record.value()).ok_or_else(damaged)?;
        index.bind(ContextId(context), key, StoredBinding::new(target));
        bindings += 1;
    }
    if (contexts, bindings) != (counts.contexts, counts.bindings) {
        let Counts { contexts: c, bindings: b, .. } = counts;
        let reason = format!("{contexts} of {c} contexts and {bindings} of {b} bindings can be read");
        return Err(LoadError::Damaged(reason));
    }
    Ok((index, version))
}

impl Store for DiskStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        Ok(self.shared.index.lookup(context, key))
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        Ok(self.shared.index.has(context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        if !self.shared.index.has(context) {
            return Ok(None);
        }
        let read = || -> Result<Page, Failure> {
            let slot = self.shared.database.read();
            let db =
                slot.as_ref().ok_or_else(|| Failure("the file is closed after a disk failure".to_owned()))?;
            let table = db.begin_read()?.open_table(BINDINGS)?;
            let range = table.range(tables::bindings_after(context, after.map(Key::text)))?;
            let bindings = range.filter_map(|entry| match entry {
                Ok((id, record)) => {
                    Key::from_text(id.value().1).map(|key| Ok((key, binding_type_of(record.value()))))
                }
                Err(error) => Some(Err(Failure::from(error))),
            });
            Page::from_bindings(bindings, limit)
        };
        read().map(Some).map_err(|Failure(reason)| StoreError::new(reason))
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        let (reply, result) = oneshot::channel();
        let ended = || StoreError::new("the writer thread has ended; see the log for the reason");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(Job { change, reply }).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }

    fn problem(&self) -> Option<String> {
        self.shared.health.problem()
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // The writer ends when no further change can be sent.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").finish_non_exhaustive()
    }
}
