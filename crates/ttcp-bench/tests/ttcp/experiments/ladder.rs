//! The optimisation ladder.

use std::collections::BTreeSet;
use std::fs;

use super::{run, samples, text};

/// It takes more than ten seconds: each of 72 cells runs in a process of its own.
#[test]
fn every_step_is_checked_counted_and_shown_beside_what_was_published() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(dir.path(), &["ladder", "--quick", "--peers", "raw,zorb", "--out", "r"]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");

    let all = samples(&dir.path().join("r"));
    let cells: BTreeSet<String> = all.iter().map(|s| format!("{} {}", s["cell"], s["peer"])).collect();
    let wanted = 8 + 2 * 2 * 2 * 9;
    assert_eq!((all.len(), cells.len()), (wanted, wanted), "code by step; type, side, order by step and raw");
    for sample in &all {
        let figure =
            |name: &str| sample["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {sample}"));
        if sample["cell"]["figure"] == "code" {
            assert!(figure("code_bytes") > 500.0 && figure("functions") >= 4.0, "{sample}");
            continue;
        }
        // Contents: bytes as stubs write them, and elements as they are in memory.
        assert!(figure("checked") >= 2.0 * f64::from(128 << 10), "{sample}");
        let (rate, bytes, secs) = (figure("mbit_s"), figure("bytes"), figure("secs"));
        assert!(
            bytes >= f64::from(128 << 10) && (rate * secs * 1e6 / 8.0 / bytes - 1.0).abs() < 1e-6,
            "{sample}"
        );
        let peer = sample["peer"].as_str().unwrap();
        let counted = peer.chars().next().is_some_and(|first| ('0'..='5').contains(&first));
        assert_eq!(sample["figures"]["calls"].is_f64(), counted, "{sample}");
    }
    let calls = |peer: &str, routine: &str| {
        let one = all.iter().find(|sample| {
            let cell = &sample["cell"];
            sample["peer"] == peer
                && (&cell["type"], &cell["side"], &cell["order"])
                    == (&"binstruct".into(), &"receiver".into(), &"native".into())
        });
        one.unwrap()["figures"][&format!("calls_{routine}")].as_f64().map(f64::round)
    };
    assert_eq!(calls("1 inlined", "CDR::decoder"), Some(16.0), "as published");
    assert_eq!(calls("2 precomputed, merged", "TypeCode::traverse"), Some(2.0), "as published");
    assert_eq!(calls("2 precomputed, merged", "calc_nested_size_and_alignment"), None);

    // Published figures have separate columns.
    let of_decoder = stdout.lines().filter(|l| l.starts_with("| BinStruct | CDR::decoder "));
    let thrice = of_decoder.clone().any(|line| line.matches(" 16.0").count() == 3);
    assert!(thrice, "steps 0 and 1, and the literature: {:?}", of_decoder.collect::<Vec<_>>());
    let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(stdout.contains("| tk_sequence | 19 | 19 |"), "{stdout}");
    assert!(
        stdout.contains("| unsigned short | 2 | 2 |") && stdout.contains("LocateReply | server | 4 | 4 |"),
        "{stdout}"
    );
    assert!(stdout.contains("| BinStruct | receiver | native | 6.7 |"), "{stdout}");

    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2 * 2 + 1, "two sides, two orders; machine code");
    for source in [
        "table 1",
        "table 2",
        "table 3",
        "table 4",
        "table 5",
        "appendix A.1",
        "appendix A.2",
        "figures 5, 6",
    ] {
        assert!(page.contains(&format!("iiop98, {source}")) || page.contains(source), "{source}");
    }
}

#[test]
fn steps_can_be_chosen_and_wrong_ones_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let line = "ladder --quick --steps typed,raw --types octet --total 1K --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    let peers: BTreeSet<&str> = all.iter().map(|sample| sample["peer"].as_str().unwrap()).collect();
    assert_eq!((all.len(), peers), (1 + 2 * 2 * 2, ["5 typed sequences", "raw"].into()));
    let out = run(dir.path(), &["ladder", "--steps", "8"]);
    assert!(text(&out.stderr).contains("[possible values: original, inlined,"), "{}", text(&out.stderr));
    let out = run(dir.path(), &["ladder-step", "--step", "raw", "--code"]);
    assert!(text(&out.stderr).contains("no function of step raw was found"), "{}", text(&out.stderr));
}
