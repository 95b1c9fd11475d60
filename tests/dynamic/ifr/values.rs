//! zorb's client reads from a repository, definition by definition, what the IDL contains.

use std::collections::BTreeSet;

use zorb::dynamic::{
    Definition, DefinitionDetails, DefinitionKind, DescribedDefinition, FetchError, Idl, InterfaceRepository,
    Value, describe_contents, describe_definition, look_up, look_up_value,
};
use zorb::prelude::*;
use zorb::{ValueModifier, Visibility};

use crate::ifr::{Place, ask, place_of, text};

const RICH: &str = include_str!("rich.idl");

async fn rich() -> (Idl, Place) {
    let idl = Idl::parse(RICH).unwrap();
    let place = place_of(InterfaceRepository::new().idl(&idl)).await;
    (idl, place)
}

/// Asserts that a description agrees with the IDL.
fn check(described: &DescribedDefinition, of: Definition<'_>) {
    assert_eq!((&*described.id, &*described.name), (of.id(), of.name()));
    assert_eq!(&*described.defined_in, of.parent().map_or("", |parent| parent.id()), "{of:?}");
    assert_eq!(&*described.version, "1.0");
    let ids = |all: &[Box<str>]| all.iter().map(|id| id.to_string()).collect::<Vec<_>>();
    match &described.details {
        DefinitionDetails::Module => assert_eq!(of.kind(), DefinitionKind::Module),
        DefinitionDetails::Interface(kind, bases) => {
            let interface = of.interface().unwrap();
            assert_eq!(*kind, interface.kind());
            assert_eq!(ids(bases), interface.bases().iter().map(|base| base.id()).collect::<Vec<_>>());
        }
        DefinitionDetails::Operation(operation) => {
            let known = match of.parent().unwrap() {
                scope if scope.kind() == DefinitionKind::Value => scope.value().unwrap().operations.clone(),
                scope => scope.interface().unwrap().operations().to_vec(),
            };
            assert!(known.iter().any(|known| **known == *operation), "{operation:?}");
        }
        DefinitionDetails::Attribute(attribute) => {
            let known = match of.parent().unwrap() {
                scope if scope.kind() == DefinitionKind::Value => scope.value().unwrap().attributes.clone(),
                scope => scope.interface().unwrap().attributes().to_vec(),
            };
            let known = known.iter().find(|known| known.id == attribute.id).unwrap();
            assert_eq!((&known.code, known.readonly), (&attribute.code, attribute.readonly));
        }
        DefinitionDetails::Constant(constant) => assert_eq!(Some(constant), of.constant()),
        DefinitionDetails::Exception(code) | DefinitionDetails::Type(code) => {
            assert_eq!(Some(code), of.type_code());
        }
        DefinitionDetails::Value { base, abstract_bases, supports } => {
            let value = of.value().unwrap();
            let concrete = value.concrete_base();
            assert_eq!(&**base, concrete.as_ref().map_or("", |base| base.id().unwrap()));
            assert_eq!((abstract_bases, supports), (&value.abstract_bases, &value.supports));
        }
        other => panic!("{other:?} of {of:?}"),
    }
}

fn name_of(details: &DefinitionDetails) -> String {
    match details {
        DefinitionDetails::Type(code) => format!("{:?}", code.kind()),
        DefinitionDetails::Interface(kind, _) => format!("{kind:?}"),
        other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
    }
}

#[tokio::test]
async fn every_kind_of_definition_is_read_back() {
    let (idl, place) = rich().await;
    let (mut kinds, mut seen, mut members) = (BTreeSet::new(), 0, Vec::new());
    let mut scopes = vec![place.repository.clone()];
    while let Some(scope) = scopes.pop() {
        for described in describe_contents(&scope, 1000).await.unwrap() {
            kinds.insert(name_of(&described.details));
            let object = look_up(&place.repository, &described.id).await.unwrap().unwrap();
            assert_eq!(describe_definition(&object).await.unwrap(), described);
            if let DefinitionDetails::ValueMember(code, access) = described.details {
                members.push((described.id, code, access));
                continue;
            }
            seen += 1;
            check(&described, idl.find_id(&described.id).unwrap());
            if !matches!(described.details, DefinitionDetails::Operation(_)) {
                scopes
                    .extend(object.is_a("IDL:omg.org/CORBA/Container:1.0").await.unwrap().then_some(object));
            }
        }
    }
    let enumerators_and_all = idl.definitions().count();
    assert_eq!(seen, enumerators_and_all, "each is in one scope");
    let expected = [
        "AbstractInterface",
        "Alias",
        "Attribute",
        "Constant",
        "Enum",
        "Exception",
        "LocalInterface",
        "Module",
        "Native",
        "ObjRef",
        "Operation",
        "Struct",
        "Union",
        "Value",
        "ValueBox",
        "ValueMember",
    ];
    assert_eq!(kinds, expected.map(str::to_owned).into());
    let state = idl.find("Rich::Money").unwrap().type_code().unwrap().clone();
    let (currency, _) = (state.member_type(1).unwrap(), members.sort_by(|a, b| a.0.cmp(&b.0)));
    let of_money =
        members.iter().find(|(id, ..)| &**id == "IDL:example.org/Rich/Money/currency:1.0").unwrap();
    assert_eq!((&of_money.1, of_money.2), (&currency, Visibility::Private));
    assert_eq!(members.len(), 4);
}

#[tokio::test]
async fn value_types_are_read_back_whole() {
    let (idl, place) = rich().await;
    for name in ["Printed", "Money", "Coin", "Secret"] {
        let known = idl.find(&format!("Rich::{name}")).unwrap().value().unwrap().clone();
        let read = look_up_value(&place.repository, &known.id).await.unwrap();
        assert_eq!(read.code, known.code, "{name}");
        assert_eq!(
            (&read.id, &read.name, &read.supports, &read.abstract_bases, &read.initializers),
            (&known.id, &known.name, &known.supports, &known.abstract_bases, &known.initializers)
        );
        assert!(read.operations.starts_with(&known.operations), "{name}: its own come first");
        assert!(read.attributes.starts_with(&known.attributes), "{name}");
    }
    let value = async |name: &str| {
        look_up_value(&place.repository, &format!("IDL:example.org/Rich/{name}:1.0")).await.unwrap()
    };
    let money = value("Money").await;
    let names = |of: &zorb::dynamic::ValueInfo| {
        let operations = of.operations.iter().map(|one| one.name.to_string());
        operations.chain(of.attributes.iter().map(|one| one.name.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(names(&money), ["add", "print", "owners", "lines", "called"], "what it inherits too");
    assert_eq!(names(&*value("Coin").await), names(&money), "once each, from afar");
    assert_eq!(money.modifier(), ValueModifier::None);
    assert_eq!((money.initializers.len(), money.initializers[1].params.len()), (2, 0));
    assert_eq!(money.initializers[0].params[1].0, "coin".into());
    assert_eq!(money.initializers[0].raises, [idl.type_code("Rich::Overdrawn").unwrap()]);
    assert_eq!(value("Coin").await.modifier(), ValueModifier::Truncatable);
    assert_eq!(value("Coin").await.concrete_base(), Some(money.code.clone()));
    assert_eq!(value("Secret").await.modifier(), ValueModifier::Custom);
    assert_eq!(value("Printed").await.modifier(), ValueModifier::Abstract);
    // An interface is not a value type.
    let error = look_up_value(&place.repository, "IDL:example.org/Rich/Party:1.0").await.unwrap_err();
    assert!(matches!(error, FetchError::Call(_)), "{error}");
    let error = look_up_value(&place.repository, "IDL:No:1.0").await.unwrap_err();
    assert!(matches!(error, FetchError::Unknown(id) if &*id == "IDL:No:1.0"));
}

#[tokio::test]
async fn value_types_answer_every_question() {
    let (_, place) = rich().await;
    let (coin, money) = (place.look_up("Rich::Coin").await, place.look_up("Rich::Money").await);
    let base = ask(&coin, "ValueDef", "_get_base_value", []).await;
    let base = place.reference(&base).await.unwrap();
    assert_eq!(text(ask(&base, "Contained", "_get_name", []).await), "Money");
    let none = ask(&money, "ValueDef", "_get_base_value", []).await;
    assert!(place.reference(&none).await.is_none());
    let names =
        async |of: &zorb::ObjectRef, what: &str| place.names(ask(of, "ValueDef", what, []).await).await;
    assert_eq!(names(&money, "_get_abstract_base_values").await, ["Printed"]);
    assert_eq!(names(&money, "_get_supported_interfaces").await, ["Party"]);
    assert!(names(&coin, "_get_supported_interfaces").await.is_empty());
    for (question, answers) in [
        ("_get_is_abstract", [false, false]),
        ("_get_is_custom", [false, false]),
        ("_get_is_truncatable", [true, false]),
    ] {
        for (value, answer) in [&coin, &money].into_iter().zip(answers) {
            assert_eq!(ask(value, "ValueDef", question, []).await.value, answer.into(), "{question}");
        }
    }
    for (id, answer) in [
        ("IDL:example.org/Rich/Coin:1.0", true),
        ("IDL:example.org/Rich/Money:1.0", true),
        ("IDL:example.org/Rich/Printed:1.0", true),
        ("IDL:example.org/Rich/Party:1.0", true),
        ("IDL:omg.org/CORBA/ValueBase:1.0", true),
        ("IDL:example.org/Rich/Secret:1.0", false),
        ("", false),
    ] {
        assert_eq!(ask(&coin, "ValueDef", "is_a", [("id", id.into())]).await.value, answer.into(), "{id}");
    }
    let initializers = ask(&money, "ValueDef", "_get_initializers", []).await;
    assert_eq!(initializers.at("[0].name").unwrap().1, "create".into());
    assert_eq!(initializers.at("[0].members[1].name").unwrap().1, "coin".into());
    let extended = ask(&money, "ExtValueDef", "_get_ext_initializers", []).await;
    assert_eq!(extended.at("[0].exceptions[0].name").unwrap().1, "Overdrawn".into());
    // Inherited contents are included on request, once.
    let contents = async |exclude: bool| {
        let arguments = [("limit_type", Value::Enum(1)), ("exclude_inherited", exclude.into())];
        place.names(ask(&coin, "Container", "contents", arguments).await).await
    };
    assert_eq!(contents(true).await, ["metal"]);
    let all = ["metal", "units", "currency", "add", "owners", "lines", "print", "called"];
    assert_eq!(contents(false).await, all);
    let found = place.look_up("Rich::Coin::units").await;
    assert_eq!(text(ask(&found, "Contained", "_get_id", []).await), "IDL:example.org/Rich/Money/units:1.0");
    let many = place.look_up("Rich::Secret::Many").await;
    assert_eq!(place.kind(&many).await, 9);
    let full = ask(&money, "ValueDef", "describe_value", []).await;
    assert_eq!(full.at("operations[1].defined_in").unwrap().1, "IDL:example.org/Rich/Printed:1.0".into());
    let extended = ask(&money, "ExtValueDef", "describe_ext_value", []).await;
    assert_eq!(extended.at("initializers[1].name").unwrap().1, "none".into());
    assert_eq!(extended.at("members[1].access").unwrap().1, 0_i16.into());
}

/// The common definitions of omniORB's `ir.idl` and zorb's are equal; omniORB's is that of CORBA 2.3.
#[test]
fn the_repositorys_own_types_are_omniorbs() {
    let folder = "/usr/share/idl/omniORB";
    if !std::path::Path::new(folder).join("ir.idl").exists() {
        let what = "omniORB's ir.idl is not installed: run scripts/install-peers.sh";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
        test_support::peers::tell(&format!("SKIPPED: {what}"));
        return;
    }
    let theirs = Idl::options().include(folder).files([format!("{folder}/ir.idl")]).unwrap();
    let ours = Idl::parse("#include <ir.idl>").unwrap();
    let mut same = BTreeSet::new();
    for known in ours.definitions() {
        let Some(found) = theirs.find_id(known.id()) else { continue };
        assert_eq!((known.kind(), known.scoped_name()), (found.kind(), found.scoped_name()));
        if known.type_code() == found.type_code() {
            same.insert(known.scoped_name().to_owned());
            continue;
        }
        // Later kinds were appended, and occur in the results of the two general describing operations.
        let (name, parent) = (known.name(), known.parent().unwrap());
        let of_kinds = name == "DefinitionKind" || ["Container", "Contained"].contains(&parent.name());
        assert!(of_kinds, "{known:?}: {:?}, {:?}", known.type_code(), found.type_code());
    }
    for name in ["FullInterfaceDescription", "OperationDescription", "ValueMember", "FullValueDescription"] {
        assert!(same.iter().any(|same| same.ends_with(name)), "{name}");
    }
}
