//! The order of the modules of the crate, each of which uses only those before it, and limits of size.

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

#[test]
fn types_functions_and_circles_of_files_stay_small() {
    // These two functions are templates of the Rust that they emit.
    module_order::size_limits::check(env!("CARGO_MANIFEST_DIR"), &["bitmask", "local_reference"]);
}
