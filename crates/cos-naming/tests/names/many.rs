//! Contexts with very many bindings.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use cos_naming::store::{Change, ContextId, DiskStore, Key, MayReplace, MemoryStore, Store, Target};
use zorb::cos_naming::{NameComponent, Naming, NamingContextRef};

use crate::support::{Site, key_of, name};

const MANY: usize = 100_000;

/// Makes `count` bindings, directly in the store.
async fn fill<S: Store>(store: &Arc<S>, target: &Bytes, count: usize, lanes: usize) {
    let tasks = (0..lanes).map(|lane| {
        let (store, target) = (Arc::clone(store), target.clone());
        tokio::spawn(async move {
            for number in (lane..count).step_by(lanes) {
                let key = Key::new(&NameComponent::new(format!("n{number}"), "")).unwrap();
                let target = Target::Object(target.clone());
                let change =
                    Change::Bind { context: ContextId::ROOT, key, target, may_replace: MayReplace::Nothing };
                store.change(change).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// Checks that all bindings are listed once and in order, in pages within the limit, while a binding is added
/// and removed. Each must be found.
async fn look<S: Store>(site: &Site<Arc<S>>, count: usize, page: usize) {
    let mut listing = Naming::new(NamingContextRef::from(site.root.clone())).list();
    let (mut seen, mut last, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let more = listing.page().await.unwrap();
        if more.is_empty() {
            break;
        }
        assert!(more.len() <= page, "{}", more.len());
        pages += 1;
        for (text, _) in more {
            assert!(text > last, "{text} behind {last}");
            last.clone_from(&text);
            if text != "between" {
                seen.insert(text);
            }
        }
        if pages % 2 == 1 {
            site.root.bind(&name("between"), site.object("b").await).await.unwrap();
        } else {
            site.root.unbind(&name("between")).await.unwrap();
        }
    }
    assert_eq!(seen.len(), count);
    assert!(pages >= count / page, "{pages}");
    for number in [0, 1, count / 2, count - 1] {
        assert_eq!(key_of(&site.root.resolve(&name(&format!("n{number}"))).await.unwrap().unwrap()), "o");
    }
}

#[tokio::test]
async fn many_bindings_in_memory_come_in_pages() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::of(Arc::clone(&store), |builder| builder).await;
    let target = site.object("o").await.ior().to_encapsulation();
    fill(&store, &target, MANY, 1).await;
    look(&site, MANY, 10_000).await;
}

#[tokio::test]
async fn many_bindings_in_a_file_come_in_pages_and_are_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let store = Arc::new(DiskStore::open(&path).unwrap());
    let site = Site::of(Arc::clone(&store), |builder| builder.max_page_bindings(1000)).await;
    let target = site.object("o").await.ior().to_encapsulation();
    fill(&store, &target, MANY / 10, 2000).await;
    look(&site, MANY / 10, 1000).await;
    drop((site, store));
    let store = Arc::new(DiskStore::open(&path).unwrap());
    look(&Site::of(store, |builder| builder.max_page_bindings(1000)).await, MANY / 10, 1000).await;
}
