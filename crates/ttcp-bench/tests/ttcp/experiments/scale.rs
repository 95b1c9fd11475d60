//! Many objects, connections and clients.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{run, samples, text, ttcp};

#[test]
fn each_part_has_all_its_cells() {
    let dir = tempfile::tempdir().unwrap();
    let line = "scale --quick --n 60 --peers raw,zorb --objects 1,1200 --connections 1,30 --clients 1,3 --crowd 50 --out r";
    let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));

    let all = samples(&dir.path().join("r"));
    let of = |setting: &str, count: u64| -> BTreeMap<&str, &Value> {
        let same = all.iter().filter(|sample| sample["cell"][setting] == count);
        same.map(|sample| (sample["peer"].as_str().unwrap(), sample)).collect()
    };
    let peers = |setting, count| of(setting, count).into_keys().collect::<Vec<_>>();
    let figure = |sample: &Value, name: &str| {
        sample["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {sample}"))
    };
    for count in [1, 1200] {
        assert_eq!(peers("objects", count), ["zorb", "zorb-default-servant", "zorb-ids"]);
        for sample in of("objects", count).into_values() {
            assert_eq!(sample["line"]["objects"], count.min(1000), "{sample}");
            assert!(
                figure(sample, "memory_bytes") > 0.0 && figure(sample, "p99_us") >= figure(sample, "p50_us")
            );
        }
    }
    for count in [1, 30] {
        assert_eq!(peers("connections", count), ["raw", "zorb"]);
    }
    for (peer, sample) in of("connections", 30) {
        // With so few connections, the allocator may release more memory in between than they use, so figures
        // are not compared.
        for name in ["memory_bytes", "first_memory_bytes", "all_memory_bytes", "turn_us", "open_secs"] {
            assert!(figure(sample, name) > 0.0, "{name}: {sample}");
        }
        // A thread for each held connection, the accepting thread, and the thread that watches stdin.
        let threads = figure(sample, "threads");
        assert!(if peer == "raw" { threads == 29.0 + 2.0 } else { threads < 10.0 }, "{peer}: {threads}");
    }
    for count in [1, 3] {
        assert_eq!(peers("clients", count), ["raw", "zorb", "zorb-multi"]);
        for sample in of("clients", count).into_values() {
            assert_eq!((&sample["line"]["depth"], &sample["line"]["n"]), (&count.into(), &60.into()));
            let calls = figure(sample, "calls_s") * figure(sample, "secs");
            assert!((calls / 60.0 - 1.0).abs() < 0.01, "{calls} calls: {sample}");
        }
    }
    assert_eq!(peers("crowd", 50), ["raw", "zorb"]);
    for sample in of("crowd", 50).into_values() {
        assert_eq!(sample["line"]["clients"], 50, "{sample}");
        assert!(figure(sample, "max_us") >= figure(sample, "p50_us"), "{sample}");
    }
    assert_eq!(all.len(), 2 * (3 + 2 + 3) + 2);

    let tables: Vec<&str> = stdout.lines().filter(|line| line.starts_with('|')).collect();
    assert!(tables.iter().any(|line| line.starts_with("|    1200 |")), "{stdout}");
    assert!(!tables.iter().any(|line| line.contains(" - |")), "a cell is missing: {stdout}");
    assert!(text(&run(dir.path(), &["report", "r"]).stdout).contains("report.html"));
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 1 + 2 + 2);
}

/// A server that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(dir: &Path, arguments: &[&str]) -> Server {
    let mut child = ttcp(dir, arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let server = Server(child);
    assert!(ready.starts_with("READY"), "{ready}");
    server
}

/// Each object is identified by the value that it confirms, in every way of serving.
#[test]
fn an_object_that_is_another_is_told() {
    for serving in ["map", "ids", "default"] {
        let dir = tempfile::tempdir().unwrap();
        let _server = server(dir.path(), &["server", "--ior", "s", "--objects", "5", "--serving", serving]);
        let client = ["client", "objects", "--n", "20", "--ior", "s"];
        let out = run(dir.path(), &client);
        assert!(out.status.success(), "{serving}: {}", text(&out.stderr));
        let path = dir.path().join("s.objects");
        let references = fs::read_to_string(&path).unwrap();
        let mut references: Vec<&str> = references.lines().collect();
        assert_eq!(references.len(), 5);
        references[3] = references[1];
        fs::write(&path, references.join("\n")).unwrap();
        let stderr = text(&run(dir.path(), &client).stderr);
        let told = "the object of reference 1 confirms 6 bytes, but 2 were sent to it: references do not lead to different objects";
        assert!(stderr.contains(told), "{serving}: {stderr}");
    }
}

#[test]
fn what_cannot_be_held_or_called_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path(), &["server", "--ior", "s"]);
    let own = std::process::id().to_string();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let none = u32::MAX.to_string();
    let tell = "echo {}";
    let fail = "exit 3";
    for (pid, ready, connections, script, told) in [
        (own.as_str(), "s", "4", tell, ""),
        (&own, "s", "4", fail, "the client ended with exit status: 3"),
        (&own, "s", "1", "echo done", "the client's last line is not a result: \"done\""),
        (&own, "none", "1", tell, "cannot read the IOR file none"),
        (&own, &free, "1", tell, "cannot open connection 1 to 127.0.0.1:"),
        (&none, "s", "1", tell, "cannot read /proc/4294967295/status"),
    ] {
        let hold = [
            "hold",
            "--server-pid",
            pid,
            "--server-address",
            ready,
            "--connections",
            connections,
            "--",
            "sh",
            "-c",
            script,
        ];
        let out = run(dir.path(), &hold);
        let stderr = text(&out.stderr);
        assert_eq!(out.status.success(), told.is_empty(), "{hold:?}: {stderr}");
        assert!(stderr.contains(told), "{hold:?}: {stderr}");
    }
    for (arguments, told) in [
        (
            &["client", "objects", "--ior", "s"][..],
            "cannot read s.objects: was the server started with --objects?",
        ),
        (&["client", "clients", "--depth", "3", "--ior", "none"], "cannot read the IOR file none"),
        (&["raw-client", "objects"], "sockets have no objects"),
        (&["scale", "--parts", "things"], "invalid value 'things' for '--parts <PARTS>'"),
    ] {
        let out = run(dir.path(), arguments);
        let stderr = text(&out.stderr);
        assert!(!out.status.success() && stderr.contains(told), "{arguments:?}: {stderr}");
    }
    let port = free.rsplit(':').next().unwrap();
    let out = run(dir.path(), &["raw-client", "clients", "--depth", "4", "--port", port]);
    assert!(text(&out.stderr).contains("cannot connect to 127.0.0.1:"), "and it ends: {}", text(&out.stderr));
}
