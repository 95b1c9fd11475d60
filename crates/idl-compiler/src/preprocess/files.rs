//! Access to files: on disk, in memory, or none.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::MAX_FILE_BYTES;

/// Access to files by path.
pub trait Files: Debug {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// `NotFound` if the file does not exist. After this error or `NotADirectory`, `#include` searches the
    /// next folder. After any other error, it fails.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns a path that is the same for all paths of one file, to recognize files that are included again.
    fn identity(&self, path: &Path) -> PathBuf {
        normalized(path)
    }

    /// Returns the path that a tool must watch to notice changes of the file.
    fn watch_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The file system.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    base: PathBuf,
}

impl Disk {
    /// Creates access to the file system. Relative paths start at the working directory.
    pub fn new() -> Self {
        Disk::default()
    }

    /// Creates access to the file system. Relative paths start at `base`, which messages do not show.
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Disk { base: base.into() }
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = self.base.join(path);
        let meta = std::fs::metadata(&path)?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "is a directory"));
        }
        // Reading a device or pipe may never end.
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(&path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let message = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(bytes)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        let path = self.base.join(path);
        path.canonicalize().unwrap_or_else(|_| normalized(&path))
    }

    fn watch_path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }
}

/// Files in memory, by path.
#[derive(Clone, Debug, Default)]
pub struct Memory(BTreeMap<PathBuf, Vec<u8>>);

impl<P: Into<PathBuf>, C: Into<Vec<u8>>> FromIterator<(P, C)> for Memory {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(files: I) -> Self {
        Memory(files.into_iter().map(|(path, content)| (normalized(&path.into()), content.into())).collect())
    }
}

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(&normalized(path)).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// No files: only the OMG's standard files, which are part of the compiler, can be included.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Returns the path without `.`, and without `..` and the folder name before it.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.components().next_back(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}
