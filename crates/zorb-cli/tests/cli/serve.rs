//! `zorb serve`: objects that answer as a script says, called by `zorb call`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{bank, zorb};

/// A server in a process of its own.
pub(crate) struct Server {
    child: Child,
    told: Value,
}

impl Server {
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_zorb"))
            .args(["--json", "serve", "--listen", "iiop://127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        // It ends with this, whatever comes.
        let mut server = Self { child, told: Value::Null };
        server.told = serde_json::Deserializer::from_reader(out).into_iter().next().unwrap().unwrap();
        server
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self, at: usize) -> &str {
        self.told[at]["url"].as_str().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(folder: &Path, content: &Value) -> String {
    let path = folder.join("script.json");
    std::fs::write(&path, content.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn objects_answer_as_a_script_says() {
    let (idl, folder) = (bank(), tempfile::tempdir().unwrap());
    let idl = idl.path().to_str().unwrap();
    let script = script(
        folder.path(),
        &json!({ "Account": { "interface": "Bank::Account", "operations": {
            "owner": { "result": "Grace" },
            "limit": { "result": 5 },
            "deposit": [
                { "when": { "amount": 0 }, "raises": { "$exception": "IDL:Bank/Broke:1.0", "missing": 1 } },
                { "when": { "coins": [1, 2] }, "result": 3.5, "out": { "note": "thanks" }, "times": 1 },
                { "when": { "amount": 7 }, "raises": { "$exception": "TRANSIENT", "minor": 3, "completed": "COMPLETED_MAYBE" } },
                { "result": 1 }
            ],
        } } }),
    );
    let iors = folder.path().to_str().unwrap();
    let server =
        Server::start(&["--idl", idl, "--script", &script, "--object", "Other=Bank::Base", "--ior", iors]);
    let call = |args: &[&str]| {
        zorb(&[&["--json", "call", server.url(0), "--idl", idl][..], &named(args)].concat(), "")
    };
    assert_eq!(call(&["owner"]).json()["$result"], "Grace");
    // 0 is the same as 0.0.
    let broke = call(&["deposit", "[0, []]"]);
    assert_eq!((broke.code, broke.json()["missing"].clone()), (1, json!(1.0)));
    assert_eq!(call(&["deposit", "[1, [1, 2]]"]).json(), json!({ "$result": 3.5, "note": "thanks" }));
    // Once only.
    assert_eq!(call(&["deposit", "[1, [1, 2]]"]).json(), json!({ "$result": 1.0, "note": "" }));
    let transient = call(&["deposit", "[7, []]"]).json();
    assert_eq!((&transient["minor"], &transient["completed"]), (&json!(3), &json!("COMPLETED_MAYBE")));
    assert_eq!(call(&["limit"]).json()["$result"], 5.0);
    assert_eq!(call(&["limit", "9"]).code, 0);
    assert_eq!(call(&["limit"]).json()["$result"], 9.0);
    assert_eq!(call(&["poke", r#""x""#]).code, 0);
    // An object without answers, by its file.
    let other = folder.path().join("Other.ior");
    let blank = zorb(&["--json", "call", other.to_str().unwrap(), "owner", "--idl", idl], "");
    assert_eq!(blank.json()["$result"], "", "{}", blank.err);
}

/// `Interface.operation`: a reference by `corbaloc:` does not say its interface.
fn named<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut args = args.to_vec();
    let full = match args[0] {
        "owner" => "Bank::Account.owner",
        "limit" => "Bank::Account.limit",
        "poke" => "Bank::Account.poke",
        _ => "Bank::Account.deposit",
    };
    args[0] = full;
    args
}

#[test]
fn calls_are_told_on_standard_error() {
    let idl = bank();
    let idl = idl.path().to_str().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .args(["serve", "--idl", idl, "--object", "A=Bank::Account"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let stderr = child.stderr.take().unwrap();
    let server = Server { child, told: Value::Null };
    let url = first.split_whitespace().last().unwrap().to_owned();
    assert_eq!(zorb(&["call", &url, "Bank::Account.deposit", "[1.5, [2]]", "--idl", idl], "").code, 0);
    let mut told = String::new();
    BufReader::new(stderr).read_line(&mut told).unwrap();
    assert_eq!(told.trim(), r#"A.deposit {"amount":1.5,"coins":[2]} -> {"$result":0.0,"note":""}"#);
    drop(server);
}

#[test]
fn scripts_that_do_not_fit_the_idl_are_refused_with_the_place() {
    let (idl, folder) = (bank(), tempfile::tempdir().unwrap());
    let idl = idl.path().to_str().unwrap();
    let refused = |operations: Value| {
        let content = json!({ "A": { "interface": "Bank::Account", "operations": operations } });
        let script = script(folder.path(), &content);
        let run = zorb(&["serve", "--idl", idl, "--script", &script], "");
        assert_eq!(run.code, 3, "{}", run.out);
        run.err
    };
    for (operations, why) in [
        (json!({ "nothing": {} }), "A.nothing: Bank::Account has no such operation or attribute"),
        (json!({ "deposit": { "result": "much" } }), "A.deposit: result"),
        (json!({ "deposit": [{ "result": 1 }, { "out": { "nota": 1 } }] }), "A.deposit[1]: out.nota"),
        (json!({ "deposit": { "when": { "note": "" } } }), "when.note"),
        (
            json!({ "deposit": { "raises": "IDL:Bank/Rich:1.0" } }),
            "does not raise IDL:Bank/Rich:1.0, but only IDL:Bank/Broke:1.0",
        ),
        (json!({ "deposit": { "raises": { "$exception": "IDL:Bank/Broke:1.0" } } }), "missing"),
        (json!({ "deposit": { "raises": "TRANSIENT", "result": 1 } }), "cannot have `result` or `out`"),
        (json!({ "deposit": { "resalt": 1 } }), "resalt"),
        (json!({ "poke": { "result": 1 } }), "poke has no result"),
    ] {
        let err = refused(operations.clone());
        assert!(err.contains(why), "{operations}: {err}");
    }
    assert!(zorb(&["serve", "--idl", idl], "").err.contains("no object"));
    assert!(
        zorb(&["serve", "--idl", idl, "--object", "A=Bank::Nobody"], "")
            .err
            .contains("no interface Bank::Nobody")
    );
}
