//! IDL that is read at run time: its types and interfaces are equal, byte for byte, to those that `idl!`
//! generates from the same text.

mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;

use zorb::dynamic::{Definition, DefinitionKind, Idl, Interface};
use zorb::prelude::*;
use zorb::values::{CdrEncode as _, Encoder};
use zorb::wire::{ByteOrder, Version};

mod rare {
    use zorb::values::{CustomMarshal, DecodeError, Decoder, EncodeError, Encoder};

    zorb::idl!("tests/dynamic/idl_types/rare.idl", no_warnings);

    impl CustomMarshal for rare::Own {
        fn marshal(&self, _: &mut Encoder) -> Result<(), EncodeError> {
            Ok(())
        }

        fn unmarshal(&mut self, _: &mut Decoder<'_>) -> Result<(), DecodeError> {
            Ok(())
        }
    }
}
mod types {
    zorb::idl!("tests/interop/idl/types.idl");
}
mod anys {
    zorb::idl!("tests/interop/idl/anys.idl");
}
mod values {
    zorb::idl!("tests/interop/idl/values.idl");
}
mod extras {
    zorb::idl!("tests/interop/idl/extras.idl");
}
mod idl4 {
    zorb::idl!("tests/interop/idl/idl4.idl");
}

fn octets(code: &TypeCode) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    code.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

/// Collects all types with a repository id in a type code of generated code, by id.
fn collect(code: &TypeCode, into: &mut BTreeMap<String, TypeCode>) {
    if let Ok(id) = code.id()
        && !id.is_empty()
        && into.insert(id.to_owned(), code.clone()).is_some()
    {
        return;
    }
    let members = (0..code.member_count().unwrap_or(0)).filter_map(|at| code.member_type(at).ok());
    members.for_each(|member| collect(&member, into));
    let others =
        [code.content_type().ok(), code.discriminator_type().ok(), code.concrete_base_type().ok().flatten()];
    others.iter().flatten().for_each(|other| collect(other, into));
}

/// Returns all type codes in the signatures of an interface.
fn signatures(interface: &Interface) -> Vec<&TypeCode> {
    let mut found = Vec::new();
    for operation in interface.operations() {
        found.push(&operation.result);
        found.extend(operation.params.iter().map(|param| &param.code));
        found.extend(&operation.raises);
    }
    for attribute in interface.attributes() {
        found.push(&attribute.code);
        found.extend(attribute.get_raises.iter().chain(&attribute.set_raises));
    }
    found
}

fn check_interface(read: &Interface, generated: &Interface) {
    let about = |of: &Interface| (of.id().to_owned(), of.name().to_owned(), of.kind());
    assert_eq!(about(read), about(generated));
    assert_eq!(read.operations(), generated.operations(), "{}", read.id());
    assert_eq!(read.attributes(), generated.attributes(), "{}", read.id());
    for (read, generated) in signatures(read).into_iter().zip(signatures(generated)) {
        assert_eq!(octets(read), octets(generated), "{read}");
    }
    assert_eq!(read.bases().len(), generated.bases().len(), "{}", read.id());
    read.bases().iter().zip(generated.bases()).for_each(|(read, generated)| check_interface(read, generated));
}

/// Compares all declarations of a file with its generated code: `interfaces` from which no other is derived,
/// and `types` that no interface uses.
fn check(file: &str, interfaces: &[Arc<Interface>], types: &[TypeCode]) {
    let idl = Idl::options().files([file]).unwrap_or_else(|error| panic!("{error}"));
    let mut generated = BTreeMap::new();
    let lineages = interfaces.iter().flat_map(|interface| interface.lineage());
    let generated_interfaces: BTreeMap<String, &Interface> =
        lineages.map(|interface| (interface.id().to_owned(), interface)).collect();
    for interface in generated_interfaces.values() {
        signatures(interface).into_iter().for_each(|code| collect(code, &mut generated));
    }
    types.iter().for_each(|code| collect(code, &mut generated));
    let mut missing = Vec::new();
    for definition in idl.definitions() {
        assert_eq!(idl.find(definition.scoped_name()).map(Definition::id), Some(definition.id()));
        if let Some(interface) = definition.interface() {
            match generated_interfaces.get(definition.id()) {
                Some(generated) => check_interface(interface, generated),
                None => missing.push(definition),
            }
            let code = definition.type_code().unwrap();
            assert_eq!((code.kind(), code.id().unwrap()), (interface.kind(), interface.id()));
        } else if let Some(code) = definition.type_code() {
            match generated.get(definition.id()) {
                Some(generated) => {
                    assert_eq!(code, generated);
                    assert_eq!(octets(code), octets(generated), "{code}");
                }
                None => missing.push(definition),
            }
        }
    }
    assert!(missing.is_empty(), "nothing was compared with {missing:?}");
}

fn of<T: zorb::dynamic::Described>() -> Arc<Interface> {
    Interface::of::<T>()
}

#[test]
fn all_of_the_interoperability_tests_is_the_same() {
    use types::interop::*;
    check(
        "tests/interop/idl/types.idl",
        &[of::<PeerRef>(), of::<NodeRef>(), of::<BottomRef>(), of::<ListenerRef>()],
        &[],
    );
}

#[test]
fn anys_type_codes_and_values_are_the_same() {
    use anys::anys::*;
    let types = [
        Figure::type_code(),
        node_seq_type_code(),
        Choice::type_code(),
        Flag::type_code(),
        grid_type_code(),
        money_type_code(),
        code_type_code(),
        doubles_type_code(),
        octets_type_code(),
        Numbers::type_code(),
        Priced::type_code(),
        Texts::type_code(),
        Spot::type_code(),
        Ends::type_code(),
        Label::type_code(),
        Holder::type_code(),
    ];
    check("tests/interop/idl/anys.idl", &[of::<PeerRef>()], &types);
    use values::interop_values as v;
    let types = [v::Mark::type_code(), v::Spot::type_code(), v::Label::type_code()];
    check("tests/interop/idl/values.idl", &[of::<v::ValuesRef>(), of::<v::ThingRef>()], &types);
    check("tests/interop/idl/extras.idl", &[of::<extras::interop::ExtrasRef>()], &[]);
}

#[test]
fn what_idl_4_adds_is_the_same() {
    use idl4::idl4::*;
    let types = [Base::type_code()];
    check("tests/interop/idl/idl4.idl", &[of::<PeerRef>()], &types);
}

#[test]
fn what_is_rare_is_the_same() {
    use rare::rare::*;
    let types = [Shape::type_code(), Root::type_code(), Branch::type_code(), Broken::type_code()];
    check("tests/dynamic/idl_types/rare.idl", &[of::<LaterRef>(), of::<HereRef>(), of::<NamedRef>()], &types);
    let later = of::<LaterRef>();
    assert_eq!(later.find("module").map(|found| found.params.len()), Some(2));
    assert_eq!(later.find("ask").map(|found| found.contexts.len()), Some(2));
    assert!(later.find("_set_serial").is_some() && later.find("_set_order").is_none());
    assert!(later.is_a("IDL:rare.example/Rare/Top:1.0") && later.is_a("IDL:rare.example/Rare/Named:1.0"));
}

#[test]
fn each_kind_of_definition_is_told() {
    let idl = Idl::options().files(["tests/dynamic/idl_types/rare.idl"]).unwrap();
    let kinds =
        ["Rare", "Rare::Named", "Rare::Named::name_of", "Rare::Top::serial", "Rare::Holder", "Rare::Empty"]
            .map(|name| idl.find(name).unwrap().kind());
    use DefinitionKind::*;
    assert_eq!(kinds, [Module, Interface, Operation, Attribute, Struct, Exception]);
}
