//! The endpoint's data on calls, adapters and the last minutes.

use std::sync::mpsc::Sender;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use zorb::poa::{IdAssignmentPolicy, LifespanPolicy};

use super::*;

/// Returns the row of an operation.
fn row(status: &Value, side: &str, operation: &str) -> Value {
    let rows = status[side].as_array().unwrap();
    rows.iter().find(|row| row["operation"] == operation).unwrap().clone()
}

/// Returns calls, user exceptions and failures of an operation.
fn endings(status: &Value, side: &str, operation: &str) -> [Option<u64>; 3] {
    let row = row(status, side, operation);
    ["calls", "user_exceptions", "failures"].map(|name| row[name].as_u64())
}

#[tokio::test]
async fn calls_are_counted_by_operation_on_both_sides() {
    let served = Served::new().await;
    for cents in [7, 7, 7, 7, 7, 1] {
        served.till.pay(cents).await.unwrap();
    }
    for cents in [0, 0, -1] {
        served.till.pay(cents).await.unwrap_err();
    }
    served.till.note(1).await.unwrap();
    // The oneway precedes this call, so it has ended.
    served.till.pay(1).await.unwrap();
    for (orb, side, other) in [(&served.server, "served", "made"), (&served.client, "made", "served")] {
        let status = served.status(orb).await;
        assert_eq!(status[other], Value::Array(Vec::new()));
        assert_eq!(endings(&status, side, "pay"), [Some(10), Some(2), Some(1)], "{side}");
        assert_eq!(endings(&status, side, "note"), [Some(1), Some(0), Some(0)], "{side}");
        let pay = row(&status, side, "pay");
        assert_eq!(pay["interface"], "IDL:Shop/Till:1.0");
        let bounds: Vec<f64> = serde_json::from_value(status["bounds_us"].clone()).unwrap();
        let buckets: Vec<(usize, u64)> = serde_json::from_value(pay["buckets"].clone()).unwrap();
        assert_eq!(buckets.iter().map(|(_, calls)| calls).sum::<u64>(), 10);
        let (last, _) = *buckets.last().unwrap();
        let longest = pay["max_us"].as_f64().unwrap();
        assert!(bounds[last - 1] < longest && longest <= bounds[last], "{longest} us in bucket {last}");
        assert_eq!(status["open_connections"], 1);
        assert_eq!(status["connections"][0]["incoming"], side == "served");
    }
    assert_eq!(served.status(&served.server).await["objects"], 1);
    let metrics = get(served.address(), "/metrics").await.body;
    let labels = "side=\"served\",interface=\"IDL:Shop/Till:1.0\",operation=\"pay\"";
    for line in [
        format!("zorb_calls_total{{{labels}}} 10"),
        format!("zorb_call_user_exceptions_total{{{labels}}} 2"),
        format!("zorb_call_failures_total{{{labels}}} 1"),
        format!("zorb_call_duration_seconds_count{{{labels}}} 10"),
        format!("zorb_call_duration_seconds_bucket{{{labels},le=\"134.217728\"}} 10"),
        format!("zorb_call_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 10"),
        "zorb_connections 1".to_owned(),
        "zorb_objects 1".to_owned(),
        "zorb_limit_hits_total{limit=\"max_message_size\"} 0".to_owned(),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    let bounds = metrics.lines().filter(|line| line.contains("_bucket{") && line.contains(labels));
    let bounds: Vec<&str> = bounds.map(|line| line.split("le=\"").nth(1).unwrap()).collect();
    assert_eq!(bounds.len(), 29, "powers of two microseconds");
    assert!(bounds[0].starts_with("0.000001\"") && bounds[10].starts_with("0.001024\""), "{bounds:?}");
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(metrics.contains(&format!("# TYPE {family} ")), "{line}");
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn calls_within_the_process_are_counted_by_how_they_end() {
    let served = Served::new().await;
    for cents in [0, 0, 0, -1, -1, 7] {
        let _ = served.here.pay(cents).await;
    }
    let status = served.status(&served.server).await;
    assert_eq!(endings(&status, "served", "pay"), [Some(6), Some(3), Some(2)]);
}

#[tokio::test]
async fn a_result_that_fails_while_it_is_sent_is_a_failure() {
    let served = Served::new().await;
    // Before anything is sent, and after some fragments.
    served.till.receipts(0).await.unwrap_err();
    let lines = served.till.receipts(2000).await.unwrap();
    lines.collect(2001).await.unwrap_err();
    // The servant ends after its connection.
    while endings(&served.status(&served.server).await, "served", "receipts")[0] != Some(2) {
        tokio::task::yield_now().await;
    }
    let status = served.status(&served.server).await;
    assert_eq!(endings(&status, "served", "receipts"), [Some(2), Some(0), Some(2)]);
}

#[tokio::test]
async fn a_call_that_is_given_up_is_a_failure_of_its_caller() {
    let served = Served::new().await;
    let mut call = Box::pin(served.till.pay(1));
    // The first poll begins it.
    assert!(futures_util::poll!(&mut call).is_pending());
    drop(call);
    let status = served.status(&served.client).await;
    assert_eq!(endings(&status, "made", "pay"), [Some(1), Some(0), Some(1)]);
}

#[cfg(feature = "dynamic")]
#[tokio::test]
async fn a_user_exception_that_is_passed_on_is_one_at_the_gateway_too() {
    let served = Served::new().await;
    let gateway = Orb::builder().listen("iiop://127.0.0.1:0").admin("127.0.0.1:0").build().await.unwrap();
    let behind: shop::TillRef = gateway.resolve(&served.here.to_string()).await.unwrap();
    let bridge = zorb::dynamic::Bridge::to(&behind).servant();
    let id = gateway.root_poa().activate_object(bridge).unwrap();
    let before: ObjectRef = gateway.root_poa().id_to_reference(&id).unwrap();
    let before: shop::TillRef = served.client.resolve_unchecked(&before.to_string()).await.unwrap();
    for cents in [0, 0, -1, 7] {
        let _ = before.pay(cents).await;
    }
    let status = served.status(&gateway).await;
    for side in ["served", "made"] {
        assert_eq!(endings(&status, side, "pay"), [Some(4), Some(2), Some(1)], "{side}");
    }
}

#[tokio::test]
async fn unknown_operations_do_not_fill_the_table() {
    let served = Served::new().await;
    let other: shop::OtherRef = served.client.resolve_unchecked(&served.till.to_string()).await.unwrap();
    for _ in 0..10 {
        other.one().await.unwrap_err();
        other.two().await.unwrap_err();
    }
    let status = served.status(&served.server).await;
    assert_eq!(endings(&status, "served", "(others)"), [Some(20), Some(0), Some(20)]);
    let rows = status["served"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["operation"] != "one" && row["operation"] != "two"), "{rows:?}");
}

#[tokio::test]
async fn version_and_times_are_those_of_the_orb() {
    let millis = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let before = millis();
    let served = Served::new().await;
    let status = served.status(&served.server).await;
    assert_eq!(status["zorb"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["endpoints"], json!(served.server.endpoints()));
    let started = status["started_ms"].as_u64().unwrap();
    assert!((before..=millis()).contains(&started), "{started}");
    assert!(status["uptime_ms"].is_u64());
}

#[tokio::test]
async fn adapters_are_listed_with_state_objects_and_policies() {
    let served = Served::new().await;
    let root = served.server.root_poa();
    let lasting = [LifespanPolicy::Persistent.into(), IdAssignmentPolicy::User.into()];
    let bank = root.create_poa("bank", None, &lasting).unwrap();
    let accounts = bank.create_poa("accounts", Some(&root.manager()), &[]).unwrap();
    for id in ["a", "b", "c"] {
        let _: shop::TillRef = bank.activate_with_id(id, Till).unwrap();
    }
    bank.deactivate_object(&"b".into()).unwrap().completed().await;
    let _: shop::TillRef = accounts.activate(Till).unwrap();
    let adapter = |path: &[&str], manager: &str, state: &str, objects: u64, policies: &[&str]| json!({ "path": path, "manager": manager, "state": state, "objects": objects, "policies": policies });
    let status = served.status(&served.server).await;
    let of_root = adapter(&["RootPOA"], "RootPOAManager", "active", 1, &["IMPLICIT_ACTIVATION"]);
    let of_accounts = adapter(&["RootPOA", "bank", "accounts"], "RootPOAManager", "active", 1, &[]);
    let of_bank = |state| adapter(&["RootPOA", "bank"], "bank-manager", state, 2, &["PERSISTENT", "USER_ID"]);
    assert_eq!(status["adapters"], json!([of_root, of_bank("holding"), of_accounts]));
    assert_eq!((&status["more_adapters"], &status["objects"]), (&json!(false), &json!(4)));

    bank.manager().activate().unwrap();
    let _: shop::TillRef = served.server.activate_named("Till", Till).unwrap();
    let status = served.status(&served.server).await;
    let policies = ["PERSISTENT", "MULTIPLE_ID", "USER_ID"];
    let of_plain = adapter(&["plain keys"], "RootPOAManager", "active", 1, &policies);
    assert_eq!(status["adapters"], json!([of_plain, of_root, of_bank("active"), of_accounts]));

    for at in 0..300 {
        accounts.create_poa(&at.to_string(), Some(&root.manager()), &[]).unwrap();
    }
    let status = served.status(&served.server).await;
    assert_eq!(status["adapters"].as_array().unwrap().len(), 256);
    assert_eq!(status["more_adapters"], true);
}

#[tokio::test]
async fn history_has_the_last_minutes() {
    let _frozen = freeze();
    let served = Served::new().await;
    served.till.pay(7).await.unwrap();
    served.till.pay(0).await.unwrap_err();
    served.till.pay(-1).await.unwrap_err();
    assert_eq!(served.status(&served.server).await["history"]["at_ms"], json!([]));
    point(&served).await;
    served.till.pay(7).await.unwrap();
    point(&served).await;
    for (orb, side, other) in [(&served.server, "served", "made"), (&served.client, "made", "served")] {
        let history = &served.status(orb).await["history"];
        assert_eq!((&history["since_ms"], &history["at_ms"]), (&json!(0), &json!([5001, 10_002])));
        assert_eq!(history[side]["calls"], json!([3, 1]), "{side}");
        assert_eq!(history[side]["failures"], json!([1, 0]), "{side}");
        assert!(history[side]["p99_us"][0].as_f64().unwrap() > 0.0);
        assert_eq!(history[other], json!({ "calls": [0, 0], "failures": [0, 0], "p99_us": [null, null] }));
        assert_eq!(history["connections"], json!([1, 1]));
        for direction in ["received_bytes", "sent_bytes"] {
            let bytes: Vec<u64> = serde_json::from_value(history[direction].clone()).unwrap();
            assert!(bytes[0] > bytes[1] && bytes[1] > 0, "{direction}: {bytes:?}");
        }
    }
}

/// Stops tokio's clock, which only [`point`] advances from here on. Until the returned sender is dropped, a
/// blocking task keeps the clock from advancing when the runtime is idle.
pub(super) fn freeze() -> Sender<()> {
    tokio::time::pause();
    let (thaw, thawed) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || thawed.recv());
    thaw
}

/// Advances the clock by five seconds, after which both ORBs have another point.
pub(super) async fn point(served: &Served) {
    let orbs = [&served.server, &served.client];
    let count = async |orb| served.status(orb).await["history"]["at_ms"].as_array().unwrap().len();
    let before = count(orbs[0]).await;
    // Timers have a resolution of a millisecond, rounded up.
    tokio::time::advance(Duration::from_millis(5001)).await;
    for orb in orbs {
        while count(orb).await == before {
            tokio::task::yield_now().await;
        }
    }
}
