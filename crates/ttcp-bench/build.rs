//! Notes the compiler's version for the record of a run, and writes the names of a thousand operations.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    println!("cargo::rustc-env=TTCP_RUSTC={version}");
    if std::env::var_os("CARGO_FEATURE_THOUSAND").is_some() {
        write_names();
    }
}

/// Writes the macro `thousand`, which calls another one with the names of the operations. No macro can make
/// names.
fn write_names() {
    let mut text = "macro_rules! thousand { ($with:ident $($given:tt)*) => { $with! { $($given)*".to_owned();
    for operation in 0..1_000 {
        let before = if operation == 999 { "; " } else { " " };
        // A string takes all that is written to it.
        let _ = write!(text, "{before}m{operation:03}");
    }
    text.push_str(" } }; }\n");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    if let Err(error) = std::fs::write(Path::new(&out).join("names.rs"), text) {
        println!("cargo::error=cannot write the names of the operations: {error}");
    }
}
