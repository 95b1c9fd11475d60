//! The store in a file: a `redb` database, with all data in memory for lookups.

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

use self::files::{Disk, Files, open_database, open_overlay};
use self::journal::{Journal, Scan};
use self::outage::Health;
use self::tables::{BINDINGS, CONTEXTS, Counts, META, Version, kind_of, open_record};
use self::writer::{Job, Writer};
use super::index::Index;
use super::{Bound, Change, ChangeError, ContextId, Key, Lookup, Page, PageLimit, Store, StoreError};

pub use self::repair::{RepairError, Repaired};

/// A store of contexts and bindings in a file. No acknowledged change is lost by a kill at any moment. None
/// is lost by a loss of power either, if the disk keeps synchronized data.
///
/// Changes are made by a thread of their own. All pending changes are made in one transaction with one disk
/// synchronization, and acknowledged after it. Lookups are answered from memory, which holds every binding
/// (about 200 bytes each, in addition to its reference), and never wait for changes. [`page`](Store::page)
/// reads a snapshot of the file. Only one process at a time can open the file.
///
/// Beside the file is a journal, `FILE.journal`: a second copy of all data, from which
/// [`repair`](Self::repair) restores the names if the file is damaged. The journal is at most about twice as
/// long as the contents of the store.
///
/// If the disk rejects writes, for example because it is full, changes fail with [`StoreError::NotWritten`].
/// The disk is retried until it accepts writes. Meanwhile [`problem`](Store::problem) describes the failure,
/// and lookups continue.
///
/// Dropping the store waits for changes in progress.
pub struct DiskStore {
    shared: Arc<Shared>,
    /// `None` while it is being dropped.
    jobs: Option<std::sync::mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// The reason why a file of names cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has opened it, or another store of this process.
    #[error("{} is in use: one naming service at a time has it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Its contents are not what was written. Nothing was changed.
    #[error(
        "{} is damaged: {what}. It is left as it is; put a copy from a backup in its place, or have DiskStore::repair (`zorb names repair`) make it anew from its journal",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// It was written by another version of the service.
    #[error("{} has format {found}; this naming service knows format {}", path.display(), tables::FORMAT)]
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
        /// The system's error.
        source: io::Error,
    },
}

/// The state that the store shares with its writer.
struct Shared {
    slot: Slot,
    index: Index,
    health: Health,
}

/// The database, which is closed for a moment after a disk failure.
struct Slot(RwLock<Option<Database>>);

impl Slot {
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
    /// Opens a file, or creates it. Reads all of it.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] describes the damage of a file, which is left unchanged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_files(Arc::new(Disk::new(path.as_ref())))
    }

    fn open_files(files: Arc<dyn Files>) -> Result<Self, OpenError> {
        let (Opened { db, index, version }, journal) = open(&*files)?;
        let path = files.path().to_owned();
        let shared = Arc::new(Shared { slot: Slot(RwLock::new(Some(db))), index, health: Health::default() });
        let (jobs, queue) = std::sync::mpsc::channel();
        let writer = Writer::new(files, Arc::clone(&shared), journal, version);
        let thread = std::thread::Builder::new().name("names-store".to_owned());
        let thread = thread.spawn(move || writer.run(&queue));
        let thread = thread.map_err(|source| OpenError::Io { path, source })?;
        Ok(Self { shared, jobs: Some(jobs), writer: Some(thread) })
    }

    /// Recreates a damaged file from its journal, and from the readable parts of the file itself if the
    /// journal is damaged too. The damaged file is kept beside it, as `FILE.damaged`.
    ///
    /// # Errors
    /// [`RepairError`]. The file is then still in its place.
    pub fn repair(path: impl AsRef<Path>) -> Result<Repaired, RepairError> {
        repair::repair(path.as_ref())
    }
}

/// An opened database with its contents.
struct Opened {
    db: Database,
    index: Index,
    version: Version,
}

/// Opens both files, and makes them consistent.
fn open(files: &dyn Files) -> Result<(Opened, Option<Journal>), OpenError> {
    let path = files.path();
    // An empty file is the result of a crash before anything was written.
    if !path.metadata().is_ok_and(|file| file.len() > 0) {
        create(files)?;
    }
    let mut opened = open_existing(files)?;
    let journal = match agree(files, &mut opened)? {
        Some(journal) => Some(journal),
        None => match guarded(|| Journal::rewrite(files, &opened.db)) {
            Ok(Ok(journal)) => Some(journal),
            Ok(Err(Broken(error))) | Err(error) => {
                // The first change tries it again, and is refused if it fails again.
                tracing::error!(%error, path = %path.display(), "the names have no journal: where their file is damaged, they are lost");
                None
            }
        },
    };
    Ok((opened, journal))
}

/// Creates a new file without names.
fn create(files: &dyn Files) -> Result<(), OpenError> {
    let path = files.path();
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(mut journal) = files.journal().map_err(io)? {
        let found = Scan::of(&mut *journal, Version::default()).map_err(io)?;
        if found.version != Version::default() {
            return Err(OpenError::Damaged {
                path: path.to_owned(),
                what: "it is missing or empty, but it has a journal with names".to_owned(),
            });
        }
    }
    let failed = |error| open_failed(path, error);
    let file = files.database().map_err(failed)?;
    let db = open_database(file).map_err(failed)?;
    let made = guarded(|| tables::create(&db)).unwrap_or_else(|what| Err(Broken(what)));
    made.map_err(|Broken(what)| OpenError::Io { path: path.to_owned(), source: io::Error::other(what) })?;
    // The name of a new file is stored in its directory.
    files::sync_directory(path).map_err(io)
}

fn open_failed(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
        DatabaseError::Storage(DbError::Io(source)) if is_io(&source) => OpenError::Io { path, source },
        other => OpenError::Damaged { path, what: other.to_string() },
    }
}

/// Opens an existing file. It is first read without writing, so that a damaged file stays unchanged.
fn open_existing(files: &dyn Files) -> Result<Opened, OpenError> {
    let path = files.path();
    let failed = |error| open_failed(path, error);
    let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
    let file = files.database().map_err(failed)?;
    let checked = guarded(|| {
        let mut db = open_overlay(Arc::clone(&file), None).map_err(failed)?;
        // Pages have checksums. Unless they are verified, damaged pages may refer to any page, even in a
        // circle.
        if !db.check_integrity().map_err(failed)? {
            return Err(damaged("its pages are not what was written".to_owned()));
        }
        load(&db).map_err(|error| match error {
            Unread::Format(found) => OpenError::Format { path: path.to_owned(), found },
            Unread::Damaged(what) => damaged(what),
        })
    });
    let (index, version) = checked.map_err(damaged)??;
    let db = guarded(|| open_database(file)).map_err(damaged)?.map_err(failed)?;
    Ok(Opened { db, index, version })
}

/// Returns the journal if it matches the database. A batch that is only in the journal is applied to the
/// database: either the process was killed between the two writes, or the database went back by one batch
/// because its last page was incomplete.
fn agree(files: &dyn Files, opened: &mut Opened) -> Result<Option<Journal>, OpenError> {
    let path = files.path();
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
    let Some(mut file) = files.journal().map_err(io)? else { return Ok(None) };
    let found = Scan::of(&mut *file, opened.version).map_err(io)?;
    match (found.found, found.behind_found) {
        (Some(_), 0) => Ok(Journal::resume(file, &found).ok()),
        (Some(at), 1) => {
            let Some((effects, counts, version)) = journal::last_batch(&mut *file, at).map_err(io)? else {
                return Ok(None);
            };
            let replayed = guarded(|| changes::replay(&opened.db, &effects, &counts, version));
            replayed.unwrap_or_else(|what| Err(Broken(what))).map_err(|Broken(what)| damaged(what))?;
            effects.into_iter().for_each(|effect| effect.tell(&opened.index));
            opened.version = version;
            Ok(Journal::resume(file, &found).ok())
        }
        _ if found.version.number > opened.version.number => Err(damaged(format!(
            "it is older than its journal, which has {} batches of changes more; a repair takes the newer names, and with the journal moved away the older ones are taken",
            found.version.number - opened.version.number
        ))),
        _ => {
            if found.version.number == opened.version.number || !found.is_whole {
                tracing::warn!(path = %path.display(), "the journal of the names was damaged, or of other names; it is made anew");
            }
            Ok(None)
        }
    }
}

/// Returns whether the system reported the error, as opposed to invalid contents of the file.
fn is_io(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

thread_local! {
    /// True if panics of this thread are caught and converted to errors.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that uses a possibly damaged file. The database panics for some kinds of damage. Such a panic is
/// treated as an error of the file, so the panic message is not printed.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                others(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(outer);
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "its pages make no sense".to_owned())
    })
}

/// The description of a database error. The database's own errors are large, and of many types.
struct Broken(String);

impl<E: std::error::Error> From<E> for Broken {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The reason why a file cannot be read.
enum Unread {
    Format(u64),
    Damaged(String),
}

impl<E: std::error::Error> From<E> for Unread {
    fn from(error: E) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Reads the contents of a file.
fn load(db: &Database) -> Result<(Index, Version), Unread> {
    let txn = db.begin_read()?;
    let meta = txn.open_table(META)?;
    let version = Version::read(&meta)?;
    let counts = Counts::read(&meta)?.ok_or_else(|| {
        Unread::Damaged(format!("the table `{}` does not say how much there is", META.name()))
    })?;
    if !matches!(counts.format, tables::FORMAT | tables::UNVERSIONED) {
        return Err(Unread::Format(counts.format));
    }
    let index = Index::default();
    let (mut contexts, mut bindings) = (0, 0);
    for entry in txn.open_table(CONTEXTS)?.iter()? {
        let (id, sum) = entry?;
        let id = id.value();
        if tables::seal(id) != sum.value() || id >= counts.next {
            return Err(Unread::Damaged(format!("the context {id}")));
        }
        index.add_context(ContextId(id));
        contexts += 1;
    }
    for entry in txn.open_table(BINDINGS)?.iter()? {
        let (place, record) = entry?;
        let (context, text) = place.value();
        let broken =
            || Unread::Damaged(format!("the binding `{}` of context {context}", text.escape_debug()));
        let key = Key::from_text(text).ok_or_else(broken)?;
        let target = open_record(context, text, record.value()).ok_or_else(broken)?;
        index.bind(ContextId(context), key, Bound::new(target));
        bindings += 1;
    }
    if (contexts, bindings) != (counts.contexts, counts.bindings) {
        let Counts { contexts: c, bindings: b, .. } = counts;
        let what =
            format!("{contexts} contexts and {bindings} bindings can be read, {c} and {b} were written");
        return Err(Unread::Damaged(what));
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
        let read = || -> Result<Page, Broken> {
            let slot = self.shared.slot.read();
            let db = slot.as_ref().ok_or_else(|| Broken("its file can not be opened again".to_owned()))?;
            let table = db.begin_read()?.open_table(BINDINGS)?;
            let range = table.range(tables::behind(context, after.map(Key::text)))?;
            let bindings = range.filter_map(|entry| match entry {
                Ok((place, record)) => {
                    Key::from_text(place.value().1).map(|key| Ok((key, kind_of(record.value()))))
                }
                Err(error) => Some(Err(Broken::from(error))),
            });
            Page::of(bindings, limit)
        };
        read().map(Some).map_err(|Broken(what)| StoreError::new(what))
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        let (reply, replied) = oneshot::channel();
        let ended = || StoreError::new("it does not write any more: its log says why");
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(Job { change, reply }).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
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
