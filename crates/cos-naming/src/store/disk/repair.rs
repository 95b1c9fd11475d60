//! Saving what can be read of a damaged file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableTable};

use super::super::{ContextId, Key, Target};
use super::tables::{self, BINDINGS, CONTEXTS, Counts, META, open_record, record, seal};
use super::{Broken, builder, guarded};

/// What a repair brought.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Contexts in the new file.
    pub contexts: u64,
    /// Bindings in the new file.
    pub bindings: u64,
    /// How many bindings the old file should have had beside them, where it says that.
    pub lost: Option<u64>,
    /// The old file.
    pub damaged: PathBuf,
}

/// Why a file can not be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Nothing of it can be read.
    #[error("nothing can be read of {}: {what}", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The new file can not be written, or the old one not copied.
    #[error("cannot repair {}: {source}", path.display())]
    Io {
        /// The file that is read or written.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The new file can not be written.
    #[error("cannot repair {}: {what}", path.display())]
    New {
        /// The new file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// What was read.
#[derive(Default)]
struct Saved {
    contexts: BTreeSet<u64>,
    bindings: BTreeMap<(u64, String), Target>,
    counts: Option<Counts>,
}

pub(super) fn repair(path: &Path) -> Result<Repaired, RepairError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| RepairError::Io { path, source }
    };
    let (copy, fresh) = (beside(path, ".repairing"), beside(path, ".repaired"));
    // Opening a database that was not closed writes to it, so that is done to a copy.
    fs::copy(path, &copy).map_err(at(&copy))?;
    let read = guarded(|| read(&copy)).and_then(|read| read);
    fs::remove_file(&copy).map_err(at(&copy))?;
    let mut saved = read.map_err(|what| RepairError::Nothing { path: path.to_owned(), what })?;
    saved.complete();
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&fresh)(error)),
        _ => {}
    }
    let written = write(&fresh, &saved);
    let counts = written.map_err(|Broken(what)| RepairError::New { path: fresh.clone(), what })?;
    let damaged = beside(path, ".damaged");
    fs::rename(path, &damaged).map_err(at(&damaged))?;
    fs::rename(&fresh, path).map_err(at(path))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new("."))).and_then(|file| file.sync_all()).map_err(at(path))?;
    let lost = saved.counts.map(|before| before.bindings.saturating_sub(counts.bindings));
    Ok(Repaired { contexts: counts.contexts, bindings: counts.bindings, lost, damaged })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Reads each table from both ends up to where it is damaged.
fn read(path: &Path) -> Result<Saved, String> {
    let db = builder().open(path).map_err(|error| error.to_string())?;
    let mut saved = Saved::default();
    let txn = db.begin_read().map_err(|error| error.to_string())?;
    // What one table or one end does not give, another one may.
    let _ = guarded(|| {
        if let Ok(table) = txn.open_table(META) {
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
    /// Where contexts are missing, those that bindings lead to are made anew; those that bindings are in are there anyway.
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
    let db: Database = builder().create(path)?;
    let last = saved.contexts.last().copied().unwrap_or_default();
    let counts = Counts {
        format: tables::FORMAT,
        contexts: saved.contexts.len() as u64,
        bindings: saved.bindings.len() as u64,
        next: saved.counts.map_or(0, |counts| counts.next).max(last + 1),
    };
    let txn = db.begin_write()?;
    counts.write(&mut txn.open_table(META)?)?;
    {
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
