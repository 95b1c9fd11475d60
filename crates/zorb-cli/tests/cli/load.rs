//! `zorb load`: what it counts, and how it ends.

use std::io::Read;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use zorb::dynamic::{DynServant, DynamicException, Idl, ServerRequest};
use zorb::prelude::*;
use zorb::{Any, Servant};

use super::live::Beside;
use super::serve::Server;
use super::{bank, beside, patient};

#[test]
fn answers_and_exceptions_are_counted_apart() {
    let idl = bank();
    let path = idl.path().to_str().unwrap().to_owned();
    beside(move |account, _| {
        let load = |args: &[&str]| {
            let run = patient(&[&["load", account, "--idl", &path, "--json"][..], args].concat());
            (run.code, run.json())
        };
        let (code, answered) = load(&["deposit", "[1, [2]]", "-c", "8", "-n", "500", "--connections", "3"]);
        assert_eq!(
            (code, &answered["answered"], &answered["connections"]),
            (0, &json!(500), &json!(3)),
            "{answered}"
        );
        assert_eq!(answered["operation"], "deposit");
        let latency = |name: &str| answered["latency_us"][name].as_f64().unwrap();
        let order = ["min", "p50", "p90", "p99", "p99.9", "max"].map(latency);
        assert!(order.is_sorted() && order[0] > 0.0, "{answered}");
        assert!(answered["calls_per_second"].as_f64().unwrap() > 0.0);
        let (code, raised) = load(&["deposit", "[-1, []]", "-c", "2", "-n", "40"]);
        assert_eq!((code, &raised["answered"], &raised["failed"]), (0, &json!(0), &json!(0)), "{raised}");
        assert_eq!(raised["user_exceptions"]["IDL:Bank/Broke:1.0"]["count"], 40);
        let (code, sent) = load(&["poke", "\"x\"", "-c", "2", "-n", "40"]);
        assert_eq!((code, &sent["answered"]), (0, &json!(40)), "{sent}");
        let (code, timed) = load(&["owner", "-c", "2", "--duration", "200ms", "--rate", "100"]);
        let calls = |name: &str| timed[name].as_u64().unwrap();
        assert_eq!((code, calls("answered") + calls("not_begun")), (0, 20), "{timed}");
    });
}

#[test]
fn failures_are_counted_by_kind() {
    let (idl, folder) = (bank(), tempfile::tempdir().unwrap());
    let idl = idl.path().to_str().unwrap();
    let script = folder.path().join("script.json");
    let answers =
        json!([{ "times": 3, "result": 1 }, { "raises": { "$exception": "TRANSIENT", "minor": 7 } }]);
    let content = json!({ "A": { "interface": "Bank::Account", "operations": { "deposit": answers } } });
    std::fs::write(&script, content.to_string()).unwrap();
    let server = Server::start(&["--idl", idl, "--script", script.to_str().unwrap(), "--quiet"]);
    let args =
        ["load", server.url(0), "Bank::Account.deposit", "[1, []]", "--idl", idl, "-n", "10", "-c", "2"];
    let failed = patient(&[&args[..], &["--json"]].concat());
    assert_eq!(failed.code, 1, "{}", failed.err);
    let json = failed.json();
    assert_eq!((&json["answered"], &json["failed"]), (&json!(3), &json!(7)), "{json}");
    let kinds: Vec<&String> = json["failures"].as_object().unwrap().keys().collect();
    assert!(kinds.len() == 1 && kinds[0].starts_with("TRANSIENT ("), "{json}");
    let text = patient(&args).out;
    assert!(text.contains("failures") && text.contains("TRANSIENT"), "{text}");
    let away = patient(&["load", "corbaloc::127.0.0.1:1/A", "Bank::Account.owner", "--idl", idl]);
    assert!(away.code == 3 && away.err.contains("cannot connect to the object"), "{}", away.err);
    for (args, why) in
        [(&["Bank::Account"][..], "is an interface"), (&["deposit", "[1]"], "takes 2 argument(s)")]
    {
        let wrong = patient(&[&["load", server.url(0), "--idl", idl][..], args].concat());
        assert!(wrong.code == 3 && wrong.err.contains(why), "{args:?}: {}", wrong.err);
    }
    for wrong in [&["-c", "0"][..], &["-n", "0"], &["--rate", "-1"], &["-n", "1", "--duration", "1s"]] {
        assert_eq!(patient(&[&["load", "x", "y"][..], wrong].concat()).code, 2, "{wrong:?}");
    }
}

/// Counts its calls.
struct Counted(Arc<AtomicU64>);

impl DynServant for Counted {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        self.0.fetch_add(1, Ordering::Relaxed);
        request.set_result(Any::new(String::new())?);
        Ok(request)
    }
}

#[test]
fn ctrl_c_prints_what_there_is_so_far() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let count = Arc::<AtomicU64>::default();
        let interface = Idl::parse(super::BANK).unwrap().interface("Bank::Base").unwrap();
        let servant = Servant::dynamic(interface, Counted(Arc::clone(&count)));
        let object = orb.activation().named("A").activate_erased(servant).unwrap().to_string();
        let work = move || {
            let idl = bank();
            let path = idl.path().to_str().unwrap().to_owned();
            let args = ["load", &object, "owner", "--idl", &path, "-c", "2", "--duration", "1000s", "--json"];
            let mut load = Beside::zorb(&args);
            while count.load(Ordering::Relaxed) < 10 {
                std::thread::sleep(Duration::from_millis(5));
            }
            let pid = load.child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            let mut out = String::new();
            load.out.read_to_string(&mut out).unwrap();
            let json: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(json["interrupted"], true, "{json}");
            assert!(json["answered"].as_u64().unwrap() > 0, "{json}");
            assert_eq!(load.child.wait().unwrap().code(), Some(0));
        };
        tokio::task::spawn_blocking(work).await.unwrap();
        orb.shutdown().await;
    });
}
