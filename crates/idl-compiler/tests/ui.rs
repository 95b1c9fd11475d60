//! Whole texts: `tests/ui/NAME.idl` must give exactly the messages of `NAME.stderr`, and none where there is no such
//! file. `BLESS=1 cargo test -p idl-compiler --test ui` writes the files anew.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use idl_compiler::{Compiler, Diagnostics, Model, Source};

fn ui_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let entries = fs::read_dir(folder).expect("tests/ui").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "idl")).collect();
    files.sort();
    assert!(files.len() > 50, "the UI tests are all found");
    files
}

/// A first line `// strict` asks for the strict name rules.
fn compile(path: &Path) -> Result<Model, Diagnostics> {
    let octets = fs::read(path).expect("a readable file");
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let strict = octets.starts_with(b"// strict");
    Compiler::default().strict_names(strict).compile(Source::octets(name, octets))
}

#[test]
fn every_text_gives_exactly_its_messages() {
    let mut wrong = Vec::new();
    for path in ui_files() {
        let result = compile(&path);
        let good = path.to_string_lossy().ends_with("_ok.idl");
        if result.is_ok() != good {
            wrong.push(format!("{}: compiles: {}", path.display(), result.is_ok()));
        }
        let rendered = match &result {
            Ok(model) => model.warnings().render(false),
            Err(errors) => errors.render(false),
        };
        let expected_path = path.with_extension("stderr");
        if std::env::var_os("BLESS").is_some() {
            if rendered.is_empty() {
                let _ = fs::remove_file(&expected_path);
            } else {
                fs::write(&expected_path, &rendered).expect("a writable file");
            }
        }
        let expected = fs::read_to_string(&expected_path).unwrap_or_default();
        if rendered != expected {
            wrong.push(format!("{}\n--- expected\n{expected}\n--- found\n{rendered}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 accepts what was found)", wrong.join("\n"));
}

#[test]
fn every_bad_text_has_a_good_twin() {
    for path in ui_files() {
        let text = path.to_string_lossy();
        if !text.ends_with("_ok.idl") {
            let twin = PathBuf::from(text.replace(".idl", "_ok.idl"));
            assert!(twin.exists(), "{} is missing", twin.display());
        }
    }
}

/// The kinds of message the compiler's own source knows.
fn codes_in_source(folder: &Path, codes: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.ends_with("emit") {
            continue;
        }
        if path.is_dir() {
            codes_in_source(&path, codes);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        for (at, _) in
            text.match_indices("Diagnostic::error(").chain(text.match_indices("Diagnostic::warning("))
        {
            let rest = &text[at..];
            let argument = rest[rest.find('(').expect("a bracket") + 1..].trim_start();
            if let Some(code) = argument.strip_prefix('"').and_then(|code| code.split('"').next()) {
                codes.insert(code.to_owned());
            }
        }
    }
}

#[test]
fn every_kind_of_message_is_tested() {
    if std::env::var_os("BLESS").is_some() {
        return; // the files are being written
    }
    let mut codes = BTreeSet::new();
    codes_in_source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut codes);
    assert!(codes.len() > 30, "the codes are found: {codes:?}");
    // Only Rust tokens give this; `sources.rs` tests it.
    codes.remove("unknown-pragma");
    let messages: String = ui_files()
        .iter()
        .map(|path| fs::read_to_string(path.with_extension("stderr")).unwrap_or_default())
        .collect();
    let snapshots = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots"));
    let snapshots: String = snapshots
        .expect("tests/snapshots")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a snapshot"))
        .collect();
    let messages = messages + &snapshots;
    let missing: Vec<&String> =
        codes.iter().filter(|code| !messages.contains(&format!("[{code}]"))).collect();
    assert!(missing.is_empty(), "no UI test gives {missing:?}");
}
