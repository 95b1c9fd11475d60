//! The IDL files of Debian's omniorb-idl: idlc understands each as omniidl does, and generates Rust without
//! warnings.
//!
//! Without the package, the tests are skipped with a message; with `CI=true` they fail. All files become
//! 580,000 lines of Rust, which rustc compiles in minutes. It compiles them only with `ZORB_TESTS=all` (as in
//! `.ci/full`), and otherwise those of [`SAMPLE`]. Cargo does not compile unchanged files again.

mod files;
mod lines;

use crate::support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use files::{APART, DEFINE, FOLDER, INCOMPLETE, SAMPLE, help, incomplete};

/// All files, or none, which has been told.
///
/// # Panics
/// With `CI=true` where there are none.
fn corpus() -> Vec<String> {
    let files = files::files();
    if files.is_empty() {
        missing("omniorb-idl");
    }
    files
}

fn missing(package: &str) {
    let what = format!("no {package}: scripts/install-peers.sh installs it");
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
    // Past the capture of output, so that it shows for a test that passes.
    let _ = std::io::stderr().write_all(format!("corpus: SKIPPED: {what}\n").as_bytes());
}

/// `idlc`, with the folders of the corpus and, where asked, the one of help.
fn idlc(command: &[&str], with_help: bool, files: &[PathBuf]) -> Output {
    let mut run = Command::new(env!("CARGO_BIN_EXE_idlc"));
    run.args(command).args(["--no-warnings", "-D", DEFINE]).args(folders(with_help)).args(files);
    run.output().unwrap()
}

/// Runs omniidl on one file, with a back end that prints all that it finds. Like idlc by default, it accepts
/// names that differ only in case from the name of their scope (`struct Right { ... right; }`).
fn omniidl(with_help: bool, file: &Path) -> Output {
    let backend = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/idlc/corpus");
    let mut run = Command::new("omniidl");
    run.arg(format!("-p{}", backend.display()))
        .args(["-bdefinitions", "-nc", "-nf"])
        .args(folders(with_help));
    run.arg(file).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONIOENCODING", "utf-8").output().unwrap()
}

fn folders(with_help: bool) -> Vec<String> {
    let mut folders = vec![PathBuf::from(FOLDER), Path::new(FOLDER).join("COS")];
    if with_help {
        folders.push(help());
    }
    folders.iter().map(|folder| format!("-I{}", folder.display())).collect()
}

/// Where a file is: in the corpus or, if it is not there, in the folder of help.
fn path(file: &str) -> PathBuf {
    let path = Path::new(FOLDER).join(file);
    if path.exists() { path } else { help().join(file) }
}

/// A file, after what it needs.
fn whole(file: &str) -> Vec<PathBuf> {
    let after = incomplete(file).map_or(&[][..], |it| it.after);
    after.iter().chain([&file]).map(|file| path(file)).collect()
}

/// Does something with each file, on two threads, and says what went wrong.
fn each(files: &[String], check: impl Fn(&str) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let lock = || -> MutexGuard<'_, Vec<String>> { wrong.lock().unwrap() };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = check(file) {
                        lock().push(format!("{file}: {problem}"));
                    }
                }
            });
        }
    });
    let wrong = lock();
    assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn omniidl_finds_the_same_definitions() {
    let files = corpus();
    if files.is_empty() {
        return;
    }
    if Command::new("omniidl").arg("-V").output().is_err() {
        return missing("omniidl");
    }
    let scratch = tempfile::tempdir().unwrap();
    each(&files, |file| {
        let all = whole(file);
        // omniidl compiles a file at a time: what others declare before is included.
        let text: String = all.iter().map(|file| format!("#include \"{}\"\n", file.display())).collect();
        let one = scratch.path().join(file.replace('/', "_"));
        std::fs::write(&one, text).unwrap();
        let theirs = omniidl(true, &one);
        if !theirs.status.success() {
            return Err(format!("omniidl refuses it: {}", shown(&theirs)));
        }
        let ours = idlc(&["model", "--json"], true, &all);
        if !ours.status.success() {
            return Err(format!("idlc refuses it: {}", shown(&ours)));
        }
        same(&theirs, &ours)
    });
}

/// What omniidl found is what idlc found; else, what is not.
fn same(theirs: &Output, ours: &Output) -> Result<(), String> {
    let theirs = String::from_utf8(theirs.stdout.clone()).unwrap();
    let theirs: BTreeSet<String> = theirs.lines().map(str::to_owned).collect();
    let ours = lines::lines(&serde_json::from_slice(&ours.stdout).unwrap());
    if theirs == ours {
        return Ok(());
    }
    let differences = theirs.difference(&ours).map(|line| format!("  omniidl: {line}\n"));
    let differences = differences.chain(ours.difference(&theirs).map(|line| format!("  idlc:    {line}\n")));
    Err(format!("\n{}", differences.collect::<String>()))
}

/// omniidl knows no components: it reads what they are equivalent to, written by hand.
#[test]
fn components_are_what_omniidl_finds_in_their_equivalent_idl() {
    if Command::new("omniidl").arg("-V").output().is_err() {
        return missing("omniidl");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = here.join("tests/idlc/corpus/components");
    let known = std::fs::read_to_string(here.join("../idl-compiler/src/components.idl")).unwrap();
    let equivalent = std::fs::read_to_string(folder.join("equivalent.idl")).unwrap();
    let text = format!("#pragma prefix \"omg.org\"\nmodule Components {{\n{known}}};\n{equivalent}");
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("equivalent.idl");
    std::fs::write(&file, text).unwrap();
    let theirs = omniidl(false, &file);
    assert!(theirs.status.success(), "{}", shown(&theirs));
    let ours = idlc(&["model", "--json"], false, &[folder.join("shop.idl")]);
    assert!(ours.status.success(), "{}", shown(&ours));
    if let Err(differences) = same(&theirs, &ours) {
        panic!("{differences}");
    }
}

#[test]
fn files_that_need_help_are_refused_by_both_without_it() {
    let files = corpus();
    if files.is_empty() {
        return;
    }
    let with_omniidl = Command::new("omniidl").arg("-V").output().is_ok();
    if !with_omniidl {
        missing("omniidl");
    }
    for it in INCOMPLETE {
        assert!(files.iter().any(|file| file == it.file), "{} is not in the corpus", it.file);
        assert!(!it.reason.is_empty());
    }
    each(&files, |file| {
        let path = [path(file)];
        let ours = idlc(&["check"], false, &path);
        let theirs = with_omniidl.then(|| omniidl(false, &path[0]));
        match incomplete(file) {
            Some(it) if ours.status.success() => Err(format!("idlc takes it, though it {}", it.reason)),
            Some(it) if theirs.is_some_and(|run| run.status.success()) => {
                Err(format!("omniidl takes it, though it {}", it.reason))
            }
            None if !ours.status.success() => Err(format!("idlc refuses it: {}", shown(&ours))),
            _ => Ok(()),
        }
    });
}

/// All files are in two texts. Each becomes a crate, and rustc checks both concurrently. This takes more than
/// ten seconds if the generated Rust has changed.
#[test]
fn the_generated_rust_has_no_errors_and_no_warnings() {
    let mut files = corpus();
    if files.is_empty() {
        return;
    }
    if std::env::var_os("ZORB_TESTS").is_none_or(|tests| tests != "all") {
        files.retain(|file| SAMPLE.contains(&file.as_str()));
        assert_eq!(files.len(), SAMPLE.len(), "the sample is part of the corpus");
    }
    let (apart, together): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|file| APART.contains(&file.as_str()));
    let (apart, together) = std::thread::scope(|scope| {
        let apart = scope.spawn(|| rust(&apart));
        let together = rust(&together);
        (apart.join().unwrap(), together)
    });
    support::rustc_accepts("corpus", &[("apart", apart), ("together", together)]);
}

/// The Rust of some files, as one text.
fn rust(files: &[String]) -> String {
    let mut all: Vec<PathBuf> = vec![path("missing.idl")];
    all.extend(files.iter().map(|file| path(file)));
    let rust = idlc(&["rust"], true, &all);
    assert!(rust.status.success(), "{}", shown(&rust));
    String::from_utf8(rust.stdout).unwrap()
}
