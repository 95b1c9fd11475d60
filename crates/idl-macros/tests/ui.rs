//! Errors stand at the tokens of the IDL, all of them at once. `TRYBUILD=overwrite cargo test -p idl-macros --test ui` writes
//! the expected messages anew.

#![allow(clippy::expect_used)]

use std::path::Path;

/// Trybuild compiles in a directory of its own, three below the target directory: the IDL of `tests/ui/files.rs` is put
/// where a relative path leads from there.
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
