//! The files of a store: the database and the journal.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageBackend};

/// The maximum size in bytes of the database's page cache. It can be small, because lookups use the index.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// The size in bytes of the blocks in which an [`Overlay`] stores written data.
const BLOCK_BYTES: usize = 4096;

pub(super) const JOURNAL_SUFFIX: &str = ".journal";

/// Access to the files of a store. Tests implement this trait to simulate failures.
pub(super) trait Files: Send + Sync + 'static {
    fn path(&self) -> &Path;

    /// Opens and locks the file of the database. Creates it if it does not exist.
    fn database(&self) -> Result<Arc<dyn StorageBackend>, DatabaseError>;

    /// Opens the journal. Returns `None` if it does not exist.
    fn journal(&self) -> io::Result<Option<Box<dyn JournalFile>>>;

    /// Creates an empty file for [`replace_journal`](Self::replace_journal).
    fn new_journal(&self) -> io::Result<Box<dyn JournalFile>>;

    /// Replaces the journal with the new file, and waits until the replacement is on disk.
    fn replace_journal(&self) -> io::Result<()>;
}

pub(super) trait JournalFile: Read + Write + Seek + Send {
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Waits until the contents of the file are on disk.
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

#[derive(Debug)]
pub(super) struct DiskFiles {
    path: PathBuf,
}

impl DiskFiles {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

impl Files for DiskFiles {
    fn path(&self) -> &Path {
        &self.path
    }

    fn database(&self) -> Result<Arc<dyn StorageBackend>, DatabaseError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path)?;
        Ok(Arc::new(FileBackend::new(file)?))
    }

    fn journal(&self) -> io::Result<Option<Box<dyn JournalFile>>> {
        match OpenOptions::new().read(true).write(true).open(with_suffix(&self.path, JOURNAL_SUFFIX)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn new_journal(&self) -> io::Result<Box<dyn JournalFile>> {
        let path = with_suffix(&self.path, ".journal.new");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        // The journal must have the same permissions as the database, because it has the same contents.
        file.set_permissions(self.path.metadata()?.permissions())?;
        Ok(Box::new(file))
    }

    fn replace_journal(&self) -> io::Result<()> {
        fs::rename(with_suffix(&self.path, ".journal.new"), with_suffix(&self.path, JOURNAL_SUFFIX))?;
        sync_directory(&self.path)
    }
}

/// Waits until the directory that contains the file `path` is on disk, with the names of its files.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new("."))).and_then(|file| file.sync_all())
}

/// Returns a path with a suffix added to the file name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

pub(super) fn open_database(file: Arc<dyn StorageBackend>) -> Result<Database, DatabaseError> {
    database_builder(CACHE_BYTES).create_with_backend(BoundsCheckedFile::new(file)?)
}

/// Opens the database in a file that may be damaged, without changing the file. Reads fail after the first
/// `max_reads`, because damaged pages may refer to each other in a cycle.
pub(super) fn open_overlay(
    file: Arc<dyn StorageBackend>,
    max_reads: Option<u64>,
) -> Result<Database, DatabaseError> {
    // The overlay cannot count reads that a cache answers.
    let cache_bytes = if max_reads.is_some() { 0 } else { CACHE_BYTES };
    database_builder(cache_bytes).create_with_backend(Overlay::new(file, max_reads.unwrap_or(u64::MAX))?)
}

fn database_builder(cache_bytes: usize) -> redb::Builder {
    let mut builder = Database::builder();
    // Versions of redb after this one can also read format v3.
    builder.set_cache_size(cache_bytes).create_with_file_format_v3(true);
    builder
}

fn out_of_range() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a page is beyond the end of the file")
}

fn check_range(offset: u64, len: usize, file_len: u64) -> io::Result<()> {
    let end = u64::try_from(len).ok().and_then(|len| offset.checked_add(len));
    if end.is_some_and(|end| end <= file_len) { Ok(()) } else { Err(out_of_range()) }
}

/// A file that rejects reads beyond its end, because damage could make the database allocate terabytes.
#[derive(Debug)]
struct BoundsCheckedFile {
    file: Arc<dyn StorageBackend>,
    len: AtomicU64,
}

impl BoundsCheckedFile {
    fn new(file: Arc<dyn StorageBackend>) -> io::Result<Self> {
        let len = AtomicU64::new(file.len()?);
        Ok(Self { file, len })
    }
}

impl StorageBackend for BoundsCheckedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(Ordering::Relaxed))
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        check_range(offset, len, self.len.load(Ordering::Relaxed))?;
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

/// A file whose changes are kept in memory and not written.
#[derive(Debug)]
struct Overlay {
    file: Arc<dyn StorageBackend>,
    remaining_reads: AtomicU64,
    state: Mutex<OverlayState>,
}

#[derive(Debug)]
struct OverlayState {
    len: u64,
    /// The length of the part of the file that has never been cut off by `set_len`. Unwritten bytes after it
    /// are zero.
    original_len: u64,
    /// The blocks that contain written data, by their number.
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
}

impl Overlay {
    fn new(file: Arc<dyn StorageBackend>, max_reads: u64) -> io::Result<Self> {
        let len = file.len()?;
        let state = Mutex::new(OverlayState { len, original_len: len, blocks: BTreeMap::new() });
        Ok(Self { file, remaining_reads: AtomicU64::new(max_reads), state })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, OverlayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the original contents of a range of the file, with zeros from `original_len` on.
    fn original(&self, offset: u64, len: usize, original_len: u64) -> io::Result<Vec<u8>> {
        let from_file = usize::try_from(original_len.saturating_sub(offset)).unwrap_or(usize::MAX).min(len);
        let mut data = if from_file > 0 { self.file.read(offset, from_file)? } else { Vec::new() };
        data.resize(len, 0);
        Ok(data)
    }
}

/// The part of a range of a file that is in one block.
struct BlockPart {
    block: u64,
    in_block: Range<usize>,
    /// Where the part is in the range.
    in_range: Range<usize>,
}

/// Divides a range of a file at the boundaries of blocks.
fn block_parts(offset: u64, len: usize) -> impl Iterator<Item = BlockPart> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let position = offset + done as u64;
        let (block, start) = (position / BLOCK_BYTES as u64, (position % BLOCK_BYTES as u64) as usize);
        let part_len = (BLOCK_BYTES - start).min(len - done);
        let part = BlockPart { block, in_block: start..start + part_len, in_range: done..done + part_len };
        done += part_len;
        Some(part)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().len)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let decrement = |remaining: u64| remaining.checked_sub(1);
        if self.remaining_reads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_err() {
            let reason = "too many reads: pages of the database may refer to each other in a cycle";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let state = self.state();
        check_range(offset, len, state.len)?;
        let mut data = self.original(offset, len, state.original_len)?;
        for part in block_parts(offset, len) {
            if let (Some(target), Some(written)) = (
                data.get_mut(part.in_range),
                state.blocks.get(&part.block).and_then(|block| block.get(part.in_block)),
            ) {
                target.copy_from_slice(written);
            }
        }
        Ok(data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.len = len;
        state.original_len = state.original_len.min(len);
        state.blocks.retain(|block, _| block * (BLOCK_BYTES as u64) < len);
        if let Some(last) = state.blocks.get_mut(&(len / BLOCK_BYTES as u64)) {
            // If the file grows again, the bytes after `len` must be zero.
            last.iter_mut().skip((len % BLOCK_BYTES as u64) as usize).for_each(|byte| *byte = 0);
        }
        Ok(())
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        for part in block_parts(offset, data.len()) {
            if !state.blocks.contains_key(&part.block) {
                let mut copy = Box::new([0; BLOCK_BYTES]);
                let block_offset = part.block * BLOCK_BYTES as u64;
                copy.copy_from_slice(&self.original(block_offset, BLOCK_BYTES, state.original_len)?);
                state.blocks.insert(part.block, copy);
            }
            if let (Some(target), Some(source)) = (
                state.blocks.get_mut(&part.block).and_then(|block| block.get_mut(part.in_block)),
                data.get(part.in_range),
            ) {
                target.copy_from_slice(source);
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
    fn an_overlay_returns_written_data_and_does_not_change_the_file() {
        let file = InMemoryBackend::new();
        file.set_len(10_000).unwrap();
        file.write(0, &[7; 10_000]).unwrap();
        let file: Arc<dyn StorageBackend> = Arc::new(file);
        let overlay = Overlay::new(Arc::clone(&file), u64::MAX).unwrap();
        overlay.write(4000, &[1; 5000]).unwrap();
        let mut expected = vec![7; 10_000];
        expected[4000..9000].fill(1);
        assert_eq!(overlay.read(0, 10_000).unwrap(), expected);
        assert_eq!(overlay.read(4095, 3).unwrap(), [1, 1, 1]);
        overlay.set_len(2).unwrap();
        overlay.set_len(20_000).unwrap();
        assert_eq!(overlay.read(0, 4).unwrap(), [7, 7, 0, 0]);
        assert!(overlay.read(19_999, 2).is_err() && overlay.read(u64::MAX, 2).is_err());
        assert_eq!(file.read(0, 10_000).unwrap(), [7; 10_000]);
    }

    #[test]
    fn an_overlay_fails_after_the_maximum_number_of_reads() {
        let file = InMemoryBackend::new();
        file.set_len(100).unwrap();
        let overlay = Overlay::new(Arc::new(file), 2).unwrap();
        assert!(overlay.read(0, 1).is_ok() && overlay.read(0, 1).is_ok());
        assert!(overlay.read(0, 1).is_err());
    }
}
