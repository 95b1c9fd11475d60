//! Notes the compiler's version for the record of a run.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    println!("cargo::rustc-env=TTCP_RUSTC={version}");
}
