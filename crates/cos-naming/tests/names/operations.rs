//! Every operation, and every exception with its contents.

use zorb::cos_naming::naming_context::{
    AlreadyBound, BindContextError, BindError, BindNewContextError, CannotProceed, DestroyError, InvalidName,
    NotEmpty, NotFound, NotFoundReason, RebindContextError, RebindError, ResolveError, UnbindError,
};
use zorb::cos_naming::naming_context_ext::{
    InvalidAddress, ResolveStrError, ToNameError, ToStringError, ToUrlError,
};
use zorb::cos_naming::{BindingType, NameComponent, NamingContextExtRef, NamingContextRef};
use zorb::prelude::*;

use crate::support::{Site, key_of, name};

fn not_found(why: NotFoundReason, rest: &str) -> NotFound {
    NotFound { why, rest_of_name: name(rest) }
}

// clause: poa.naming.context
#[tokio::test]
async fn names_are_bound_resolved_bound_anew_and_freed() {
    let site = Site::new().await;
    let (a, b) = (site.object("a").await, site.object("b").await);
    let root = &site.root;
    root.bind(&name("x.kind"), a.clone()).await.unwrap();
    assert_eq!(root.resolve(&name("x.kind")).await.unwrap(), Some(a.clone()));
    root.rebind(&name("x.kind"), b.clone()).await.unwrap();
    assert_eq!(root.resolve(&name("x.kind")).await.unwrap(), Some(b.clone()));
    root.rebind(&name("y"), b.clone()).await.unwrap();
    assert_eq!(root.resolve_str("y").await.unwrap(), Some(b));
    // Both parts count, and either may be empty.
    let other = root.resolve(&name("x")).await;
    assert_eq!(other, Err(not_found(NotFoundReason::MissingNode, "x").into()));
    root.bind(&name("."), a.clone()).await.unwrap();
    root.bind(&name(".kind"), None).await.unwrap();
    assert_eq!(root.resolve(&name(".")).await.unwrap(), Some(a));
    assert_eq!(root.resolve(&name(".kind")).await.unwrap(), None, "nil can be bound");
    root.unbind(&name("x.kind")).await.unwrap();
    let gone = root.unbind(&name("x.kind")).await;
    assert_eq!(gone, Err(not_found(NotFoundReason::MissingNode, "x.kind").into()));
}

// clause: poa.naming.context
#[tokio::test]
async fn contexts_lead_on_and_are_what_their_references_say_in_every_process() {
    let site = Site::new().await;
    let root = &site.root;
    let a = root.bind_new_context(&name("a")).await.unwrap().unwrap();
    assert_eq!(a.repository_id(), "IDL:omg.org/CosNaming/NamingContextExt:1.0");
    let b = a.bind_new_context(&name("b")).await.unwrap().unwrap();
    let object = site.object("o").await;
    root.bind(&name("a/b/o"), object.clone()).await.unwrap();
    assert_eq!(b.resolve(&name("o")).await.unwrap(), Some(object.clone()));
    // A context without a name, which gets two.
    let free = root.new_context().await.unwrap().unwrap();
    root.bind_context(&name("a/free"), free.clone()).await.unwrap();
    root.rebind_context(&name("same"), free.clone()).await.unwrap();
    free.bind(&name("o"), object.clone()).await.unwrap();
    assert_eq!(root.resolve(&name("a/free/o")).await.unwrap(), Some(object.clone()));
    assert_eq!(root.resolve(&name("same/o")).await.unwrap(), Some(object.clone()));
    // The resolved object is a context again, with all operations of its interface.
    let found: NamingContextExtRef =
        root.resolve(&name("a/b")).await.unwrap().unwrap().narrow().await.unwrap();
    assert_eq!(found.resolve_str("o").await.unwrap(), Some(object.clone()));
    // A circle allows names of any length.
    b.bind_context(&name("up"), NamingContextRef::from_object(root.to_object())).await.unwrap();
    let round = root.resolve(&name("a/b/up/a/b/up/a/b/o")).await.unwrap();
    assert_eq!(round, Some(object.clone()));
    // Rebinding to another context, and to the same one.
    root.rebind_context(&name("same"), b.clone()).await.unwrap();
    assert_eq!(root.resolve(&name("same/o")).await.unwrap(), Some(object));
}

// clause: poa.naming.exceptions
#[tokio::test]
async fn each_way_to_fail_has_its_exception_and_says_how_far_it_came() {
    use NotFoundReason::{MissingNode, NotContext, NotObject};
    let site = Site::new().await;
    let root = &site.root;
    let o = site.object("o").await;
    let context = root.bind_new_context(&name("c")).await.unwrap().unwrap();
    root.bind(&name("c/o"), o.clone()).await.unwrap();

    let cases = [
        ("missing", MissingNode, "missing"),
        ("missing/x/y", MissingNode, "missing/x/y"),
        ("c/missing", MissingNode, "missing"),
        ("c/missing/y", MissingNode, "missing/y"),
        ("c/o/x/y", NotContext, "o/x/y"),
    ];
    for (text, why, rest) in cases {
        let (text, expected) = (name(text), not_found(why, rest));
        assert_eq!(root.resolve(&text).await, Err(expected.clone().into()));
        assert_eq!(root.unbind(&text).await, Err(expected.clone().into()));
        if text.len() > 1 && rest.contains('/') {
            assert_eq!(root.bind(&text, o.clone()).await, Err(expected.clone().into()));
            assert_eq!(root.rebind(&text, o.clone()).await, Err(expected.clone().into()));
            assert_eq!(root.bind_context(&text, context.clone()).await, Err(expected.clone().into()));
            assert_eq!(root.rebind_context(&text, context.clone()).await, Err(expected.clone().into()));
            assert_eq!(root.bind_new_context(&text).await, Err(expected.into()));
        }
    }
    for taken in ["c", "c/o"] {
        let taken = name(taken);
        assert_eq!(root.bind(&taken, o.clone()).await, Err(BindError::AlreadyBound(AlreadyBound)));
        let context = root.bind_context(&taken, context.clone()).await;
        assert_eq!(context, Err(BindContextError::AlreadyBound(AlreadyBound)));
        let fresh = root.bind_new_context(&taken).await;
        assert_eq!(fresh, Err(BindNewContextError::AlreadyBound(AlreadyBound)));
    }
    let over = root.rebind(&name("c"), o.clone()).await;
    assert_eq!(over, Err(RebindError::NotFound(not_found(NotObject, "c"))));
    let over = root.rebind_context(&name("c/o"), context.clone()).await;
    assert_eq!(over, Err(RebindContextError::NotFound(not_found(NotContext, "o"))));

    let long = vec![NameComponent::new("c", ""); 257];
    for bad in [&[][..], &long] {
        assert_eq!(root.resolve(bad).await, Err(ResolveError::InvalidName(InvalidName)));
        assert_eq!(root.bind(bad, o.clone()).await, Err(BindError::InvalidName(InvalidName)));
        assert_eq!(root.unbind(bad).await, Err(UnbindError::InvalidName(InvalidName)));
    }
    let huge = [NameComponent::new("x".repeat(16 * 1024), "k")];
    assert_eq!(root.bind(&huge, o.clone()).await, Err(BindError::InvalidName(InvalidName)));

    let Err(BindContextError::System(nil)) = root.bind_context(&name("nil"), None).await else { panic!() };
    assert_eq!(nil.kind, SystemExceptionKind::BadParam);
    let Err(RebindContextError::System(nil)) = root.rebind_context(&name("nil"), None).await else {
        panic!()
    };
    assert_eq!(nil.kind, SystemExceptionKind::BadParam);
}

// clause: poa.naming.exceptions
#[tokio::test]
async fn only_empty_contexts_are_destroyed_and_nothing_is_left_of_them() {
    let site = Site::new().await;
    let root = &site.root;
    let context = root.bind_new_context(&name("c")).await.unwrap().unwrap();
    context.bind(&name("o"), site.object("o").await).await.unwrap();
    assert_eq!(context.destroy().await, Err(DestroyError::NotEmpty(NotEmpty)));
    assert!(!context.non_existent().await.unwrap());
    context.unbind(&name("o")).await.unwrap();
    context.destroy().await.unwrap();
    assert!(context.non_existent().await.unwrap());
    let Err(ResolveError::System(gone)) = context.resolve(&name("o")).await else { panic!() };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    let Err(DestroyError::System(gone)) = context.destroy().await else { panic!() };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    // Its name remains, and leads nowhere.
    assert!(root.resolve(&name("c")).await.unwrap().is_some());
    let Err(ResolveError::CannotProceed(CannotProceed { cxt: Some(at), rest_of_name })) =
        root.resolve(&name("c/o")).await
    else {
        panic!()
    };
    assert_eq!((at.to_object(), rest_of_name), (context.to_object(), name("o")));
    let Err(DestroyError::System(refused)) = root.destroy().await else { panic!() };
    assert_eq!(refused.kind, SystemExceptionKind::NoPermission);
    // Numbers of contexts are never reused.
    let next = root.new_context().await.unwrap().unwrap();
    assert!(!next.is_equivalent(&context));
}

// clause: poa.naming.string_names, poa.naming.to_url
#[tokio::test]
async fn names_are_texts_and_urls() {
    let site = Site::new().await;
    let root = &site.root;
    let odd = vec![NameComponent::new("a.b", ""), NameComponent::new("c/d", r"e\f")];
    let text = root.to_string(&odd).await.unwrap();
    assert_eq!(text, r"a\.b/c\/d.e\\f");
    assert_eq!(root.to_name(&text).await.unwrap(), odd);
    assert_eq!(root.to_string(&[]).await, Err(ToStringError::InvalidName(InvalidName)));
    for bad in ["", "a//b", "a.", "a..b", r"a\x", "a.b.c", "/a", "a/"] {
        assert_eq!(root.to_name(bad).await, Err(ToNameError::InvalidName(InvalidName)), "{bad}");
        assert_eq!(root.resolve_str(bad).await, Err(ResolveStrError::InvalidName(InvalidName)), "{bad}");
        assert_eq!(root.to_url(":h:1", bad).await, Err(ToUrlError::InvalidName(InvalidName)), "{bad}");
    }
    let escaped = root.to_url(":h:1", r#"a\.b c%<>"#).await.unwrap();
    assert_eq!(escaped, "corbaname::h:1#a%5C.b%20c%25%3C%3E");
    assert_eq!(root.to_url("rir:", "a/b.c").await.unwrap(), "corbaname:rir:#a/b.c");
    assert_eq!(root.to_url("iiop:1.2@h:9/Key", "a").await.unwrap(), "corbaname:iiop:1.2@h:9/Key#a");
    for bad in ["", "nonsense", ":h:port", ":h:1#x", "http://h"] {
        assert_eq!(root.to_url(bad, "a").await, Err(ToUrlError::InvalidAddress(InvalidAddress)), "{bad}");
    }
    // Such a URL leads to the object that the name is bound to.
    let object = site.object("o").await;
    root.bind(&root.to_name(r"w\.x y").await.unwrap(), object.clone()).await.unwrap();
    let address = crate::support::url(&site.server_orb);
    let address = address.strip_prefix("corbaloc:").unwrap();
    let url = root.to_url(address, r"w\.x y").await.unwrap();
    assert_eq!(site.orb.resolve_unchecked::<zorb::ObjectRef>(&url).await.unwrap(), object);
}

// clause: poa.naming.context
#[tokio::test]
async fn list_gives_what_is_asked_for_and_says_what_is_a_context() {
    let site = Site::new().await;
    let root = &site.root;
    let (none, iterator) = root.list(0).await.unwrap();
    assert!(none.is_empty() && iterator.is_none());
    root.bind(&name("b.k"), site.object("o").await).await.unwrap();
    root.bind_new_context(&name("a")).await.unwrap();
    let (all, iterator) = root.list(2).await.unwrap();
    let seen: Vec<_> = all.iter().map(|b| (b.binding_name.clone(), b.binding_type)).collect();
    assert_eq!(seen, [(name("a"), BindingType::Ncontext), (name("b.k"), BindingType::Nobject)]);
    assert!(iterator.is_none(), "nothing is left");
}

#[tokio::test]
async fn a_service_ends_with_its_handle_and_leaves_its_key_free() {
    let site = Site::new().await;
    let context = site.root.bind_new_context(&name("c")).await.unwrap().unwrap();
    let Site { server, server_orb, root, .. } = site;
    drop(server);
    let Err(ResolveError::System(gone)) = root.resolve(&name("c")).await else { panic!() };
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist);
    assert!(context.resolve(&name("x")).await.is_err());
    server_orb.root_poa().find("NameService-contexts").map(|poa| poa.destroy(false)).ok();
    let object: zorb::ObjectRef = server_orb.resolve_unchecked("corbaloc::1.2@192.0.2.1:1/k").await.unwrap();
    assert_eq!(key_of(&object), "k");
}
