//! Series of messages of every kind and size.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use ttcp_bench::zorb_peer::idl::{AlignedRecord, SeriesRef};
use zorb::prelude::*;

use super::{run, samples, text, ttcp};

const KINDS: [&str; 7] = ["short", "long", "float", "double", "record", "na-record", "any"];

fn list(sample: &Value, name: &str) -> Vec<u64> {
    let list = sample["line"][name].as_array().unwrap();
    list.iter().map(|time| time.as_u64().unwrap()).collect()
}

#[test]
fn a_quick_series_has_a_record_of_each_message() {
    let dir = tempfile::tempdir().unwrap();
    let line = "series --quick --peers raw,zorb --kinds short,na-record,any --n 4 --out r --json r.json";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{stdout}{stderr}");
    let all = samples(&dir.path().join("r"));
    let cells: BTreeSet<String> = all.iter().map(|s| format!("{} {}", s["cell"], s["peer"])).collect();
    // Two sizes, two modes; sockets once, zorb with three kinds.
    assert_eq!((all.len(), cells.len()), (2 * 2 * 4, 2 * 2 * 4));
    for sample in &all {
        let cell = &sample["cell"];
        let units = cell["units"].as_u64().unwrap();
        assert!([4, 750].contains(&units) && cell["frame_ms"] == 1, "{cell}");
        assert_eq!(cell["kind"] == "octets", sample["peer"] == "raw", "{cell}");
        assert_eq!(sample["line"]["size"], 16 + 32 * units);
        assert_eq!(
            (&sample["line"]["arrived"], &sample["line"]["n"]),
            (&4.into(), &4.into()),
            "all that were sent"
        );
        assert_eq!(sample["line"]["checked"], 3, "contents");
        let (start, time, latency) =
            (list(sample, "start_ns"), list(sample, "time_ns"), list(sample, "latency_ns"));
        assert!([start.len(), time.len(), latency.len()] == [4; 3], "{sample}");
        let frames: Vec<u64> = start.iter().map(|start| start / 1_000_000).collect();
        assert!(frames.windows(2).all(|pair| pair[0] < pair[1]), "one a frame: {sample}");
        if cell["mode"] == "call" {
            assert!(latency.iter().zip(&time).all(|(latency, time)| latency <= time), "{sample}");
        }
        let figure =
            |name: &str| sample["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {sample}"));
        let mean = time.iter().sum::<u64>() as f64 / 4e3;
        assert!((figure("mean_us") - mean).abs() < 1e-3, "{sample}");
        let rest = time[1..].iter().sum::<u64>() as f64 / 3e3;
        assert!((figure("mean_without_first_us") - rest).abs() < 1e-3, "{sample}");
        assert_eq!(figure("first_us"), time[0] as f64 / 1e3);
    }
    assert!(!stdout.contains("failed"), "{stdout}");
    let rows: Vec<Vec<&str>> = stdout.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
    let row = |cells: &[&str]| {
        let begins = |row: &&Vec<&str>| row.get(1..=cells.len()) == Some(cells);
        rows.iter().find(begins).unwrap_or_else(|| panic!("{cells:?}: {stdout}"))
    };
    let largest = row(&["24016"]);
    assert!(largest.len() == 9 && !largest.contains(&"-"), "three figures of each peer: {largest:?}");
    // The shown lines are the refitted ones: 0.00028325 ms a byte, 0.00005516 for the sockets.
    assert_eq!(row(&["TAO", "NA Record"])[11..14], ["283", "1154", "5.14"]);

    assert_eq!(text(&run(dir.path(), &["report", "r"]).stdout), "r/report.html\n");
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 9 + 9, "measured and published");
    for id in ["figure 1)", "figure 14)", "table 6)", "running text"] {
        assert!(page.contains(&format!("rtorb00, {id}")), "{id}");
    }
}

#[test]
fn sockets_in_c_send_series_too() {
    let dir = tempfile::tempdir().unwrap();
    let built = run(dir.path(), &["peers", "build", "c"]);
    if text(&built.stderr).contains("LEFT OUT") {
        return;
    }
    let line = "series --quick --peers raw,c --units 4,75 --n 3 --priority none --no-load --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let all = samples(&dir.path().join("r"));
    assert_eq!(all.len(), 2 * 2 * 2, "two sizes and modes, two peers");
    for sample in &all {
        assert_eq!(
            (&sample["line"]["arrived"], &sample["line"]["checked"]),
            (&3.into(), &3.into()),
            "{sample}"
        );
        assert_eq!(
            (&sample["cell"]["load"], &sample["cell"]["priority"]),
            (&"no load".into(), &"none".into())
        );
    }
}

#[test]
fn zorb_sends_every_kind_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    for kind in KINDS {
        for mode in ["call", "oneway"] {
            let line = format!(
                "client series --kind {kind} --mode {mode} --units 5 --n 3 --frame 1 --ior {}",
                server.ior
            );
            let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
            assert!(out.status.success(), "{line}: {}", text(&out.stderr));
            let said: Value = serde_json::from_slice(&out.stdout).unwrap();
            assert_eq!(
                (&said["kind"], &said["mode"], &said["arrived"]),
                (&kind.into(), &mode.into(), &3.into())
            );
        }
    }
    for wrong in ["--kind octets", "--kind any --invocation dii", "--n 1001"] {
        let line = format!("client series {wrong} --ior {}", server.ior);
        assert!(!run(dir.path(), &line.split(' ').collect::<Vec<_>>()).status.success(), "{wrong}");
    }
}

/// The server detects wrong contents, regardless of the client.
#[tokio::test]
async fn the_server_looks_at_contents() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path());
    let orb = Orb::builder().build().await.unwrap();
    let url = fs::read_to_string(format!("{}.series", server.ior)).unwrap();
    let series: SeriesRef = orb.resolve(url.trim()).await.unwrap();
    let shorts = |values: &[i16]| values.iter().copied().collect::<Seq<i16>>();
    let records = || vec![AlignedRecord::default(); 3];
    series.begin(3).await.unwrap();
    let arrived = series.call_short(7, 0, shorts(&[7, 38, 69])).await.unwrap();
    series.call_short(8, 1, shorts(&[7, 38, 70])).await.unwrap();
    series.call_short(9, 2, shorts(&[7, 38])).await.unwrap();
    series.send_short(10, 3, shorts(&[0, 0, 0])).await.unwrap();
    series.call_record(11, 4, &records()).await.unwrap();
    series.call_any(12, 5, &Any::new(records()).unwrap()).await.unwrap();
    assert!(series.call_any(13, 6, &Any::new(1i32).unwrap()).await.is_err(), "no sequence of records");
    let seen = series.arrivals().await.unwrap();
    assert_eq!((seen.bad, seen.all.len()), (5, 6));
    assert_eq!((seen.all[0].sent, seen.all[0].arrived, seen.all[5].number), (7, arrived, 5));
    series.begin(0).await.unwrap();
    assert_eq!(series.arrivals().await.unwrap().all.len(), 0);
}

#[test]
fn what_clients_leave_out_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let said = r#"{"n":4,"checked":3,"arrived":3,"time_ns":[1,2,3,4],"latency_ns":[1,2,3,4]}"#;
    fs::write(dir.path().join("client.sh"), format!("echo '{said}'\n")).unwrap();
    fs::write(dir.path().join("server.sh"), "echo READY x; exec sleep 60\n").unwrap();
    let other = "other=sh server.sh::sh client.sh";
    let line = "series --quick --units 4 --kinds any --peers none --out r --peer";
    let arguments: Vec<&str> = line.split(' ').chain([other]).collect();
    let out = run(dir.path(), &arguments);
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("only 3 of 4 messages arrived"), "{stderr}");
    let out = run(dir.path(), &["series", "--n", "1000", "--frame", "200"]);
    assert!(
        text(&out.stderr)
            .contains("1000 frames of 200 ms take 200 s; --timeout must be longer (it is 120 s)")
    );
    let out = run(dir.path(), &["run", "--tests", "ping,series"]);
    assert!(text(&out.stderr).contains("the test 'series' belongs to another experiment: use ttcp series"));
}

#[cfg(target_os = "linux")]
#[test]
fn servers_are_below_clients_and_a_load_ends_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        ttcp(dir.path(), &["prioritise", "--nice", "3", "--load", "--", "sh", "-c", "nice; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let own: i32 = text(&std::process::Command::new("nice").output().unwrap().stdout).trim().parse().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim().parse::<i32>().unwrap(), (own + 3).min(19));
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let load = fs::read_to_string(children).unwrap();
    let load = load.split(' ').next().unwrap();
    // After the name in brackets, the state is the first field and the nice value the seventeenth.
    let stat = || fs::read_to_string(format!("/proc/{}/stat", load)).ok();
    let fields =
        |stat: &str| stat.rsplit_once(") ").unwrap().1.split(' ').map(str::to_owned).collect::<Vec<_>>();
    within(|| stat().is_some_and(|stat| fields(&stat)[16] == "19"), "the load has the lowest priority");
    // As when `ttcp series` is killed: the kernel closes its descriptors.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().code().is_some());
    within(|| stat().is_none_or(|stat| fields(&stat)[0] == "Z"), "the load ends");
}

/// A zorb server that ends with the test.
struct Server {
    child: Child,
    ior: String,
}

impl Server {
    fn start(dir: &Path) -> Server {
        let mut command = ttcp(dir, &["server", "--lifeline", "--ior", "s.ior"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("READY"), "{line}");
        Server { child, ior: dir.join("s.ior").display().to_string() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn within(mut done: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
