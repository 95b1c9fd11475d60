//! Names that lead through several services.

use std::time::Duration;

use cos_naming::store::MemoryStore;
use cos_naming::zorb_naming::{BalancedContextRef, Strategy};
use zorb::cos_naming::naming_context::{
    AlreadyBound, BindError, CannotProceed, NotFound, NotFoundReason, RebindError, ResolveError,
};
use zorb::cos_naming::{NamingContextExtRef, NamingContextRef};
use zorb::prelude::*;

use crate::support::{Site, key_of, name};

/// Returns the root context of a site as seen by a client of another site.
async fn seen_from(site: &Site, other: &Site) -> NamingContextRef {
    let found: NamingContextExtRef = site.orb.resolve(&other.root.as_object().to_string()).await.unwrap();
    NamingContextRef::from(found)
}

#[tokio::test]
async fn every_operation_goes_on_in_another_service() {
    let (here, there) = (Site::new().await, Site::new().await);
    let root = &here.root;
    root.bind_context(&name("far"), seen_from(&here, &there).await).await.unwrap();
    let object = here.object("o").await;
    root.bind(&name("far/o"), object.clone()).await.unwrap();
    assert_eq!(key_of(&there.root.resolve(&name("o")).await.unwrap().unwrap()), "o");
    assert_eq!(root.resolve(&name("far/o")).await.unwrap(), Some(object.clone()));
    assert_eq!(root.resolve_str("far/o").await.unwrap(), Some(object.clone()));
    root.rebind(&name("far/o"), here.object("p").await).await.unwrap();
    assert_eq!(key_of(&root.resolve(&name("far/o")).await.unwrap().unwrap()), "p");
    let made = root.bind_new_context(&name("far/c")).await.unwrap().unwrap();
    made.bind(&name("deep"), object.clone()).await.unwrap();
    assert_eq!(there.root.resolve(&name("c/deep")).await.unwrap().map(|o| key_of(&o)).as_deref(), Some("o"));
    root.rebind_context(&name("far/c"), made.clone()).await.unwrap();
    root.bind_context(&name("far/d"), made).await.unwrap();
    assert!(root.resolve(&name("far/d/deep")).await.unwrap().is_some());
    root.unbind(&name("far/d")).await.unwrap();
    // Exceptions raised there are raised here, with the rest of the name as seen there.
    let missing = |rest| NotFound { why: NotFoundReason::MissingNode, rest_of_name: name(rest) };
    assert_eq!(root.resolve(&name("far/d/deep")).await, Err(ResolveError::NotFound(missing("d/deep"))));
    assert_eq!(root.bind(&name("far/o"), object).await, Err(BindError::AlreadyBound(AlreadyBound)));
    let over = root.rebind(&name("far/c"), None).await;
    assert!(matches!(over, Err(RebindError::NotFound(NotFound { why: NotFoundReason::NotObject, .. }))));
    // And the operations that only this service has.
    let balanced: BalancedContextRef = root.narrow().await.unwrap();
    balanced.bind_group(&name("far/g"), Strategy::RoundRobin).await.unwrap();
    balanced.join(&name("far/g"), "a", here.object("a").await).await.unwrap();
    balanced.report_load(&name("far/g"), "a", 2.0, 0.0).await.unwrap();
    assert_eq!(balanced.members(&name("far/g")).await.unwrap()[0].load, 2.0);
    balanced.leave(&name("far/g"), "a").await.unwrap();
}

#[tokio::test]
async fn a_circle_through_two_services_ends_with_the_name_or_the_hops() {
    let (here, there) = (Site::new().await, Site::new().await);
    here.root.bind_context(&name("x"), seen_from(&here, &there).await).await.unwrap();
    there.root.bind_context(&name("x"), seen_from(&there, &here).await).await.unwrap();
    here.root.bind(&name("o"), here.object("o").await).await.unwrap();
    let through = |hops: usize| name(&format!("{}o", "x/".repeat(hops)));
    assert!(here.root.resolve(&through(16)).await.unwrap().is_some());
    let Err(ResolveError::CannotProceed(CannotProceed { cxt: Some(_), rest_of_name })) =
        here.root.resolve(&through(200)).await
    else {
        panic!()
    };
    assert_eq!(rest_of_name, through(200 - 17), "where it was given up");
}

#[tokio::test]
async fn where_another_service_is_away_the_caller_is_told_how_far_it_came() {
    let site =
        Site::of(MemoryStore::new(), |builder| builder.remote_timeout(Duration::from_millis(200))).await;
    // No server listens there.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let away = format!("corbaloc:iiop:1.2@{address}/NameService");
    let away: NamingContextRef = site.orb.resolve_unchecked(&away).await.unwrap();
    site.root.bind_context(&name("away"), away.clone()).await.unwrap();
    // The context itself is returned without a call to it.
    let found = site.root.resolve(&name("away")).await.unwrap().unwrap();
    assert_eq!(found.ior(), away.ior());
    let expected = CannotProceed { cxt: Some(away.clone()), rest_of_name: name("a/b") };
    let Err(ResolveError::CannotProceed(told)) = site.root.resolve(&name("away/a/b")).await else { panic!() };
    assert_eq!((told.cxt.unwrap().ior(), told.rest_of_name), (away.ior(), expected.rest_of_name));
    let bound = site.root.bind(&name("away/a"), None).await;
    assert!(matches!(bound, Err(BindError::CannotProceed(_))));
    let unheard = name("away/a");
    assert!(site.root.unbind(&unheard).await.is_err());
}

#[tokio::test]
async fn one_of_two_services_of_an_orb_is_a_foreign_one_to_the_other() {
    let site = Site::new().await;
    let other = cos_naming::Server::builder(MemoryStore::new()).key("Other").serve(&site.server_orb).unwrap();
    let context: NamingContextExtRef = site.orb.resolve(&other.root().as_object().to_string()).await.unwrap();
    site.root.bind_context(&name("other"), NamingContextRef::from(context.clone())).await.unwrap();
    site.root.bind(&name("other/o"), site.object("o").await).await.unwrap();
    assert!(context.resolve(&name("o")).await.unwrap().is_some());
    assert!(site.root.resolve(&name("o")).await.is_err());
}
