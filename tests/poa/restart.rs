//! A server that is killed and restarted: its persistent references remain valid, and calls in progress end
//! as the rules require.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use zorb::poa::{Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Retry, Servant};

zorb::idl! {
    module Restarted {
        interface Thing {
            string id();
            /// Never comes back.
            void stay();
            oneway void hint();
        };
    };
}

use restarted::{ThingRef, ThingServant};

struct Thing;

impl ThingServant for Thing {
    async fn id(&self) -> Result<String, SystemException> {
        Ok(ObjectId::from(zorb::request().object_id()).to_string())
    }

    async fn stay(&self) -> Result<(), SystemException> {
        std::future::pending().await
    }

    async fn hint(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

struct Maker;

impl ServantActivator for Maker {
    async fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        Ok(Servant::of::<ThingRef, _>(Thing))
    }
}

/// The variable for the port of the server process.
const PORT: &str = "ZORB_TEST_RESTART_PORT";

/// Runs the server, if this program is started as one. It ends by itself after a minute.
#[test]
fn server_process() {
    let Ok(port) = std::env::var(PORT) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let orb =
            Orb::builder().listen(format!("iiop://127.0.0.1:{port}")).start_paused().build().await.unwrap();
        let root = orb.root_poa();
        let deep = root.child("a").create().unwrap().child("b").user_ids().persistent().create().unwrap();
        let made = root.child("made").user_ids().persistent().servant_activator(Maker).create().unwrap();
        let passing = root.child("passing").user_ids().create().unwrap();
        let _: ThingRef = orb.activate_named("plain", Thing).unwrap();
        let references: [ThingRef; 4] = [
            deep.activate_with_id("deep", Thing).unwrap(),
            made.create_reference_with_id("made").unwrap(),
            passing.activate_with_id("passing", Thing).unwrap(),
            orb.activate(Thing).unwrap(),
        ];
        let references: Vec<_> = references.iter().map(ToString::to_string).collect();
        println!("\nHERE {}", references.join(" "));
        orb.resume();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
}

/// The process and its references: two persistent ones, two transient ones.
struct Server {
    child: Child,
    references: Vec<String>,
}

impl Server {
    fn start(port: u16) -> Self {
        // The port may be in use by another process for a moment.
        for _ in 0..20 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["restart::server_process", "--exact", "--nocapture"])
                .env(PORT, port.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let here = lines.find_map(|line| line.strip_prefix("HERE ").map(str::to_owned));
            let mut server = Self { child, references: Vec::new() };
            if let Some(here) = here {
                server.references = here.split(' ').map(str::to_owned).collect();
                return server;
            }
            drop(server);
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not start");
    }

    /// Kills it immediately, so that it notifies no peer.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a free port. Another process may get it by chance, for a while.
fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

// clause: poa.policy.lifespan.persistent, poa.policy.lifespan.transient, poa.id.transient, exc.when.lost
#[tokio::test]
async fn references_that_last_go_on_after_a_kill() {
    let port = port();
    let mut server = Server::start(port);
    let client = Orb::builder().build().await.unwrap();
    let mut things: Vec<ThingRef> = Vec::new();
    for url in &server.references {
        things.push(client.resolve_unchecked(url).await.unwrap());
    }
    things
        .push(client.resolve_unchecked(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/plain")).await.unwrap());
    let mut ids = Vec::new();
    for thing in &things {
        ids.push(thing.id().await.unwrap());
    }
    // In the middle of calls.
    let sent = client.stats().messages_out;
    let calls: Vec<_> = [0, 1, 4]
        .map(|at| {
            let thing = things[at].clone();
            tokio::spawn(async move { thing.stay().await })
        })
        .into();
    while client.stats().messages_out < sent + 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.kill();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::CommFailure, CompletionStatus::Maybe)
        );
    }
    let nobody = things[0].id().await.unwrap_err();
    assert_eq!((nobody.kind, nobody.completed), (SystemExceptionKind::Transient, CompletionStatus::No));

    let again = Server::start(port);
    for (at, thing) in things.iter().enumerate() {
        match thing.id().await {
            Ok(id) => assert!([0, 1, 4].contains(&at) && id == ids[at], "{at}: {id}"),
            Err(error) => {
                assert!([2, 3].contains(&at), "{at}: {error}");
                assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist);
            }
        }
    }
    // The persistent ones are equal, byte for byte.
    assert_eq!(server.references[..2], again.references[..2]);
    assert_ne!(server.references[2..], again.references[2..]);
}

// clause: exc.when.retry
#[tokio::test]
async fn what_may_be_done_twice_is_done_by_the_next_server() {
    let port = port();
    let mut server = Server::start(port);
    let client = Orb::builder().build().await.unwrap();
    let thing: ThingRef = client.resolve_unchecked(&server.references[0]).await.unwrap();
    let thing = thing.with_retry(Retry::idempotent(3));
    thing.id().await.unwrap();
    for round in 0..3 {
        server.kill();
        server = Server::start(port);
        assert_eq!(thing.id().await.unwrap(), "deep");
        // It is unknown whether the killed server had executed the oneway of the round before.
        let lost = thing.flush().await.err().map(|error| (error.kind, error.completed));
        let maybe = (SystemExceptionKind::CommFailure, CompletionStatus::Maybe);
        assert_eq!(lost, (round > 0).then_some(maybe));
        thing.hint().await.unwrap();
        thing.flush().await.unwrap();
    }
}
