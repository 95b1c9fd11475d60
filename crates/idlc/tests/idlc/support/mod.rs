//! What the tests of generated Rust share.

use std::path::Path;
use std::process::Command;

/// Lints in force, beside those that rustc has on, in crates of generated code.
const LINTS: &str = "#![forbid(unsafe_code)]
#![deny(warnings, unused, missing_docs, missing_debug_implementations, unreachable_pub, trivial_casts)]
#![deny(nonstandard_style, future_incompatible, rust_2018_idioms, unused_results, let_underscore_drop)]
";

/// Checks generated Rust with rustc: one crate for each named text, in a workspace in the folder for
/// temporary files. The workspace keeps earlier build results, so unchanged code is not compiled again.
///
/// # Panics
/// If rustc reports anything, or the Rust suppresses lints.
pub(crate) fn rustc_accepts(workspace: &str, crates: &[(&str, String)]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let root = tmp.join(workspace);
    let members: Vec<&str> = crates.iter().map(|(name, _)| *name).collect();
    write(&root.join("Cargo.toml"), &format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n"));
    std::fs::copy(here.join("../../Cargo.lock"), root.join("Cargo.lock")).unwrap();
    for (name, rust) in crates {
        let silenced: Vec<&str> =
            rust.lines().filter(|line| line.contains("[allow(") || line.contains("[expect(")).collect();
        assert!(silenced.is_empty(), "{silenced:?}");
        let zorb = here.join("../..");
        let head = format!("name = \"{workspace}-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"");
        let dependencies = format!("[dependencies]\nzorb = {{ path = {zorb:?} }}\n");
        write(&root.join(name).join("Cargo.toml"), &format!("[package]\n{head}\n\n{dependencies}"));
        let lib = format!("//! Generated from IDL.\n{LINTS}\nmod all;\npub use all::*;\n");
        write(&root.join(name).join("src/lib.rs"), &lib);
        write(&root.join(name).join("src/all.rs"), rust);
    }
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet"])
        .current_dir(&root)
        .env("CARGO_TARGET_DIR", tmp.parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.is_empty(), "{text}");
}

/// Writes a file, unless it has that content: then cargo has nothing to do.
fn write(path: &Path, text: &str) {
    if std::fs::read(path).is_ok_and(|before| before == text.as_bytes()) {
        return;
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
