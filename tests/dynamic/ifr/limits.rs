//! Large repositories, and clients with arbitrary requests.

use std::fmt::Write;

use zorb::dynamic::{
    Dynamic, DynamicException, FetchError, Idl, InterfaceRepository, Request, Value, describe_contents,
    look_up, look_up_interface,
};
use zorb::prelude::*;
use zorb::{Any, ObjectRef, Servant, TypeCode};

use crate::ifr::{Nobody, ask, own, place_of, text};

/// Returns a text of 20,000 lines and more.
fn large() -> String {
    let mut idl = String::from("module Large {\n    enum Wide {\n");
    (0..500).for_each(|i| {
        writeln!(idl, "        an_enumerator_with_a_name_{i}{}", if i < 499 { "," } else { " };" }).unwrap()
    });
    for i in 0..600 {
        write!(idl, "struct S{i} {{\n    Wide kind;\n").unwrap();
        (0..8).for_each(|member| writeln!(idl, "    long m{member};").unwrap());
        idl.push_str("};\n");
    }
    for i in 0..500 {
        writeln!(idl, "interface I{i} {{").unwrap();
        (0..22).for_each(|at| writeln!(idl, "    long o{at}(\n        in string a);").unwrap());
        idl.push_str("};\n");
    }
    idl.push_str("interface Broad {\n");
    (0..600).for_each(|i| writeln!(idl, "    S{i} get{i}();").unwrap());
    idl.push_str("};\n};\n");
    assert!(idl.lines().count() > 20_000);
    idl
}

fn refused(error: FetchError) -> SystemExceptionKind {
    match error {
        FetchError::Call(DynamicException::System(error)) => error.kind,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_large_repository_answers_in_parts() {
    let idl = Idl::parse(&large()).unwrap();
    let place = place_of(InterfaceRepository::new().idl(&idl)).await;
    let module = look_up(&place.repository, "IDL:Large:1.0").await.unwrap().unwrap();
    for most in [0, 1, 7] {
        assert_eq!(describe_contents(&module, most).await.unwrap().len(), most as usize);
    }
    let error = describe_contents(&module, u32::MAX).await.unwrap_err();
    assert_eq!(refused(error), SystemExceptionKind::ImpLimit, "600 structs with 17 KiB each");
    let arguments = |kind: u32| [("limit_type", Value::Enum(kind)), ("exclude_inherited", true.into())];
    let all = ask(&module, "Container", "contents", arguments(1)).await;
    let Value::Items(all) = all.value else { panic!("no list") };
    assert_eq!(all.len(), 1 + 600 + 500 + 1, "references are small");
    let last = look_up_interface(&place.repository, "IDL:Large/I499:1.0").await.unwrap();
    assert_eq!(last.operations().len(), 22);
    let error = look_up_interface(&place.repository, "IDL:Large/Broad:1.0").await.unwrap_err();
    assert_eq!(refused(error), SystemExceptionKind::ImpLimit);
    // Nor does an object return such a large description of itself.
    let servant = Servant::dynamic(idl.interface("Large::Broad").unwrap(), Nobody);
    let object = place.server.activation().activate_erased(servant).unwrap();
    let object: ObjectRef = place.client.resolve_unchecked(&object.to_string()).await.unwrap();
    let asked = Request::new(&object, "omg_get_ifr_metadata").returns(TypeCode::ANY).invoke().await;
    let Err(DynamicException::System(error)) = asked else { panic!("{asked:?}") };
    assert_eq!(error.kind, SystemExceptionKind::BadOperation);
    // The allowed queries for parts of it.
    let broad = look_up(&place.repository, "IDL:Large/Broad:1.0").await.unwrap().unwrap();
    assert_eq!(describe_contents(&broad, 100).await.unwrap().len(), 100);
}

#[tokio::test]
async fn any_name_and_id_may_be_asked_for() {
    let place = place_of(InterfaceRepository::new().idl(&Idl::parse(crate::ifr::IDL).unwrap())).await;
    let account = place.look_up("Bank::Account").await;
    let long = "x".repeat(1 << 20);
    let scopes = "::A".repeat(100_000);
    let nested = format!("q:0:{}", "a:4294967295:".repeat(30));
    let names = [
        "",
        "::",
        ":::",
        "::::",
        "Bank::",
        "::Bank::",
        "Bank::::Account",
        "\u{e4}",
        "*",
        "d:",
        "r:",
        &long,
        &scopes,
        &nested,
    ];
    for name in names {
        for scope in [&place.repository, &account] {
            let found = ask(scope, "Container", "lookup", [("search_name", name.into())]).await;
            assert!(place.reference(&found).await.is_none(), "{}", &name[..name.len().min(20)]);
            let arguments = [
                ("search_name", name.into()),
                ("levels_to_search", i32::MAX.into()),
                ("limit_type", Value::Enum(1)),
                ("exclude_inherited", false.into()),
            ];
            let found = ask(scope, "Container", "lookup_name", arguments).await;
            assert!(place.names(found).await.is_empty());
        }
        assert!(look_up(&place.repository, name).await.unwrap().is_none());
    }
    // Invalid levels, and kinds that no definition has.
    for (levels, kind) in [(0, 1), (i32::MIN, 0), (-1, 0), (-1, 35), (1, 17)] {
        let arguments = [
            ("search_name", "Account".into()),
            ("levels_to_search", levels.into()),
            ("limit_type", Value::Enum(kind)),
            ("exclude_inherited", false.into()),
        ];
        let found = ask(&place.repository, "Container", "lookup_name", arguments).await;
        assert!(place.names(found).await.is_empty(), "{levels} {kind}");
    }
    assert_eq!(text(ask(&account, "Contained", "_get_name", []).await), "Account", "it is there still");
}

#[tokio::test]
async fn types_without_names_are_made_within_bounds() {
    let place = place_of(InterfaceRepository::new()).await;
    let long = ask(&place.repository, "Repository", "get_primitive", [("kind", Value::Enum(3))]).await;
    let mut element = place.reference(&long).await.unwrap();
    let create = async |element: &ObjectRef| {
        let mut request = Request::of(&place.repository, &own("Repository"), "create_array").unwrap();
        request.set("length", Any::new(u32::MAX).unwrap()).unwrap();
        let code = own("Repository").find("create_array").unwrap().params[1].code.clone();
        let value = Value::Object(Box::new(element.ior().clone()));
        let value = Dynamic { code, value, graph: Default::default() };
        request.set("element_type", Any::from_dynamic(&value).unwrap()).unwrap();
        request.invoke().await
    };
    // Nested, to the limit of type codes; the sizes are never allocated.
    let mut made = 0;
    let error = loop {
        match create(&element).await {
            Ok(answer) => element = answer.get::<Option<ObjectRef>>().unwrap().unwrap(),
            Err(DynamicException::System(error)) => break error,
            Err(error) => panic!("{error}"),
        }
        made += 1;
        assert!(made < 100, "there is no end");
    };
    assert!(made > 20, "{made}");
    assert_eq!(error.kind, SystemExceptionKind::BadParam, "{error}");
    // An object that does not belong to the repository's types.
    let nobodys = create(&place.repository).await.unwrap_err();
    assert!(
        matches!(nobodys, DynamicException::System(error) if error.kind == SystemExceptionKind::BadParam)
    );
    let long = || Value::TypeCode(Box::new(TypeCode::LONG));
    let whole = ask(&place.repository, "Repository", "get_canonical_typecode", [("tc", long())]).await;
    assert_eq!(whole.value, long());
}
