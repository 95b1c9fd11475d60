//! [`DiskStore`], which stores the names in a `redb` database, with an index of all data in memory.

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

/// A store of contexts and bindings in a file.
///
/// No change whose future has completed successfully is lost if the process is killed. It is not lost in a
/// power failure either, if the disk keeps data that has been synchronized.
///
/// A separate thread makes the changes. It makes all pending changes in one transaction with one
/// synchronization of the disk, and then acknowledges them. Lookups never wait for changes: they use an index
/// in memory, which occupies about 200 bytes for each binding in addition to its reference.
/// [`page`](Store::page) reads a snapshot of the file. Only one process at a time can open the file.
///
/// The journal `FILE.journal` is a second copy of all data. If the file is damaged, [`repair`](Self::repair)
/// restores the names from the journal. The journal is usually at most twice as long as the store's contents.
///
/// If the disk rejects writes, for example because it is full, changes fail with [`StoreError::NotWritten`]
/// ([`StoreError::Broken`] if their outcome is not known), and lookups still work. The store repeats its
/// attempts until the disk accepts writes. Until then, [`problem`](Store::problem) describes the failure.
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
        "{} is damaged and was not changed: {reason}. Replace it with a copy from a backup, or recreate it from its journal with DiskStore::repair (`zorb names repair`)",
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
    /// Opens the file and reads all of it. Creates the file if it does not exist.
    ///
    /// # Errors
    /// [`OpenError`]. If the file is damaged, it is not changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_files(Arc::new(DiskFiles::new(path.as_ref())))
    }

    fn open_files(files: Arc<dyn Files>) -> Result<Self, OpenError> {
        let (OpenDatabase { db, index, version }, journal) = open(&*files)?;
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

    /// Recreates a damaged file from its journal. If the journal is also damaged, uses the readable parts of
    /// the file too. Keeps the damaged file as `FILE.damaged`.
    ///
    /// # Errors
    /// [`RepairError`].
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairSummary, RepairError> {
        repair::repair(path.as_ref())
    }
}

/// An open database, with its contents and version.
struct OpenDatabase {
    db: Database,
    index: Index,
    version: Version,
}

/// Opens or creates the database, and makes the journal match it. The journal is `None` if that fails.
fn open(files: &dyn Files) -> Result<(OpenDatabase, Option<Journal>), OpenError> {
    let path = files.path();
    // An empty file is the result of a crash before anything was written.
    if !path.metadata().is_ok_and(|file| file.len() > 0) {
        create(files)?;
    }
    let mut opened = open_existing(files)?;
    let journal = match reconcile_journal(files, &mut opened)? {
        Some(journal) => Some(journal),
        None => match catch_panic(|| Journal::rewrite(files, &opened.db)) {
            Ok(Ok(journal)) => Some(journal),
            Ok(Err(Failure(error))) | Err(error) => {
                // The first change tries again to write the journal, and fails if that fails.
                tracing::error!(%error, path = %path.display(), "cannot write the journal of the names: without it, the names are lost if their file is damaged");
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
    let created = catch_panic(|| tables::create(&db)).unwrap_or_else(|reason| Err(Failure(reason)));
    created.map_err(|Failure(reason)| OpenError::Io {
        path: path.to_owned(),
        source: io::Error::other(reason),
    })?;
    // Without this, a power failure could remove the new file from its directory.
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

/// Opens the database in an existing file. First checks it without writing, to keep a damaged file unchanged.
fn open_existing(files: &dyn Files) -> Result<OpenDatabase, OpenError> {
    let path = files.path();
    let failed = |error| open_error(path, error);
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    let file = files.database().map_err(failed)?;
    let checked = catch_panic(|| {
        let mut db = open_overlay(Arc::clone(&file), None).map_err(failed)?;
        // Verify the checksums of all pages first, because damaged pages could form a cycle.
        if !db.check_integrity().map_err(failed)? {
            return Err(damaged("its pages are damaged".to_owned()));
        }
        load(&db).map_err(|error| match error {
            LoadError::Format(found) => OpenError::Format { path: path.to_owned(), found },
            LoadError::Damaged(reason) => damaged(reason),
        })
    });
    let (index, version) = checked.map_err(damaged)??;
    let db = catch_panic(|| open_database(file)).map_err(damaged)?.map_err(failed)?;
    Ok(OpenDatabase { db, index, version })
}

/// Returns the journal, if it matches the database. If not, it must be written again.
///
/// If the last batch is only in the journal, it is applied to the database. This happens if the process is
/// killed between the two writes, or if the database discards an incomplete commit. More such batches are an
/// error, because they mean that the database was replaced with an older one.
fn reconcile_journal(files: &dyn Files, opened: &mut OpenDatabase) -> Result<Option<Journal>, OpenError> {
    let path = files.path();
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    let Some(mut file) = files.journal().map_err(io)? else { return Ok(None) };
    let scan = Scan::read(&mut *file, opened.version).map_err(io)?;
    match (scan.searched_version_end, scan.batches_after_searched_version) {
        (Some(_), 0) => Ok(Journal::resume(file, &scan).ok()),
        (Some(start), 1) => {
            let Some((effects, counts, version)) = journal::read_batch_at(&mut *file, start).map_err(io)?
            else {
                return Ok(None);
            };
            let replayed = catch_panic(|| changes::replay(&opened.db, &effects, &counts, version));
            replayed
                .unwrap_or_else(|reason| Err(Failure(reason)))
                .map_err(|Failure(reason)| damaged(reason))?;
            effects.into_iter().for_each(|effect| effect.apply_to(&opened.index));
            opened.version = version;
            Ok(Journal::resume(file, &scan).ok())
        }
        _ if scan.version.number > opened.version.number => Err(damaged(format!(
            "it is older than its journal, which has {} more batches of changes; repair the file to get the newer names, or move the journal to another folder to keep the older names",
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

/// Returns whether an error comes from the operating system. If not, the contents of the file are invalid.
fn is_system_error(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

thread_local! {
    /// True while [`catch_panic`] runs on this thread.
    static CATCHES_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Calls `f`, and returns the message of a panic, without printing it. Damage may make the database panic.
fn catch_panic<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CATCHES_PANIC.get() {
                previous_hook(info);
            }
        }));
    });
    let caught_before = CATCHES_PANIC.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    CATCHES_PANIC.set(caught_before);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "the database panicked because of damaged pages".to_owned())
    })
}

/// The description of an error. It replaces the many large error types of the database.
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

enum LoadError {
    /// The file has this format, which is not supported.
    Format(u64),
    Damaged(String),
}

impl<E: std::error::Error> From<E> for LoadError {
    fn from(error: E) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Reads and verifies the contents of the database.
fn load(db: &Database) -> Result<(Index, Version), LoadError> {
    let txn = db.begin_read()?;
    let meta = txn.open_table(META)?;
    let version = Version::read(&meta)?;
    let counts = Counts::read(&meta)?.ok_or_else(|| {
        LoadError::Damaged(format!("the table `{}` lacks the numbers of contexts and bindings", META.name()))
    })?;
    if !matches!(counts.format, tables::FORMAT | tables::UNVERSIONED_FORMAT) {
        return Err(LoadError::Format(counts.format));
    }
    let index = Index::default();
    let (mut contexts, mut bindings) = (0, 0);
    for entry in txn.open_table(CONTEXTS)?.iter()? {
        let (id, sum) = entry?;
        let id = id.value();
        if tables::context_checksum(id) != sum.value() || id >= counts.next_context {
            return Err(LoadError::Damaged(format!("the entry of context {id} is invalid")));
        }
        index.add_context(ContextId(id));
        contexts += 1;
    }
    for entry in txn.open_table(BINDINGS)?.iter()? {
        let (id, record) = entry?;
        let (context, text) = id.value();
        let damaged = || {
            LoadError::Damaged(format!(
                "the binding `{}` of context {context} is invalid",
                text.escape_debug()
            ))
        };
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
        Ok(self.shared.index.has_context(context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        if !self.shared.index.has_context(context) {
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
        read().map(Some).map_err(|Failure(reason)| StoreError::broken(reason))
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        let (reply, result) = oneshot::channel();
        let ended = || StoreError::broken("the writer thread has ended; see the log for the reason");
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
        // The writer ends when the sender of its queue is dropped.
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
