//! Messages for whole texts: `tests/ui/NAME.idl` must give exactly the messages of `NAME.stderr`, and none if
//! that file does not exist. Texts in `tests/ui/rust` give them when Rust is generated.
//! `BLESS=1 cargo test -p idl-compiler --test compiler ui` rewrites these files, and the table of all kinds
//! of findings in docs/IDL-FINDINGS.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use idl_compiler::diagnostic::{Kind, Stage};
use idl_compiler::emit::{Options, emit};
use idl_compiler::{Compiler, Disk, Severity};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/IDL-FINDINGS.md");

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

fn ui_files() -> Vec<PathBuf> {
    let folders = ["tests/ui", "tests/ui/rust"].map(|folder| Path::new(ROOT).join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("tests/ui"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "idl")).collect();
    files.sort();
    assert!(files.len() > 50, "the UI tests are all found");
    files
}

/// Returns the messages about a text, and whether compilation succeeded. A first line `// strict` enables the
/// strict name rules.
fn messages(path: &Path) -> (String, bool) {
    let folder = path.parent().expect("a folder");
    let name = path.file_name().expect("a name");
    let strict = fs::read(path).expect("a readable file").starts_with(b"// strict");
    let compiler = Compiler::default().strict_names(strict).files(Disk::at(folder));
    let model = match compiler.compile_files([name]) {
        Ok(model) => model,
        Err(errors) => return (errors.render(false), false),
    };
    let warnings = model.warnings().render(false);
    match folder.ends_with("rust").then(|| emit(&model, &Options::default())) {
        Some(Err(errors)) => (warnings + &errors.render(false), false),
        Some(Ok(emitted)) => (warnings + &emitted.warnings.render(false), true),
        None => (warnings, true),
    }
}

#[test]
fn every_text_gives_exactly_its_messages() {
    let mut wrong = Vec::new();
    for path in ui_files() {
        let (rendered, compiles) = messages(&path);
        if compiles != path.to_string_lossy().ends_with("_ok.idl") {
            wrong.push(format!("{}: compiles: {compiles}", path.display()));
        }
        let expected_path = path.with_extension("stderr");
        if is_blessing() {
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

/// The kinds of findings in the compiler's own source: whatever looks like one where messages are made.
fn codes_in_source(folder: &Path, codes: &mut BTreeSet<String>) {
    const MAKERS: &[&str] = &[
        "Diagnostic::error(",
        "Diagnostic::warning(",
        "::without_location(",
        ".error(",
        ".wrong_kind(",
        ".reject_wrong_kind(",
    ];
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            codes_in_source(&path, codes);
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        for (at, maker) in MAKERS.iter().flat_map(|maker| text.match_indices(maker)) {
            // The first text among the arguments before the next `;`.
            let rest = text[at + maker.len()..].split(';').next().unwrap_or_default();
            let code = rest.split('"').nth(1).unwrap_or_default();
            let before = rest.split('"').next().unwrap_or_default();
            let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
            let is_early = before.matches(',').count() <= 2 && !before.contains(['(', '!']);
            if is_early && !code.is_empty() && code.chars().all(is_word) {
                codes.insert(code.to_owned());
            }
        }
    }
}

#[test]
fn every_kind_in_the_source_is_listed_once() {
    let mut codes = BTreeSet::new();
    codes_in_source(&Path::new(ROOT).join("src"), &mut codes);
    // Chosen before they are handed on.
    codes.extend(["local-base", "not-abstract"].map(str::to_owned));
    let listed: Vec<&str> = Kind::all().iter().map(|kind| kind.code).collect();
    let set: BTreeSet<String> = listed.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(listed.len(), set.len(), "listed twice");
    let unlisted: Vec<&String> = codes.difference(&set).collect();
    let unused: Vec<&String> = set.difference(&codes).collect();
    assert!(unlisted.is_empty() && unused.is_empty(), "not listed: {unlisted:?}, not used: {unused:?}");
}

/// Kinds that no text of `tests/ui` can have, with what has them.
const ELSEWHERE: &[(&str, &str)] = &[
    // It is about a file that is not there.
    ("cannot-read", "tests/compiler/snapshots/compiler__files__no_file.snap"),
    // Two hundred errors stand before it.
    ("more-errors", "tests/compiler/snapshots/compiler__bad_input__many_errors.snap"),
];

/// Returns the example of a kind: the text with its own name, or otherwise the one with most such findings.
/// New texts therefore seldom change the choice. For errors the text must be a bad one.
fn text_with(kind: &Kind, texts: &[(PathBuf, String)]) -> Option<PathBuf> {
    let wanted = match kind.worst {
        Severity::Error => format!("error[{}]", kind.code),
        Severity::Warning => format!("warning[{}]", kind.code),
    };
    // The text that is named after the kind comes first.
    let own = format!("{}.idl", kind.code.replace('-', "_"));
    let found = texts.iter().filter_map(|(path, messages)| {
        let is_good = path.to_string_lossy().ends_with("_ok.idl");
        let of_rust = path.parent().is_some_and(|folder| folder.ends_with("rust"));
        let count = messages.lines().filter(|line| line.starts_with(&wanted)).count();
        let fits = (!is_good || kind.worst == Severity::Warning) && of_rust == (kind.stage == Stage::Rust);
        (fits && count > 0).then_some((path.ends_with(&own), count, path))
    });
    found.max_by_key(|(own, count, _)| (*own, *count)).map(|(_, _, path)| path.clone())
}

#[test]
fn every_kind_has_a_bad_text_and_a_row_in_the_documentation() {
    let texts: Vec<(PathBuf, String)> = ui_files()
        .into_iter()
        .map(|path| {
            let messages = messages(&path).0;
            (path, messages)
        })
        .collect();
    let (mut missing, mut rows) = (Vec::new(), String::new());
    let mut stage = None;
    for kind in Kind::all() {
        let example = match ELSEWHERE.iter().find(|(code, _)| *code == kind.code) {
            Some((_, snapshot)) => {
                let text = fs::read_to_string(Path::new(ROOT).join(snapshot)).unwrap_or_default();
                assert!(text.contains(&format!("error[{}]", kind.code)), "{snapshot} has no {}", kind.code);
                (*snapshot).to_owned()
            }
            None => match text_with(kind, &texts) {
                Some(path) => path.strip_prefix(ROOT).expect("below the crate").display().to_string(),
                None => {
                    missing.push(kind.code);
                    continue;
                }
            },
        };
        if stage != Some(kind.stage) {
            stage = Some(kind.stage);
            let title = match kind.stage {
                Stage::Rust => "Rust (found by `idlc rust`, `idl!` and build scripts)".to_owned(),
                other => format!("{other:?}"),
            };
            let _ = write!(rows, "\n## {title}\n\n| code | | meaning | for example |\n|---|---|---|---|\n");
        }
        let worst = if kind.worst == Severity::Error { "error" } else { "warning" };
        let name = example.rsplit('/').next().unwrap_or_default();
        let _ = writeln!(
            rows,
            "| `{}` | {worst} | {} | [{name}](../crates/idl-compiler/{example}) |",
            kind.code, kind.meaning
        );
    }
    assert!(missing.is_empty(), "no bad text gives {missing:?}");
    let page = fs::read_to_string(TABLE).expect("docs/IDL-FINDINGS.md");
    let introduction = page.split("\n## ").next().unwrap_or_default();
    let wanted = format!("{introduction}\n{}", rows.trim_start());
    let wanted = wanted.replace("\n\n\n", "\n\n");
    if is_blessing() {
        fs::write(TABLE, &wanted).expect("a writable page");
    } else {
        assert_eq!(page, wanted, "BLESS=1 writes docs/IDL-FINDINGS.md anew");
    }
}
