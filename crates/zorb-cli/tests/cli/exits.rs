//! Exit codes: 0 success, 1 the answer is no, 2 wrong command line, 3 the answer could not be found out. Also
//! closed pipes.

use std::process::{Command, Stdio};

use super::{Names, OMNIORB, bank, beside, zorb};

/// Nothing listens there.
const NOBODY: &str = "corbaloc:iiop:1.2@127.0.0.1:1/x";

#[test]
fn exit_codes_say_what_kind_of_answer_there_is() {
    beside(|account, _| {
        let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
        let idl = idl.path().to_str().unwrap();
        let names = Names::start(&folder.path().join("names.redb"));
        let broken = folder.path().join("broken.idl");
        std::fs::write(&broken, "interface {").unwrap();
        let broken = broken.to_str().unwrap();
        let gone = account_without_object(account);
        let no_file = folder.path().join("none").join("x");
        let no_file = no_file.to_str().unwrap();
        let at = names.url.as_str();
        for (args, code) in [
            (&["ior", "dump", OMNIORB][..], 0),
            (&["ior", "dump", "nonsense"], 3),
            (&["ior", "dump"], 2),
            (&["ior", "check", account], 0),
            (&["ior", "check", NOBODY], 1),
            (&["ior", "make", "--at", "127.0.0.1:1", "--key", "x"], 0),
            (&["ior", "make", "--at", "127.0.0.1", "--key", "x"], 2),
            (&["ping", account, "-c", "1"], 0),
            (&["ping", account, "-c", "1", "--type", "IDL:Other:1.0"], 1),
            (&["ping", &gone, "-c", "1"], 1),
            (&["ping", NOBODY, "-c", "1"], 3),
            (&["ping", account, "--interval", "0"], 2),
            (&["call", account, "owner", "--idl", idl], 0),
            (&["call", account, "deposit", "[-1, []]", "--idl", idl], 1),
            (&["call", &gone, "Bank::Account.owner", "--idl", idl], 1),
            (&["call", NOBODY, "Bank::Account.owner", "--idl", idl], 3),
            (&["call", account, "owner", "--idl", no_file], 3),
            (&["names", "--service", at, "resolve", "nobody"], 1),
            (&["names", "--service", at, "bind", "a/b", NOBODY], 1),
            (&["names", "--service", at, "bind", "a", NOBODY], 0),
            (&["names", "--service", at, "bind", "a", NOBODY], 1),
            (&["names", "--service", at, "resolve", "a"], 0),
            (&["names", "--service", at, "unbind", "b"], 1),
            (&["names", "--service", at, "list", "a"], 3),
            (&["names", "--service", at, "tree"], 0),
            (&["names", "--service", at, "tree", "--depth", "0"], 1),
            (&["names", "--service", at, "status"], 0),
            (&["names", "--service", account, "list"], 1),
            (&["names", "--service", NOBODY, "list"], 3),
            (&["names", "--service", NOBODY, "resolve", "a"], 3),
            (&["names", "--service", at, "serve", "--memory"], 2),
            (&["names", "serve", "--memory", "--service", at], 2),
            (&["names", "--timeout", "1s", "serve", "--memory"], 2),
            (&["names", "--service", at, "repair", no_file], 2),
            (&["names", "repair", no_file], 3),
            (&["top", "127.0.0.1:1", "--once"], 3),
            (&["serve", "--object", "a=b"], 3),
            (&["serve"], 3),
            (&["sniff", no_file], 3),
            (&["sniff"], 2),
            (&["idl", "check", idl], 0),
            (&["idl", "check", broken], 1),
            (&["idl", "check", no_file], 3),
            (&["idl", "check"], 2),
            (&["completions", "bash"], 0),
            (&["man", no_file], 3),
            (&["nonsense"], 2),
        ] {
            let run = zorb(args, "");
            assert_eq!(run.code, code, "{args:?}\n{}{}", run.out, run.err);
        }
    });
}

/// A reference to an object that the account's server does not have.
fn account_without_object(account: &str) -> String {
    let dump = zorb(&["--json", "ior", "dump", account], "").json();
    let at = &dump["profiles"][0]["iiop"]["addresses"][0];
    format!("corbaloc:iiop:1.2@{}:{}/nobody", at["host"].as_str().unwrap(), at["port"])
}

#[test]
fn messages_say_the_fault_first_and_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("iiop://{}", taken.local_addr().unwrap());
    let said = |args: &[&str]| zorb(args, "").err;
    let in_use = said(&["names", "serve", "--memory", "--listen", &url]);
    assert!(in_use.starts_with("zorb: cannot listen on"), "{in_use}");
    assert!(in_use.contains("; another naming service may use the port"), "{in_use}");
    assert_eq!(in_use.matches("in use").count(), 1, "{in_use}");
    let no_reference = said(&["ior", "dump", "nonsense"]);
    assert!(
        no_reference.starts_with("zorb: the file \"nonsense\" does not exist; expected IOR:"),
        "{no_reference}"
    );
    assert!(no_reference.contains("; expected IOR:, corbaloc:"), "{no_reference}");
    let no_target = said(&["sniff", "--listen", "127.0.0.1:0", "--to", "nonsense"]);
    assert!(
        no_target.starts_with("zorb: the file \"nonsense\" does not exist; expected IOR:"),
        "{no_target}"
    );
    assert!(
        no_target.trim_end().ends_with("; --to must be HOST:PORT or a reference to an object"),
        "{no_target}"
    );
    let no_service = said(&["names", "list"]);
    assert!(!no_service.starts_with("zorb: no naming service: --service"), "{no_service}");
}

#[test]
fn a_pipe_that_is_closed_ends_a_command_quietly() {
    let idl = bank();
    let idl = idl.path().to_str().unwrap();
    for args in [
        &["completions", "bash"][..],
        &["completions", "zsh"],
        &["--help"],
        &["names", "--help"],
        &["idl", "--help"],
        &["--version"],
        &["ior", "dump", OMNIORB],
        &["--json", "ior", "dump", OMNIORB],
        &["ior", "make", "--at", "h:1", "--key", "x"],
        &["idl", "rust", "--no-warnings", idl],
        &["idl", "model", "--no-warnings", idl],
        &["idl", "model", "--json", "--no-warnings", idl],
        &["idl", "deps", "--no-warnings", idl],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zorb"));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            command.args(args).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.is_empty() && output.status.success(), "{args:?}: {:?} {said}", output.status);
    }
}

#[test]
fn results_for_pipes_begin_the_line() {
    beside(|account, _| {
        let (folder, idl) = (tempfile::tempdir().unwrap(), bank());
        let names = Names::start(&folder.path().join("names.redb"));
        let at = ["names", "--service", &names.url];
        assert_eq!(zorb(&[&at[..], &["bind", "a", account]].concat(), "").code, 0);
        let resolved = zorb(&[&at[..], &["resolve", "a"]].concat(), "").out;
        assert!(resolved.starts_with("IOR:") && resolved.trim_end() == resolved.trim(), "{resolved:?}");
        let called = zorb(&["call", account, "owner", "--idl", idl.path().to_str().unwrap()], "").out;
        assert_eq!(called, "{\n  \"$result\": \"Ada\"\n}\n");
    });
}

#[test]
fn the_help_of_idl_names_this_program() {
    for args in [&["idl", "--help"][..], &["idl", "check", "--help"]] {
        let help = zorb(args, "").out;
        assert!(help.contains("zorb idl check -I idl") && !help.contains("idlc"), "{help}");
    }
    let model = |args: &[&str]| {
        let idl = bank();
        zorb(&[args, &[idl.path().to_str().unwrap()]].concat(), "").out
    };
    let tree = model(&["idl", "model"]);
    assert!(tree.starts_with("module Bank\n  exception Broke\n    double missing\n"), "{tree}");
    assert!(tree.contains("    double deposit(in double amount, in Bank::Coins coins, out string note) raises (Bank::Broke)\n"), "{tree}");
    for args in [&["idl", "model", "--json"][..], &["--json", "idl", "model"]] {
        let json: serde_json::Value = serde_json::from_str(&model(args)).unwrap();
        assert_eq!(json["definitions"][0]["name"], "Bank", "{args:?}");
    }
}
