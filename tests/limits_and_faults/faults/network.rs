//! Networks that lose packets and disappear, between processes in network namespaces that are connected by a
//! pair of virtual links.
//!
//! A namespace lives as long as its process, and a pair of links as long as its namespaces, so nothing is
//! left afterwards. If they cannot be created, the tests are skipped with a message; for root with `CI` set
//! that is an error. Loss is simulated by links that go down and up, because the kernels of small machines
//! lack netem.

use std::process::Stdio;

use tokio::process::Command;
use zorb::prelude::*;

use crate::faults::role::Child;

/// A server and a client, and the network between them.
struct Apart {
    server: Child,
    client: Child,
    ior: String,
}

async fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().await;
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Runs a command in the namespace of a process.
async fn inside(of: &Child, arguments: &[&str]) -> Result<(), String> {
    let namespace = format!("--net=/proc/{}/ns/net", of.id());
    run("nsenter", &[&[namespace.as_str()], arguments].concat()).await
}

/// Tries the privileged operations, before a test depends on them.
async fn possible() -> bool {
    let tried = run("unshare", &["--net", "ip", "link", "add", "tried", "type", "veth"]).await;
    let Err(why) = tried else { return true };
    let must = std::env::var_os("CI").is_some() && rustix::process::geteuid().is_root();
    assert!(!must, "SKIPPED as root in CI: no network namespaces: {why}");
    eprintln!("SKIPPED: no network namespaces: {why}");
    false
}

impl Apart {
    async fn start(server: &[(&str, &str)], client: &[(&str, &str)]) -> Self {
        let (mut server, mut client) = Self::linked("iiop://10.99.0.1:9999", server, client).await;
        let ior = server.told("go").await;
        assert_eq!(client.told("go").await, "whom");
        let mut apart = Self { server, client, ior };
        let said = apart.client.told(&apart.ior).await;
        assert!(said == "ready" || said == "calling", "{said}");
        apart
    }

    /// Starts a server that is to listen at `endpoint`, and a client; both wait for `go`.
    async fn linked(endpoint: &str, server: &[(&str, &str)], client: &[(&str, &str)]) -> (Child, Child) {
        let waits = ("WAITS", "1");
        let server = [&[waits, ("ENDPOINT", endpoint)], server].concat();
        let mut server = Child::start_apart("server", &server).await;
        let mut client = Child::start_apart("client", &[&[waits], client].concat()).await;
        assert_eq!((server.says().await, client.says().await), ("waiting".to_owned(), "waiting".to_owned()));
        let (at_server, at_client) = (server.id().to_string(), client.id().to_string());
        let link = [
            "link", "add", "here", "netns", &at_server, "type", "veth", "peer", "name", "there", "netns",
            &at_client,
        ];
        run("ip", &link).await.unwrap();
        for (child, device, address) in
            [(&server, "here", "10.99.0.1/24"), (&client, "there", "10.99.0.2/24")]
        {
            inside(child, &["ip", "address", "add", address, "dev", device]).await.unwrap();
            inside(child, &["ip", "link", "set", device, "up"]).await.unwrap();
        }
        (server, client)
    }

    /// Sets the server's end of the link up or down, like a pulled cable.
    async fn link(&self, state: &str) {
        inside(&self.server, &["ip", "link", "set", "here", state]).await.unwrap();
    }
}

const PATIENT: &str = "60000";

// clause: giop.connection.lost
#[tokio::test]
async fn a_cable_that_is_pulled_fails_the_calls_before_their_deadline_and_the_next_ones_find_the_way_again() {
    if !possible().await {
        return;
    }
    let mut apart = Apart::start(&[], &[]).await;
    assert_eq!(apart.client.told(PATIENT).await, "Ok");
    apart.link("down").await;
    // No acknowledgement arrives (`Limits::write_timeout`, 2 s here). The call does not end with TIMEOUT
    // after a minute, and a call that may have been executed is never repeated.
    assert_eq!(apart.client.told(PATIENT).await, "CommFailure Maybe");
    // The server cannot be reached: the call ends by its deadline, or by the connect timeout.
    let nobody = apart.client.told("300").await;
    assert!(nobody == "Timeout No" || nobody == "Transient No", "{nobody}");
    apart.link("up").await;
    assert_eq!(apart.client.told(PATIENT).await, "Ok");
    for (number, times) in [("1", "1"), ("2", "0"), ("3", "0"), ("4", "1")] {
        assert_eq!(apart.server.told(number).await, times, "{number}");
    }
}

#[tokio::test]
async fn packets_that_are_lost_cost_time_and_no_call() {
    if !possible().await {
        return;
    }
    let mut apart = Apart::start(&[], &[]).await;
    for round in 0..6 {
        apart.link("down").await;
        for _ in 0..3 {
            apart.client.tell(PATIENT).await;
        }
        tokio::time::sleep(Duration::from_millis(20 * round)).await;
        apart.link("up").await;
        for _ in 0..3 {
            assert_eq!(apart.client.says().await, "Ok");
        }
    }
    for number in 1..=18 {
        assert_eq!(apart.server.told(&number.to_string()).await, "1");
    }
    assert_eq!(apart.server.told("connections").await, "1");
}

#[tokio::test]
async fn a_client_that_vanishes_without_a_word_is_given_up_by_the_server() {
    if !possible().await {
        return;
    }
    let mut apart = Apart::start(&[("HASTY", "1")], &[("FLOODS", "1")]).await;
    assert_eq!(apart.server.told("connections").await, "1");
    // In the middle of a request, of a reply, or between the two: each has a timeout.
    apart.link("down").await;
    // Together with its end of the link.
    apart.client.kill().await;
    let given_up = async {
        while apart.server.told("connections").await != "0" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), given_up).await.expect("it keeps a connection to nobody");
}

/// The interface name is local: each side has its own name for its end of the link.
#[tokio::test]
async fn a_link_local_address_is_listened_at_and_called_by_its_interface() {
    if !possible().await {
        return;
    }
    for sign in ["%", "%25"] {
        let (mut server, mut client) = Apart::linked("iiop://[fe80::9:1%here]:9999", &[], &[]).await;
        for (child, device, address) in
            [(&server, "here", "fe80::9:1/64"), (&client, "there", "fe80::9:2/64")]
        {
            inside(child, &["ip", "address", "add", address, "dev", device, "nodad"]).await.unwrap();
        }
        assert!(server.told("go").await.starts_with("IOR:"));
        assert_eq!(client.told("go").await, "whom");
        let url = format!("corbaloc:iiop:1.2@[fe80::9:1{sign}there]:9999/Target");
        assert_eq!(client.told(&url).await, "ready");
        assert_eq!(client.told(PATIENT).await, "Ok");
        assert_eq!(server.told("1").await, "1");
    }
}
