//! Writing of output files.

use std::io;
use std::path::{Path, PathBuf};

/// Replaces a file atomically: readers see the old or the new text, never a part of it, even if the process
/// is interrupted. The text is written to a temporary file in the same folder, which is then renamed. If the
/// path is a symbolic link, its target is replaced. If the path is not a regular file, such as `/dev/stdout`
/// or a pipe, the text is written to it directly.
///
/// # Errors
/// Errors of the file system, or `InvalidInput` without a file name. A regular file is then unchanged.
pub fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    let existing = std::fs::metadata(path);
    if existing.as_ref().is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, text);
    }
    let target = if existing.is_ok() { path.canonicalize()? } else { path.to_owned() };
    let temporary = temporary_path(&target)?;
    let result = std::fs::write(&temporary, text).and_then(|()| {
        if let Ok(meta) = existing {
            std::fs::set_permissions(&temporary, meta.permissions())?;
        }
        std::fs::rename(&temporary, &target)
    });
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// Returns the path of a temporary file. It is in the folder of `path`, and thus in the same file system.
fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::write_atomically;

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_and_no_temporary_file_remains() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        write_atomically(&at("new"), "one").expect("written");
        write_atomically(&at("new"), "two").expect("written again");
        assert_eq!(std::fs::read_to_string(at("new")).expect("the file"), "two");
        assert!(write_atomically(&at("no/such"), "x").is_err());
        assert!(write_atomically(&at(""), "x").is_err(), "a folder");
        assert_eq!(names(folder.path()), ["new"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_are_preserved() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("far")).expect("a folder");
        std::fs::write(at("far/real"), "one").expect("written");
        std::fs::set_permissions(at("far/real"), std::fs::Permissions::from_mode(0o640)).expect("set");
        symlink("far/real", at("link")).expect("a link");
        write_atomically(&at("link"), "two").expect("written");
        assert_eq!(std::fs::read_to_string(at("far/real")).expect("the file"), "two");
        assert!(std::fs::symlink_metadata(at("link")).expect("a link").is_symlink());
        let mode = std::fs::metadata(at("far/real")).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(&at("far")), ["real"]);
        // A path that is not a regular file is not replaced.
        write_atomically(std::path::Path::new("/dev/null"), "x").expect("written in place");
        assert!(!std::fs::metadata("/dev/null").expect("the device").is_file());
    }
}
