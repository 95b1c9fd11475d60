//! The argument REFERENCE of commands: a reference, a URL, a file that contains one, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use giop_codec::Printable;
use giop_codec::url::{ObjectUrl, UrlError, UrlErrorKind};

use crate::failure::with_hint;

const MAX_REFERENCE_BYTES: u64 = 1 << 20;

/// Reads the reference in the argument `text`, without using the network.
pub(crate) fn read(text: &str) -> anyhow::Result<ObjectUrl> {
    if text == "-" {
        return parse(&read_text(io::stdin().lock(), "standard input")?, "standard input");
    }
    match text.parse() {
        Ok(ObjectUrl::File(path)) => read_file(&path),
        Ok(url) => Ok(url),
        // The text may also be the path of a file.
        Err(_) if Path::new(text).is_file() => read_file(Path::new(text)),
        Err(error) => Err(with_hint(
            invalid_reference_error(text, error),
            "expected IOR:, corbaloc:, corbaname: or file:, a file that contains one of them, or - for standard input",
        )),
    }
}

/// Returns the error for an invalid text. A text without a scheme is probably the name of a missing file.
fn invalid_reference_error(text: &str, error: UrlError) -> anyhow::Error {
    match error.kind() {
        UrlErrorKind::UnknownScheme(_) if !text.contains(':') => {
            anyhow!("the file {:?} does not exist", Printable::new(text))
        }
        _ => error.into(),
    }
}

fn read_file(path: &Path) -> anyhow::Result<ObjectUrl> {
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    parse(&read_text(file, &name)?, &name)
}

fn read_text(source: impl Read, name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let limit = MAX_REFERENCE_BYTES + 1;
    source.take(limit).read_to_string(&mut text).with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 == limit {
        bail!("{name} is not a reference: it has more than {MAX_REFERENCE_BYTES} bytes");
    }
    Ok(text)
}

fn parse(text: &str, name: &str) -> anyhow::Result<ObjectUrl> {
    match text.parse().with_context(|| format!("{name} does not contain a reference"))? {
        ObjectUrl::File(path) => bail!("{name} refers to another file; use {} instead", path.display()),
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
    fn errors_describe_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wrong");
        let text = |content: &str| {
            std::fs::write(&path, content).unwrap();
            format!("{:#}", read(path.to_str().unwrap()).unwrap_err())
        };
        assert!(text("IOR:0").contains("does not contain a reference"), "{}", text("IOR:0"));
        assert!(text("file:/elsewhere").contains("refers to another file"));
        assert!(text(&"x".repeat(2 << 20)).contains("more than"));
        assert!(
            format!("{:#}", read("missing.ior").unwrap_err())
                .contains("the file \"missing.ior\" does not exist")
        );
        assert!(format!("{:#}", read("iiop:x").unwrap_err()).contains("corbaloc:"));
        assert!(format!("{:#}", read("file:/does/not/exist").unwrap_err()).contains("cannot read"));
    }
}
