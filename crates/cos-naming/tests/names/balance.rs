//! Groups: several objects under one name.

use std::collections::BTreeMap;

use cos_naming::store::{DiskStore, Store};
use cos_naming::zorb_naming::balanced_context::{
    GroupFull, JoinError, LeaveError, MembersError, NoGroup, NoMember,
};
use cos_naming::zorb_naming::{BalancedContextRef, Strategy};
use zorb::cos_naming::BindingType;
use zorb::cos_naming::naming_context::{NotFound, NotFoundReason, RebindContextError, ResolveError};
use zorb::prelude::*;

use crate::support::{Site, key_of, name};

async fn balanced<S: Store>(site: &Site<S>) -> BalancedContextRef {
    site.root.narrow().await.unwrap()
}

async fn joined<S: Store>(site: &Site<S>, group: &str, by: Strategy, members: &[&str]) -> BalancedContextRef {
    let context = balanced(site).await;
    context.bind_group(&name(group), by).await.unwrap();
    for member in members {
        context.join(&name(group), member, site.object(member).await).await.unwrap();
    }
    context
}

async fn given(context: &BalancedContextRef, group: &str) -> String {
    key_of(&context.resolve(&name(group)).await.unwrap().unwrap())
}

#[tokio::test]
async fn members_of_a_group_take_turns_under_its_name() {
    let site = Site::new().await;
    let context = joined(&site, "g", Strategy::RoundRobin, &["a", "b", "c"]).await;
    let mut seen = BTreeMap::<_, u32>::new();
    for _ in 0..9 {
        *seen.entry(given(&context, "g").await).or_default() += 1;
    }
    assert_eq!(seen, BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 3), ("c".to_owned(), 3)]));
    context.leave(&name("g"), "b").await.unwrap();
    context.join(&name("g"), "a", site.object("a2").await).await.unwrap();
    let two = [given(&context, "g").await, given(&context, "g").await];
    assert!(two.contains(&"a2".to_owned()) && two.contains(&"c".to_owned()), "{two:?}");
    // For the OMG's operations it is an object.
    let (all, _) = context.list(10).await.unwrap();
    assert_eq!((all[0].binding_name.clone(), all[0].binding_type), (name("g"), BindingType::Nobject));
    context.rebind(&name("g"), site.object("one").await).await.unwrap();
    assert_eq!(given(&context, "g").await, "one");
}

#[tokio::test]
async fn the_least_loaded_member_is_given_as_they_report() {
    let site = Site::new().await;
    let context = joined(&site, "g", Strategy::LeastLoaded, &["a", "b"]).await;
    context.report_load(&name("g"), "a", 5.0, 0.0).await.unwrap();
    assert_eq!(given(&context, "g").await, "a", "who does not report comes last");
    context.report_load(&name("g"), "b", 3.0, 1.5).await.unwrap();
    let order = [given(&context, "g").await, given(&context, "g").await, given(&context, "g").await];
    assert_eq!(order, ["b", "b", "a"], "3, 4.5, then 6 is more than 5");
    let members = context.members(&name("g")).await.unwrap();
    let told: Vec<_> = members.iter().map(|m| (m.name.as_str(), m.load, m.reporting)).collect();
    assert_eq!(told, [("a", 5.0, true), ("b", 6.0, true)]);
    assert_eq!(members[1].target.as_ref().map(key_of).as_deref(), Some("b"));
    assert!(context.report_load(&name("g"), "a", f64::NAN, 0.0).await.is_err());
}

#[tokio::test]
async fn a_client_stays_with_its_member() {
    let site = Site::new().await;
    let context = joined(&site, "g", Strategy::ByClient, &["a", "b", "c", "d"]).await;
    let mine = given(&context, "g").await;
    for _ in 0..5 {
        assert_eq!(given(&context, "g").await, mine);
    }
    let other = ["a", "b", "c", "d"].into_iter().find(|member| *member != mine).unwrap();
    context.leave(&name("g"), other).await.unwrap();
    assert_eq!(given(&context, "g").await, mine);
    context.leave(&name("g"), &mine).await.unwrap();
    assert_ne!(given(&context, "g").await, mine);
}

#[tokio::test]
async fn groups_refuse_what_makes_no_sense() {
    let site = Site::new().await;
    let context = joined(&site, "g", Strategy::RoundRobin, &[]).await;
    context.bind(&name("o"), site.object("o").await).await.unwrap();
    context.bind_new_context(&name("c")).await.unwrap();
    let missing = |rest| NotFound { why: NotFoundReason::MissingNode, rest_of_name: name(rest) };
    assert_eq!(context.resolve(&name("g")).await, Err(ResolveError::NotFound(missing("g"))), "it is empty");
    assert_eq!(context.leave(&name("g"), "a").await, Err(LeaveError::NoMember(NoMember)));
    assert_eq!(context.members(&name("o")).await, Err(MembersError::NoGroup(NoGroup)));
    let joined = context.join(&name("o"), "a", site.object("a").await).await;
    assert_eq!(joined, Err(JoinError::NoGroup(NoGroup)));
    let joined = context.join(&name("x"), "a", site.object("a").await).await;
    assert_eq!(joined, Err(JoinError::NotFound(missing("x"))));
    let why = NotFoundReason::NotObject;
    let joined = context.join(&name("c"), "a", site.object("a").await).await;
    assert_eq!(joined, Err(JoinError::NotFound(NotFound { why, rest_of_name: name("c") })));
    let over = context.rebind_context(&name("g"), context.new_context().await.unwrap()).await;
    assert!(matches!(over, Err(RebindContextError::NotFound(_))));
    let target = site.object("a").await;
    for member in 0..1000 {
        context.join(&name("g"), &member.to_string(), target.clone()).await.unwrap();
    }
    assert_eq!(context.join(&name("g"), "more", target.clone()).await, Err(JoinError::GroupFull(GroupFull)));
    context.join(&name("g"), "7", target).await.unwrap();
}

#[tokio::test]
async fn groups_outlive_their_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names");
    let site = Site::of(DiskStore::open(&path).unwrap(), |builder| builder).await;
    joined(&site, "g", Strategy::LeastLoaded, &["a", "b"]).await;
    drop(site);
    let site = Site::of(DiskStore::open(&path).unwrap(), |builder| builder).await;
    let members = balanced(&site).await.members(&name("g")).await.unwrap();
    assert_eq!(members.iter().map(|m| (&*m.name, m.load)).collect::<Vec<_>>(), [("a", 0.0), ("b", 0.0)]);
}
