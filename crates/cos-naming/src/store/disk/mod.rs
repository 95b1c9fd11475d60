//! The store in a file: a `redb` database, with everything in memory for lookups.

mod repair;
mod tables;
mod writer;

use std::fmt;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use redb::{Database, DatabaseError, ReadableTable, StorageError as DbError, TableHandle};
use tokio::sync::oneshot;
use zorb::cos_naming::BindingType;

use self::tables::{BINDINGS, CONTEXTS, Counts, META, kind_of, open_record};
use self::writer::Job;
use super::index::Index;
use super::{Bound, Change, ChangeError, ContextId, Key, Lookup, Store, StoreError};

pub use self::repair::{RepairError, Repaired};

/// What the database may hold of its file in memory beside the index, in octets: it is read for `list` alone.
const CACHE: usize = 32 * 1024 * 1024;

/// Keeps contexts and bindings in a file, where nothing that was acknowledged is lost: neither by a kill at any moment nor, where the disk
/// keeps what it was told to, by a loss of power.
///
/// A thread of its own makes changes. All that wait for it are made in one transaction, with one wait for the disk, and acknowledged behind
/// it. Lookups are answered from memory, which has every binding (about 200 octets each beside its reference), and never wait for changes;
/// [`page`](Store::page) reads a snapshot of the file. One process has the file at a time.
///
/// Dropping it waits for the changes that are being made.
pub struct DiskStore {
    db: Arc<Database>,
    index: Arc<Index>,
    /// `None` while it ends.
    jobs: Option<std::sync::mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// Why a file of names is not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it, or another store of this one.
    #[error("{} is in use: one naming service at a time has it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// What is in it is not what was written. Nothing was changed.
    #[error(
        "{} is damaged: {what}. It is left as it is; put a copy from a backup in its place, or have DiskStore::repair save what can be read",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It is of another version of the service.
    #[error("{} has format {found}; this naming service knows format {}", path.display(), tables::FORMAT)]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
    },
    /// The system refuses.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl DiskStore {
    /// Opens a file, or makes it. Reads all of it.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] says what is wrong with a file; it is not changed then.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let (db, index) = open(path)?;
        let (db, index) = (Arc::new(db), Arc::new(index));
        let (jobs, queue) = std::sync::mpsc::channel();
        let (writes, indexed) = (Arc::clone(&db), Arc::clone(&index));
        let writer = std::thread::Builder::new().name("names-store".to_owned());
        let writer = writer.spawn(move || writer::run(&writes, &indexed, &queue));
        let writer = writer.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(Self { db, index, jobs: Some(jobs), writer: Some(writer) })
    }

    /// Saves what can be read of a damaged file into a new one in its place; the old one stays beside it, as `FILE.damaged`.
    ///
    /// # Errors
    /// [`RepairError`]; the file is where it was then.
    pub fn repair(path: impl AsRef<Path>) -> Result<Repaired, RepairError> {
        repair::repair(path.as_ref())
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    // The format that later versions of redb read too.
    builder.set_cache_size(CACHE).create_with_file_format_v3(true);
    builder
}

fn open(path: &Path) -> Result<(Database, Index), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
    // A file without an octet is what a crash leaves that came before anything was written.
    let is_there = path.metadata().is_ok_and(|file| file.len() > 0);
    let db = guarded(|| if is_there { builder().open(path) } else { builder().create(path) });
    let db = db.map_err(damaged)?.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path: path.to_owned() },
        DatabaseError::Storage(DbError::Io(e)) if is_io(&e) => io(e),
        other => damaged(other.to_string()),
    })?;
    let fresh = guarded(|| -> Result<_, Broken> { Ok(db.begin_read()?.list_tables()?.next().is_none()) });
    if fresh.map_err(damaged)?.map_err(|Broken(what)| damaged(what))? {
        tables::create(&db).map_err(|Broken(what)| damaged(what))?;
        // The name of a new file is kept by its directory.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new("."))).and_then(|file| file.sync_all()).map_err(io)?;
    }
    let index = guarded(|| load(&db)).map_err(damaged)?.map_err(|error| match error {
        Unread::Format(found) => OpenError::Format { path: path.to_owned(), found },
        Unread::Damaged(what) => damaged(what),
    })?;
    Ok((db, index))
}

/// Whether the system refused, rather than that what is in the file makes no sense.
fn is_io(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Runs what reads a file that may be damaged: the database panics for some damage that it does not expect.
fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "its pages make no sense".to_owned())
    })
}

/// What the database says it can not do. Its own errors are large, and of many types.
struct Broken(String);

impl<E: std::error::Error> From<E> for Broken {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Why a file is not read.
enum Unread {
    Format(u64),
    Damaged(String),
}

impl<E: std::error::Error> From<E> for Unread {
    fn from(error: E) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Everything that is in a file.
fn load(db: &Database) -> Result<Index, Unread> {
    let txn = db.begin_read()?;
    let counts = Counts::read(&txn.open_table(META)?)?.ok_or_else(|| {
        Unread::Damaged(format!("the table `{}` does not say how much there is", META.name()))
    })?;
    if counts.format != tables::FORMAT {
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
    Ok(index)
}

impl Store for DiskStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        Ok(self.index.lookup(context, key))
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        Ok(self.index.has(context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Option<Vec<(Key, BindingType)>>, StoreError> {
        if !self.index.has(context) {
            return Ok(None);
        }
        let read = || -> Result<Vec<_>, Broken> {
            let table = self.db.begin_read()?.open_table(BINDINGS)?;
            let mut page = Vec::new();
            for entry in table.range(tables::behind(context, after.map(Key::text)))?.take(limit) {
                let (place, record) = entry?;
                page.extend(Key::from_text(place.value().1).map(|key| (key, kind_of(record.value()))));
            }
            Ok(page)
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
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        // The writer ends when nothing more can come.
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
