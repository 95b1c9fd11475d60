//! The program as users run it, against objects of this process.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod architecture;
mod call;
mod deep;
mod derived;
mod endless;
#[cfg(feature = "etcd")]
mod etcd;
mod exits;
mod guide;
#[cfg(unix)]
mod hostile;
mod large;
mod live;
mod load;
mod login;
mod names;
mod new;
mod serve;
mod sessions;
mod skeleton;
mod sniff;
mod start;
#[cfg(unix)]
mod terminal;
mod top;
#[cfg(unix)]
mod unread;
mod wire;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use zorb::dynamic::{Idl, InterfaceRepository};
use zorb::prelude::*;

const BANK: &str = "\
module Bank {
    exception Broke { double missing; };
    typedef sequence<long> Coins;
    interface Base { readonly attribute string owner; };
    interface Account : Base {
        attribute double limit;
        double deposit(in double amount, in Coins coins, out string note) raises (Broke);
        oneway void poke(in string what);
    };
};
";

zorb::idl! {
    module Bank {
        exception Broke { double missing; };
        typedef sequence<long> Coins;
        interface Base { readonly attribute string owner; };
        interface Account : Base {
            attribute double limit;
            double deposit(in double amount, in Coins coins, out string note) raises (Broke);
            oneway void poke(in string what);
        };
    };
}

#[derive(Default)]
struct Account {
    limit: std::sync::Mutex<f64>,
    poked: std::sync::Mutex<String>,
}

impl bank::BaseServant for Account {
    async fn owner(&self) -> Result<String, SystemException> {
        Ok("Ada".to_owned())
    }
}

impl bank::AccountServant for Account {
    async fn limit(&self) -> Result<f64, SystemException> {
        Ok(*self.limit.lock().unwrap())
    }

    async fn set_limit(&self, value: f64) -> Result<(), SystemException> {
        *self.limit.lock().unwrap() = value;
        Ok(())
    }

    async fn deposit(
        &self,
        amount: f64,
        coins: Seq<i32>,
    ) -> Result<(f64, String), bank::account::DepositError> {
        if amount < 0.0 {
            return Err(bank::Broke { missing: -amount }.into());
        }
        Ok((amount + f64::from(coins.iter().sum::<i32>()), format!("{} coins", coins.len())))
    }

    async fn poke(&self, what: &str) -> Result<(), SystemException> {
        what.clone_into(&mut self.poked.lock().unwrap());
        Ok(())
    }
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }
}

fn zorb(args: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_zorb"))
        .args(args)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input may end before the input is written.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command that calls objects, and waits for their answers however busy the machine is.
fn patient(args: &[&str]) -> Run {
    zorb(&[args, &["--timeout", "1000s"]].concat(), "")
}

/// Runs `work` beside a server with an account and an interface repository.
fn beside(work: impl FnOnce(&str, &str) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let account: bank::AccountRef = orb.activate_named("Account", Account::default()).unwrap();
        let repository = InterfaceRepository::new().idl(&Idl::parse(BANK).unwrap()).serve(&orb).unwrap();
        let (account, repository) = (account.to_string(), repository.to_string());
        tokio::task::spawn_blocking(move || work(&account, &repository)).await.unwrap();
        orb.shutdown().await;
    });
}

fn bank() -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".idl").tempfile().unwrap();
    std::fs::write(file.path(), BANK).unwrap();
    file
}

/// A reference that omniORB made.
const OMNIORB: &str = "IOR:010000000c00000049444c3a542f493a312e3000010000000000000060000000010102000a0000003132372e302e302e310\
0b8780e000000fe27f2006b0000545c0000000000000002000000000000000800000001000000005454410100000\
01c00000001000000010001000100000001000105090101000100000009010100";

#[test]
fn a_reference_of_omniorb_is_dumped() {
    let dumped = zorb(&["ior", "dump", OMNIORB], "");
    assert_eq!((dumped.code, &*dumped.err), (0, ""));
    insta::assert_snapshot!(dumped.out, @r"
    type       IDL:T/I:1.0
    made by    omniORB
    profile 1  IIOP 1.2
      address        iiop://127.0.0.1:30904
      key            fe27f2006b0000545c0000000000  (14 bytes)
        format  omniORB, transient
        POA     RootPOA
        id      \x00\x00\x00\x00
      TAG_ORB_TYPE   omniORB (0x41545400)
      TAG_CODE_SETS  char   ISO 8859-1 (0x00010001), converts UTF-8 (0x05010001)
                     wchar  UTF-16 (0x00010109), converts UTF-16 (0x00010109)
    ");
    // By standard input, with the white space of files.
    assert_eq!(zorb(&["ior", "dump", "-"], &format!("{OMNIORB}\n")).out, dumped.out);
    let json = zorb(&["--json", "ior", "dump", OMNIORB], "").json();
    assert_eq!(json["orb"], "omniORB");
    assert_eq!(json["profiles"][0]["iiop"]["addresses"][0]["port"], 30904);
    assert_eq!(json["profiles"][0]["iiop"]["key"]["form"]["persistent"], false);
    assert_eq!(json["profiles"][0]["iiop"]["components"][1]["value"]["char"]["native"]["name"], "ISO 8859-1");
    assert_eq!(json["ior"], OMNIORB);
}

#[test]
fn references_are_made_and_read_again() {
    let args = [
        "ior",
        "make",
        "--type",
        "IDL:T/I:1.0",
        "--at",
        "h:1",
        "--at",
        "[::1]:2",
        "--key",
        "a/b",
        "--ssl-port",
        "3",
        "--code-sets",
    ];
    let made = zorb(&args, "");
    assert_eq!(made.code, 0, "{}", made.err);
    let json = zorb(&["ior", "dump", "--json", made.out.trim()], "").json();
    let addresses: Vec<String> = json["profiles"][0]["iiop"]["addresses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| format!("{} {} {}", at["protocol"], at["host"], at["port"]))
        .collect();
    assert_eq!(addresses, [r#""iiop" "h" 1"#, r#""iiop" "::1" 2"#, r#""ssliop" "h" 3"#]);
    assert_eq!(json["profiles"][0]["iiop"]["key"]["text"], "a/b");
    let old = zorb(&["ior", "make", "--iiop", "1.0", "--at", "h:1", "--key-hex", "00ff", "--code-sets"], "");
    assert_eq!(old.code, 3);
    assert!(old.err.contains("IIOP 1.0 does not support"), "{}", old.err);
}

#[test]
fn what_is_no_reference_is_refused_with_the_place() {
    for (text, why) in [
        ("IOR:0g", "hexadecimal digit expected, found 'g'"),
        ("IOR:00", "object reference"),
        ("nonsense", "the file \"nonsense\" does not exist"),
        ("iiop:x", "unknown or unexpected scheme"),
        ("corbaloc:iiop:[::1/x", "character"),
    ] {
        let run = zorb(&["ior", "dump", text], "");
        assert_eq!(run.code, 3, "{text}");
        assert!(run.err.contains(why), "{text}: {}", run.err);
        let json = zorb(&["--json", "ior", "dump", text], "");
        assert!(json.err.starts_with('{') && json.out.is_empty(), "{}", json.err);
    }
    assert_eq!(zorb(&["ior"], "").code, 2);
}

#[test]
fn addresses_are_tried_one_by_one() {
    beside(|account, _| {
        let checked = zorb(&["--json", "ior", "check", account], "").json();
        assert_eq!(checked["usable"], true);
        assert_eq!(checked["addresses"][0]["outcome"], "object");
        let unknown = zorb(&["ior", "dump", "--json", account], "").json();
        let port = unknown["profiles"][0]["iiop"]["addresses"][0]["port"].to_string();
        let args = [
            "ior",
            "make",
            "--at",
            &format!("127.0.0.1:{port}"),
            "--at",
            "127.0.0.1:0",
            "--at",
            "no.such.host.invalid:1",
        ];
        let other =
            zorb(&[&args[..], &["--at", &format!("0.0.0.0:{port}"), "--key", "nobody"]].concat(), "").out;
        let checked = zorb(&["--json", "ior", "check", other.trim()], "");
        assert_eq!(checked.code, 1);
        let outcomes: Vec<Value> =
            checked.json()["addresses"].as_array().unwrap().iter().map(|at| at["outcome"].clone()).collect();
        assert_eq!(outcomes, ["no_object", "unusable", "unreachable", "unusable"]);
        let text = zorb(&["ior", "check", other.trim()], "").out;
        assert!(
            text.contains("this is not the address of a machine")
                && text.contains("this machine cannot resolve"),
            "{text}"
        );
        assert!(text.contains("not from this machine"), "{text}");
    });
}

#[test]
fn objects_are_pinged() {
    beside(|account, _| {
        let pinged = zorb(&["--json", "ping", account, "--count", "3", "--interval", "1ms"], "");
        assert_eq!(pinged.code, 0, "{}", pinged.err);
        let json = pinged.json();
        assert_eq!(json["round_trips_us"].as_array().unwrap().len(), 3);
        assert_eq!(json["is_a"]["answer"]["value"], true);
        let text = zorb(&["ping", account, "-c", "1", "--type", "IDL:Bank/Base:1.0"], "").out;
        assert!(text.contains("is_a IDL:Bank/Base:1.0  yes"), "{text}");
        let other = zorb(&["ping", account, "-c", "1", "--type", "IDL:Other:1.0"], "");
        assert_eq!(other.code, 1);
        assert!(other.out.contains("no: the object has another interface"), "{}", other.out);
        let gone = zorb(&["ping", "corbaloc::127.0.0.1:1/x"], "");
        assert_eq!(gone.code, 3);
        assert!(gone.out.contains("refused"), "{}", gone.out);
    });
}

#[test]
fn operations_are_called_by_idl() {
    let idl = bank();
    let path = idl.path().to_str().unwrap().to_owned();
    beside(move |account, _| {
        let call =
            |more: &[&str]| zorb(&[&["--json", "call", account, "--idl", &path][..], more].concat(), "");
        let deposited = call(&["deposit", r#"{"amount": 1.5, "coins": [1, 2]}"#]);
        assert_eq!(deposited.code, 0, "{}", deposited.err);
        assert_eq!(deposited.json(), serde_json::json!({ "$result": 4.5, "note": "2 coins" }));
        assert_eq!(call(&["Bank::Account.deposit", "[1, []]"]).json()["$result"], 1.0);
        assert_eq!(call(&["owner"]).json()["$result"], "Ada");
        assert_eq!(call(&["limit", "7.5"]).json(), serde_json::json!({}));
        assert_eq!(call(&["limit"]).json()["$result"], 7.5);
        assert_eq!(call(&["poke", r#""now""#]).code, 0);
        let broke = call(&["deposit", "[-2, []]"]);
        assert_eq!(broke.code, 1);
        assert_eq!(broke.json(), serde_json::json!({ "$exception": "IDL:Bank/Broke:1.0", "missing": 2.0 }));
        for (args, why) in [
            (&["deposit", r#"{"amount": "much", "coins": []}"#][..], "amount"),
            (&["deposit", r#"{"amount": 1, "coins": [1, 2, "x"]}"#], "coins[2]"),
            (&["deposit", r#"{"amount": 1}"#], "coins"),
            (&["deposit", "[1]"], "takes 2 argument(s)"),
            (&["deposits"], "it has"),
            (&["Bank::Nobody.x"], "no interface Bank::Nobody"),
        ] {
            let wrong = call(args);
            assert_eq!(wrong.code, 3, "{args:?}: {}", wrong.out);
            assert!(wrong.err.contains(why), "{args:?}: {}", wrong.err);
        }
    });
}

#[test]
fn interfaces_come_from_a_repository_too() {
    beside(|account, repository| {
        let called =
            zorb(&["--json", "call", account, "deposit", "[1, [2]]", "--repository", repository], "");
        assert_eq!(called.code, 0, "{}", called.err);
        assert_eq!(called.json()["$result"], 3.0);
        let own = zorb(&["--json", "call", account, "owner"], "");
        assert_eq!((own.code, own.json()["$result"].clone()), (0, Value::from("Ada")), "{}", own.err);
        let listed = zorb(&["call", account], "").out;
        assert!(
            listed.contains("double deposit(in double amount, in Bank::Coins coins, out string note)"),
            "{listed}"
        );
    });
}

#[test]
fn idl_is_checked_and_laid_out() {
    let file = bank();
    let path = file.path().to_str().unwrap();
    assert_eq!(zorb(&["idl", "check", path], "").code, 0);
    assert_eq!(zorb(&["idl", "fmt", "--check", path], "").code, 0);
    std::fs::write(file.path(), BANK.replace("    ", "\t").replace("in double", "in  double")).unwrap();
    let check = zorb(&["idl", "fmt", "--check", path], "");
    assert_eq!((check.code, check.out.trim()), (1, path));
    assert_eq!(zorb(&["idl", "fmt", path], "").code, 0);
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), BANK);
    let wrong = zorb(&["--json", "--color", "never", "idl", "check", "-"], "struct S { Nope x; };");
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.starts_with('{'), "{}", wrong.err);
}

/// A naming service in a process of its own.
struct Names {
    child: std::process::Child,
    url: String,
}

impl Names {
    fn start(store: &std::path::Path) -> Self {
        Self::kept(&["--store", store.to_str().unwrap()])
    }

    /// With options that say where names are kept.
    fn kept(options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_zorb"))
            .args(["--json", "names", "serve", "--listen", "iiop://127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        // It ends with this, whatever comes.
        let mut names = Self { child, url: String::new() };
        let told = serde_json::Deserializer::from_reader(out).into_iter::<Value>().next();
        let told = told.unwrap().unwrap();
        assert_eq!(told["local"], true, "{told}");
        told["urls"][0].as_str().unwrap().clone_into(&mut names.url);
        names
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn names_are_served_listed_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let served = Names::start(&store);
    let names = |args: &[&str]| zorb(&[&["names", "--service", &served.url][..], args].concat(), "");
    let url = "corbaloc:iiop:1.2@127.0.0.1:1/x";
    assert_eq!(names(&["bind", "bank/accounts/mine", url, "--parents"]).code, 0);
    assert_eq!(names(&["bind", r"bank/a\.b.kind", url]).code, 0);
    assert_eq!(names(&["tree"]).out, "bank/\n  a\\.b.kind\n  accounts/\n    mine\n");
    let again = names(&["bind", "bank/accounts/mine", url]);
    assert!(again.code == 1 && again.err.contains("is already bound"), "{}", again.err);
    let other = "corbaloc:iiop:1.2@127.0.0.1:2/y";
    assert_eq!(names(&["bind", "--replace", "bank/accounts/mine", other]).code, 0);
    let resolved = names(&["resolve", "bank/accounts/mine"]).out;
    assert!(zorb(&["ior", "dump", resolved.trim()], "").out.contains("iiop://127.0.0.1:2"), "{resolved}");
    let listed = names(&["list", "bank", "-l"]).out;
    assert!(listed.contains("accounts/") && listed.contains("127.0.0.1:1/x"), "{listed}");
    let json = zorb(&["--json", "names", "--service", &served.url, "list", "bank"], "").json();
    assert_eq!((&json[0]["name"], &json[1]["context"]), (&Value::from(r"a\.b.kind"), &Value::from(true)));
    for (args, code, why) in [
        (&["resolve", "bank/nobody"][..], 1, "nothing is bound"),
        (&["resolve", "a//b"], 3, "is not a valid name"),
        (&["list", "bank/accounts/mine"], 3, "bank/accounts/mine"),
        (&["unbind", "nobody"], 1, "nothing is bound"),
        (&["bind", "a/b/c", url], 1, "; --parents creates the missing contexts"),
        (&["bind", "a/b/c", url, "--for", "5"], 1, "; --parents creates the missing contexts"),
    ] {
        let wrong = names(args);
        assert!(wrong.code == code && wrong.err.contains(why), "{args:?}: {} {}", wrong.code, wrong.err);
    }
    let no_name = names(&["resolve", "a//b"]).err;
    assert_eq!(no_name.matches("character 3").count(), 1, "{no_name}");
    assert_eq!(names(&["unbind", "bank/accounts/mine"]).code, 0);
    assert_eq!(names(&["make", "x/y"]).code, 0);
    assert_eq!(names(&["bind", "x/y/loop", "--context", &served.url]).code, 0);
    assert_eq!(names(&["bind", "x/y/loop", "--context", "--replace", &served.url]).code, 0);
    let refused = names(&["bind", "x/y/short", url, "--for", "5"]);
    assert!(refused.code == 1 && refused.err.contains("NO_IMPLEMENT"), "{} {}", refused.code, refused.err);
    assert_eq!(
        names(&["status"]).out.split_whitespace().collect::<Vec<_>>(),
        ["names", "current", "iterators", "0"]
    );
    let tree = names(&["tree"]);
    assert!(tree.code == 0 && tree.out.contains("already listed"), "{}", tree.out);
    // It is killed, and all of it is there again.
    drop(served);
    let served = Names::start(&store);
    let tree = zorb(&["names", "--service", &served.url, "tree", "--depth", "2"], "");
    assert!(
        tree.code == 1 && tree.out.contains("only 2 levels are listed") && tree.out.contains("kind"),
        "{}",
        tree.out
    );
    let second =
        zorb(&["names", "serve", "--listen", "iiop://127.0.0.1:0", "--store", store.to_str().unwrap()], "");
    assert!(second.code == 3 && second.err.contains("is in use"), "{}", second.err);
    drop(served);
    assert_eq!(
        zorb(&["names", "--timeout", "1s", "--service", "corbaloc::127.0.0.1:1/N", "tree"], "").code,
        3
    );
}

#[test]
fn shells_and_readers_are_served() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = zorb(&["completions", shell], "");
        assert!(run.code == 0 && run.out.contains("zorb"), "{shell}: {}", run.err);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(zorb(&["man", path], "").code, 0);
    let page = std::fs::read_to_string(folder.path().join("zorb-ior-check.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("\\-\\-timeout"), "{page}");
    assert_eq!(zorb(&["man", "/does/not/exist"], "").code, 3);
}
