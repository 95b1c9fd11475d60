//! Sun's bootstrap protocol: programs that know only the host and port of a service.

use std::process::Stdio;
use std::time::Duration;

use cos_naming::Server;
use cos_naming::store::MemoryStore;
use zorb::SystemExceptionKind;
use zorb::prelude::*;

use crate::omni::has;
use crate::support::{key_of, name};
use stubs::bootstrap::InitialReferencesRef;

mod stubs {
    zorb::idl!("idl/Bootstrap.idl", no_warnings);
}

/// Starts a server whose ORB has an additional initial reference. Also returns its `HOST:PORT`.
async fn server(bootstrap: bool) -> (Server<MemoryStore>, Orb, String) {
    let orb = Orb::builder()
        .listen("iiop://127.0.0.1:0")
        .init_ref("Trader", "corbaloc:iiop:1.2@192.0.2.1:1/trader")
        .build()
        .await
        .unwrap();
    let server = Server::builder(MemoryStore::new()).bootstrap(bootstrap).serve(&orb).unwrap();
    let address = orb.endpoints().remove(0).rsplit("//").next().unwrap().to_owned();
    (server, orb, address)
}

#[tokio::test]
async fn initial_references_are_found_by_their_names() {
    let (server, _server_orb, address) = server(true).await;
    let orb = Orb::builder().build().await.unwrap();
    // Java's clients start with GIOP 1.0.
    for version in ["1.0", "1.2"] {
        let url = format!("corbaloc:iiop:{version}@{address}/INIT");
        let initial: InitialReferencesRef = orb.resolve_unchecked(&url).await.unwrap();
        assert_eq!(initial.list().await.unwrap(), ["NameService", "Trader"]);
        let names = initial.get("NameService").await.unwrap().unwrap();
        assert_eq!(names.ior(), server.root().ior());
        assert_eq!(key_of(&initial.get("Trader").await.unwrap().unwrap()), "trader");
        for missing in ["", "NameServic", "TNameService", "corbaloc:rir:/NameService"] {
            assert!(initial.get(missing).await.unwrap().is_none(), "{missing}");
        }
    }
}

#[tokio::test]
async fn nothing_is_answered_unless_the_server_wants_it() {
    let (_server, _server_orb, address) = server(false).await;
    let orb = Orb::builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.0@{address}/INIT");
    let initial: InitialReferencesRef = orb.resolve_unchecked(&url).await.unwrap();
    let error = initial.get("NameService").await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
}

#[tokio::test]
async fn another_service_of_the_orb_gets_the_key_when_the_first_has_ended() {
    let (first, orb, address) = server(true).await;
    let other = |key: &str| Server::builder(MemoryStore::new()).key(key).bootstrap(true).serve(&orb);
    assert!(other("Second").is_err(), "one object has the key");
    drop(first);
    let _third = other("Third").unwrap();
    let client = Orb::builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.0@{address}/INIT");
    let initial: InitialReferencesRef = client.resolve_unchecked(&url).await.unwrap();
    assert_eq!(initial.list().await.unwrap(), ["Third", "Trader"]);
}

#[tokio::test]
async fn nameclt_finds_the_service_by_host_and_port() {
    if !has("nameclt") {
        return;
    }
    let (server, _server_orb, address) = server(true).await;
    let object = crate::support::object(&Orb::builder().build().await.unwrap(), "o").await;
    server.root().bind(&name("from zorb"), object).await.unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut command = tokio::process::Command::new("nameclt");
    command.args(["-ORBbootstrapAgentHostname", host, "-ORBbootstrapAgentPort", port, "list"]);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_secs(60), output).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim() == "from zorb", "{output:?}");
}
