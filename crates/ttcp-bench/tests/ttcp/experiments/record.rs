//! The full run that is stored in the repository: its data is complete, its report covers all of it, and
//! README shows charts of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{experiments_of_all, run, samples, text};

/// The latest record of all experiments.
fn latest() -> PathBuf {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/record");
    let all = fs::read_dir(records).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().ends_with("-all")).max().unwrap()
}

#[test]
fn the_record_has_every_experiment_of_zorb_of_omniorb_and_of_sockets() {
    let all = samples(&latest());
    for experiment in experiments_of_all() {
        let peers: BTreeSet<&str> = all
            .iter()
            .filter(|sample| sample["experiment"] == experiment && sample["figures"].is_object())
            .map(|sample| sample["peer"].as_str().unwrap())
            .collect();
        let has = |names: &[&str]| names.iter().any(|name| peers.iter().any(|peer| peer.starts_with(name)));
        // The ladder's last step is zorb's compiled stubs.
        for names in [&["zorb", "7"][..], &["omniorb"], &["raw", "c"]] {
            assert!(has(names), "{experiment}: no figures of {}, only of {peers:?}", names[0]);
        }
    }
}

#[test]
fn its_report_can_be_made_of_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let (record, to) = (latest(), dir.path().join("to"));
    let (from, to) = (record.to_string_lossy(), to.to_string_lossy());
    let out = run(dir.path(), &["report", &from, "--to", &to]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let made = fs::read_to_string(Path::new(&*to).join("report.html")).unwrap();
    let kept = fs::read_to_string(record.join("report.html")).unwrap();
    let markdown = fs::read_to_string(record.join("report.md")).unwrap();
    for experiment in experiments_of_all() {
        let section = format!("<section id=\"{experiment}\">");
        assert!(made.contains(&section) && kept.contains(&section), "{experiment}");
    }
    let charts = fs::read_dir(record.join("charts")).unwrap().count();
    assert_eq!(kept.matches("<svg ").count(), charts, "each chart is a file too");
    assert_eq!(markdown.matches("](charts/").count(), charts, "and the text shows it");
}

/// Base address of unprocessed files of the repository.
const RAW: &str = "https://raw.githubusercontent.com/zorb-rs/zorb/main/";

#[test]
fn readme_shows_one_of_its_charts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let record = latest();
    let charts = format!("benchmarks/record/{}/charts/", record.file_name().unwrap().to_string_lossy());
    // Absolute, so that they are also shown outside of the repository.
    let shown: Vec<&str> = readme
        .split("](")
        .filter_map(|rest| rest.split(')').next()?.strip_prefix(RAW))
        .filter(|link| link.starts_with(&charts))
        .collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    for chart in shown {
        assert!(root.join(chart).exists(), "{chart}");
    }
}
