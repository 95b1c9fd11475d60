//! The files of a store: the database, and the journal beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageBackend};

/// The maximum size in bytes of the database's page cache, beside the index. The database is read for `list`
/// only.
const CACHE: usize = 32 * 1024 * 1024;

/// The unit in which an [`Overlay`] keeps written data.
const BLOCK: usize = 4096;

/// The suffix of a journal's file name.
pub(super) const JOURNAL: &str = ".journal";

/// The location of the files of a store. Tests use files that fail.
pub(super) trait Files: Send + Sync + 'static {
    /// Returns the path of the database.
    fn path(&self) -> &Path;

    /// Opens and locks the database's file, which is created if it does not exist.
    fn database(&self) -> Result<Arc<dyn StorageBackend>, DatabaseError>;

    /// Opens the journal. Returns `None` if there is none.
    fn journal(&self) -> io::Result<Option<Box<dyn JournalFile>>>;

    /// Creates an empty journal, which [`adopt_journal`](Self::adopt_journal) puts in the place of the
    /// current one.
    fn new_journal(&self) -> io::Result<Box<dyn JournalFile>>;

    /// Replaces the journal by the new one, durably.
    fn adopt_journal(&self) -> io::Result<()>;
}

/// The file of a journal.
pub(super) trait JournalFile: Read + Write + Seek + Send {
    /// Sets the length of the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Waits until all of it is on disk.
    fn sync(&self) -> io::Result<()>;
}

impl JournalFile for File {
    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Files of the file system.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
}

impl Disk {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

impl Files for Disk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn database(&self) -> Result<Arc<dyn StorageBackend>, DatabaseError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path)?;
        Ok(Arc::new(FileBackend::new(file)?))
    }

    fn journal(&self) -> io::Result<Option<Box<dyn JournalFile>>> {
        match OpenOptions::new().read(true).write(true).open(beside(&self.path, JOURNAL)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new_journal(&self) -> io::Result<Box<dyn JournalFile>> {
        let path = beside(&self.path, ".journal.new");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        // The journal holds what the database holds, so the same users may read it.
        file.set_permissions(self.path.metadata()?.permissions())?;
        Ok(Box::new(file))
    }

    fn adopt_journal(&self) -> io::Result<()> {
        fs::rename(beside(&self.path, ".journal.new"), beside(&self.path, JOURNAL))?;
        sync_directory(&self.path)
    }
}

/// Makes the names of the files in the directory of a path durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new("."))).and_then(|file| file.sync_all())
}

/// Returns the path with a suffix after its last component.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Opens the database in a file.
pub(super) fn open_database(file: Arc<dyn StorageBackend>) -> Result<Database, DatabaseError> {
    database(CACHE).create_with_backend(Checked::new(file)?)
}

/// Opens the database in a file that may be damaged. The file is only read: data that the database writes
/// stays in memory. If `budget` is given, the database gets an error after that many reads, because damaged
/// pages may refer to each other in a circle.
pub(super) fn open_overlay(
    file: Arc<dyn StorageBackend>,
    budget: Option<u64>,
) -> Result<Database, DatabaseError> {
    // Without a cache every read is counted.
    let cache = if budget.is_some() { 0 } else { CACHE };
    database(cache).create_with_backend(Overlay::new(file, budget.unwrap_or(u64::MAX))?)
}

fn database(cache: usize) -> redb::Builder {
    let mut builder = Database::builder();
    // The format that later versions of redb read too.
    builder.set_cache_size(cache).create_with_file_format_v3(true);
    builder
}

fn out_of_range() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a page is beyond the end of the file")
}

fn fits(offset: u64, len: usize, end: u64) -> io::Result<()> {
    let last = u64::try_from(len).ok().and_then(|len| offset.checked_add(len));
    if last.is_some_and(|last| last <= end) { Ok(()) } else { Err(out_of_range()) }
}

/// A file that rejects reads beyond its end. A damaged reference to a page may request terabytes.
struct Checked {
    file: Arc<dyn StorageBackend>,
    len: AtomicU64,
}

impl Checked {
    fn new(file: Arc<dyn StorageBackend>) -> io::Result<Self> {
        let len = AtomicU64::new(file.len()?);
        Ok(Self { file, len })
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").finish_non_exhaustive()
    }
}

impl StorageBackend for Checked {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(Ordering::Relaxed))
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        fits(offset, len, self.len.load(Ordering::Relaxed))?;
        self.file.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.len.store(len, Ordering::Relaxed);
        Ok(())
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.file.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

/// A file with changes that stay in memory.
struct Overlay {
    file: Arc<dyn StorageBackend>,
    reads_left: AtomicU64,
    changed: Mutex<Changed>,
}

struct Changed {
    len: u64,
    /// The length of the part of the file that still has its original contents.
    kept: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Overlay {
    fn new(file: Arc<dyn StorageBackend>, reads_left: u64) -> io::Result<Self> {
        let len = file.len()?;
        let changed = Mutex::new(Changed { len, kept: len, blocks: BTreeMap::new() });
        Ok(Self { file, reads_left: AtomicU64::new(reads_left), changed })
    }

    fn changed(&self) -> std::sync::MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the original contents of the file, with zeros after its end.
    fn original(&self, offset: u64, len: usize, kept: u64) -> io::Result<Vec<u8>> {
        let there = usize::try_from(kept.saturating_sub(offset)).unwrap_or(usize::MAX).min(len);
        let mut data = if there > 0 { self.file.read(offset, there)? } else { Vec::new() };
        data.resize(len, 0);
        Ok(data)
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").finish_non_exhaustive()
    }
}

/// Returns the parts of a range by blocks: the number of the block, the offset in it, the offset in the
/// range, and the length.
fn blocks(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let place = offset + at as u64;
        let (block, within) = (place / BLOCK as u64, (place % BLOCK as u64) as usize);
        let size = (BLOCK - within).min(len - at);
        let part = (block, within, at, size);
        at += size;
        Some(part)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed().len)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let left = |left: u64| left.checked_sub(1);
        if self.reads_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_err() {
            let what = "its pages refer to each other in a circle";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let changed = self.changed();
        fits(offset, len, changed.len)?;
        let mut data = self.original(offset, len, changed.kept)?;
        for (block, within, at, size) in blocks(offset, len) {
            if let (Some(part), Some(written)) = (
                data.get_mut(at..at + size),
                changed.blocks.get(&block).and_then(|block| block.get(within..within + size)),
            ) {
                part.copy_from_slice(written);
            }
        }
        Ok(data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changed = self.changed();
        changed.len = len;
        changed.kept = changed.kept.min(len);
        changed.blocks.retain(|block, _| block * (BLOCK as u64) < len);
        if let Some(cut) = changed.blocks.get_mut(&(len / BLOCK as u64)) {
            // If the file grows again, this part must be zero.
            cut.iter_mut().skip((len % BLOCK as u64) as usize).for_each(|byte| *byte = 0);
        }
        Ok(())
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        for (block, within, at, size) in blocks(offset, data.len()) {
            if !changed.blocks.contains_key(&block) {
                let mut copy = Box::new([0; BLOCK]);
                copy.copy_from_slice(&self.original(block * BLOCK as u64, BLOCK, changed.kept)?);
                changed.blocks.insert(block, copy);
            }
            if let (Some(to), Some(from)) = (
                changed.blocks.get_mut(&block).and_then(|block| block.get_mut(within..within + size)),
                data.get(at..at + size),
            ) {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn an_overlay_shows_what_was_written_and_leaves_the_file_as_it_is() {
        let file = InMemoryBackend::new();
        file.set_len(10_000).unwrap();
        file.write(0, &[7; 10_000]).unwrap();
        let file: Arc<dyn StorageBackend> = Arc::new(file);
        let overlay = Overlay::new(Arc::clone(&file), u64::MAX).unwrap();
        overlay.write(4000, &[1; 5000]).unwrap();
        let mut shown = vec![7; 10_000];
        shown[4000..9000].fill(1);
        assert_eq!(overlay.read(0, 10_000).unwrap(), shown);
        assert_eq!(overlay.read(4095, 3).unwrap(), [1, 1, 1]);
        overlay.set_len(2).unwrap();
        overlay.set_len(20_000).unwrap();
        assert_eq!(overlay.read(0, 4).unwrap(), [7, 7, 0, 0]);
        assert!(overlay.read(19_999, 2).is_err() && overlay.read(u64::MAX, 2).is_err());
        assert_eq!(file.read(0, 10_000).unwrap(), [7; 10_000]);
    }

    #[test]
    fn a_budget_ends_reads() {
        let file = InMemoryBackend::new();
        file.set_len(100).unwrap();
        let overlay = Overlay::new(Arc::new(file), 2).unwrap();
        assert!(overlay.read(0, 1).is_ok() && overlay.read(0, 1).is_ok());
        assert!(overlay.read(0, 1).is_err());
    }
}
