//! Generated code compiles and runs in every edition that a user may have, with all relevant lints enabled.

use std::path::{Path, PathBuf};
use std::process::Command;

const LINTS: &str = "
#![forbid(unsafe_code)]
#![deny(missing_docs, unreachable_pub, missing_debug_implementations, unused, nonstandard_style, future_incompatible)]
#![deny(rust_2018_idioms, rust_2018_compatibility, rust_2021_compatibility, rust_2024_compatibility)]
#![deny(unused_qualifications, single_use_lifetimes, trivial_casts, unused_results, let_underscore_drop)]
";

/// Writes a workspace with one crate for each edition, and lets cargo test it with what is built already.
#[test]
fn generated_code_compiles_and_runs_in_all_editions() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("editions");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let source = here.join("tests/hygiene/tricky.rs");
    let dependencies = format!(
        "[dependencies]\ngiop-codec = {{ path = {:?} }}\nidl-macros = {{ path = {here:?} }}\n\
         tokio = {{ version = \"1\", features = [\"rt-multi-thread\"] }}\nzorb = {{ path = {:?} }}\n",
        here.join("../giop-codec"),
        here.join("../.."),
    );
    write(&root.join("Cargo.toml"), "[workspace]\nresolver = \"2\"\nmembers = [\"e*\"]\n");
    std::fs::copy(here.join("../../Cargo.lock"), root.join("Cargo.lock")).unwrap();
    for edition in ["2018", "2021", "2024"] {
        let package = root.join(format!("e{edition}"));
        let head = format!(
            "[package]\nname = \"edition-{edition}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n"
        );
        write(&package.join("Cargo.toml"), &format!("{head}\n{dependencies}"));
        write(
            &package.join("src/lib.rs"),
            &format!("//! Edition {edition}.\n{LINTS}\ninclude!({source:?});\n"),
        );
    }
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--lib", "--quiet"])
        .current_dir(&root)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("3 passed").count(), 3, "{text}");
}

/// Writes a file, unless it has that content: then cargo has nothing to compile again.
fn write(path: &Path, text: &str) {
    if std::fs::read(path).is_ok_and(|before| before == text.as_bytes()) {
        return;
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
