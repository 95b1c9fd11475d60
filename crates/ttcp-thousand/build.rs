//! Writes the names of the operations, which no macro can make.

use std::fmt::Write;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
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
