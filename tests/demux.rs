//! Operations by name and by number.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod transport;

use giop_codec::ior::{InterfaceNumbers, OperationNumbers};
use transport::builder;
use zorb::prelude::*;
use zorb::wire::{Ior, TaggedComponent};

zorb::idl! {
    module Demux {
        interface Base {
            long first();
            readonly attribute long value;
        };
        interface Derived : Base {
            string third(in string text);
        };
    };
}

use demux::{BaseServant, DerivedRef, DerivedServant};

struct Servant;

impl BaseServant for Servant {
    async fn first(&self) -> Result<i32, SystemException> {
        Ok(1)
    }

    async fn value(&self) -> Result<i32, SystemException> {
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

/// A reference that says that its server takes numbers, of these interfaces.
fn advertised(reference: &DerivedRef, interfaces: Vec<InterfaceNumbers>) -> String {
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

    // This server takes no numbers: it knows no such operations.
    let base = InterfaceNumbers::new("IDL:Demux/Base:1.0", &BASE, 0);
    let derived = InterfaceNumbers::new("IDL:Demux/Derived:1.0", &DERIVED, 2);
    let by_number: DerivedRef = client.resolve(&advertised(&object, vec![base, derived])).await.unwrap();
    for error in [
        by_number.first().await.unwrap_err(),
        by_number.value().await.unwrap_err(),
        by_number.third("x").await.unwrap_err(),
        // The header is kept: the same again.
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
