//! Operations by name and by number.

use giop_codec::ior::{InterfaceNumbers, OperationNumbers};
use test_support::transport;
use transport::builder;
use zorb::prelude::*;
use zorb::wire::{Ior, TaggedComponent};
use zorb::{Demux, OperationDemux};

zorb::idl! {
    module Demux {
        interface Base {
            long first();
            readonly attribute long value;
        };
        interface Derived : Base {
            string third(in string text);
        };
        interface Stranger {
            void nonsense();
        };
    };
}

use demux::{BaseServant, DerivedRef, DerivedServant, StrangerRef};

struct Servant;

impl BaseServant for Servant {
    async fn first(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    async fn value(&self) -> Result<i32, SystemException> {
        assert_eq!(zorb::request().operation(), "_get_value");
        Ok(2)
    }
}

impl DerivedServant for Servant {
    async fn third(&self, text: &str) -> Result<String, SystemException> {
        Ok(format!("{}: {text}", zorb::request().operation()))
    }
}

const BASE: [&str; 2] = ["first", "_get_value"];
const DERIVED: [&str; 1] = ["third"];

/// Returns the reference with a component that announces operation numbers of these interfaces.
fn advertised(reference: &impl std::fmt::Display, interfaces: Vec<InterfaceNumbers>) -> String {
    let ior: Ior = reference.to_string().parse().unwrap();
    let component = TaggedComponent::zorb_operations(&OperationNumbers { interfaces }).unwrap();
    let profiles: Vec<_> =
        ior.iiop_profiles().map(|profile| profile.with_component(component.clone())).collect();
    Ior::from_profiles(ior.type_id, &profiles).unwrap().to_string()
}

#[tokio::test]
async fn a_client_calls_by_number_where_the_reference_says_so_and_by_name_where_it_knows_others() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let object: DerivedRef = server.activate(Servant).unwrap();
    let client = builder().build().await.unwrap();

    // This server does not support numbers, so it does not find such operations.
    let base = InterfaceNumbers::new("IDL:Demux/Base:1.0", &BASE, 0);
    let derived = InterfaceNumbers::new("IDL:Demux/Derived:1.0", &DERIVED, 2);
    let by_number: DerivedRef = client.resolve(&advertised(&object, vec![base, derived])).await.unwrap();
    for error in [
        by_number.first().await.unwrap_err(),
        by_number.value().await.unwrap_err(),
        by_number.third("x").await.unwrap_err(),
        // The header is cached, so the call is repeated.
        by_number.third("x").await.unwrap_err(),
    ] {
        assert_eq!(error.kind, SystemExceptionKind::BadOperation);
        assert_eq!(error.minor, zorb::minor::BAD_OPERATION_UNKNOWN);
        assert_eq!(error.completed, CompletionStatus::No);
    }
    assert!(!by_number.non_existent().await.unwrap(), "operations of every object have no number");

    let other = InterfaceNumbers::new("IDL:Demux/Base:1.0", &["first", "_get_value", "more"], 0);
    let by_name: DerivedRef = client.resolve(&advertised(&object, vec![other])).await.unwrap();
    assert_eq!(by_name.first().await.unwrap(), 1);
    assert_eq!(by_name.value().await.unwrap(), 2);
    assert_eq!(by_name.third("x").await.unwrap(), "third: x");
}

#[tokio::test]
async fn every_way_finds_the_same_operations() {
    for way in OperationDemux::ALL {
        let demux = Demux::new().operations(way);
        let server = builder().demux(demux).listen("iiop://127.0.0.1:0").build().await.unwrap();
        let object: DerivedRef = server.activate(Servant).unwrap();
        let client = builder().build().await.unwrap();
        let remote: DerivedRef = client.resolve(&object.to_string()).await.unwrap();
        for object in [&object, &remote, &remote] {
            assert_eq!(object.first().await.unwrap(), 1, "{way:?}");
            assert_eq!(object.value().await.unwrap(), 2, "{way:?}");
            assert_eq!(object.third("x").await.unwrap(), "third: x", "{way:?}");
            assert!(object.is_a("IDL:Demux/Base:1.0").await.unwrap());
        }
        let stranger: StrangerRef = client.resolve_unchecked(&object.to_string()).await.unwrap();
        let error = stranger.nonsense().await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::BadOperation, "{way:?}");
    }
}

#[tokio::test]
async fn a_server_that_takes_numbers_says_so_and_serves_what_they_say() {
    let demux = Demux::new().operations(OperationDemux::Numeric);
    let server = builder().demux(demux).listen("iiop://127.0.0.1:0").build().await.unwrap();
    let object: DerivedRef = server.activate(Servant).unwrap();
    let ior: Ior = object.to_string().parse().unwrap();
    let profile = ior.iiop_profile().unwrap();
    let numbers: Vec<_> = profile.components.iter().filter_map(|c| c.as_zorb_operations()).collect();
    let base = InterfaceNumbers::new("IDL:Demux/Base:1.0", &BASE, 0);
    let derived = InterfaceNumbers::new("IDL:Demux/Derived:1.0", &DERIVED, 2);
    assert_eq!(numbers, [OperationNumbers { interfaces: vec![base, derived] }]);

    // References with wrong numbers: the number determines the operation, and the servant sees the name of
    // the executed one.
    let client = builder().build().await.unwrap();
    let lie = |first| vec![InterfaceNumbers::new("IDL:Demux/Base:1.0", &BASE, first)];
    let plain = advertised_only(&object, lie(1));
    let object: DerivedRef = client.resolve(&plain).await.unwrap();
    assert_eq!(object.first().await.unwrap(), 2, "number 1 is the attribute");
    let error = client.resolve::<DerivedRef>(&advertised_only(&object, lie(3))).await.unwrap().first().await;
    assert_eq!(error.unwrap_err().kind, SystemExceptionKind::BadOperation, "there is no number 3");
    let wild = advertised_only(&object, lie(u32::MAX));
    let wild: DerivedRef = client.resolve(&wild).await.unwrap();
    assert_eq!(wild.first().await.unwrap_err().kind, SystemExceptionKind::BadOperation);
    assert_eq!(wild.value().await.unwrap(), 2, "a number beyond all numbers is none: the name is written");
}

/// Returns the reference with these numbers in place of its server's.
fn advertised_only(reference: &DerivedRef, interfaces: Vec<InterfaceNumbers>) -> String {
    let ior: Ior = reference.to_string().parse().unwrap();
    let profiles: Vec<_> = ior
        .iiop_profiles()
        .map(|mut profile| {
            profile.components.retain(|component| component.as_zorb_operations().is_none());
            profile
        })
        .collect();
    let bare = Ior::from_profiles(ior.type_id, &profiles).unwrap();
    advertised(&bare, interfaces)
}
