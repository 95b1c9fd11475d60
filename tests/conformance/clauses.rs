//! Which test proves which rule of the OMG's texts: `tests/conformance/clauses.tsv` is compared with
//! the citations in the tests.
//!
//! Every row has a test that cites it, or a reason. `BLESS=1` writes `docs/CONFORMANCE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A placeholder that does not count as a reason.
const PENDING: &str = "not yet";

/// The paths of files with citations.
const TESTS: [&str; 4] = ["tests", "src", "crates/*/tests", "crates/*/src"];
const MARK: &str = "// clause: ";
/// Macros that turn the plain functions in them into tests.
const TEST_MACROS: [&str; 1] = ["on_both_flavours"];

/// Prefixes of ids, and their descriptions in the document.
const PAGES: [(&str, &str); 5] = [
    ("giop", "GIOP and IIOP: messages, connections, code sets"),
    ("ior", "References: IORs, URLs, initial references, operations of every object"),
    ("poa", "Portable Object Adapter, ORB, messaging, and what builds on them"),
    ("exc", "Exceptions"),
    ("csi", "Common Secure Interoperability: who calls"),
];
const KINDS: [&str; 10] = [
    "operation",
    "policy",
    "combination",
    "state",
    "message",
    "status",
    "field",
    "exception",
    "minor",
    "rule",
];

#[derive(Debug)]
struct Row<'a> {
    id: &'a str,
    /// Title of the clause in the OMG's text.
    clause: &'a str,
    text: &'a str,
    reason: &'a str,
}

impl Row<'_> {
    fn is_pending(&self) -> bool {
        self.reason.starts_with(PENDING)
    }
}

/// Parses the rows. Returns all errors if there are any.
fn rows(text: &str) -> Result<Vec<Row<'_>>, Vec<String>> {
    let (mut rows, mut wrong) = (Vec::<Row<'_>>::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, clause, kind, text, reason] = fields[..] else {
            wrong.push(format!("line {number}: {} columns, not 5", fields.len()));
            continue;
        };
        let page = id.split('.').next().unwrap_or_default();
        if !PAGES.iter().any(|(name, _)| *name == page) {
            wrong.push(format!("line {number}: {id}: no such page"));
        }
        if !KINDS.contains(&kind) {
            wrong.push(format!("line {number}: {id}: no such kind: {kind}"));
        }
        if clause.is_empty() || text.is_empty() || line.contains('|') {
            wrong.push(format!("line {number}: {id}: an empty column, or one with a bar"));
        }
        if rows.last().is_some_and(|last| last.id >= id) {
            wrong.push(format!("line {number}: {id}: twice, or not in its place by the alphabet"));
        }
        rows.push(Row { id, clause, text, reason });
    }
    if wrong.is_empty() { Ok(rows) } else { Err(wrong) }
}

/// Returns the ids that the tests of a file cite, each with the test's name, or all errors.
fn citations(text: &str) -> Result<Vec<(String, String)>, Vec<String>> {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    let (mut ids, mut attributes) = (Vec::<&str>::new(), String::new());
    let mut within = "";
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((name, "")) = line.split_once("! {").filter(|_| !line.starts_with(' ')) {
            within = name;
        } else if line == "}" {
            within = "";
        }
        let line = line.trim_start();
        if let Some(cited) = line.strip_prefix(MARK) {
            ids.extend(cited.split(',').map(str::trim));
            continue;
        }
        let open = attributes.matches('[').count() > attributes.matches(']').count();
        if ids.is_empty() || line.starts_with("///") {
            continue;
        } else if open || line.starts_with("#[") {
            attributes.push_str(line);
            continue;
        }
        let marked = attributes.contains("#[test]") || attributes.contains("#[tokio::test");
        let name = match (function(line), check(line)) {
            (Some(name), _) if marked || TEST_MACROS.contains(&within) || is_check(text, name) => Some(name),
            (None, Some(name)) => Some(name),
            (None, None) if within == "matrix" => line.split_once(": ").map(|(name, _)| name),
            _ => None,
        };
        match name {
            Some(name) if attributes.contains("#[ignore") => {
                wrong.push(format!("line {number}: {name} is cited and ignored"));
            }
            Some(name) => found.extend(ids.iter().map(|id| ((*id).to_owned(), name.to_owned()))),
            None => wrong.push(format!("line {number}: a citation that stands above no test")),
        }
        ids.clear();
        attributes.clear();
    }
    if !ids.is_empty() {
        wrong.push("a citation behind the last test".to_owned());
    }
    let distinct: BTreeSet<_> = found.iter().collect();
    if distinct.len() < found.len() {
        wrong.push("a test that cites an id twice".to_owned());
    }
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

/// Returns the name of the function that begins on the line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    line.split(['(', '<']).next()
}

/// Returns the name of the check in the line.
fn check(line: &str) -> Option<&str> {
    line.strip_prefix("Check::new(\"")?.split('"').next()
}

/// Returns whether the function is a check of the live tests.
fn is_check(text: &str, name: &str) -> bool {
    text.lines().any(|line| check(line.trim_start()).is_some() && line.contains(&format!(", {name})")))
}

/// Returns all files in which citations count.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for place in TESTS {
        match place.split_once("/*/") {
            None => directories.push(root.join(place)),
            Some((above, below)) => {
                let above = fs::read_dir(root.join(above)).unwrap();
                directories.extend(above.map(|entry| entry.unwrap().path().join(below)));
            }
        }
    }
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let this = root.join("tests/conformance/clauses.rs");
    files.retain(|path| *path != this);
    files.sort();
    files
}

/// Tests by the id that they cite.
type Cited = BTreeMap<String, Vec<String>>;

/// Compares rows with citations, and returns all errors.
fn faults(rows: &[Row<'_>], cited: &Cited) -> Vec<String> {
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
    let strangers = cited.iter().filter(|(id, _)| !ids.contains(id.as_str()));
    let mut wrong: Vec<String> =
        strangers.map(|(id, tests)| format!("{id}: cited by {}, and in no row", tests.join(", "))).collect();
    for row in rows {
        match cited.get(row.id) {
            None if row.reason.is_empty() => wrong.push(format!("{}: neither test nor reason", row.id)),
            Some(tests) if !row.reason.is_empty() => {
                wrong.push(format!("{}: tests ({}) and a reason for none", row.id, tests.join(", ")));
            }
            None if row.is_pending() => wrong.push(format!("{}: {}", row.id, row.reason)),
            _ => {}
        }
    }
    wrong
}

/// Returns the document.
fn document(rows: &[Row<'_>], cited: &Cited) -> String {
    let mut out = "# Conformance\n\n\
        What zorb has of the OMG's texts, and the tests that prove it. Made by `BLESS=1 cargo test --test conformance` from\n\
        `tests/conformance/clauses.tsv` and the citations in the tests; the same test fails where a rule has neither test nor reason.\n\n\
        | page | rules | tested | with a reason |\n|---|---|---|---|\n"
        .to_owned();
    for (page, title) in PAGES {
        let of_page = || rows.iter().filter(|row| row.id.split('.').next() == Some(page));
        let tested = of_page().filter(|row| cited.contains_key(row.id)).count();
        let all = of_page().count();
        let _ = writeln!(out, "| {title} | {all} | {tested} | {} |", all - tested);
    }
    for (page, title) in PAGES {
        let _ = write!(out, "\n## {title}\n\n| clause | rule | tests or reason |\n|---|---|---|\n");
        for row in rows.iter().filter(|row| row.id.split('.').next() == Some(page)) {
            let why = match cited.get(row.id) {
                Some(tests) => tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join("<br>"),
                None => row.reason.to_owned(),
            };
            let _ = writeln!(out, "| {} | `{}`<br>{} | {why} |", row.clause, row.id, row.text);
        }
    }
    out
}

#[test]
fn every_rule_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("tests/conformance/clauses.tsv")).unwrap();
    let rows = rows(&table).unwrap_or_else(|wrong| panic!("clauses.tsv: {wrong:#?}"));
    let (mut cited, mut wrong) = (Cited::new(), Vec::new());
    for path in files(root) {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        match citations(&fs::read_to_string(&path).unwrap()) {
            Ok(found) => {
                for (id, test) in found {
                    cited.entry(id).or_default().push(format!("{name}::{test}"));
                }
            }
            Err(faults) => wrong.extend(faults.into_iter().map(|fault| format!("{name}: {fault}"))),
        }
    }
    wrong.extend(faults(&rows, &cited));
    assert!(wrong.is_empty(), "{wrong:#?}");

    let document = document(&rows, &cited);
    let path = root.join("docs/CONFORMANCE.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, document).unwrap();
    } else if fs::read_to_string(&path).unwrap_or_default() != document {
        panic!("docs/CONFORMANCE.md is not what the citations say: BLESS=1 cargo test --test conformance");
    }
}

#[test]
fn a_citation_counts_for_the_test_below_it() {
    let text = "\
fn helper() {}

// clause: a.b, a.c
/// Says something.
#[tokio::test(
    flavor = \"multi_thread\",
)]
async fn first() {}

    // clause: a.d
    // clause: a.e
    #[test]
    fn second() {}

// clause: a.f
async fn third(x: Context) -> Outcome {}

fn checks() {
        Check::new(\"third\", third),
        // clause: a.g
        Check::new(\"fourth\", |x| async {}),
}

on_both_flavours! {
    // clause: a.h
    async fn fifth() {}
}

matrix! {
    // clause: a.i
    sixth: calls(Peer);
}
";
    let found = citations(text).unwrap();
    let found: Vec<_> = found.iter().map(|(id, test)| format!("{id} {test}")).collect();
    let expected =
        "a.b first, a.c first, a.d second, a.e second, a.f third, a.g fourth, a.h fifth, a.i sixth";
    assert_eq!(found.join(", "), expected);
}

#[test]
fn citations_that_prove_nothing_are_refused() {
    for (text, what) in [
        ("// clause: a\nfn helper() {}\n", "line 2: a citation that stands above no test"),
        ("// clause: a\n\n#[test]\nfn test() {}\n", "line 2: a citation that stands above no test"),
        ("// clause: a\n#[test]\n#[ignore = \"slow\"]\nfn slow() {}\n", "line 4: slow is cited and ignored"),
        ("#[test]\nfn test() {}\n// clause: a\n", "a citation behind the last test"),
        ("// clause: a, a\n#[test]\nfn test() {}\n", "a test that cites an id twice"),
    ] {
        assert_eq!(citations(text), Err(vec![what.to_owned()]), "{text}");
    }
}

#[test]
fn rows_that_say_nothing_are_refused() {
    for (text, what) in [
        ("giop.a\tTitle\trule\n", "line 1: 3 columns, not 5"),
        ("tcp.a\tTitle\trule\tText\t\n", "line 1: tcp.a: no such page"),
        ("# comment\ngiop.a\tTitle\tthing\tText\t\n", "line 2: giop.a: no such kind: thing"),
        ("giop.a\tTitle\trule\t\t\n", "line 1: giop.a: an empty column, or one with a bar"),
        (
            "giop.a\tT\trule\tText\t\ngiop.a\tT\trule\tText\t\n",
            "line 2: giop.a: twice, or not in its place by the alphabet",
        ),
    ] {
        assert_eq!(rows(text).unwrap_err(), [what], "{text}");
    }
    let table = "giop.a\tT\trule\tText\t\ngiop.b\tT\trule\tText\ttype: never\ngiop.c\tT\trule\tText\t\n";
    let rows = rows(table).unwrap();
    let cited = [("giop.a", "x::y"), ("giop.b", "x::y"), ("giop.d", "x::z")]
        .map(|(id, test)| (id.to_owned(), vec![test.to_owned()]));
    assert_eq!(
        faults(&rows, &cited.into()),
        [
            "giop.d: cited by x::z, and in no row",
            "giop.b: tests (x::y) and a reason for none",
            "giop.c: neither test nor reason",
        ]
    );
}
