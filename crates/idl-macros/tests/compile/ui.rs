//! Errors point at the tokens of the IDL, and all are reported at once. `TRYBUILD=overwrite cargo test -p
//! idl-macros --test compile ui` rewrites the expected messages.

use std::path::Path;

/// Copies the IDL of `tests/ui/files.rs` to where its relative path leads. Trybuild compiles in its own
/// directory, three levels below the target directory.
fn put_files() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui/files");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui-files");
    std::fs::create_dir_all(to.join("inc")).expect("a directory");
    for name in ["main.idl", "uses.idl", "used.idl", "warns.idl", "inc/types.idl"] {
        std::fs::copy(from.join(name), to.join(name)).expect(name);
    }
}

#[test]
fn errors_point_at_the_idl() {
    put_files();
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
