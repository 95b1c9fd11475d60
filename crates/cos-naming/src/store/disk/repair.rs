//! Recreating a damaged file from its journal, and from the readable parts of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{DatabaseError, ReadableTable, StorageBackend};

use super::super::{ContextId, Key, Target};
use super::files::{Disk, Files, beside, open_database, open_overlay, sync_directory};
use super::journal::Contents;
use super::tables::{self, BINDINGS, CONTEXTS, Counts, META, Version, open_record, record, seal};
use super::{Broken, guarded, load};

/// The stack size of the thread that reads a damaged file. The database reads nested pages by recursion.
const STACK: usize = 64 * 1024 * 1024;

/// The maximum number of reads of a damaged file: a fixed number, and a number for each page.
const BUDGET: (u64, u64) = (10_000, 16);

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Contexts in the new file.
    pub contexts: u64,
    /// Bindings in the new file.
    pub bindings: u64,
    /// The number of bindings that are missing in the new file, if it is known. 0 if all come from the
    /// journal.
    pub lost: Option<u64>,
    /// True if the names come from the journal, or if the old file was undamaged.
    pub from_journal: bool,
    /// The path of the old file.
    pub damaged: PathBuf,
}

/// The reason why a file cannot be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Another process has opened it, or a store of this process.
    #[error("{} is in use: end the naming service that has it first", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Neither it nor its journal can be read.
    #[error("nothing can be read of {}, nor of its journal: {what}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// The new file cannot be written, or the old one not copied.
    #[error("cannot repair {}: {source}", path.display())]
    Io {
        /// The file that is read or written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The new file cannot be written.
    #[error("cannot repair {}: {what}", path.display())]
    New {
        /// The new file.
        path: PathBuf,
        /// The error.
        what: String,
    },
}

/// The data that was read.
#[derive(Default)]
struct Saved {
    contexts: BTreeSet<u64>,
    bindings: BTreeMap<(u64, String), Target>,
    counts: Option<Counts>,
    version: Version,
    /// True if none of it is damaged.
    is_whole: bool,
}

pub(super) fn repair(path: &Path) -> Result<Repaired, RepairError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| RepairError::Io { path, source }
    };
    let files = Disk::new(path);
    // A store that has opened the file would continue with the old one.
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Some(FileBackend::new(file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => RepairError::InUse { path: path.to_owned() },
            other => RepairError::Io { path: path.to_owned(), source: io::Error::other(other) },
        })?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(at(path)(error)),
    };
    let journal = match files.journal().map_err(at(path))? {
        Some(mut file) => Contents::of(&mut *file).map_err(at(path))?,
        None => Contents::default(),
    };
    let file = file.map(|file| Arc::new(file) as Arc<dyn StorageBackend>);
    let read = match &file {
        Some(file) => read_apart(file).map_err(at(path))?,
        None => Err("there is no such file".to_owned()),
    };
    let (saved, from_journal) = choose(path, read, journal)?;
    let fresh = beside(path, ".repaired");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&fresh)(error)),
        _ => {}
    }
    let written = write(&fresh, &saved);
    let counts = written.map_err(|Broken(what)| RepairError::New { path: fresh.clone(), what })?;
    let damaged = beside(path, ".damaged");
    if file.is_some() {
        keep(path, &damaged).map_err(at(&damaged))?;
    }
    // At every moment a file of that name must exist: otherwise a store could create a new one without names.
    fs::rename(&fresh, path).map_err(at(path))?;
    sync_directory(path).map_err(at(path))?;
    let lost = match saved.is_whole {
        true => Some(0),
        false => saved.counts.map(|before| before.bindings.saturating_sub(counts.bindings)),
    };
    Ok(Repaired { contexts: counts.contexts, bindings: counts.bindings, lost, from_journal, damaged })
}

/// Gives a file a second name.
fn keep(path: &Path, other: &Path) -> io::Result<()> {
    match fs::remove_file(other) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Some file systems do not support hard links.
    fs::hard_link(path, other).or_else(|_| fs::copy(path, other).map(drop))
}

/// Selects the names to keep. Also returns whether all of them come from the journal.
fn choose(path: &Path, read: Result<Saved, String>, journal: Contents) -> Result<(Saved, bool), RepairError> {
    let has_journal = journal.is_whole || !journal.contexts.is_empty();
    let Contents { contexts, bindings, counts, version, is_whole } = journal;
    let journal = Saved { contexts, bindings, counts, version, is_whole };
    let (mut saved, from_journal) = match read {
        Err(what) if !has_journal => return Err(RepairError::Nothing { path: path.to_owned(), what }),
        Err(_) => (journal, true),
        Ok(file) if file.is_whole && file.version.number >= journal.version.number => (file, false),
        // If the version of the file is unknown, the journal has all acknowledged changes.
        Ok(file) if journal.is_whole && file.version.number <= journal.version.number => (journal, true),
        Ok(file) if !has_journal => (file, false),
        Ok(file) => (both(file, journal), false),
    };
    saved.complete();
    Ok((saved, from_journal))
}

/// Merges both. If both have an entry, the newer one is used.
fn both(file: Saved, journal: Saved) -> Saved {
    let (newer, older) =
        if file.version.number >= journal.version.number { (file, journal) } else { (journal, file) };
    let Saved { mut contexts, mut bindings, .. } = older;
    contexts.extend(newer.contexts);
    bindings.extend(newer.bindings);
    // The result equals neither of the two, so the journal does not match the new file.
    let Version { number, chain } = newer.version;
    let version = Version { number: number.saturating_add(1), chain: !chain };
    Saved { contexts, bindings, counts: newer.counts, version, is_whole: false }
}

/// Reads a file in a thread of its own with a sufficient stack.
fn read_apart(file: &Arc<dyn StorageBackend>) -> io::Result<Result<Saved, String>> {
    let file = Arc::clone(file);
    let thread = std::thread::Builder::new().name("names-repair".to_owned()).stack_size(STACK);
    let thread = thread.spawn(move || guarded(|| read(&file)).and_then(|read| read))?;
    Ok(thread.join().unwrap_or_else(|_| Err("its pages make no sense".to_owned())))
}

/// Reads all of a file, or each table from both ends up to the damage. The file is not written to.
fn read(file: &Arc<dyn StorageBackend>) -> Result<Saved, String> {
    let mut saved = Saved::default();
    let pages = file.len().map_err(|error| error.to_string())? / 4096;
    let budget = BUDGET.0 + BUDGET.1 * pages;
    saved.is_whole = guarded(|| {
        let mut db = open_overlay(Arc::clone(file), Some(budget)).map_err(drop)?;
        let sound = db.check_integrity().map_err(drop)? && load(&db).is_ok();
        Ok::<_, ()>(sound)
    })
    .is_ok_and(|sound| sound == Ok(true));
    let db = open_overlay(Arc::clone(file), Some(budget)).map_err(|error| error.to_string())?;
    let txn = db.begin_read().map_err(|error| error.to_string())?;
    // Data that one table or one end does not yield may be available from another one.
    let _ = guarded(|| {
        if let Ok(table) = txn.open_table(META) {
            saved.version = Version::read(&table).unwrap_or_default();
            saved.counts = Counts::read(&table).ok().flatten();
        }
    });
    for backwards in [false, true] {
        let _ = guarded(|| {
            let Ok(table) = txn.open_table(CONTEXTS) else { return };
            let Ok(mut range) = table.iter() else { return };
            while let Some(Ok(entry)) = if backwards { range.next_back() } else { range.next() } {
                let id = entry.0.value();
                if seal(id) == entry.1.value() {
                    saved.contexts.insert(id);
                }
            }
        });
        let _ = guarded(|| {
            let Ok(table) = txn.open_table(BINDINGS) else { return };
            let Ok(mut range) = table.iter() else { return };
            while let Some(Ok((place, record))) = if backwards { range.next_back() } else { range.next() } {
                let (context, key) = place.value();
                let target = open_record(context, key, record.value());
                if let (Some(target), Some(_)) = (target, Key::from_text(key)) {
                    saved.bindings.insert((context, key.to_owned()), target);
                }
            }
        });
    }
    Ok(saved)
}

impl Saved {
    /// Adds missing contexts: those that have bindings, and, if the number of contexts is too small, those
    /// that bindings lead to.
    fn complete(&mut self) {
        let whole = self.counts.is_some_and(|counts| counts.contexts == self.contexts.len() as u64);
        self.contexts.insert(ContextId::ROOT.0);
        for ((context, _), target) in &self.bindings {
            self.contexts.insert(*context);
            match target {
                Target::Context(ContextId(id)) if !whole => {
                    self.contexts.insert(*id);
                }
                _ => {}
            }
        }
    }
}

fn write(path: &Path, saved: &Saved) -> Result<Counts, Broken> {
    let db = open_database(Disk::new(path).database()?)?;
    let last = saved.contexts.last().copied().unwrap_or_default();
    let counts = Counts {
        format: tables::FORMAT,
        contexts: saved.contexts.len() as u64,
        bindings: saved.bindings.len() as u64,
        next: saved.counts.map_or(0, |counts| counts.next).max(last + 1),
    };
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        counts.write(&mut meta)?;
        saved.version.write(&mut meta)?;
        let mut contexts = txn.open_table(CONTEXTS)?;
        for id in &saved.contexts {
            contexts.insert(*id, seal(*id))?;
        }
        let mut bindings = txn.open_table(BINDINGS)?;
        for ((context, key), target) in &saved.bindings {
            bindings.insert((*context, key.as_str()), record(*context, key, target).as_slice())?;
        }
    }
    txn.commit()?;
    Ok(counts)
}
