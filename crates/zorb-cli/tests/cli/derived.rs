//! Values of types that are derived from what an operation declares.

use serde_json::{Value, json};

use super::live::Beside;
use super::serve::Server;
use super::zorb;

const IDL: &str = r"
    valuetype Point { public long x; public long y; };
    valuetype Mark : truncatable Point { public string label; };
    valuetype Other { public long x; };
    interface Plan { Point make(); boolean has(in Point at); void keep(in Point at); };
";

#[test]
fn calls_servers_and_captures_know_the_value_types_of_the_idl() {
    let folder = tempfile::tempdir().unwrap();
    let (idl, script) = (folder.path().join("plan.idl"), folder.path().join("plan.json"));
    std::fs::write(&idl, IDL).unwrap();
    let mark = json!({ "$type": "IDL:Mark:1.0", "x": 1, "y": -2, "label": "here" });
    let answers = json!({ "Plan": { "interface": "Plan", "operations": {
        "make": { "result": mark },
        "has": [{ "when": { "at": mark }, "result": true }, { "result": false }],
    } } });
    std::fs::write(&script, answers.to_string()).unwrap();
    let (idl, script) = (idl.to_str().unwrap(), script.to_str().unwrap());
    let server = Server::start(&["--idl", idl, "--script", script]);
    let mut sniff =
        Beside::zorb(&["--json", "sniff", "--listen", "127.0.0.1:0", "--to", server.url(0), "--idl", idl]);
    let told: Value = serde_json::from_str(&sniff.line()).unwrap();
    let proxy = told["reference"].as_str().unwrap();
    let call = |url: &str, operation: &str, arguments: &Value| {
        zorb(&["--json", "call", url, operation, &arguments.to_string(), "--idl", idl], "")
    };
    for url in [server.url(0), proxy] {
        let made = call(url, "make", &json!({}));
        assert_eq!(made.code, 0, "{}", made.err);
        let made = &made.json()["$result"];
        assert_eq!((&made["x"], &made["y"], &made["label"]), (&json!(1), &json!(-2), &json!("here")));
        assert_eq!(made["$type"]["id"], "IDL:Mark:1.0");
        for (at, has) in [
            (mark.clone(), true),
            // What was printed can be given.
            (made.clone(), true),
            (json!({ "$type": "IDL:Mark:1.0", "x": 1, "y": -2, "label": "there" }), false),
            (json!({ "x": 1, "y": -2 }), false),
            (Value::Null, false),
        ] {
            let said = call(url, "has", &json!({ "at": at }));
            assert_eq!(said.code, 0, "{}", said.err);
            assert_eq!(said.json()["$result"], has, "{at}");
        }
    }
    let (mut all, mut replies) = (String::new(), 0);
    while replies < 6 {
        let line = sniff.line();
        assert!(!line.is_empty(), "it ends: {all}");
        replies += usize::from(line.contains("\"message\":\"reply\""));
        all += &line;
    }
    // Of `make`, and of arguments that were given by the id and by the whole type.
    assert_eq!(all.matches("\"label\":\"here\"").count(), 3, "{all}");
    assert!(!all.contains("does not fit"), "{all}");

    for (wrong, said) in [("IDL:Other:1.0", "$type"), ("IDL:Missing:1.0", "IDL:Missing:1.0")] {
        let refused = call(server.url(0), "has", &json!({ "at": { "$type": wrong, "x": 1 } }));
        assert!(refused.code != 0 && refused.err.contains(said), "{wrong}: {}", refused.err);
    }
}
