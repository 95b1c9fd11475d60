//! The modules of the crate, from the ground up: each uses only those before it.

#[test]
fn modules_use_each_other_in_one_direction() {
    module_order::check(
        env!("CARGO_MANIFEST_DIR"),
        &[
            "work",
            "limits",
            "standard",
            "source",
            "diagnostic",
            "suggest",
            "token",
            "decimal",
            "model",
            "ast",
            "preprocess",
            "lex",
            "parse",
            "components",
            "resolve",
            "output",
            "emit",
        ],
    );
}
