//! Combat, an ORB in Tcl without IDL, calls objects of zorb with the descriptions of zorb's repository.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use zorb::dynamic::{Idl, InterfaceRepository};
use zorb::prelude::*;

use test_support::peers::{Scratch, tell};

zorb::idl! {
    module Purse {
        enum Kind { savings, giro };
        struct Entry { string who; sequence<long> amounts; Kind kind; };
        exception Overdrawn { double missing; };
        interface Party {
            readonly attribute string name;
        };
        interface Account : Party {
            attribute double balance;
            double deposit(in double amount);
            void withdraw(in double amount) raises (Overdrawn);
            long swap(inout Entry entry);
        };
    };
}

pub(crate) use purse::AccountRef;
use purse::{AccountServant, Entry, Kind, Overdrawn, PartyServant};

#[derive(Default)]
pub(crate) struct Account(std::sync::Mutex<f64>);

impl PartyServant for Account {
    async fn name(&self) -> Result<String, SystemException> {
        Ok("Ada".to_owned())
    }
}

impl AccountServant for Account {
    async fn balance(&self) -> Result<f64, SystemException> {
        Ok(*self.0.lock().unwrap())
    }

    async fn set_balance(&self, value: f64) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value;
        Ok(())
    }

    async fn deposit(&self, amount: f64) -> Result<f64, SystemException> {
        let mut balance = self.0.lock().unwrap();
        *balance += amount;
        Ok(*balance)
    }

    async fn withdraw(&self, amount: f64) -> Result<(), purse::account::WithdrawError> {
        let missing = amount - *self.0.lock().unwrap();
        Err(Overdrawn { missing }.into())
    }

    async fn swap(&self, mut entry: Entry) -> Result<(i32, Entry), SystemException> {
        let sum = entry.amounts.iter().sum();
        entry.amounts = entry.amounts.iter().rev().copied().collect();
        entry.kind = Kind::Savings;
        Ok((sum, entry))
    }
}

const COMBAT: &str = "/usr/share/tcltk/combat0.8";

/// Returns the output of a script that uses Combat, in a directory of its own.
async fn run(script: &str, arguments: &[&str], folder: &Scratch) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dynamic/ifr").join(script);
    let mut combat = Command::new("tclsh");
    combat.arg(script).args(arguments).current_dir(folder.path(""));
    combat.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let done = tokio::time::timeout(Duration::from_secs(60), combat.output());
    let done = done.await.unwrap_or_else(|_| panic!("Combat does not end")).unwrap();
    format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

const TOLD: &str = "name Ada
balance 0.0
deposit 2.5
balance 7.0
swap 6 who Ada amounts {3 2 1} kind savings
raised IDL:Purse/Overdrawn:1.0 {missing 93.0}
refused
";

fn is_here() -> bool {
    let is_here = Path::new(COMBAT).exists();
    if !is_here {
        let what = "tcl-combat is not installed: run scripts/install-peers.sh";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
        tell(&format!("SKIPPED: {what}"));
    }
    is_here
}

#[tokio::test]
async fn combat_calls_by_the_repository_alone() {
    if !is_here() {
        return;
    }
    for by_reference in [true, false] {
        let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
        let account: AccountRef = server.activate(Account::default()).unwrap();
        let repository = InterfaceRepository::new().interface::<AccountRef>().serve(&server).unwrap();
        let option = format!("InterfaceRepository={repository}");
        let (account, options) = (account.to_string(), ["-ORBInitRef", &option]);
        let arguments: Vec<&str> = std::iter::once(&*account).chain(options).collect();
        let arguments = if by_reference { &arguments[..] } else { &arguments[..1] };
        let told = run("account.tcl", arguments, &Scratch::new()).await;
        assert_eq!(told, TOLD, "by reference: {by_reference}");
    }
}

/// Returns the output of idl2tcl for a repository.
async fn written(repository: &zorb::ObjectRef) -> String {
    let folder = Scratch::new();
    let said = run("idl2tcl.tcl", &["--ir", &repository.to_string(), "--name", "written"], &folder).await;
    assert_eq!(said, "");
    std::fs::read_to_string(folder.path("written.tcl")).unwrap()
}

/// Returns the words and braces of a Tcl list, regardless of line breaks.
fn words(list: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#')).map(|line| line.trim_end_matches('\\'));
    let spaced = lines.collect::<Vec<_>>().join(" ").replace('{', " { ").replace('}', " } ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// idl2tcl reads no IDL: all of its output comes from a repository. `rich.tcl` is the IDL in its output
/// format.
#[tokio::test]
async fn idl2tcl_writes_what_the_idl_says() {
    if !is_here() {
        return;
    }
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let idl = Idl::parse(include_str!("rich.idl")).unwrap();
    let repository = InterfaceRepository::new().idl(&idl).serve(&server).unwrap();
    let written = written(&repository).await;
    assert_eq!(words(&written), words(include_str!("rich.tcl")), "{written}");
}

#[tokio::test]
async fn combat_calls_by_what_idl2tcl_wrote() {
    if !is_here() {
        return;
    }
    let open = || test_support::transport::builder().listen("iiop://127.0.0.1:0").build();
    let (there, server) = (open().await.unwrap(), open().await.unwrap());
    let repository = InterfaceRepository::new().interface::<AccountRef>().serve(&there).unwrap();
    let folder = Scratch::new();
    let types = folder.path("purse.tcl");
    std::fs::write(&types, written(&repository).await).unwrap();
    // The object's own server has no repository.
    let account: AccountRef = server.activate(Account::default()).unwrap();
    let arguments = [&account.to_string(), "--types", types.to_str().unwrap()];
    assert_eq!(run("account.tcl", &arguments, &folder).await, TOLD);
}
