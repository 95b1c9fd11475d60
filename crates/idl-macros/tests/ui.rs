//! Errors stand at the tokens of the IDL, all of them at once. `TRYBUILD=overwrite cargo test -p idl-macros --test ui` writes
//! the expected messages anew.

#[test]
fn errors_point_at_the_idl() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
