//! The object argument of commands: a stringified reference, a URL, a file that contains one, or standard
//! input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use giop_codec::Printable;
use giop_codec::url::{ObjectUrl, UrlError, UrlErrorKind};

use crate::failure::hinted;

/// Maximum length of a reference as text: 64 profiles of the size that an ORB accepts in one message.
const LONGEST: u64 = 1 << 20;

/// Reads the reference that `text` names, without using the network.
///
/// # Errors
/// A file cannot be read, or the text is neither a reference nor a URL. The message gives the position of the
/// error.
pub(crate) fn read(text: &str) -> anyhow::Result<ObjectUrl> {
    if text == "-" {
        return parse(&all(io::stdin().lock(), "standard input")?, "standard input");
    }
    match text.parse() {
        Ok(ObjectUrl::File(path)) => of_file(&path),
        Ok(url) => Ok(url),
        // The text may also be the path of a file that a server wrote.
        Err(_) if Path::new(text).is_file() => of_file(Path::new(text)),
        Err(error) => Err(hinted(
            wrong(text, error),
            "an object is named by IOR:, corbaloc:, corbaname: or file:, by a file that holds one of them, or by - for standard input",
        )),
    }
}

/// Returns the error for a text. Without a scheme, it is probably the name of a missing file.
fn wrong(text: &str, error: UrlError) -> anyhow::Error {
    match error.kind() {
        UrlErrorKind::UnknownScheme(_) if !text.contains(':') => {
            anyhow!("there is no file {:?}", Printable::new(text))
        }
        _ => error.into(),
    }
}

fn of_file(path: &Path) -> anyhow::Result<ObjectUrl> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    parse(&all(file, &name)?, &name)
}

fn all(from: impl Read, name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let most = LONGEST + 1;
    from.take(most).read_to_string(&mut text).with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 == most {
        bail!("{name} has more than {LONGEST} octets: that is no reference");
    }
    Ok(text)
}

fn parse(text: &str, name: &str) -> anyhow::Result<ObjectUrl> {
    match text.parse().with_context(|| format!("{name} holds no reference"))? {
        ObjectUrl::File(path) => bail!("{name} names another file, {}: read that", path.display()),
        url => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "corbaloc:iiop:1.2@host:1/key";

    #[test]
    fn references_are_read_from_files_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("one.url");
        std::fs::write(&path, format!("{URL}\n")).unwrap();
        let path = path.to_str().unwrap();
        for text in [path, &format!("file://{path}"), URL] {
            assert_eq!(read(text).unwrap().to_string(), URL, "{text}");
        }
        assert!(
            matches!(read("IOR:00000000000000010000000000000000"), Ok(ObjectUrl::Ior(nil)) if nil.is_nil())
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wrong");
        let text = |content: &str| {
            std::fs::write(&path, content).unwrap();
            format!("{:#}", read(path.to_str().unwrap()).unwrap_err())
        };
        assert!(text("IOR:0").contains("holds no reference"), "{}", text("IOR:0"));
        assert!(text("file:/elsewhere").contains("names another file"));
        assert!(text(&"x".repeat(2 << 20)).contains("more than"));
        assert!(
            format!("{:#}", read("missing.ior").unwrap_err()).contains("there is no file \"missing.ior\"")
        );
        assert!(format!("{:#}", read("iiop:x").unwrap_err()).contains("corbaloc:"));
        assert!(format!("{:#}", read("file:/does/not/exist").unwrap_err()).contains("cannot read"));
    }
}
