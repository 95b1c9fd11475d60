//! Recreates a damaged file from its journal and from the readable parts of the file.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{DatabaseError, ReadableTable, StorageBackend};

use super::super::{ContextId, Key, Target};
use super::files::{DiskFiles, Files, open_database, open_overlay, sync_directory, with_suffix};
use super::journal::Contents;
use super::tables::{
    self, BINDINGS, CONTEXTS, Counts, META, Version, context_checksum, decode_record, encode_record,
};
use super::{Failure, catch_panic, load};

/// The stack size, in bytes, of the thread that reads a damaged file. The database reads pages recursively.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of reads of a damaged file is `BASE_READS`, plus `READS_PER_PAGE` for each page.
const BASE_READS: u64 = 10_000;
const READS_PER_PAGE: u64 = 16;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairSummary {
    /// The number of contexts in the new file.
    pub contexts: u64,
    /// The number of bindings in the new file.
    pub bindings: u64,
    /// The number of bindings of the old file that are not in the new one. `None` if it is not known.
    pub lost_bindings: Option<u64>,
    /// True if all names come from the journal. False if some or all names come from the old file.
    pub from_journal: bool,
    /// The path to which the old file was moved, if it existed.
    pub damaged_file: PathBuf,
}

/// The reason why a file cannot be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Another process, or a store of this process, has opened the file.
    #[error("{} is in use: stop the naming service that uses it first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Neither the file nor its journal can be read.
    #[error("neither {} nor its journal can be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why the file cannot be read.
        reason: String,
    },
    /// The operating system reported an error.
    #[error("cannot repair {}: {source}", path.display())]
    Io {
        /// The file that is read or written.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The database reported an error while the new file was written.
    #[error("cannot write {}: {reason}", path.display())]
    NewFile {
        /// The new file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

pub(super) fn repair(path: &Path) -> Result<RepairSummary, RepairError> {
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| RepairError::Io { path, source }
    };
    let files = DiskFiles::new(path);
    // Lock the file, because a running store would continue to use the old file.
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Some(FileBackend::new(file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => RepairError::InUse { path: path.to_owned() },
            other => RepairError::Io { path: path.to_owned(), source: io::Error::other(other) },
        })?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io_error(path)(error)),
    };
    let journal = match files.journal().map_err(io_error(path))? {
        Some(mut file) => Contents::read(&mut *file).map_err(io_error(path))?,
        None => Contents::default(),
    };
    let file = file.map(|file| Arc::new(file) as Arc<dyn StorageBackend>);
    let file_contents = match &file {
        Some(file) => read_in_thread(file).map_err(io_error(path))?,
        None => Err("the file does not exist".to_owned()),
    };
    let (data, from_journal) = choose_source(path, file_contents, journal)?;
    let new_file = with_suffix(path, ".repaired");
    match fs::remove_file(&new_file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&new_file)(error)),
        _ => {}
    }
    let written = write(&new_file, &data);
    let counts =
        written.map_err(|Failure(reason)| RepairError::NewFile { path: new_file.clone(), reason })?;
    let damaged_file = with_suffix(path, ".damaged");
    if file.is_some() {
        link_or_copy(path, &damaged_file).map_err(io_error(&damaged_file))?;
    }
    // The new file must replace the old one atomically. If the file did not exist for a moment, a store that
    // is opened in this moment would create an empty one.
    fs::rename(&new_file, path).map_err(io_error(path))?;
    sync_directory(path).map_err(io_error(path))?;
    let lost_bindings = match data.is_complete {
        true => Some(0),
        false => data.counts.map(|before| before.bindings.saturating_sub(counts.bindings)),
    };
    let Counts { contexts, bindings, .. } = counts;
    Ok(RepairSummary { contexts, bindings, lost_bindings, from_journal, damaged_file })
}

/// Gives a file a second name, or copies it to that name.
fn link_or_copy(path: &Path, second: &Path) -> io::Result<()> {
    match fs::remove_file(second) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Some file systems do not support hard links.
    fs::hard_link(path, second).or_else(|_| fs::copy(path, second).map(drop))
}

/// Selects the data of the file, the journal, or both. Also returns whether only the journal is
/// used.
fn choose_source(
    path: &Path,
    file_contents: Result<Contents, String>,
    journal: Contents,
) -> Result<(Contents, bool), RepairError> {
    let has_journal = journal.is_complete || !journal.contexts.is_empty();
    let (mut data, from_journal) = match file_contents {
        Err(reason) if !has_journal => return Err(RepairError::Unreadable { path: path.to_owned(), reason }),
        Err(_) => (journal, true),
        Ok(file) if file.is_complete && file.version.number >= journal.version.number => (file, false),
        // If the version of the file cannot be read, it is 0. The journal has all acknowledged changes.
        Ok(file) if journal.is_complete && file.version.number <= journal.version.number => (journal, true),
        Ok(file) if !has_journal => (file, false),
        Ok(file) => (merge(file, journal), false),
    };
    data.add_missing_contexts();
    Ok((data, from_journal))
}

/// Merges the data of the file and the journal. If both have an entry, the newer version's is used.
fn merge(file: Contents, journal: Contents) -> Contents {
    let (newer, older) =
        if file.version.number >= journal.version.number { (file, journal) } else { (journal, file) };
    let Contents { mut contexts, mut bindings, .. } = older;
    contexts.extend(newer.contexts);
    bindings.extend(newer.bindings);
    // This version matches neither file, so the journal is replaced when the store is opened.
    let Version { number, chain_checksum } = newer.version;
    let version = Version { number: number.saturating_add(1), chain_checksum: !chain_checksum };
    Contents { contexts, bindings, counts: newer.counts, version, is_complete: false }
}

/// Reads a damaged file in a separate thread with a large stack.
fn read_in_thread(file: &Arc<dyn StorageBackend>) -> io::Result<Result<Contents, String>> {
    let file = Arc::clone(file);
    let thread = std::thread::Builder::new().name("names-repair".to_owned()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || catch_panic(|| read(&file)).and_then(|read| read))?;
    Ok(thread.join().unwrap_or_else(|_| Err("the database panicked because of damaged pages".to_owned())))
}

/// Reads the tables of a file without changing it. Reads each table from both ends
/// up to the first page that cannot be read, and skips entries with a wrong checksum.
fn read(file: &Arc<dyn StorageBackend>) -> Result<Contents, String> {
    let mut data = Contents::default();
    let pages = file.len().map_err(|error| error.to_string())? / 4096;
    let max_reads = BASE_READS + READS_PER_PAGE * pages;
    data.is_complete = catch_panic(|| {
        let mut db = open_overlay(Arc::clone(file), Some(max_reads)).map_err(drop)?;
        let is_valid = db.check_integrity().map_err(drop)? && load(&db).is_ok();
        Ok::<_, ()>(is_valid)
    })
    .is_ok_and(|is_valid| is_valid == Ok(true));
    let db = open_overlay(Arc::clone(file), Some(max_reads)).map_err(|error| error.to_string())?;
    let txn = db.begin_read().map_err(|error| error.to_string())?;
    // After a failed read, the other tables and the other end of the table may still be readable.
    let _ = catch_panic(|| {
        if let Ok(table) = txn.open_table(META) {
            data.version = Version::read(&table).unwrap_or_default();
            data.counts = Counts::read(&table).ok().flatten();
        }
    });
    for backwards in [false, true] {
        let _ = catch_panic(|| {
            let Ok(table) = txn.open_table(CONTEXTS) else { return };
            let Ok(mut range) = table.iter() else { return };
            while let Some(Ok(entry)) = if backwards { range.next_back() } else { range.next() } {
                let id = entry.0.value();
                if context_checksum(id) == entry.1.value() {
                    data.contexts.insert(id);
                }
            }
        });
        let _ = catch_panic(|| {
            let Ok(table) = txn.open_table(BINDINGS) else { return };
            let Ok(mut range) = table.iter() else { return };
            while let Some(Ok((id, record))) = if backwards { range.next_back() } else { range.next() } {
                let (context, key) = id.value();
                let target = decode_record(context, key, record.value());
                if let (Some(target), Some(_)) = (target, Key::from_text(key)) {
                    data.bindings.insert((context, key.to_owned()), target);
                }
            }
        });
    }
    Ok(data)
}

impl Contents {
    /// Adds the root context and all contexts that have bindings. If contexts are still missing according to
    /// the counts, also adds all contexts to which a name is bound.
    fn add_missing_contexts(&mut self) {
        let has_all = self.counts.is_some_and(|counts| counts.contexts == self.contexts.len() as u64);
        self.contexts.insert(ContextId::ROOT.0);
        for ((context, _), target) in &self.bindings {
            self.contexts.insert(*context);
            match target {
                Target::Context(ContextId(id)) if !has_all => {
                    self.contexts.insert(*id);
                }
                _ => {}
            }
        }
    }
}

fn write(path: &Path, data: &Contents) -> Result<Counts, Failure> {
    let db = open_database(DiskFiles::new(path).database()?)?;
    let last_context = data.contexts.last().copied().unwrap_or_default();
    let counts = Counts {
        format: tables::FORMAT,
        contexts: data.contexts.len() as u64,
        bindings: data.bindings.len() as u64,
        next_context: data.counts.map_or(0, |counts| counts.next_context).max(last_context + 1),
    };
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        counts.write(&mut meta)?;
        data.version.write(&mut meta)?;
        let mut contexts = txn.open_table(CONTEXTS)?;
        for id in &data.contexts {
            contexts.insert(*id, context_checksum(*id))?;
        }
        let mut bindings = txn.open_table(BINDINGS)?;
        for ((context, key), target) in &data.bindings {
            bindings.insert((*context, key.as_str()), encode_record(*context, key, target).as_slice())?;
        }
    }
    txn.commit()?;
    Ok(counts)
}
