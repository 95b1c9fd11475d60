//! A service that is killed at any moment has everything that it acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use cos_naming::Server;
use cos_naming::store::{ContextId, DiskStore, Key, Lookup, Store, Target};
use zorb::cos_naming::{Naming, NamingContextExtRef, NamingContextRef, NamingError};
use zorb::prelude::*;

use crate::support::{name, object, url};

/// The environment variable with the file for the child process of this test.
const FILE: &str = "ZORB_TEST_NAMES_FILE";

/// The number of times that a service is killed.
const ROUNDS: u32 = 5;
/// The number of clients that bind concurrently.
const CLIENTS: u32 = 4;
/// The number of bindings that are acknowledged before the kill.
const BETWEEN: usize = 60;

/// In the process to be killed: serves until then. It does nothing if it is run as a test.
#[tokio::test]
async fn child_serves_until_it_is_killed() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let _server = Server::builder(DiskStore::open(file).unwrap()).serve(&orb).unwrap();
    println!("\nat {}", url(&orb));
    // It ends with its parent process, which closes the pipe.
    let mut line = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await.unwrap().unwrap();
}

/// A service in a process of its own, which is killed when this value is dropped.
struct Service(Child);

impl Service {
    fn start(file: &std::path::Path) -> (Self, String) {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_serves_until_it_is_killed", "--nocapture"])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut service = Self(child.unwrap());
        let lines = BufReader::new(service.0.stdout.take().unwrap()).lines();
        let url = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("at ").map(str::to_owned));
        (service, url.unwrap())
    }
}

impl Drop for Service {
    /// SIGKILL on Unix.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The clients' knowledge of names: certainly bound, certainly unbound, and unknown.
#[derive(Default)]
struct Known {
    bound: BTreeSet<String>,
    unbound: BTreeSet<String>,
    open: BTreeSet<String>,
}

/// Binds and unbinds until the service is gone.
async fn load(root: NamingContextExtRef, round: u32, client: u32, known: Arc<Mutex<Known>>) {
    let naming = Naming::new(NamingContextRef::from(root));
    let object = naming.context().to_object();
    for number in 0_u32.. {
        let text = format!("c{}/r{round}-{client}-{number}.k", client % 2);
        let unbinds = number % 5 == 4;
        match naming.bind(&text, &object).await {
            Ok(()) if !unbinds => known.lock().unwrap().bound.insert(text),
            Ok(()) => {
                let done = naming.unbind(&text).await.is_ok();
                let mut known = known.lock().unwrap();
                if done { known.unbound.insert(text) } else { known.open.insert(text) }
            }
            Err(NamingError::System(_)) => {
                known.lock().unwrap().open.insert(text);
                return;
            }
            Err(other) => panic!("{other}"),
        };
    }
}

/// Checks that the names can be restored from the journal alone, in a copy whose database is lost.
async fn the_journal_has(file: &Path, copy: &Path, bound: &BTreeSet<String>) {
    std::fs::write(copy, b"no database").unwrap();
    std::fs::copy(file.with_extension("journal"), copy.with_extension("journal")).unwrap();
    DiskStore::repair(copy).unwrap();
    let store = DiskStore::open(copy).unwrap();
    for text in bound {
        let mut context = ContextId::ROOT;
        for part in name(text) {
            let found = store.lookup(context, &Key::new(&part).unwrap()).await.unwrap();
            let Lookup::Bound(found) = found else { panic!("{text} is not in the journal") };
            if let Target::Context(below) = found.target {
                context = below;
            }
        }
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_every_kill() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("names");
    let known = Arc::new(Mutex::new(Known::default()));
    for round in 0..ROUNDS {
        let (service, url) = Service::start(&file);
        let orb = Orb::builder().build().await.unwrap();
        let root: NamingContextExtRef = orb.resolve(&url).await.unwrap();
        let naming = Naming::new(NamingContextRef::from(root.clone()));
        naming.make_contexts("c0").await.unwrap();
        naming.make_contexts("c1").await.unwrap();
        let before = known.lock().unwrap().bound.len();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| tokio::spawn(load(root.clone(), round, client, Arc::clone(&known))))
            .collect();
        while known.lock().unwrap().bound.len() < before + BETWEEN {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // While requests are in flight.
        drop(service);
        for client in clients {
            client.await.unwrap();
        }

        let bound = known.lock().unwrap().bound.clone();
        the_journal_has(&file, &folder.path().join(format!("copy {round}")), &bound).await;

        let (_service, url) = Service::start(&file);
        let root: NamingContextExtRef = orb.resolve(&url).await.unwrap();
        let naming = Naming::new(NamingContextRef::from(root.clone()));
        let mut there = BTreeMap::new();
        for context in ["c0", "c1"] {
            for (one, _) in naming.enter(context).await.unwrap().list().all().await.unwrap() {
                there.insert(format!("{context}/{one}"), ());
            }
        }
        {
            let known = known.lock().unwrap();
            let lost: Vec<_> = known.bound.iter().filter(|one| !there.contains_key(*one)).collect();
            assert!(lost.is_empty(), "round {round}: {lost:?} of {}", known.bound.len());
            let back: Vec<_> = known.unbound.iter().filter(|one| there.contains_key(*one)).collect();
            assert!(back.is_empty(), "round {round}: {back:?} were unbound");
            let made: Vec<_> = there
                .keys()
                .filter(|one| !known.bound.contains(*one) && !known.open.contains(*one))
                .collect();
            assert!(made.is_empty(), "round {round}: nobody bound {made:?}");
        }
        // Resolve and list agree.
        let first = there.keys().next().unwrap();
        let found = root.resolve(&name(first)).await.unwrap();
        assert_ne!(found, Some(object(&orb, "other").await));
    }
}
