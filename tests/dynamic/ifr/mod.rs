//! The Interface Repository: its descriptions of IDL and of generated types, and their use by remote clients.

mod browsers;
mod combat;
mod lies;
mod limits;
mod typed;
mod values;

use std::sync::{Arc, LazyLock};

use test_support::transport;
use zorb::dynamic::{
    DynServant, Dynamic, DynamicException, FetchError, Idl, Interface, InterfaceRepository, Mode, Request,
    ServerRequest, Value, interface_of, look_up_interface,
};
use zorb::prelude::*;
use zorb::{Any, ObjectRef, Servant, TcKind, TypeCode, minor};

const IDL: &str = r#"
#pragma prefix "example.org"
module Bank {
    const long LIMIT = 3 * 4;
    typedef string<16> Name;
    typedef sequence<Name> Names;
    enum Kind { savings, giro };
    struct Entry { Name who; double amount; long codes[4]; sequence<Entry> more; };
    union Choice switch (Kind) { case savings: long a; default: fixed<5,2> b; };
    exception Overdrawn { double missing; };
    native Handle;
    valuetype Money { public long units; private string currency; };
    valuetype Text string;
    interface Party { readonly attribute Name name; };
    interface Account : Party {
        attribute double balance getraises (Overdrawn);
        Names deposit(in double amount, inout Entry entry, out Choice choice) raises (Overdrawn) context ("user*");
        oneway void note(in any what);
        struct Inner { octet o; };
    };
    abstract interface Shape { void draw(); };
};
module Bank { interface Later {}; };
"#;

struct Place {
    server: Orb,
    client: Orb,
    repository: ObjectRef,
}

async fn place() -> Place {
    place_of(InterfaceRepository::new().idl(&Idl::parse(IDL).unwrap())).await
}

async fn place_of(repository: InterfaceRepository) -> Place {
    let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let client = transport::builder().build().await.unwrap();
    let here = repository.serve(&server).unwrap();
    let repository = client.resolve_unchecked(&here.to_string()).await.unwrap();
    Place { server, client, repository }
}

/// Returns one of the repository's own interfaces.
fn own(name: &str) -> Arc<Interface> {
    static IDL: LazyLock<Idl> = LazyLock::new(|| Idl::parse("#include <ir.idl>").unwrap());
    IDL.interface(&format!("CORBA::{name}")).unwrap()
}

async fn ask<const N: usize>(
    object: &ObjectRef,
    interface: &str,
    operation: &str,
    arguments: [(&str, Value); N],
) -> Dynamic {
    let interface = own(interface);
    let mut request = Request::of(object, &interface, operation).unwrap();
    let info = interface.find(operation).unwrap();
    for (name, value) in arguments {
        let code = info.params.iter().find(|param| *param.name == *name).unwrap().code.clone();
        let value = Dynamic { code, value, graph: Default::default() };
        request.set(name, Any::from_dynamic(&value).unwrap()).unwrap();
    }
    request.invoke().await.unwrap().result.to_dynamic().unwrap()
}

impl Place {
    async fn look_up(&self, name: &str) -> ObjectRef {
        let found = ask(&self.repository, "Repository", "lookup", [("search_name", name.into())]).await;
        self.reference(&found).await.unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Returns the object of a reference in a result; `None` if it is nil.
    async fn reference(&self, of: &Dynamic) -> Option<ObjectRef> {
        let Value::Object(ior) = &of.value else { panic!("{of:?} is no reference") };
        if ior.is_nil() {
            return None;
        }
        Some(self.client.resolve_unchecked(&ior.to_string()).await.unwrap())
    }

    async fn kind(&self, object: &ObjectRef) -> u32 {
        match ask(object, "IRObject", "_get_def_kind", []).await.value {
            Value::Enum(kind) => kind,
            other => panic!("{other:?}"),
        }
    }

    async fn names(&self, of: Dynamic) -> Vec<String> {
        let Value::Items(items) = of.value else { panic!("no list") };
        let mut names = Vec::new();
        for item in items.into_values() {
            let item = Dynamic { code: TypeCode::OBJECT, value: item, graph: Default::default() };
            let object = self.reference(&item).await.unwrap();
            names.push(text(ask(&object, "Contained", "_get_name", []).await));
        }
        names
    }
}

fn text(of: Dynamic) -> String {
    match of.value {
        Value::String(text) => text.into(),
        other => panic!("{other:?} is no string"),
    }
}

fn code(of: Dynamic) -> TypeCode {
    match of.value {
        Value::TypeCode(code) => *code,
        other => panic!("{other:?} is no type code"),
    }
}

const ALL: Value = Value::Enum(1);

#[tokio::test]
async fn definitions_are_found_by_their_names_and_ids() {
    let place = place().await;
    let account = place.look_up("::Bank::Account").await;
    assert_eq!(place.kind(&account).await, 5);
    assert_eq!(text(ask(&account, "Contained", "_get_id", []).await), "IDL:example.org/Bank/Account:1.0");
    assert_eq!(text(ask(&account, "Contained", "_get_name", []).await), "Account");
    assert_eq!(text(ask(&account, "Contained", "_get_version", []).await), "1.0");
    assert_eq!(text(ask(&account, "Contained", "_get_absolute_name", []).await), "::Bank::Account");
    assert!(account.is_a("IDL:omg.org/CORBA/InterfaceDef:1.0").await.unwrap());
    assert!(account.is_a("IDL:omg.org/CORBA/Container:1.0").await.unwrap());
    assert!(!account.is_a("IDL:omg.org/CORBA/StructDef:1.0").await.unwrap());
    let module = ask(&account, "Contained", "_get_defined_in", []).await;
    let module = place.reference(&module).await.unwrap();
    assert_eq!(place.kind(&module).await, 6);
    let outside = ask(&module, "Contained", "_get_defined_in", []).await;
    assert_eq!(place.kind(&place.reference(&outside).await.unwrap()).await, 17);

    // From a scope, including what it inherits.
    for (name, kind) in
        [("deposit", 7), ("Inner", 10), ("name", 2), ("::Bank::Kind", 12), ("Kind", 12), ("Bank::Kind", 12)]
    {
        let found = ask(&account, "Container", "lookup", [("search_name", name.into())]).await;
        assert_eq!(place.kind(&place.reference(&found).await.unwrap()).await, kind, "{name}");
    }
    let id = "IDL:example.org/Bank/Entry:1.0";
    let entry = ask(&place.repository, "Repository", "lookup_id", [("search_id", id.into())]).await;
    assert_eq!(place.kind(&place.reference(&entry).await.unwrap()).await, 10);
    let none = ask(&place.repository, "Repository", "lookup_id", [("search_id", "IDL:No:1.0".into())]).await;
    assert!(place.reference(&none).await.is_none());
}

#[tokio::test]
async fn scopes_say_what_is_in_them() {
    let place = place().await;
    let arguments =
        |kind: Value, exclude: bool| [("limit_type", kind), ("exclude_inherited", exclude.into())];
    let roots = ask(&place.repository, "Container", "contents", arguments(ALL, false)).await;
    assert_eq!(place.names(roots).await, ["Bank"], "a module that goes on is one");
    let module = place.look_up("Bank").await;
    let all = ask(&module, "Container", "contents", arguments(ALL, false)).await;
    let names = [
        "LIMIT",
        "Name",
        "Names",
        "Kind",
        "Entry",
        "Choice",
        "Overdrawn",
        "Handle",
        "Money",
        "Text",
        "Party",
        "Account",
        "Shape",
        "Later",
    ];
    assert_eq!(place.names(all).await, names);
    let typedefs = ask(&module, "Container", "contents", arguments(Value::Enum(8), false)).await;
    assert_eq!(place.names(typedefs).await, ["Name", "Names", "Kind", "Entry", "Choice", "Handle", "Text"]);
    let interfaces = ask(&module, "Container", "contents", arguments(Value::Enum(5), false)).await;
    assert_eq!(place.names(interfaces).await, ["Party", "Account", "Later"]);
    let account = place.look_up("Bank::Account").await;
    let own = ask(&account, "Container", "contents", arguments(ALL, true)).await;
    assert_eq!(place.names(own).await, ["balance", "deposit", "note", "Inner"]);
    let inherited = ask(&account, "Container", "contents", arguments(Value::Enum(2), false)).await;
    assert_eq!(place.names(inherited).await, ["balance", "name"]);

    let search = [
        ("search_name", "name".into()),
        ("levels_to_search", (-1).into()),
        ("limit_type", ALL),
        ("exclude_inherited", false.into()),
    ];
    let found = ask(&place.repository, "Container", "lookup_name", search).await;
    assert_eq!(place.names(found).await, ["name"]);
    let described = ask(
        &module,
        "Container",
        "describe_contents",
        [("limit_type", Value::Enum(3)), ("exclude_inherited", true.into()), ("max_returned_objs", 1.into())],
    )
    .await;
    let any = described.at("[0].value").unwrap().1;
    let Value::Any(any) = any else { panic!("{any:?}") };
    let constant = any.to_dynamic().unwrap();
    assert_eq!(constant.code.name(), Ok("ConstantDescription"));
    assert_eq!(constant.at("name").unwrap().1, "LIMIT".into());
    assert_eq!(constant.at("value").unwrap().1, Any::new(12_i32).unwrap().into());
}

#[tokio::test]
async fn types_say_what_they_are_made_of() {
    let place = place().await;
    let entry = place.look_up("Bank::Entry").await;
    let members = ask(&entry, "StructDef", "_get_members", []).await;
    assert_eq!(members.at("[1].name").unwrap().1, "amount".into());
    let of = |path: &str| Dynamic {
        code: TypeCode::OBJECT,
        value: members.at(path).unwrap().1,
        graph: Default::default(),
    };
    let codes = place.reference(&of("[2].type_def")).await.unwrap();
    assert_eq!(place.kind(&codes).await, 16, "an array without a name is an object");
    assert_eq!(ask(&codes, "ArrayDef", "_get_length", []).await.value, 4_u32.into());
    let long = ask(&codes, "ArrayDef", "_get_element_type_def", []).await;
    let long = place.reference(&long).await.unwrap();
    assert_eq!(ask(&long, "PrimitiveDef", "_get_kind", []).await.value, Value::Enum(3));
    let more = place.reference(&of("[3].type_def")).await.unwrap();
    let again = ask(&more, "SequenceDef", "_get_element_type_def", []).await;
    let again = place.reference(&again).await.unwrap();
    assert_eq!(text(ask(&again, "Contained", "_get_name", []).await), "Entry");
    assert_eq!(code(ask(&more, "IDLType", "_get_type", []).await).to_string(), "sequence<Bank::Entry>");

    let name = place.look_up("Bank::Name").await;
    let bounded = ask(&name, "AliasDef", "_get_original_type_def", []).await;
    let bounded = place.reference(&bounded).await.unwrap();
    assert_eq!(
        (place.kind(&bounded).await, ask(&bounded, "StringDef", "_get_bound", []).await.value),
        (14, 16_u32.into())
    );
    let choice = place.look_up("Bank::Choice").await;
    let members = ask(&choice, "UnionDef", "_get_members", []).await;
    let label = |at: usize| match members.at(&format!("[{at}].label")).unwrap().1 {
        Value::Any(any) => any.to_dynamic().unwrap().value,
        other => panic!("{other:?}"),
    };
    assert_eq!((label(0), label(1)), (Value::Enum(0), Value::Octet(0)), "the default member has an octet 0");
    let kind = ask(&choice, "UnionDef", "_get_discriminator_type_def", []).await;
    let kind = place.reference(&kind).await.unwrap();
    let names = ask(&kind, "EnumDef", "_get_members", []).await;
    assert_eq!(names.at("[1]").unwrap().1, "giro".into());
    let money = place.look_up("Bank::Money").await;
    let value = ask(&money, "ValueDef", "describe_value", []).await;
    assert_eq!(value.at("members[1].name").unwrap().1, "currency".into());
    assert_eq!(value.at("members[1].access").unwrap().1, 0_i16.into());
    assert_eq!(place.kind(&place.look_up("Bank::Money::units").await).await, 22);
    let primitive = ask(&place.repository, "Repository", "get_primitive", [("kind", Value::Enum(14))]).await;
    let primitive = place.reference(&primitive).await.unwrap();
    assert_eq!(code(ask(&primitive, "IDLType", "_get_type", []).await), TypeCode::string(0));
    let fixed = ask(
        &place.repository,
        "Repository",
        "create_fixed",
        [("digits", 7_u16.into()), ("scale", 2_i16.into())],
    )
    .await;
    let fixed = place.reference(&fixed).await.unwrap();
    assert_eq!(ask(&fixed, "FixedDef", "_get_digits", []).await.value, 7_u16.into());
}

#[tokio::test]
async fn operations_say_what_they_take() {
    let place = place().await;
    let deposit = place.look_up("Bank::Account::deposit").await;
    let params = ask(&deposit, "OperationDef", "_get_params", []).await;
    let at = |path: &str| params.at(path).unwrap().1;
    assert_eq!(
        (at("[0].mode"), at("[1].mode"), at("[2].mode")),
        (Value::Enum(0), Value::Enum(2), Value::Enum(1))
    );
    let described = ask(&deposit, "Contained", "describe", []).await;
    assert_eq!(described.at("kind").unwrap().1, Value::Enum(7));
    let Value::Any(any) = described.at("value").unwrap().1 else { panic!("no any") };
    let operation = any.to_dynamic().unwrap();
    assert_eq!(operation.at("exceptions[0].id").unwrap().1, "IDL:example.org/Bank/Overdrawn:1.0".into());
    assert_eq!(operation.at("contexts[0]").unwrap().1, "user*".into());
    assert_eq!(operation.at("defined_in").unwrap().1, "IDL:example.org/Bank/Account:1.0".into());
    let raised = ask(&deposit, "OperationDef", "_get_exceptions", []).await;
    assert_eq!(place.names(raised).await, ["Overdrawn"]);
    let balance = place.look_up("Bank::Account::balance").await;
    let attribute = ask(&balance, "ExtAttributeDef", "describe_attribute", []).await;
    assert_eq!(attribute.at("get_exceptions[0].name").unwrap().1, "Overdrawn".into());
    assert_eq!(
        ask(&place.look_up("Bank::Party::name").await, "AttributeDef", "_get_mode", []).await.value,
        Value::Enum(1)
    );
}

struct Nobody;

impl DynServant for Nobody {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        Ok(request)
    }
}

// clause: exc.minor.intf_repos.2
#[tokio::test]
async fn an_interface_is_fetched_from_afar() {
    let place = place().await;
    let idl = Idl::parse(IDL).unwrap();
    let account = look_up_interface(&place.repository, "IDL:example.org/Bank/Account:1.0").await.unwrap();
    let known = idl.interface("Bank::Account").unwrap();
    for operation in ["deposit", "note", "_get_balance", "_set_balance", "_get_name"] {
        assert_eq!(account.find(operation), known.find(operation), "{operation}");
    }
    assert!(account.find("_set_name").is_none());
    assert!(account.is_a("IDL:example.org/Bank/Party:1.0"));
    assert_eq!(account.kind(), TcKind::ObjRef);
    assert_eq!(account.find("deposit").unwrap().params[1].mode, Mode::InOut);
    let shape = look_up_interface(&place.repository, "IDL:example.org/Bank/Shape:1.0").await.unwrap();
    assert_eq!(shape.kind(), TcKind::AbstractInterface);
    // With only an object: here one of the repository itself, which does not describe itself, then one that
    // it knows.
    let error = interface_of(&place.repository).await.unwrap_err();
    assert!(
        matches!(&error, FetchError::Call(DynamicException::System(error))
            if error.kind == SystemExceptionKind::IntfRepos && error.minor == minor::INTF_REPOS_NO_ENTRY),
        "{error}"
    );
    let party = place
        .server
        .activation()
        .activate_erased(Servant::dynamic(idl.interface("Bank::Party").unwrap(), Nobody))
        .unwrap();
    let party: ObjectRef = place.client.resolve_unchecked(&party.to_string()).await.unwrap();
    assert_eq!(interface_of(&party).await.unwrap().id(), "IDL:example.org/Bank/Party:1.0");
    let error = look_up_interface(&place.repository, "IDL:No:1.0").await.unwrap_err();
    assert!(matches!(error, FetchError::Unknown(id) if &*id == "IDL:No:1.0"));
}

#[tokio::test]
async fn what_would_change_the_repository_is_refused() {
    let place = place().await;
    let account = place.look_up("Bank::Account").await;
    let interface = own("InterfaceDef");
    for operation in ["destroy", "_set_name"] {
        let mut request = Request::of(&account, &interface, operation).unwrap();
        if operation == "_set_name" {
            request.set("value", Any::new("x").unwrap()).unwrap();
        }
        let DynamicException::System(error) = request.invoke().await.unwrap_err() else {
            panic!("no system exception")
        };
        assert_eq!(error.kind, SystemExceptionKind::NoImplement, "{operation}");
    }
    // The key of an object that does not exist.
    let poa = place.server.root_poa().find("InterfaceRepository").unwrap().find("StructDef").unwrap();
    for id in ["d:IDL:No:1.0", "x", "q:0:d:IDL:No:1.0", "s:x", "a:1", &"q:0:".repeat(1000)] {
        let gone: ObjectRef = poa.create_reference_with_id(id).unwrap();
        let gone: ObjectRef = place.client.resolve_unchecked(&gone.to_string()).await.unwrap();
        let request = Request::of(&gone, &own("IRObject"), "_get_def_kind").unwrap();
        let DynamicException::System(error) = request.invoke().await.unwrap_err() else {
            panic!("no system exception")
        };
        assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{id}");
    }
}

zorb::idl! {
    module Line {
        interface One { void go(); };
        interface Two : One { };
        interface Three { One next(); };
    };
}

struct Three;

impl line::ThreeServant for Three {
    async fn next(&self) -> Result<Option<line::OneRef>, SystemException> {
        Ok(None)
    }
}

#[tokio::test]
async fn one_line_registers_the_interfaces_of_generated_code() {
    let place = place_of(InterfaceRepository::of::<(line::TwoRef, line::ThreeRef)>()).await;
    for id in ["IDL:Line/One:1.0", "IDL:Line/Two:1.0", "IDL:Line/Three:1.0"] {
        assert_eq!(look_up_interface(&place.repository, id).await.unwrap().id(), id);
    }
    let three: line::ThreeRef = place.server.activate(Three).unwrap();
    let three: line::ThreeRef = place.client.resolve_unchecked(&three.to_string()).await.unwrap();
    assert_eq!(interface_of(&three).await.unwrap().id(), "IDL:Line/Three:1.0");
}
