//! How CORBA peers find each other: IOR files, and object URLs with stable keys, `ttcp`, `wide` and so on.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};

/// An object of a bench server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// `Ttcp` of the contract.
    Ttcp,
    /// `Wide` of the contract.
    Wide,
    /// `Series` of the contract.
    Series,
    /// `WideOneway` of the contract.
    WideOneway,
    /// `Thousand` of the contract.
    Thousand,
    /// `ThousandOneway` of the contract.
    ThousandOneway,
    /// `Tally` of the contract.
    Tally,
    /// `Lookups`, which only `ttcp server` has.
    Lookups,
    /// `ZeroCopy::Ttcp`, which only `ttcp server` has.
    ZeroCopy,
}

impl Object {
    /// Returns the object with a hundred operations, or with a thousand, of that kind.
    pub const fn wide(operations: u32, oneway: bool) -> Object {
        match (operations > 100, oneway) {
            (false, false) => Object::Wide,
            (false, true) => Object::WideOneway,
            (true, false) => Object::Thousand,
            (true, true) => Object::ThousandOneway,
        }
    }

    /// Returns its key in object URLs.
    pub const fn key(self) -> &'static str {
        match self {
            Object::Ttcp => "ttcp",
            Object::Wide => "wide",
            Object::Series => "series",
            Object::WideOneway => "wide-oneway",
            Object::Thousand => "thousand",
            Object::ThousandOneway => "thousand-oneway",
            Object::Tally => "tally",
            Object::Lookups => "lookups",
            Object::ZeroCopy => "zero",
        }
    }

    /// Returns the file of its IOR: `path` for `Ttcp`, next to it for the others.
    fn file(self, path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        if self != Object::Ttcp {
            name.push(".");
            name.push(self.key());
        }
        PathBuf::from(name)
    }
}

/// The way by which a client finds the server: a file or the address part of an object URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `corbaloc:...` without a key.
    Corbaloc(String),
    /// The file with the IOR of `Ttcp`. The files of the others are next to it, with their keys appended to
    /// its name: `PATH.wide`.
    File(PathBuf),
}

impl Address {
    /// Returns the object URL (`IOR:...` or `corbaloc:...`) of an object.
    ///
    /// # Errors
    /// The file cannot be read or is empty.
    pub fn url(&self, object: Object) -> anyhow::Result<String> {
        match self {
            Address::Corbaloc(address) => Ok(format!("{address}/{}", object.key())),
            Address::File(path) => {
                let path = object.file(path);
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read the IOR file {}", path.display()))?;
                match text.split_whitespace().next() {
                    Some(url) => Ok(url.to_owned()),
                    None => anyhow::bail!("the IOR file {} is empty", path.display()),
                }
            }
        }
    }
}

impl FromStr for Address {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text.starts_with("corbaloc:") {
            Address::Corbaloc(text.trim_end_matches('/').to_owned())
        } else {
            Address::File(PathBuf::from(text))
        })
    }
}

/// Writes the IORs to `PATH` and next to it, each atomically, and that of `Ttcp` last. A client that waits
/// for `PATH` finds all of them complete.
///
/// # Errors
/// A file cannot be written; the message names it.
pub fn publish(path: &Path, ttcp: &str, others: &[(Object, String)]) -> anyhow::Result<()> {
    let others = others.iter().map(|(object, ior)| (object.file(path), ior.as_str()));
    for (path, ior) in others.chain([(path.to_owned(), ttcp)]) {
        write_whole(&path, ior).with_context(|| format!("cannot write the IOR file {}", path.display()))?;
    }
    Ok(())
}

/// Returns the path of the file with the references to the called objects.
pub fn references_path(ior: &Path) -> PathBuf {
    let mut name = ior.as_os_str().to_owned();
    name.push(".objects");
    PathBuf::from(name)
}

/// Returns the references to the called objects.
///
/// # Errors
/// The file cannot be read, or has no references.
pub fn references(ior: &Path) -> anyhow::Result<Vec<String>> {
    let path = references_path(ior);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: is the server one with --objects?", path.display()))?;
    let references: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(!references.is_empty(), "{} has no reference", path.display());
    Ok(references)
}

/// Writes the references to the called objects atomically to [`references_path`].
///
/// # Errors
/// The file cannot be written; the message names it.
pub fn publish_called(ior: &Path, references: &[String]) -> anyhow::Result<()> {
    let path = references_path(ior);
    write_whole(&path, &references.join("\n"))
        .with_context(|| format!("cannot write the references {}", path.display()))
}

/// Announces on stdout that the server is ready for calls: `READY <how to reach it>`.
///
/// # Errors
/// stdout is closed.
pub fn ready(how: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "READY {how}")?;
    out.flush()
}

fn write_whole(path: &Path, line: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{line}")?;
    // Temporary files are private; an IOR must be readable for other users.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        let Ok(address) = text.parse();
        address
    }

    #[test]
    fn corbaloc_gets_the_key_of_the_tested_object() {
        let a = address("corbaloc::127.0.0.1:47002");
        assert_eq!(a.url(Object::Ttcp).unwrap(), "corbaloc::127.0.0.1:47002/ttcp");
        assert_eq!(a.url(Object::Wide).unwrap(), "corbaloc::127.0.0.1:47002/wide");
        assert_eq!(a.url(Object::ZeroCopy).unwrap(), "corbaloc::127.0.0.1:47002/zero");
        assert_eq!(
            address("corbaloc:iiop:1.1@h:1/").url(Object::Ttcp).unwrap(),
            "corbaloc:iiop:1.1@h:1/ttcp"
        );
    }

    #[test]
    fn published_files_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.ior");
        let others = [(Object::Wide, "IOR:02".to_owned()), (Object::ZeroCopy, "IOR:03".to_owned())];
        publish(&path, "IOR:01", &others).unwrap();
        let a = address(path.to_str().unwrap());
        assert_eq!(a.url(Object::Ttcp).unwrap(), "IOR:01");
        assert_eq!(a.url(Object::Wide).unwrap(), "IOR:02");
        assert_eq!(a.url(Object::ZeroCopy).unwrap(), "IOR:03");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
    }

    #[test]
    fn a_missing_or_empty_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.ior");
        let text = format!("{:#}", address(path.to_str().unwrap()).url(Object::Ttcp).unwrap_err());
        assert!(text.contains("none.ior") && text.contains("No such file"), "{text}");
        std::fs::write(&path, " \n").unwrap();
        let text = address(path.to_str().unwrap()).url(Object::Ttcp).unwrap_err().to_string();
        assert!(text.contains("is empty"), "{text}");
    }
}
