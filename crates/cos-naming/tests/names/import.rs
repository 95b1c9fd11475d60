//! Names of omniNames, imported from the data of a running omniNames.

use std::sync::Arc;

use cos_naming::Server;
use cos_naming::import::{ImportError, import_omninames};
use cos_naming::store::MemoryStore;
use zorb::cos_naming::{BindingType, NameComponent, NamingContextRef};
use zorb::prelude::*;

use crate::omni::{OmniNames, has};
use crate::support::{key_of, name, object};

/// Returns the data file of an omniNames that had these names and was stopped.
async fn data() -> Option<Vec<u8>> {
    if !has("omniNames") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = OmniNames::start(folder.path()).await;
    let orb = Orb::builder().build().await.unwrap();
    let root: NamingContextRef = orb.resolve(&names.url).await.unwrap();
    let o = object(&orb, "o").await;
    let a = root.bind_new_context(&name("a.k")).await.unwrap().unwrap();
    let b = a.bind_new_context(&name("b")).await.unwrap().unwrap();
    b.bind(&name(r"x\.y"), o.clone()).await.unwrap();
    b.bind_context(&name("up"), root.clone()).await.unwrap();
    for odd in
        ["sp ace", "tab\there", "new\nline", r"back\slash", "täb", "", "a/b", "\r\u{b}\u{c}\u{7f}\u{1}"]
    {
        b.bind(&[NameComponent::new(odd, "odd kind")], o.clone()).await.unwrap();
    }
    b.bind(&name("nil"), None).await.unwrap();
    root.bind(&name("gone"), o.clone()).await.unwrap();
    root.unbind(&name("gone")).await.unwrap();
    root.bind(&name("twice"), o.clone()).await.unwrap();
    root.rebind(&name("twice"), object(&orb, "second").await).await.unwrap();
    let elsewhere: zorb::ObjectRef =
        orb.resolve_unchecked("corbaloc:iiop:1.2@192.0.2.1:1/Elsewhere").await.unwrap();
    root.bind_context(&name("far"), NamingContextRef::from_object(elsewhere)).await.unwrap();
    let free = root.new_context().await.unwrap().unwrap();
    free.destroy().await.unwrap();
    drop(names);
    let file = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.filter(|path| path.extension().is_some_and(|end| end == "dat")).last().unwrap();
    Some(std::fs::read(file).unwrap())
}

#[tokio::test]
async fn all_names_of_omninames_are_here_behind_an_import() {
    let Some(file) = data().await else { return };
    let store = Arc::new(MemoryStore::new());
    let imported = import_omninames(&store, &file).await.unwrap();
    assert_eq!((imported.contexts, imported.bindings), (2, 3 + 1 + 11));
    let again = import_omninames(&store, &file).await.unwrap_err();
    assert!(matches!(&again, ImportError::AlreadyBound(_)), "{again}");

    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let server = Server::builder(store).serve(&orb).unwrap();
    let root = server.root();
    assert_eq!(key_of(&root.resolve(&name(r"a.k/b/x\.y")).await.unwrap().unwrap()), "o");
    assert_eq!(key_of(&root.resolve(&name(r"a.k/b/up/a.k/b/x\.y")).await.unwrap().unwrap()), "o");
    for odd in
        ["sp ace", "tab\there", "new\nline", r"back\slash", "täb", "", "a/b", "\r\u{b}\u{c}\u{7f}\u{1}"]
    {
        let path = [name("a.k/b"), vec![NameComponent::new(odd, "odd kind")]].concat();
        assert_eq!(key_of(&root.resolve(&path).await.unwrap().unwrap()), "o", "{odd:?}");
    }
    assert_eq!(root.resolve(&name("a.k/b/nil")).await.unwrap(), None);
    assert!(root.resolve(&name("gone")).await.is_err());
    assert_eq!(key_of(&root.resolve(&name("twice")).await.unwrap().unwrap()), "second");
    let (all, _) = root.list(10).await.unwrap();
    let far = all.iter().find(|one| one.binding_name == name("far")).unwrap();
    assert_eq!(far.binding_type, BindingType::Ncontext);
}

#[tokio::test]
async fn texts_that_omninames_does_not_write_are_refused_at_their_line() {
    let store = Arc::new(MemoryStore::new());
    let root = "create 4e616d6553657276696365";
    let cases = [
        ("", 1, "NameService"),
        ("hello", 1, "port, persistent"),
        ("create xyz", 1, "hexadecimal"),
        (
            "create 4e616d6553657276696365\nbind IOR:00 a  nobject",
            2,
            "a context, an id, a kind, a type and an IOR",
        ),
        ("create 4e616d6553657276696365\nbind IOR:00 a  sth IOR:00", 2, "nobject or ncontext"),
        ("create 4e616d6553657276696365\nbind IOR:00 a  nobject nonsense", 2, "IOR"),
        ("create 4e616d6553657276696365\nunbind IOR:00 a", 2, "a context, an id and a kind"),
        ("create 4e616d6553657276696365\ndestroy me", 2, "the IOR of a context"),
    ];
    for (text, at, part) in cases {
        let error = import_omninames(&store, text.as_bytes()).await.unwrap_err();
        let ImportError::Line { line, reason } = error else { panic!("{text}: {error}") };
        assert!(line == at && reason.contains(part), "{text}: line {line}: {reason}");
    }
    let nothing = import_omninames(&store, root.as_bytes()).await.unwrap();
    assert_eq!((nothing.contexts, nothing.bindings), (0, 0));
}
