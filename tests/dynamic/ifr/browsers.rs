//! Other ORBs as readers of a repository: JacORB's browser, without its window, and omniORB's stubs; and
//! their dynamic invocation with the result of `_interface`.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use zorb::dynamic::{Idl, InterfaceRepository};

use crate::ifr::combat::{Account, AccountRef};
use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::{Foreign, Scratch};

/// Returns the program's description of a reference; `None` if the program is not installed.
async fn browse(peer: Foreign, option: &str, reference: &str) -> Option<String> {
    let mut browser = Command::new(peer.program("ir-browser")?);
    let scratch = Scratch::new();
    let path = scratch.path("zorb.ior");
    std::fs::write(&path, reference).unwrap();
    browser.arg(option).arg(path).args(["--seconds", "60"]);
    browser.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let done = tokio::time::timeout(Duration::from_secs(90), browser.output());
    let done = done.await.unwrap_or_else(|_| panic!("the browser does not end")).unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.ends_with("SHOWN\n"), "{}\n{said}\n{errors}", done.status);
    Some(said)
}

const CALLED: &str = "interface IDL:Purse/Account:1.0 of IDL:Purse:1.0, 1.0, 14
bases IDL:Purse/Party:1.0
attribute IDL:Purse/Account/balance:1.0 0 7
attribute IDL:Purse/Party/name:1.0 1 18
operation IDL:Purse/Account/deposit:1.0 7 ( 0 amount 7 ) raises
deposit gives 2.5
operation IDL:Purse/Account/withdraw:1.0 1 ( 0 amount 7 ) raises IDL:Purse/Overdrawn:1.0
operation IDL:Purse/Account/swap:1.0 3 ( 2 entry 15 ) raises
SHOWN
";

/// Checks the peer's description of the repository of `rich.idl`.
async fn read(peer: Foreign, shown: &str) {
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let idl = Idl::parse(include_str!("rich.idl")).unwrap();
    let repository = InterfaceRepository::new().idl(&idl).serve(&server).unwrap();
    let Some(said) = browse(peer, "--ior", &repository.to_string()).await else { return };
    assert_eq!(said, shown, "{said}");
    cell(peer.name(), Role::Server, "1.2", "repository", Outcome::Good);
}

/// JacORB's browser does not support native types, and abstract and local interfaces.
#[tokio::test(flavor = "multi_thread")]
async fn jacorbs_browser_shows_what_the_idl_says() {
    read(Foreign::JacOrb, include_str!("jacorb.txt")).await;
}

/// omniORB only accepts descriptions of the types that it knows.
#[tokio::test(flavor = "multi_thread")]
async fn omniorb_takes_every_description() {
    read(Foreign::OmniOrb, include_str!("omniorb.txt")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_call_by_the_definition_of_an_objects_interface() {
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let account: AccountRef = server.activate(Account::default()).unwrap();
    InterfaceRepository::new().interface::<AccountRef>().serve(&server).unwrap();
    for peer in [Foreign::JacOrb, Foreign::OmniOrb] {
        let Some(said) = browse(peer, "--object", &account.to_string()).await else { continue };
        let gives = format!("deposit gives {}", account.balance().await.unwrap());
        assert_eq!(said, CALLED.replace("deposit gives 2.5", &gives), "{peer:?}");
    }
}
