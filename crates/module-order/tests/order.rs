//! Violations are found wherever they are written.
#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::fs;

use module_order::violations;

/// The violations in a crate of these files, without the places.
fn of(order: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    violations(folder.path(), order)
}

const ROOT: (&str, &str) = ("lib.rs", "mod low; mod high; pub use high::Top as Peak;");
const HIGH: (&str, &str) = ("high/mod.rs", "pub struct Top; use crate::low::Base; mod inner;");
const INNER: (&str, &str) = ("high/inner.rs", "use super::Top; use super::super::low::Base;");

#[test]
fn uses_of_lower_modules_are_allowed() {
    let found = of(&["low", "high"], &[ROOT, HIGH, INNER, ("low.rs", "pub struct Base;")]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn uses_of_higher_modules_are_found_in_all_forms() {
    for text in [
        "use crate::high::Top;",
        "use crate::{high::{self, Top}};",
        "use super::high::Top;",
        "fn f() { let _ = crate::high::Top; }",
        "fn f(_: &crate::high::Top) {}",
        "fn f() { println!(\"{}\", [crate::high::f()][0]); }",
        "use crate::Peak;",
        "mod deep { use super::super::high::Top; }",
        "impl crate::high::Trait for u8 {}",
    ] {
        let found = of(&["low", "high"], &[ROOT, HIGH, INNER, ("low.rs", text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].contains("`low` uses `high`") && found[0].starts_with("low.rs:1"), "{found:?}");
    }
}

#[test]
fn modules_of_a_file_with_a_path_are_beside_it() {
    let low = [
        ("low/mod.rs", "#[path = \"steps.rs\"] mod a; #[path = \"steps.rs\"] mod b;"),
        ("low/steps.rs", "mod step;"),
    ];
    for (text, violations) in [("use crate::low::a;", 0), ("use crate::high::Top;", 1)] {
        let files = [ROOT, HIGH, INNER, low[0], low[1], ("low/step.rs", text)];
        assert_eq!(of(&["low", "high"], &files).len(), violations, "{text}");
    }
}

#[test]
fn tests_and_own_items_do_not_count() {
    for text in [
        "#[cfg(test)] mod tests { use crate::high::Top; }",
        "mod deep { use super::Base; } pub struct Base;",
        "pub(crate) struct Base; use crate::low::Base as Other;",
        "// crate::high::Top",
    ] {
        assert_eq!(of(&["low", "high"], &[ROOT, HIGH, INNER, ("low.rs", text)]), [""; 0], "{text}");
    }
}

#[test]
fn the_list_has_each_module_once() {
    let files = [ROOT, HIGH, INNER, ("low.rs", "")];
    assert_eq!(of(&["high"], &files), ["module `low` is not listed exactly once"]);
    assert_eq!(of(&["low", "high", "high"], &files), ["module `high` is not listed exactly once"]);
    assert_eq!(of(&["low", "high", "top"], &files), ["module `top` does not exist"]);
    assert!(of(&["low"], &[("lib.rs", "mod low;")])[0].contains("module `low` has no file"));
}
