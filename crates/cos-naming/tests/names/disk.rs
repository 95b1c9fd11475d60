//! The store in a file: persistence across runs, and handling of damaged files.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cos_naming::store::{
    Change, ContextId, DiskStore, Key, Lookup, MayReplace, OpenError, RepairError, Store, Target,
};
use zorb::cos_naming::{NameComponent, NamingContextExtRef};
use zorb::prelude::*;

use crate::support::{Site, name};

fn key(number: usize) -> Key {
    Key::new(&NameComponent::new(format!("binding {number}"), "test")).unwrap()
}

fn bind(number: usize) -> Change {
    let target = Target::Object(Bytes::from(format!("the reference of binding {number}, some octets long")));
    Change::Bind { context: ContextId::ROOT, key: key(number), target, may_replace: MayReplace::Nothing }
}

/// Makes many bindings concurrently, like clients.
async fn fill(store: &Arc<DiskStore>, numbers: Range<usize>) {
    let all: Vec<_> = numbers
        .map(|number| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.change(bind(number)).await })
        })
        .collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn references_to_contexts_are_good_in_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let site = Site::of(DiskStore::open(&path).unwrap(), |builder| builder).await;
    let context = site.root.bind_new_context(&name("a")).await.unwrap().unwrap();
    let object = site.object("o").await;
    context.bind(&name("o"), object.clone()).await.unwrap();
    let endpoint = format!("iiop://{}", site.server_orb.endpoints().remove(0));
    let text = context.as_object().to_string();
    let Site { server, server_orb, orb, .. } = site;
    drop(server);
    server_orb.shutdown().await;
    drop((server_orb, orb));

    let server_orb = Orb::builder().listen(&endpoint).build().await.unwrap();
    let server = cos_naming::Server::builder(DiskStore::open(&path).unwrap()).serve(&server_orb).unwrap();
    let client = Orb::builder().build().await.unwrap();
    let context: NamingContextExtRef = client.resolve(&text).await.unwrap();
    assert_eq!(context.resolve(&name("o")).await.unwrap().unwrap().ior(), object.ior());
    drop(server);
}

#[tokio::test]
async fn changes_that_come_together_are_acknowledged_each_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let store = Arc::new(DiskStore::open(&path).unwrap());
    fill(&store, 0..300).await;
    let twice: Vec<_> = (0..10)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.change(bind(1000)).await.is_ok() })
        })
        .collect();
    let mut won = 0;
    for one in twice {
        won += usize::from(one.await.unwrap());
    }
    assert_eq!(won, 1, "one of them gets the name");
    drop(store);
    let again = DiskStore::open(&path).unwrap();
    for number in (0..300).chain([1000]) {
        let found = again.lookup(ContextId::ROOT, &key(number)).await.unwrap();
        assert!(matches!(found, Lookup::Bound(_)), "{number}");
    }
}

#[tokio::test]
async fn one_store_at_a_time_has_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let store = DiskStore::open(&path).unwrap();
    assert!(matches!(DiskStore::open(&path), Err(OpenError::InUse { .. })));
    drop(store);
    DiskStore::open(&path).unwrap();
    let missing = DiskStore::open(folder.path().join("no/names")).unwrap_err();
    assert!(matches!(missing, OpenError::Io { .. }), "{missing}");
}

#[tokio::test]
async fn files_that_are_none_of_ours_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    for content in [&b"no names at all"[..], &[0; 10_000]] {
        fs::write(&path, content).unwrap();
        let refused = DiskStore::open(&path).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        assert!(refused.to_string().contains("DiskStore::repair"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), content);
        assert!(matches!(DiskStore::repair(&path), Err(RepairError::Unreadable { .. })));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    // The result of a crash during the creation of a file.
    fs::write(&path, b"").unwrap();
    DiskStore::open(&path).unwrap();
}

/// Returns the position of `text` in the file.
fn place_of(path: &Path, text: &[u8]) -> usize {
    let octets = fs::read(path).unwrap();
    octets.windows(text.len()).rposition(|window| window == text).unwrap()
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_all_that_can_be_read_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let store = Arc::new(DiskStore::open(&path).unwrap());
    for part in 0..4 {
        fill(&store, part * 50..(part + 1) * 50).await;
    }
    drop(store);
    // A byte of one reference, at each of its positions in the file.
    let mut octets = fs::read(&path).unwrap();
    let text = b"the reference of binding 77, some";
    let places: Vec<_> =
        (0..octets.len() - text.len()).filter(|at| octets[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        octets[at] ^= 1;
    }
    fs::write(&path, &octets).unwrap();
    let refused = DiskStore::open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");

    // From the file alone, without the journal that has all names.
    fs::remove_file(folder.path().join("names.journal")).unwrap();
    let repaired = DiskStore::repair(&path).unwrap();
    assert_eq!((repaired.contexts, repaired.bindings, repaired.lost_bindings), (1, 199, Some(1)));
    assert_eq!(place_of(&repaired.damaged_file, b"he reference of binding 77, some").min(1), 1);
    let store = DiskStore::open(&path).unwrap();
    for number in 0..200 {
        let found = store.lookup(ContextId::ROOT, &key(number)).await.unwrap();
        assert_eq!(matches!(found, Lookup::Bound(_)), number != 77, "{number}");
    }
    store.change(bind(77)).await.unwrap();
}

#[tokio::test]
async fn no_octet_can_be_wrong_without_being_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let store = Arc::new(DiskStore::open(&path).unwrap());
    fill(&store, 0..40).await;
    drop(store);
    let whole = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged");
    let mut refused = 0;
    // Steps of a prime size, so that all kinds of pages are hit; most of the file is unused.
    for at in (0..whole.len().min(200_000)).step_by(1009) {
        let mut octets = whole.clone();
        octets[at] ^= 0x55;
        fs::write(&damaged, &octets).unwrap();
        match DiskStore::open(&damaged) {
            Ok(store) => {
                for number in 0..40 {
                    let found = store.lookup(ContextId::ROOT, &key(number)).await.unwrap();
                    let Lookup::Bound(bound) = found else { panic!("octet {at}: binding {number} is lost") };
                    let Change::Bind { target, .. } = bind(number) else { unreachable!() };
                    assert_eq!(bound.target, target, "octet {at}");
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
}
