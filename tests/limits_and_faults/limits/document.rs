//! The table of limits in docs/RELIABILITY.md: every option, default, metric and test in it is correct, and
//! none is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const COLUMNS: usize = 6;

struct Row {
    text: String,
    options: Vec<String>,
    default: String,
    metrics: Vec<String>,
    is_malformed: bool,
    tests: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/RELIABILITY.md")).unwrap();
    let section =
        text.split("\n## ").find(|section| section.starts_with("Limits\n")).expect("a section `Limits`");
    let table = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<_> = table
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [limit, option, default, _, metric, test] = cells[..] else {
                panic!("{COLUMNS} columns in `{line}`");
            };
            Row {
                text: limit.to_owned(),
                options: quoted(option),
                default: default.to_owned(),
                metrics: quoted(metric),
                is_malformed: metric == "-",
                tests: quoted(test),
            }
        })
        .collect();
    assert!(rows.len() > 20, "the table is found");
    rows
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the fields of `Limits`, each with its default.
fn fields() -> Vec<(String, String)> {
    let all = format!("{:#?}", Limits::default());
    let lines =
        all.lines().filter_map(|line| line.strip_prefix("    ")?.trim_end_matches(',').split_once(": "));
    let mut fields: Vec<_> = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert!(fields.iter().all(|(name, _)| !name.starts_with(' ')));
    fields.sort();
    fields
}

/// Converts `16 MiB`, `16,384` and `10 s` to their `{:?}` form.
fn value(text: &str) -> Option<String> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number: u64 = number.replace(',', "").parse().ok()?;
    Some(match unit {
        "" => number.to_string(),
        "KiB" => (number << 10).to_string(),
        "MiB" => (number << 20).to_string(),
        "s" => format!("{:?}", Duration::from_secs(number)),
        _ => return None,
    })
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target" && name != "fixtures") {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_option_of_limits_has_a_row_with_its_default() {
    let rows = rows();
    for (name, value_now) in fields() {
        let option = format!("Limits::{name}");
        let row = rows.iter().find(|row| row.options.contains(&option));
        let row = row.unwrap_or_else(|| panic!("{option} has no row"));
        if value_now == "None" {
            continue; // the text explains it
        }
        // The options of one row have their defaults in the same order.
        let at = row.options.iter().position(|other| *other == option).unwrap();
        let default = row.default.split(", then ").nth(at).and_then(value);
        assert_eq!(default, Some(value_now), "the default of {option} in `{}`", row.default);
    }
    for option in rows.iter().flat_map(|row| &row.options) {
        let known = option
            .strip_prefix("Limits::")
            .is_none_or(|name| fields().iter().any(|(field, _)| field == name));
        assert!(known, "{option} is no option");
    }
    let builder = fs::read_to_string(root().join("crates/orb-runtime/src/orb/builder.rs")).unwrap();
    for name in
        rows.iter().flat_map(|row| &row.options).filter_map(|option| option.strip_prefix("OrbBuilder::"))
    {
        assert!(builder.contains(&format!("pub fn {name}(mut self")), "{name} is no option");
    }
}

#[test]
fn every_limit_has_a_row_with_its_option_and_its_metric() {
    let rows = rows();
    let mut named = BTreeSet::new();
    for limit in Limit::ALL {
        let row = rows.iter().find(|row| {
            row.metrics.iter().any(|name| name == limit.name())
                && (limit.option().is_empty() || row.options.iter().any(|option| option == limit.option()))
        });
        assert!(row.is_some(), "{} has no row with its option {}", limit.name(), limit.option());
        named.insert(limit.name());
    }
    for row in &rows {
        // Contradictory messages are malformed, not over a limit.
        assert!(row.is_malformed || !row.metrics.is_empty(), "{} is counted nowhere", row.text);
        assert!(!row.is_malformed || row.options.is_empty(), "{} has an option and no metric", row.text);
        for name in &row.metrics {
            assert!(named.contains(name.as_str()), "{name} is no limit");
        }
    }
}

#[test]
fn every_limit_has_a_test_that_is_there() {
    let mut files = Vec::new();
    for folder in ["tests", "crates"] {
        sources(&root().join(folder), &mut files);
    }
    let texts: Vec<_> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    for row in rows() {
        assert!(!row.tests.is_empty(), "{} has no test", row.text);
        for test in row.tests {
            let function = format!("fn {test}(");
            let found = texts.iter().any(|text| text.contains(&function) && !text.contains("#[ignore"));
            assert!(found, "there is no test {test}");
        }
    }
}
