//! How CORBA peers find each other: IOR files, and object URLs with the stable keys `ttcp` and `wide`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;

use crate::cli::Test;

/// Where a client finds the server: a file or the address part of an object URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `corbaloc:...` without a key.
    Corbaloc(String),
    /// The file with the IOR of `Ttcp`; `PATH.wide` beside it holds that of `Wide`.
    File(PathBuf),
}

impl Address {
    /// The object URL (`IOR:...` or `corbaloc:...`) of the object that `test` calls: `Wide` for demux, else `Ttcp`.
    ///
    /// # Errors
    /// The file cannot be read or is empty.
    pub fn url(&self, test: Test) -> anyhow::Result<String> {
        let wide = test == Test::Demux;
        match self {
            Address::Corbaloc(address) => Ok(format!("{address}/{}", if wide { "wide" } else { "ttcp" })),
            Address::File(path) => {
                let path = if wide { wide_path(path) } else { path.clone() };
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

/// Writes the IOR of `Wide` to `PATH.wide` and then that of `Ttcp` to `PATH`, each whole or not at all: who waits for
/// `PATH` finds both complete.
///
/// # Errors
/// A file cannot be written; the text names it.
pub fn publish(path: &Path, ttcp: &str, wide: &str) -> anyhow::Result<()> {
    for (path, ior) in [(wide_path(path), wide), (path.to_owned(), ttcp)] {
        write_whole(&path, ior).with_context(|| format!("cannot write the IOR file {}", path.display()))?;
    }
    Ok(())
}

/// Tells the world on stdout that the server may be called: `READY <how to reach it>`.
///
/// # Errors
/// stdout is closed.
pub fn ready(how: impl std::fmt::Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "READY {how}")?;
    out.flush()
}

fn wide_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wide");
    PathBuf::from(name)
}

fn write_whole(path: &Path, line: &str) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{line}")?;
    // Temporary files are private; an IOR is for other users too.
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
        assert_eq!(a.url(Test::Ping).unwrap(), "corbaloc::127.0.0.1:47002/ttcp");
        assert_eq!(a.url(Test::Demux).unwrap(), "corbaloc::127.0.0.1:47002/wide");
        assert_eq!(address("corbaloc:iiop:1.1@h:1/").url(Test::Ttcp).unwrap(), "corbaloc:iiop:1.1@h:1/ttcp");
    }

    #[test]
    fn published_files_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.ior");
        publish(&path, "IOR:01", "IOR:02").unwrap();
        let a = address(path.to_str().unwrap());
        assert_eq!(a.url(Test::Echo).unwrap(), "IOR:01");
        assert_eq!(a.url(Test::Demux).unwrap(), "IOR:02");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_missing_or_empty_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.ior");
        let text = format!("{:#}", address(path.to_str().unwrap()).url(Test::Ping).unwrap_err());
        assert!(text.contains("none.ior") && text.contains("No such file"), "{text}");
        std::fs::write(&path, " \n").unwrap();
        let text = address(path.to_str().unwrap()).url(Test::Ping).unwrap_err().to_string();
        assert!(text.contains("is empty"), "{text}");
    }
}
