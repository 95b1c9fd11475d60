//! Types, functions and circles over the limits are found.
#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::fs;

use module_order::size_limits::violations;

fn of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    violations(folder.path(), &["table"])
}

fn repeated(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{}", line(n));
        text
    })
}

#[test]
fn structs_functions_and_types_over_the_limits_are_found() {
    let fields = |count| format!("struct S {{ {} }}", repeated(count, |n| format!("f{n}: u8,")));
    assert_eq!(of(&[("lib.rs", &fields(20))]), [""; 0]);
    assert_eq!(of(&[("lib.rs", &fields(21))]), ["lib.rs: `S` has 21 fields"]);
    let lines = |name, count| format!("fn {name}() {{\n{}}}", repeated(count, |_| "f();".to_owned()));
    assert_eq!(of(&[("lib.rs", &lines("f", 98))]), [""; 0]);
    assert_eq!(of(&[("lib.rs", &lines("f", 99))]), ["lib.rs: `f` has 101 lines"]);
    assert_eq!(of(&[("lib.rs", &lines("table", 99))]), [""; 0]);
    let methods =
        |name: &str, count| format!("impl S {{ {} }}", repeated(count, |n| format!("fn {name}{n}() {{}}")));
    assert_eq!(of(&[("lib.rs", &methods("a", 50)), ("b.rs", &methods("b", 50))]), [""; 0]);
    let found = of(&[("lib.rs", &methods("a", 50)), ("b.rs", &methods("b", 51))]);
    assert_eq!(found, ["`S` has 101 methods"]);
    let test = format!("#[cfg(test)] mod tests {{ {} }}", lines("f", 200));
    assert_eq!(of(&[("lib.rs", &test)]), [""; 0]);
}

#[test]
fn a_circle_over_the_limit_is_found_through_reexports_and_macros() {
    let root = repeated(9, |n| format!("mod m{n};"));
    let chain = |last: &str| {
        let mut files = vec![("lib.rs".to_owned(), root.clone())];
        for n in 0..8 {
            files.push((
                format!("m{n}/mod.rs"),
                "mod inner; pub use inner::T; use super::nothing;".to_owned(),
            ));
            let text = format!("use crate::m{}::T as Next; pub struct T;", n + 1);
            files.push((format!("m{n}/inner.rs"), text));
        }
        files.push(("m8.rs".to_owned(), last.to_owned()));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        of(&files)
    };
    assert_eq!(chain("pub struct T;"), [""; 0]);
    for last in [
        "use crate::m0::T as First;",
        "fn f(_: super::m0::T) {}",
        "fn f() { println!(\"{}\", crate::m0::T) }",
    ] {
        let found = chain(last);
        assert_eq!(found.len(), 1, "{last}: {found:?}");
        assert!(found[0].starts_with("9 files use each other: m0/inner, m1/inner"), "{found:?}");
    }
    assert_eq!(chain("use crate::m1::T as Second;"), [""; 0], "eight files may use each other");
}
