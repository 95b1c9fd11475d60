//! Floods of every type.

use std::fs;

use super::{all_samples, run, samples, text};

#[test]
fn floods_of_every_type_fill_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let line = "throughput --quick --total 256K --peers raw,zorb,zorb-dynamic,zorb-copying,zorb-zero-copy --queues auto,64K --sizes 2K --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    assert_eq!(
        all.len(),
        2 * (6 * 4 + 1),
        "six types by four peers, structs in memory by a fifth, two queues"
    );
    for sample in &all {
        let figure = |name: &str| sample["figures"][name].as_f64().unwrap();
        let confirmed = figure("mbit_s") * figure("secs") / 8.0 * 1e6;
        assert!((confirmed / f64::from(256 << 10) - 1.0).abs() < 0.03, "{confirmed} bytes: {sample}");
    }
    let checked: Vec<_> = all_samples(&dir.path().join("r"))
        .into_iter()
        .filter(|sample| sample["cell"]["pass"] == "integrity" && sample["figures"]["checked_mb"].is_f64())
        .collect();
    assert_eq!(checked.len(), 6 * 4 + 1, "the largest buffer of each type, by each: {checked:?}");
    let memory = all.iter().find(|sample| sample["peer"] == "zorb-zero-copy").unwrap();
    assert_eq!((&memory["cell"]["type"], &memory["line"]["type"]), (&"struct".into(), &"zstruct".into()));
    let stdout = text(&out.stdout);
    assert!(stdout.lines().any(|l| l.starts_with("| Orbix") && l.contains(" 123 |")), "{stdout}");
    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 6 * 2, "a chart for each type and queue");
}
