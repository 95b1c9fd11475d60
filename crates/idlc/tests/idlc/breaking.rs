//! `idlc breaking`: exit codes and output for two versions of an IDL that differ in one rule, for each rule.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TYPES: &str = "struct S { long a; }; struct T { long a; }; exception X {}; exception Y {}; \
    interface A { void a(); }; interface B { void b(); }; valuetype V { public long a; };\n";

/// Rule, old IDL, new IDL. A common beginning precedes each of them. An operation that moves is new in
/// another interface, so it violates two rules.
const PAIRS: &[(&str, &str, &str)] = &[
    ("type-removed", "struct Gone { long a; };", ""),
    ("type-removed", "interface Gone { void a(); };", ""),
    ("type-removed", "exception Gone {};", ""),
    ("kind-changed", "struct K { long a; };", "exception K { long a; };"),
    ("kind-changed", "interface K { void a(); };", "local interface K { void a(); };"),
    (
        "repository-id-changed",
        "struct R { long a; };\n#pragma version R 1.0",
        "struct R { long a; };\n#pragma version R 1.1",
    ),
    (
        "repository-id-changed",
        "module M { interface R { void a(); }; };",
        "module M { interface R { void a(); }; typeprefix R \"acme\"; };",
    ),
    ("operation-removed", "interface I { void f(); void g(); };", "interface I { void f(); };"),
    ("operation-removed", "interface I { readonly attribute long a; };", "interface I { };"),
    (
        "operation-removed",
        "interface I { attribute long a; };",
        "interface I { readonly attribute long a; };",
    ),
    ("operation-removed", "interface I { long a(); };", "interface I { readonly attribute long a; };"),
    ("result-changed", "interface I { long f(); };", "interface I { short f(); };"),
    ("result-changed", "interface I { void f(); };", "interface I { S f(); };"),
    ("result-changed", "interface I { attribute S f; };", "interface I { attribute T f; };"),
    (
        "parameters-changed",
        "interface I { void f(in long a); };",
        "interface I { void f(in long a, in long b); };",
    ),
    (
        "parameters-changed",
        "interface I { void f(in long a, in long b); };",
        "interface I { void f(in long b, in long a); };",
    ),
    (
        "parameter-type-changed",
        "interface I { void f(in long a); };",
        "interface I { void f(in unsigned long a); };",
    ),
    (
        "parameter-type-changed",
        "module M<typename T> { interface I { void f(in T thing); }; }; module M<long> N;",
        "module M<typename T> { interface I { void f(in T thing); }; }; module M<string> N;",
    ),
    ("direction-changed", "interface I { void f(in long a); };", "interface I { void f(inout long a); };"),
    ("oneway-changed", "interface I { void f(in long a); };", "interface I { oneway void f(in long a); };"),
    ("raises-changed", "interface I { void f() raises (X); };", "interface I { void f() raises (Y, X); };"),
    ("raises-changed", "interface I { void f() raises (X); };", "interface I { void f(); };"),
    (
        "raises-changed",
        "interface I { attribute long a; };",
        "interface I { attribute long a setraises (X); };",
    ),
    ("context-changed", "interface I { void f(); };", "interface I { void f() context (\"user\"); };"),
    ("base-removed", "interface I : A, B {};", "interface I : B {};"),
    ("base-removed", "valuetype W : V { public long b; };", "valuetype W { public long b; };"),
    ("member-added", "struct M { long a; };", "struct M { long a; long b; };"),
    ("member-added", "exception M { long a; };", "exception M { long a; string why; };"),
    ("member-removed", "struct M { long a; long b; };", "struct M { long b; };"),
    ("member-removed", "valuetype M { public long a; public long b; };", "valuetype M { public long a; };"),
    ("member-order-changed", "struct M { long a; short b; };", "struct M { short b; long a; };"),
    ("member-type-changed", "struct M { long a; };", "struct M { double a; };"),
    ("member-type-changed", "valuetype M string;", "valuetype M wstring;"),
    ("optional-changed", "struct M { long a; };", "struct M { @optional long a; };"),
    ("bound-changed", "struct M { string<8> a; };", "struct M { string<16> a; };"),
    ("bound-changed", "typedef sequence<long, 4> Few;", "typedef sequence<long> Few;"),
    (
        "bound-changed",
        "struct M { @range(min = 1, max = 9) long a; };",
        "struct M { @range(min = 1, max = 10) long a; };",
    ),
    ("typedef-changed", "typedef long Id; struct M { Id a; };", "typedef string Id; struct M { Id a; };"),
    ("typedef-changed", "typedef long Row[3];", "typedef long Row[4];"),
    ("enumerator-removed", "enum E { red, green };", "enum E { red };"),
    ("enumerator-order-changed", "enum E { red, green, blue };", "enum E { red, blue, green };"),
    ("enumerator-added", "enum E { red };", "enum E { red, green };"),
    (
        "discriminator-changed",
        "union U switch (long) { case 1: long a; };",
        "union U switch (short) { case 1: long a; };",
    ),
    (
        "case-removed",
        "union U switch (long) { case 1: long a; case 2: long b; };",
        "union U switch (long) { case 1: long a; };",
    ),
    (
        "case-added",
        "union U switch (long) { case 1: long a; };",
        "union U switch (long) { case 1: long a; default: long b; };",
    ),
    (
        "case-labels-changed",
        "union U switch (long) { case 1: long a; };",
        "union U switch (long) { case 2: long a; };",
    ),
    (
        "case-type-changed",
        "union U switch (long) { case 1: long a; };",
        "union U switch (long) { case 1: string a; };",
    ),
    ("value-changed", "valuetype W { public long a; };", "custom valuetype W { public long a; };"),
    (
        "value-changed",
        "valuetype W : V { public long b; };",
        "valuetype W : truncatable V { public long b; };",
    ),
    ("bits-changed", "bitset F { bitfield<3> a; };", "bitset F { bitfield<4> a; };"),
    ("bits-changed", "bitmask F { READ, WRITE };", "bitmask F { WRITE, READ };"),
    ("bits-changed", "@bit_bound(8) bitmask F { READ };", "@bit_bound(16) bitmask F { READ };"),
    ("constant-changed", "const long MOST = 4;", "const long MOST = 5;"),
    ("operation-added", "interface I { void f(); };", "interface I { void f(); void g(); };"),
    ("operation-added", "interface I { readonly attribute long a; };", "interface I { attribute long a; };"),
    (
        "operation-added+operation-moved",
        "interface P { }; interface I : P { void f(); };",
        "interface P { void f(); }; interface I : P { };",
    ),
    ("base-added", "interface I { };", "interface I : A { };"),
    (
        "renamed",
        "struct Old { long a; };\n#pragma ID Old \"IDL:Was:1.0\"",
        "struct New { long a; };\n#pragma ID New \"IDL:Was:1.0\"",
    ),
    ("member-renamed", "struct M { long a; };", "struct M { long b; };"),
    (
        "member-renamed",
        "union U switch (long) { case 1: long a; };",
        "union U switch (long) { case 1: long b; };",
    ),
    ("member-renamed", "bitmask F { READ };", "bitmask F { LOOK };"),
    ("member-renamed", "bitset F { bitfield<3> a; };", "bitset F { bitfield<3> b; };"),
    ("typedef-removed", "typedef long Id; struct M { Id a; };", "struct M { long a; };"),
    ("constant-removed", "const long MOST = 4;", ""),
    ("constant-removed", "const long MOST = 4;", "const short MOST = 4;"),
    ("nil-changed", "interface I { void f(in A a); };", "interface I { void f(@non_nil in A a); };"),
    (
        "stream-changed",
        "typedef sequence<octet> D; interface I { void f(in D a); };",
        "typedef sequence<octet> D; interface I { void f(@stream in D a); };",
    ),
    (
        "factory-changed",
        "valuetype W { public long a; factory make(in long a); };",
        "valuetype W { public long a; factory make(in short a); };",
    ),
    ("visibility-changed", "valuetype W { public long a; };", "valuetype W { private long a; };"),
];

/// Old and new that differ, and break nothing.
const COMPATIBLE: &[(&str, &str)] = &[
    ("", "struct New { long a; }; interface I { void f(in New a); }; const long C = 1; typedef long L;"),
    ("module M { struct N { long a; }; };", "module M { struct N { long a; }; enum E { red }; };"),
    // Comments, names of parameters, the order of definitions.
    (
        "struct P { long a; }; interface I { void f(in long a); };",
        "/// Why.\ninterface I { void f(in long other); }; struct P { long a; };",
    ),
    ("interface I { void f() raises (X, Y); };", "interface I { void f() raises (Y, X); };"),
    ("typedef long Id; struct M { Id a; };", "typedef long Id; struct M { long a; };"),
    (
        "union U switch (long) { case 1: long a; case 2: long b; };",
        "union U switch (long) { case 2: long b; case 1: long a; };",
    ),
    ("const long MOST = 4; typedef string<MOST> Text;", "const long MOST = 2 + 2; typedef string<4> Text;"),
];

struct Files(tempfile::TempDir);

impl Files {
    fn new(old: &str, new: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old.idl"), format!("{TYPES}{old}\n")).unwrap();
        std::fs::write(folder.path().join("new.idl"), format!("{TYPES}{new}\n")).unwrap();
        Files(folder)
    }

    fn breaking(&self, args: &[&str]) -> Output {
        breaking(self.0.path(), args)
    }
}

fn breaking(folder: &Path, args: &[&str]) -> Output {
    let idlc = env!("CARGO_BIN_EXE_idlc");
    Command::new(idlc)
        .current_dir(folder)
        .args(["breaking", "old.idl", "new.idl"])
        .args(args)
        .output()
        .unwrap()
}

/// The rules that a comparison reports.
fn rules(output: &Output) -> Vec<String> {
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let changes = told["changes"].as_array().unwrap();
    let mut rules: Vec<String> =
        changes.iter().map(|change| change["rule"].as_str().unwrap().to_owned()).collect();
    rules.dedup();
    rules
}

/// The rules that `--help` lists, with their classes.
fn listed() -> Vec<(String, &'static str)> {
    let output = Command::new(env!("CARGO_BIN_EXE_idlc")).args(["breaking", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut class = "";
    let mut listed = Vec::new();
    for line in text.lines() {
        match line {
            line if line.starts_with("Rules of class `wire`") => class = "wire",
            line if line.starts_with("Rules of class `rust`") => class = "rust",
            line if !class.is_empty() && line.starts_with("  ") && !line.starts_with("   ") => {
                listed.push((line.trim().to_owned(), class));
            }
            _ => {}
        }
    }
    listed
}

#[test]
fn each_rule_is_listed_and_has_a_pair_that_gives_it_alone() {
    let listed = listed();
    for (rule, old, new) in PAIRS {
        let files = Files::new(old, new);
        let all = files.breaking(&["--class", "all", "--json"]);
        assert_eq!(
            all.status.code(),
            Some(1),
            "{rule}: {old} | {new}: {}",
            String::from_utf8_lossy(&all.stderr)
        );
        let expected: Vec<&str> = rule.split('+').collect();
        assert_eq!(rules(&all), expected, "{old} | {new}: {}", String::from_utf8_lossy(&all.stdout));
        let class = listed
            .iter()
            .find(|(id, _)| Some(&id.as_str()) == expected.last())
            .unwrap_or_else(|| panic!("{rule}"))
            .1;
        for asked in ["wire", "rust"] {
            let some = files.breaking(&["--class", asked, "--json"]);
            assert_eq!(some.status.code(), Some(i32::from(asked == class)), "{rule} in {asked}");
        }
    }
    let tested: BTreeSet<&str> = PAIRS.iter().flat_map(|(rule, ..)| rule.split('+')).collect();
    let listed: BTreeSet<&str> = listed.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(tested, listed);
}

#[test]
fn what_breaks_nothing_is_not_reported() {
    for (old, new) in COMPATIBLE {
        let output = Files::new(old, new).breaking(&["--class", "wire"]);
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), told.as_str()), (Some(0), ""), "{old} | {new}");
    }
    for (_, old, new) in PAIRS {
        for text in [old, new] {
            let output = Files::new(text, text).breaking(&["--class", "all"]);
            assert_eq!(output.status.code(), Some(0), "{text}: {}", String::from_utf8_lossy(&output.stdout));
        }
    }
}

#[test]
fn changes_of_the_wire_are_looked_for_unless_others_are_asked_for() {
    let files = Files::new("interface I { void f(); };", "interface I { void f(); void g(); };");
    assert_eq!(files.breaking(&[]).status.code(), Some(0));
    assert_eq!(files.breaking(&["--class", "rust"]).status.code(), Some(1));
    assert_eq!(files.breaking(&["--class", "all", "--allow", "operation-added"]).status.code(), Some(0));
    let output = files.breaking(&["--allow", "operation-gone"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("there is no rule `operation-gone`"), "{told}");
}

#[test]
fn a_line_says_where_and_why() {
    let files = Files::new(
        "module Bank {\n  interface Account { void close(); void move(in long to); };\n};",
        "module Bank {\n  interface Account { void move(in string to); };\n};",
    );
    let told = String::from_utf8(files.breaking(&[]).stdout).unwrap();
    insta::assert_snapshot!(told, @r"
    old.idl:3:28: wire[operation-removed]: operation `Bank::Account::close` was removed
      = a client with the old IDL gets BAD_OPERATION
    new.idl:3:28: wire[parameter-type-changed]: parameter `to` of `Bank::Account::move` was `long` and is `string`
      = the argument is decoded as another type
    ");
    let told: Value = serde_json::from_slice(&files.breaking(&["--json"]).stdout).unwrap();
    let first = &told["changes"][0];
    assert_eq!(first["name"], "Bank::Account::close");
    assert_eq!((&first["old"]["line"], &first["new"]), (&Value::from(3), &Value::Null));
}

#[test]
fn idl_and_files_that_are_wrong_are_no_verdict() {
    let files = Files::new("", "struct S { long a; };");
    let output = files.breaking(&[]);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty());
    assert!(String::from_utf8(output.stderr).unwrap().contains("`S` is already declared"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(breaking(folder.path(), &[]).status.code(), Some(2));
}

#[test]
fn included_files_are_compared_as_well() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("old.idl", "#include <part.idl>\ninterface I { void f(in P p); };"),
        ("new.idl", "#include <part.idl>\ninterface I { void f(in P p); };"),
        ("before/part.idl", "struct P { long a; };"),
        ("after/part.idl", "struct P { string a; };"),
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let output = breaking(folder.path(), &["--json", "-I", "after", "--old-include", "before"]);
    assert_eq!(rules(&output), ["member-type-changed"]);
    assert_eq!(breaking(folder.path(), &["-I", "after"]).status.code(), Some(0));
}

/// `BLESS=1 cargo test -p idlc --test idlc breaking` writes the page.
#[test]
fn the_page_lists_the_rules() {
    let output = Command::new(env!("CARGO_BIN_EXE_idlc")).args(["breaking", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    // What a rule says may go over several lines.
    let mut tables = [String::new(), String::new()];
    let mut class = None;
    let mut text = String::new();
    for line in help.lines().chain([""]) {
        let is_rule = class.is_some() && line.starts_with("  ") && !line.starts_with("   ");
        if (is_rule || line.is_empty()) && !text.is_empty() {
            let (id, rest) = text.split_once(": ").unwrap();
            let (what, why) = rest.rsplit_once(" (").unwrap();
            let row = format!("| `{id}` | {what} | {} |\n", why.trim_end().trim_end_matches(')'));
            tables[class.unwrap_or(0)].push_str(&row);
            text.clear();
        }
        match line {
            line if line.starts_with("Rules of class `wire`") => class = Some(0),
            line if line.starts_with("Rules of class `rust`") => class = Some(1),
            "" => {}
            line if class.is_some() && line.starts_with("  ") => {
                text.push_str(line.trim());
                text.push_str(if is_rule { ": " } else { " " });
            }
            _ => class = class.filter(|_| line.is_empty()),
        }
    }
    let page = format!(
        "# Which changes of an IDL break what\n\n`idlc breaking old.idl new.idl` compares two versions of an IDL. It prints each change that breaks something, with its place and the\nrule, and ends with 0 where nothing breaks, 1 where something does, and 2 where the command line or the IDL has errors. `--json` prints\nan object for programs, `--allow RULE` leaves a rule out.\n\nNew definitions of any kind break nothing. The tables are made from the rules of `idlc breaking --help`.\n\n## The wire\n\nThese are reported by default. A client and a server, one with the old IDL and one with the new, do not understand each other.\n\n| rule | what has changed | why it breaks |\n|---|---|---|\n{}\n## Rust\n\nThese are reported with `--class rust`, and together with those above with `--class all`. Both sides understand each other, but Rust that was\nwritten for the old IDL does not compile with the new.\n\n| rule | what has changed | why it breaks |\n|---|---|---|\n{}",
        tables[0], tables[1]
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/IDL-BREAKING.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(path).unwrap_or_default(), "BLESS=1 writes the page anew");
    assert_eq!(page.matches("| `").count(), listed().len());
}
