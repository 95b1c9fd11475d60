//! Servers that are killed during calls and restarted: their persistent references remain valid.

use std::process::Command;
use std::time::Duration;

use ::zorb::Orb;
use giop_codec::Version;

use super::{Lasting, LastingRef, raised, their_client};
use crate::{START, dotted, transport};
use test_support::peers::Foreign;
use test_support::peers::matrix::{Outcome, Role, cell};
use test_support::peers::talk::Talk;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// The variable for the port of the process that is zorb's server.
const PORT: &str = "ZORB_INTEROP_PORT";
const IOR: &str = "ZORB_INTEROP_IOR";

/// Maximum lifetime of a server.
const LIFE: Duration = Duration::from_secs(120);

/// Runs zorb's server, if this program is started as one.
#[test]
fn server_process() {
    let (Ok(port), Ok(path)) = (std::env::var(PORT), std::env::var(IOR)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let builder = transport::builder().listen(format!("iiop://127.0.0.1:{port}"));
        let orb = builder.start_paused().build().await.unwrap();
        let poa = orb.root_poa().child("a").create().unwrap().child("b").user_ids().persistent();
        let lasting: LastingRef = poa.create().unwrap().activate_with_id("lasting", Lasting).unwrap();
        let _: LastingRef = orb.activate_named("lasting", Lasting).unwrap();
        std::fs::write(path, lasting.to_string()).unwrap();
        orb.resume();
        println!("\nREADY");
        tokio::time::sleep(LIFE).await;
    });
}

/// Returns a port that is free now.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A running server, with the reference of its persistent object. The peer is `None` for zorb's own server.
struct Server {
    process: Talk,
    reference: String,
}

impl Server {
    fn start(orb: Option<Foreign>, port: u16) -> Option<Self> {
        let scratch = test_support::peers::Scratch::new();
        let path = scratch.path("ties.ior");
        let (command, path) = match orb {
            Some(orb) => {
                let mut command = Command::new(orb.program("ties-peer")?);
                command.args(["server", "--port", &port.to_string(), "--ior"]).arg(&path);
                command.args(["--seconds", &LIFE.as_secs().to_string()]);
                (command, path.with_extension("ior.lasting"))
            }
            None => {
                let mut command = Command::new(std::env::current_exe().unwrap());
                let this = concat!(module_path!(), "::server_process");
                let (_, this) = this.split_once("::").unwrap();
                command.args([this, "--exact", "--nocapture"]).env(PORT, port.to_string()).env(IOR, &path);
                (command, path)
            }
        };
        let process = Talk::start(command, START);
        let reference = std::fs::read_to_string(path).unwrap().trim().to_owned();
        Some(Self { process, reference })
    }

    /// Returns the reference of the persistent POA, and the plain key in every version.
    fn references(&self, port: u16) -> Vec<String> {
        let plain =
            VERSIONS.map(|version| format!("corbaloc:iiop:{}@127.0.0.1:{port}/lasting", dotted(version)));
        std::iter::once(self.reference.clone()).chain(plain).collect()
    }
}

/// zorb's server is killed while a client of the other ORB calls it by each of its references.
async fn zorb_comes_again(orb: Foreign) {
    let port = port();
    let mut server = Server::start(None, port).unwrap();
    let references = server.references(port);
    let Some(mut client) = their_client(orb, &["--lasting", &references.join(",")], |_| ()) else { return };
    let all = 0..references.len();
    for index in all.clone() {
        assert_eq!(client.ask(&format!("next {index} 1")).await, "2", "{}", references[index]);
    }
    let calls: Vec<_> = all.clone().map(|index| client.tell(&format!("stay {index}"))).collect();
    server.process.says("STAYS", references.len()).await;
    let before = server.reference.clone();
    server.process.kill();
    for (index, call) in calls.into_iter().enumerate() {
        assert_eq!(client.answer(call).await, "COMM_FAILURE COMPLETED_MAYBE", "{}", references[index]);
    }
    for index in all.clone() {
        assert_eq!(client.ask(&format!("next {index} 2")).await, "TRANSIENT COMPLETED_NO");
    }
    let server = Server::start(None, port).unwrap();
    assert_eq!(server.reference, before, "octet for octet the same");
    for index in all {
        assert_eq!(client.ask(&format!("next {index} 3")).await, "4", "{}", references[index]);
    }
    for version in VERSIONS {
        cell(orb.name(), Role::Server, &dotted(version), "restart", Outcome::Good);
    }
}

/// A server of the other ORB is killed while zorb calls it by each of its references, in each version.
async fn their_server_comes_again(orb: Foreign) {
    let port = port();
    let Some(mut server) = Server::start(Some(orb), port) else { return };
    let (mut clients, mut things) = (Vec::new(), Vec::new());
    for version in VERSIONS {
        let client: Orb = transport::builder().max_giop_version(version).build().await.unwrap();
        for url in server.references(port) {
            let thing: LastingRef = client.resolve_unchecked(&url).await.unwrap();
            assert_eq!(thing.next(1).await.unwrap(), 2, "{version:?} {url}");
            things.push(thing);
        }
        clients.push(client);
    }
    let calls: Vec<_> = things
        .iter()
        .map(|thing| {
            let thing = thing.clone();
            tokio::spawn(async move { thing.stay().await })
        })
        .collect();
    server.process.says("STAYS", things.len()).await;
    let before = server.reference.clone();
    server.process.kill();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(raised(&error), "COMM_FAILURE COMPLETED_MAYBE", "{error}");
    }
    for thing in &things {
        let error = thing.next(2).await.unwrap_err();
        assert_eq!(raised(&error), "TRANSIENT COMPLETED_NO", "{error}");
    }
    let server = Server::start(Some(orb), port).unwrap();
    for thing in &things {
        assert_eq!(thing.next(3).await.unwrap(), 4);
    }
    assert_eq!(server.reference, before);
    for version in VERSIONS {
        cell(orb.name(), Role::Client, &dotted(version), "restart", Outcome::Good);
    }
}

// clause: poa.policy.lifespan.persistent, poa.id.persistent_key, exc.when.lost
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_omniorb_go_on() {
    zorb_comes_again(Foreign::OmniOrb).await;
}

// clause: poa.policy.lifespan.persistent, poa.id.persistent_key, exc.when.lost
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_jacorb_go_on() {
    zorb_comes_again(Foreign::JacOrb).await;
}

// clause: exc.when.lost, giop.connection.lost
#[tokio::test(flavor = "multi_thread")]
async fn zorb_goes_on_with_omniorb() {
    their_server_comes_again(Foreign::OmniOrb).await;
}

// clause: exc.when.lost, giop.connection.lost
#[tokio::test(flavor = "multi_thread")]
async fn zorb_goes_on_with_jacorb() {
    their_server_comes_again(Foreign::JacOrb).await;
}
