//! How CORBA clients find a server's objects: by files with IORs, or by object URLs with keys such as `ttcp`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};

/// An object of the servers of the tests, named after its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Floods, pings and echoes.
    Ttcp,
    /// A hundred operations.
    Wide,
    /// Messages of every kind.
    Series,
    /// A hundred oneways.
    WideOneway,
    /// A thousand operations.
    Thousand,
    /// A thousand oneways.
    ThousandOneway,
    /// The numbers of calls that the server has counted.
    Tally,
    /// The times of look-ups. Only `ttcp server` has this object.
    Lookups,
    /// `ZeroCopy::Ttcp`: structs in their memory representation. Only `ttcp server` has this object.
    ZeroCopy,
}

impl Object {
    /// Returns the object with 100 or 1,000 operations, which are oneways if `oneway` is set.
    pub const fn wide(operations: u32, oneway: bool) -> Object {
        match (operations > 100, oneway) {
            (false, false) => Object::Wide,
            (false, true) => Object::WideOneway,
            (true, false) => Object::Thousand,
            (true, true) => Object::ThousandOneway,
        }
    }

    /// Returns the object's key in object URLs.
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

    /// Returns the path of the object's IOR file: `path` for `Ttcp`, `path.KEY` for other objects.
    fn file(self, path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        if self != Object::Ttcp {
            name.push(".");
            name.push(self.key());
        }
        PathBuf::from(name)
    }
}

/// Where a client finds the references to the server's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An object URL `corbaloc:...` without a key.
    Corbaloc(String),
    /// The file with the IOR of `Ttcp`. The IOR of another object is in PATH.KEY, such as `PATH.wide`.
    File(PathBuf),
}

impl Address {
    /// Returns the object URL (`IOR:...` or `corbaloc:...`) of an object.
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

/// Writes the files with the objects' IORs, each atomically. The file of `Ttcp`, at `path`, is written last,
/// so that a client that waits for this file finds all files complete.
pub fn publish(path: &Path, ttcp: &str, others: &[(Object, String)]) -> anyhow::Result<()> {
    let others = others.iter().map(|(object, ior)| (object.file(path), ior.as_str()));
    for (path, ior) in others.chain([(path.to_owned(), ttcp)]) {
        write_atomically(&path, ior)
            .with_context(|| format!("cannot write the IOR file {}", path.display()))?;
    }
    Ok(())
}

fn references_path(ior: &Path) -> PathBuf {
    let mut name = ior.as_os_str().to_owned();
    name.push(".objects");
    PathBuf::from(name)
}

/// Reads the references for the test `objects`.
pub fn read_references(ior: &Path) -> anyhow::Result<Vec<String>> {
    let path = references_path(ior);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}: was the server started with --objects?", path.display()))?;
    let references: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(!references.is_empty(), "{} contains no reference", path.display());
    Ok(references)
}

/// Writes the file with references for the test `objects` atomically.
pub fn publish_references(ior: &Path, references: &[String]) -> anyhow::Result<()> {
    let path = references_path(ior);
    write_atomically(&path, &references.join("\n"))
        .with_context(|| format!("cannot write the references into {}", path.display()))
}

/// Announces on stdout that the server is ready for calls: `READY ADDRESS`.
pub fn announce_ready(address: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "READY {address}")?;
    out.flush()
}

fn write_atomically(path: &Path, line: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{line}")?;
    // By default, a temporary file is private, but an IOR must be readable for other users.
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
    fn errors_contain_the_path_of_a_missing_or_empty_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.ior");
        let text = format!("{:#}", address(path.to_str().unwrap()).url(Object::Ttcp).unwrap_err());
        assert!(text.contains("none.ior") && text.contains("No such file"), "{text}");
        std::fs::write(&path, " \n").unwrap();
        let text = address(path.to_str().unwrap()).url(Object::Ttcp).unwrap_err().to_string();
        assert!(text.contains("is empty"), "{text}");
    }
}
