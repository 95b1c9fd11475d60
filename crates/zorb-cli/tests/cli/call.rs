//! `zorb call`: the interface of an object, messages about arguments that do not fit, and skeletons of
//! arguments.

use serde_json::json;

use super::serve::Server;
use super::{Run, patient};

const STORE: &str = "\
module Warehouse {
    enum Unit { PIECE, KILO, METRE };
    struct Item { string name; long count; Unit unit; };
    typedef sequence<Item> Items;
    interface Store {
        readonly attribute string owner;
        long put(in Items items, in Unit unit);
    };
    interface Cellar : Store { void cool(); };
    interface Attic : Store { void heat(); };
    interface Garden { void water(); };
};
";

/// What the server has and its callers do not know.
const MORE: &str = "\
#include \"store.idl\"
module Warehouse {
    interface Cellar_2 : Cellar { void drain(); };
    interface House : Cellar, Attic {};
    interface Moon { void land(); };
};
";

/// A server of objects of interfaces that are not in the IDL of its callers.
struct Stored {
    folder: tempfile::TempDir,
    server: Server,
}

impl Stored {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("store.idl"), STORE).unwrap();
        std::fs::write(folder.path().join("more.idl"), MORE).unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (idl, iors) = (path("more.idl"), path(""));
        let mut args = vec!["--idl", &idl, "--ior", &iors, "--quiet"];
        for object in
            ["A=Warehouse::Cellar", "B=Warehouse::Cellar_2", "C=Warehouse::House", "D=Warehouse::Moon"]
        {
            args.extend(["--object", object]);
        }
        let server = Server::start(&args);
        Self { folder, server }
    }

    fn url(&self, key: &str) -> &str {
        self.server.url(["A", "B", "C", "D"].iter().position(|one| *one == key).unwrap())
    }

    fn ior(&self, key: &str) -> String {
        self.folder.path().join(format!("{key}.ior")).to_str().unwrap().to_owned()
    }

    fn call(&self, target: &str, args: &[&str]) -> Run {
        let idl = self.folder.path().join("store.idl");
        patient(&[&["call", target, "--idl", idl.to_str().unwrap()][..], args].concat())
    }
}

#[test]
fn an_object_whose_reference_does_not_say_its_interface_is_asked_for_it() {
    let stored = Stored::start();
    let owner = stored.call(stored.url("A"), &["owner"]);
    assert_eq!((owner.code, owner.json()), (0, json!({ "$result": "" })), "{}", owner.err);
    // The most derived that the object has.
    assert_eq!(stored.call(stored.url("A"), &["cool"]).code, 0);
    let listed = stored.call(stored.url("A"), &[]);
    assert!(listed.out.starts_with("IDL:Warehouse/Cellar:1.0"), "{}{}", listed.out, listed.err);
    assert!(listed.out.contains("void cool();") && listed.out.contains("long put("), "{}", listed.out);
    let unknown = stored.call(stored.url("A"), &["water"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.err.contains("Cellar:1.0 has no operation water"), "{}", unknown.err);
    assert!(unknown.err.contains("Warehouse::Garden.water"), "{}", unknown.err);
}

#[test]
fn an_object_of_a_derived_interface_is_called_as_what_the_idl_has() {
    let stored = Stored::start();
    let called = stored.call(&stored.ior("B"), &["owner"]);
    assert_eq!((called.code, called.json()), (0, json!({ "$result": "" })), "{}", called.err);
    assert!(called.err.contains("IDL:Warehouse/Cellar_2:1.0, is not in the IDL"), "{}", called.err);
    assert!(called.err.contains("Warehouse::Cellar.owner"), "{}", called.err);
    let spelled = stored.call(&stored.ior("B"), &["Warehouse::Cellar.owner"]);
    assert_eq!((spelled.code, &*spelled.err), (0, ""), "an interface that is named needs no remark");
    // Of two interfaces, none of which is derived from the other, the operation decides.
    assert_eq!(stored.call(stored.url("C"), &["heat"]).code, 0);
    let both = stored.call(stored.url("C"), &["owner"]);
    assert_eq!(both.code, 3);
    assert!(both.err.contains("Warehouse::Attic.owner or Warehouse::Cellar.owner"), "{}", both.err);
    let none = stored.call(&stored.ior("D"), &["water"]);
    assert_eq!(none.code, 3);
    assert!(none.err.contains("no interface of the IDL: Warehouse::Store,"), "{}", none.err);
    assert!(none.err.contains("use Warehouse::Garden.water to call it"), "{}", none.err);
    let away = stored.call("corbaloc::127.0.0.1:1/A", &["owner"]);
    assert!(away.code == 3 && away.err.contains("the object cannot be queried"), "{}", away.err);
}

#[test]
fn interfaces_are_named_in_each_spelling() {
    let stored = Stored::start();
    for spelling in ["Warehouse::Store", "Warehouse/Store", "IDL:Warehouse/Store:1.0"] {
        let called = stored.call(stored.url("A"), &[&format!("{spelling}.owner")]);
        assert_eq!((called.code, &*called.err), (0, ""), "{spelling}");
        let listed = stored.call(stored.url("A"), &[spelling]);
        assert!(listed.code == 0 && listed.out.starts_with("IDL:Warehouse/Store:1.0"), "{}", listed.out);
    }
    assert_eq!(stored.call(stored.url("A"), &["Store.owner"]).code, 0, "only one is called so");
    for id in ["Warehouse::Store", "IDL:Warehouse/Store:1.0"] {
        let pinged = patient(&["ping", stored.url("A"), "-c", "1", "--type", id]);
        assert!(pinged.out.contains("is_a IDL:Warehouse/Store:1.0  yes"), "{}", pinged.out);
    }
}

#[test]
fn arguments_that_do_not_fit_are_met_with_what_would() {
    let stored = Stored::start();
    for (arguments, said) in [
        (
            r#"{"items": [], "unit": "TON"}"#,
            "unit: `TON` is not an enumerator; the enumerators are PIECE, KILO, METRE",
        ),
        (
            r#"{"items": [{"count": 1}], "unit": "KILO"}"#,
            "items[0]: missing members: `name` (string), `unit` (Warehouse::Unit)",
        ),
        (
            r#"{"items": [{"nome": ""}], "unit": "KILO"}"#,
            "there is no member `nome`; the members are `name`, `count`",
        ),
        ("{}", "missing members: `items` (Warehouse::Items), `unit` (Warehouse::Unit)"),
    ] {
        let wrong = stored.call(stored.url("A"), &["put", arguments]);
        assert!(wrong.code == 3 && wrong.err.contains(said), "{arguments}: {}", wrong.err);
    }
}

#[test]
fn a_skeleton_of_arguments_can_be_given_as_arguments() {
    let stored = Stored::start();
    let skeleton = stored.call(stored.url("A"), &["put", "--template"]);
    assert_eq!(skeleton.code, 0, "{}", skeleton.err);
    assert_eq!(
        skeleton.json(),
        json!({ "items": [{ "name": "", "count": 0, "unit": "PIECE" }], "unit": "PIECE" })
    );
    let order = |name: &str| skeleton.out.find(name).unwrap();
    assert!(
        order("\"name\"") < order("\"count\"") && order("\"count\"") < order("\"unit\""),
        "{}",
        skeleton.out
    );
    let called = stored.call(stored.url("A"), &["put", &skeleton.out]);
    assert_eq!((called.code, called.json()), (0, json!({ "$result": 0 })), "{}", called.err);
    let none = stored.call(stored.url("A"), &["--template"]);
    assert_eq!(none.code, 2, "{}", none.err);
}

#[test]
fn objects_of_a_server_say_their_interface_from_its_idl() {
    let stored = Stored::start();
    for target in [stored.url("B"), &stored.ior("B")] {
        let called = patient(&["call", target, "drain"]);
        assert_eq!((called.code, called.json()), (0, json!({})), "{}", called.err);
    }
    let listed = patient(&["call", stored.url("D")]);
    assert!(listed.out.contains("void land();"), "{}{}", listed.out, listed.err);
    // An object may have the key of the repository; then the others do not say it.
    let idl = stored.folder.path().join("store.idl");
    let idl = idl.to_str().unwrap();
    let other = Server::start(&["--idl", idl, "--object", "InterfaceRepository=Warehouse::Garden"]);
    assert_eq!(patient(&["call", other.url(0), "water", "--idl", idl]).code, 0);
}
