//! Iterators: their results, their maximum number, and their timeout.

use std::collections::BTreeSet;
use std::time::Duration;

use cos_naming::store::{DiskStore, MemoryStore, Store};
use zorb::cos_naming::{Binding, BindingIteratorRef, print_name};
use zorb::prelude::*;

use crate::support::{Site, name};

async fn filled(count: usize, site: &Site) {
    let object = site.object("o").await;
    for i in 0..count {
        site.root.bind(&name(&format!("n{i}")), object.clone()).await.unwrap();
    }
}

async fn iterator(site: &Site, first: u32) -> BindingIteratorRef {
    site.root.list(first).await.unwrap().1.unwrap()
}

fn kind(error: &SystemException) -> SystemExceptionKind {
    error.kind
}

// clause: poa.naming.iterator
#[tokio::test]
async fn every_binding_comes_once_however_it_is_asked_for() {
    let site = Site::new().await;
    filled(25, &site).await;
    let (first, further) = site.root.list(7).await.unwrap();
    let further = further.unwrap();
    assert_eq!(first.len(), 7);
    let mut seen: Vec<_> = first.iter().map(|b| print_name(&b.binding_name)).collect();
    let (more, one) = further.next_one().await.unwrap();
    assert!(more);
    seen.push(print_name(&one.binding_name));
    let (more, page) = further.next_n(10).await.unwrap();
    assert!(more && page.len() == 10);
    seen.extend(page.iter().map(|b| print_name(&b.binding_name)));
    // A name that is removed meanwhile does not affect the iterator.
    site.root.unbind(&name(&seen[3])).await.unwrap();
    let (more, rest) = further.next_n(1000).await.unwrap();
    assert!(more && rest.len() == 7);
    seen.extend(rest.iter().map(|b| print_name(&b.binding_name)));
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 25);
    assert_eq!(seen.len(), 25);
    let (more, none) = further.next_n(5).await.unwrap();
    assert!(!more && none.is_empty());
    let (more, _) = further.next_one().await.unwrap();
    assert!(!more);
    assert_eq!(kind(&further.next_n(0).await.unwrap_err()), SystemExceptionKind::BadParam);
    further.destroy().await.unwrap();
    assert_eq!(kind(&further.next_one().await.unwrap_err()), SystemExceptionKind::ObjectNotExist);
    assert_eq!(kind(&further.destroy().await.unwrap_err()), SystemExceptionKind::ObjectNotExist);
    assert_eq!(site.server.iterator_count(), 0);
}

// clause: poa.naming.iterator
#[tokio::test]
async fn all_comes_through_the_iterator_where_none_is_asked_for_at_once() {
    let site = Site::of(MemoryStore::new(), |builder| builder.max_page_bindings(4)).await;
    filled(10, &site).await;
    let (none, further) = site.root.list(0).await.unwrap();
    assert!(none.is_empty());
    // The service's own limit applies to every answer.
    let mut sizes = Vec::new();
    let further = further.unwrap();
    while let (true, page) = further.next_n(u32::MAX).await.unwrap() {
        sizes.push(page.len());
    }
    assert_eq!(sizes, [4, 4, 2]);
    let (first, further) = site.root.list(u32::MAX).await.unwrap();
    assert!(first.len() == 4 && further.is_some());
}

#[tokio::test]
async fn the_iterator_that_was_used_least_lately_makes_room() {
    let site = Site::of(MemoryStore::new(), |builder| builder.max_iterators(3)).await;
    filled(10, &site).await;
    let (a, b, c) = (iterator(&site, 1).await, iterator(&site, 1).await, iterator(&site, 1).await);
    a.next_one().await.unwrap();
    let d = iterator(&site, 1).await;
    assert_eq!(site.server.iterator_count(), 3);
    assert_eq!(kind(&b.next_one().await.unwrap_err()), SystemExceptionKind::ObjectNotExist);
    for alive in [a, c, d] {
        alive.next_one().await.unwrap();
    }
}

#[tokio::test]
async fn idle_iterators_are_destroyed_after_their_timeout() {
    let timeout = Duration::from_millis(1);
    let site = Site::of(MemoryStore::new(), |builder| builder.iterator_timeout(timeout)).await;
    filled(3, &site).await;
    let idle = iterator(&site, 1).await;
    while site.server.iterator_count() > 0 {
        tokio::time::sleep(timeout).await;
    }
    assert_eq!(kind(&idle.next_one().await.unwrap_err()), SystemExceptionKind::ObjectNotExist);
}

/// Returns the number of bytes of names in an answer.
fn bytes(page: &[Binding]) -> usize {
    page.iter().flat_map(|b| &b.binding_name).map(|part| part.id.len() + part.kind.len()).sum()
}

async fn bindings_of_long_names_come_in_pages_of_bytes(store: impl Store) {
    const LIMIT: usize = 100_000;
    let site = Site::of(store, |builder| builder.max_page_bytes(LIMIT)).await;
    let object = site.object("o").await;
    for i in 0..40 {
        site.root.bind(&name(&format!("{i:02}{}", "n".repeat(15_900))), object.clone()).await.unwrap();
    }
    let (first, further) = site.root.list(10_000).await.unwrap();
    assert!(!first.is_empty() && bytes(&first) <= LIMIT, "{}", bytes(&first));
    let (mut seen, further) = (first, further.unwrap());
    while let (true, page) = further.next_n(10_000).await.unwrap() {
        assert!(bytes(&page) <= LIMIT, "{}", bytes(&page));
        seen.extend(page);
    }
    let seen: BTreeSet<_> = seen.iter().map(|b| b.binding_name[0].id[..2].to_owned()).collect();
    assert_eq!(seen.len(), 40);
}

#[tokio::test]
async fn pages_are_bounded_in_bytes_and_the_iterator_gives_the_rest() {
    bindings_of_long_names_come_in_pages_of_bytes(MemoryStore::new()).await;
    let folder = tempfile::tempdir().unwrap();
    bindings_of_long_names_come_in_pages_of_bytes(DiskStore::open(folder.path().join("names")).unwrap())
        .await;
}

#[tokio::test]
async fn a_page_has_one_binding_however_long_its_name_is() {
    let site = Site::of(MemoryStore::new(), |builder| builder.max_page_bytes(1)).await;
    filled(3, &site).await;
    let (first, further) = site.root.list(2).await.unwrap();
    assert_eq!((first.len(), further.unwrap().next_n(9).await.unwrap().1.len()), (1, 1));
}
