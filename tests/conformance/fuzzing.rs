//! The hours that each fuzz target has run: `fuzz/ledger.tsv` is compared with the table in
//! docs/RELIABILITY.md, which `BLESS=1` writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- from fuzz/ledger.tsv -->\n";
const END: &str = "<!-- end -->\n";

/// The totals of a target.
#[derive(Default)]
struct Sum {
    seconds: u64,
    executions: u64,
    corpus: u64,
    finds: u64,
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the existing targets.
fn targets(run: &str) -> Vec<&str> {
    let line = run.lines().find_map(|line| line.strip_prefix("targets=(")).expect("fuzz/run names them");
    line.trim_end_matches(')').split(' ').collect()
}

fn table(ledger: &str, targets: &[&str]) -> String {
    let mut sums = BTreeMap::<&str, Sum>::new();
    for line in ledger.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [target, date, commit, seconds, executions, corpus, finds] = fields[..] else {
            panic!("not seven columns: {line}")
        };
        assert!(targets.contains(&target), "no target {target}: {line}");
        assert!(date.len() == 10 && commit.len() >= 7, "no date, or no commit: {line}");
        let [seconds, executions, corpus, finds] = [seconds, executions, corpus, finds]
            .map(|number| number.parse::<u64>().unwrap_or_else(|_| panic!("no number: {line}")));
        let sum = sums.entry(target).or_default();
        sum.seconds += seconds;
        sum.executions += executions;
        sum.finds += finds;
        sum.corpus = corpus;
    }
    let mut table =
        "| target | processor hours | executions | corpus | finds |\n|---|---|---|---|---|\n".to_owned();
    for target in targets {
        let Sum { seconds, executions, corpus, finds } = sums.remove(target).unwrap_or_default();
        let hours = seconds as f64 / 3600.0;
        writeln!(table, "| `{target}` | {hours:.2} | {executions} | {corpus} | {finds} |").unwrap();
    }
    table
}

#[test]
fn the_table_of_hours_is_that_of_the_ledger() {
    let (run, ledger, document) = (read("fuzz/run"), read("fuzz/ledger.tsv"), read("docs/RELIABILITY.md"));
    let table = table(&ledger, &targets(&run));
    let (before, rest) = document.split_once(BEGIN).expect("the document has a place for it");
    let (there, behind) = rest.split_once(END).expect("which has an end");
    if std::env::var_os("BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/RELIABILITY.md");
        fs::write(path, format!("{before}{BEGIN}{table}{END}{behind}")).unwrap();
        return;
    }
    assert!(there == table, "BLESS=1 cargo test --test conformance writes it:\n{table}");
}

#[test]
fn each_target_has_a_line_in_the_readme() {
    let (run, readme) = (read("fuzz/run"), read("fuzz/README.md"));
    for target in targets(&run) {
        assert!(readme.contains(&format!("\n| `{target}` |")), "{target}");
    }
}
