//! `orb.naming()` and `corbaname:`, through a service.

use zorb::cos_naming::naming_context::NotFoundReason;
use zorb::cos_naming::{BindingType, NamingContextRef, NamingError};
use zorb::prelude::*;

use cos_naming::store::MemoryStore;

use crate::support::{Site, url};

#[tokio::test]
async fn a_program_works_with_texts_and_types() {
    let site = Site::new().await;
    let naming = site.orb.naming().await.unwrap();
    let accounts = naming.make_contexts("bank/accounts.list").await.unwrap();
    let again = naming.make_contexts("bank/accounts.list").await.unwrap();
    assert!(again.context().is_equivalent(accounts.context()), "what is there stays");
    let object = site.object("o").await;
    naming.bind(r"bank/accounts.list/a\.b", &object).await.unwrap();
    let same: zorb::ObjectRef = accounts.resolve(r"a\.b").await.unwrap();
    assert_eq!(same, object);
    accounts.rebind(r"a\.b", &site.object("p").await).await.unwrap();
    let context: NamingContextRef = naming.resolve("bank").await.unwrap();
    naming.bind_context("same", &context).await.unwrap();
    assert_eq!(
        naming.list().all().await.unwrap(),
        [("bank".to_owned(), BindingType::Ncontext), ("same".to_owned(), BindingType::Ncontext)]
    );
    naming.enter("same/accounts.list").await.unwrap().unbind(r"a\.b").await.unwrap();
    assert!(accounts.list().all().await.unwrap().is_empty());
}

#[tokio::test]
async fn errors_say_what_is_wrong_with_which_name() {
    let site = Site::new().await;
    let naming = site.orb.naming().await.unwrap();
    naming.bind("o", &site.object("o").await).await.unwrap();
    site.root.bind(&crate::support::name("nil"), None).await.unwrap();
    naming.make_contexts("c").await.unwrap();
    let text = |error: NamingError| error.to_string();
    let missing = naming.resolve::<zorb::ObjectRef>("c/x/y").await.unwrap_err();
    assert!(
        matches!(&missing, NamingError::NotFound { why: NotFoundReason::MissingNode, rest, .. } if rest == "x/y")
    );
    assert_eq!(text(missing), "`c/x/y`: there is no context `c/x`: create it first");
    assert!(
        text(naming.unbind("o/x").await.unwrap_err()).contains("`o` is bound to an object, not to a context")
    );
    let object = site.object("p").await;
    assert!(text(naming.rebind("c", &object).await.unwrap_err()).contains("`c` is bound to a context"));
    assert!(text(naming.bind("o", &object).await.unwrap_err()).contains("`o` is already bound"));
    assert!(text(naming.bind("a//b", &object).await.unwrap_err()).contains("character 3"));
    assert!(
        text(naming.resolve::<zorb::ObjectRef>("nil").await.unwrap_err()).contains("`nil` is bound to nil")
    );
    assert!(matches!(naming.make_contexts("o/c").await, Err(NamingError::NotFound { .. })));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let site = Site::of(MemoryStore::new(), |builder| builder.max_page_bindings(10)).await;
    let naming = site.orb.naming().await.unwrap();
    let object = site.object("o").await;
    for i in 0..35 {
        naming.bind(&format!("n{i:02}"), &object).await.unwrap();
    }
    let mut listing = naming.list();
    assert_eq!(listing.page().await.unwrap().len(), 10);
    let rest = listing.all().await.unwrap();
    assert_eq!((rest.len(), &*rest[0].0, &*rest[24].0), (25, "n10", "n34"));
    assert_eq!(site.server.iterator_count(), 0, "it was ended");
}

// clause: poa.naming.key, ior.corbaname.resolve
#[tokio::test]
async fn urls_lead_through_the_service() {
    let site = Site::new().await;
    let naming = site.orb.naming().await.unwrap();
    let object = site.object("o").await;
    naming.make_contexts("a").await.unwrap();
    naming.bind("a/b.c", &object).await.unwrap();
    let plain = url(&site.server_orb);
    let address = plain.strip_prefix("corbaloc:").unwrap().strip_suffix("/NameService").unwrap();
    for url in [
        format!("corbaname:{address}#a/b.c"),
        format!("corbaname:{address}/NameService#a/b%2Ec"),
        "corbaname:rir:#a/b.c".to_owned(),
    ] {
        assert_eq!(site.orb.resolve_unchecked::<zorb::ObjectRef>(&url).await.unwrap(), object, "{url}");
    }
    let (builder, rest) = Orb::from_args(["-ORBInitRef", &format!("NameService={plain}"), "x"]).unwrap();
    assert_eq!(rest, ["x"]);
    let orb = builder.build().await.unwrap();
    let found: zorb::ObjectRef = orb.naming().await.unwrap().resolve("a/b.c").await.unwrap();
    assert_eq!(found, object);
    let without = Orb::builder().build().await.unwrap().naming().await.unwrap_err();
    assert!(without.to_string().contains("-ORBInitRef NameService=URL"), "{without}");
}

#[test]
fn the_missing_context_is_named() {
    let error = |name: &str, rest: &str| NamingError::NotFound {
        name: name.to_owned(),
        why: NotFoundReason::MissingNode,
        rest: rest.to_owned(),
    };
    for (name, rest, context) in [
        ("ü/é", "ü/é", Some("ü")),
        ("a/b.k/c", "b.k/c", Some("a/b.k")),
        (r"a\/b/c/d", "c/d", Some(r"a\/b/c")),
        ("a/b", "b", None),
        ("a", "a", None),
        // Invalid answers of a service.
        ("a", "x/y/z", None),
        ("a/b", "", None),
    ] {
        let error = error(name, rest);
        assert_eq!(error.missing_context().as_deref(), context, "{name} {rest}");
        let told = match context {
            Some(context) => format!("`{name}`: there is no context `{context}`: create it first"),
            None => format!("nothing is bound to `{name}`"),
        };
        assert_eq!(error.to_string(), told);
    }
}
