//! Repositories with invalid contents.

use zorb::dynamic::{
    DefinitionDetails, DynServant, Dynamic, DynamicException, FetchError, Idl, InterfaceRepository, Items,
    ServerRequest, Value, describe_contents, describe_definition, interface_of, look_up, look_up_interface,
    look_up_value,
};
use zorb::prelude::*;
use zorb::wire::Ior;
use zorb::{Any, ObjectRef, Servant, TypeCode};

use crate::ifr::{IDL, Place, own, place_of};

/// Answers every query with a given value, as an object of any kind.
struct Liar {
    says: Value,
}

impl DynServant for Liar {
    async fn invoke(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let code = request.info().result.clone();
        let said = Dynamic { code, value: self.says.clone(), graph: Default::default() };
        request.set_result(Any::from_dynamic(&said).map_err(SystemException::from)?);
        Ok(request)
    }
}

async fn place() -> Place {
    place_of(InterfaceRepository::new().idl(&Idl::parse(IDL).unwrap())).await
}

impl Place {
    /// Returns the reference of an object of one of the repository's interfaces that answers with `says`.
    async fn liar(&self, interface: &str, says: Value) -> ObjectRef {
        let servant = Servant::dynamic(own(interface), Liar { says });
        let liar = self.server.activation().activate_erased(servant).unwrap();
        self.client.resolve_unchecked(&liar.to_string()).await.unwrap()
    }
}

fn any(code: &str, value: Value) -> Value {
    let code = Idl::parse("#include <ir.idl>").unwrap().type_code(&format!("CORBA::{code}")).unwrap();
    Any::from_dynamic(&Dynamic { code, value, graph: Default::default() }).unwrap().into()
}

fn record(members: Vec<Value>) -> Value {
    Value::Struct(members.into())
}

fn module() -> Value {
    any("ModuleDescription", record(["M", "IDL:M:1.0", "", "1.0"].map(Value::from).into()))
}

fn is_foreign(error: &FetchError, name: &str) -> bool {
    matches!(error, FetchError::UnexpectedType(wanted) if &**wanted == name)
}

#[tokio::test]
async fn a_description_of_another_type_is_refused() {
    let place = place().await;
    for (kind, value, wanted) in [
        // A kind with the description of another; an any of another type, and an empty one; kinds without
        // descriptions.
        (7, module(), "OperationDescription"),
        (20, module(), "ValueDescription"),
        (10, Any::new(7_i32).unwrap().into(), "TypeDescription"),
        (6, Any::default().into(), "ModuleDescription"),
        (17, module(), ""),
        (13, module(), ""),
        (0, module(), ""),
        (35, module(), ""),
    ] {
        let liar = place.liar("ModuleDef", record(vec![Value::Enum(kind), value])).await;
        let error = describe_definition(&liar).await.unwrap_err();
        assert!(is_foreign(&error, wanted), "{kind}: {error}");
    }
    let liar = place.liar("ModuleDef", record(vec![Value::Enum(6), module()])).await;
    assert_eq!(describe_definition(&liar).await.unwrap().details, DefinitionDetails::Module);
}

#[tokio::test]
async fn no_more_is_taken_than_was_asked_for() {
    let place = place().await;
    let nil = || Value::Object(Box::new(Ior::nil()));
    let one = || record(vec![nil(), Value::Enum(6), module()]);
    let many: Vec<Value> = (0..50).map(|_| one()).collect();
    let liar = place.liar("ModuleDef", Value::Items(Box::new(Items::Values(many)))).await;
    assert_eq!(describe_contents(&liar, 3).await.unwrap().len(), 3);
    assert_eq!(describe_contents(&liar, 100).await.unwrap().len(), 50);
}

#[tokio::test]
async fn a_definition_of_another_kind_or_none_is_no_interface() {
    let place = place().await;
    // It finds nothing, and reports that an object has no interface.
    let nobody = place.liar("Repository", Value::Object(Box::new(Ior::nil()))).await;
    assert!(look_up(&nobody, "IDL:M:1.0").await.unwrap().is_none());
    assert!(matches!(look_up_interface(&nobody, "IDL:M:1.0").await, Err(FetchError::Unknown(_))));
    assert!(matches!(look_up_value(&nobody, "IDL:M:1.0").await, Err(FetchError::Unknown(_))));
    // A struct in place of an interface, and an object that is in no repository.
    let entry = place.look_up("Bank::Entry").await;
    for found in [&entry, &place.client.resolve_unchecked(&nobody.to_string()).await.unwrap()] {
        let liar = place.liar("Repository", Value::Object(Box::new(found.ior().clone()))).await;
        assert!(matches!(look_up_interface(&liar, "IDL:M:1.0").await, Err(FetchError::Call(_))));
        assert!(matches!(look_up_value(&liar, "IDL:M:1.0").await, Err(FetchError::Call(_))));
    }
    assert!(matches!(interface_of(&nobody).await, Err(FetchError::Call(_))));
}

/// Empty or arbitrary names and ids, and invalid types.
#[tokio::test]
async fn an_interface_of_nonsense_can_be_asked() {
    let place = place().await;
    let nothing = || Value::Items(Box::new(Items::Values(Vec::new())));
    let texts = |texts: &[&str]| {
        Value::Items(Box::new(Items::Values(texts.iter().map(|text| (*text).into()).collect())))
    };
    let code = |code: TypeCode| Value::TypeCode(Box::new(code));
    let operation = |name: &str| {
        let [name, id, scope, version] = [name, "", "\u{e4}", ""].map(Value::from);
        let parts = vec![name, id, scope, version, code(TypeCode::NULL), Value::Enum(0)];
        record(parts.into_iter().chain([nothing(), nothing(), nothing()]).collect())
    };
    let operations = ["", "", "a::b", "_get_x"].map(operation).into();
    let says = record(vec![
        "".into(),
        "".into(),
        "".into(),
        "".into(),
        Value::Items(Box::new(Items::Values(operations))),
        nothing(),
        texts(&["", ":", "/", "IDL:::", "::::"]),
        code(TypeCode::LONG),
    ]);
    let described = place.liar("InterfaceAttrExtension", says).await;
    let repository = place.liar("Repository", Value::Object(Box::new(described.ior().clone()))).await;
    let interface = look_up_interface(&repository, "").await.unwrap();
    assert_eq!((interface.operations().len(), interface.bases().len()), (4, 5));
    assert!(interface.find("_get_x").is_some() && interface.is_a("IDL:::") && !interface.is_a("x"));
}
