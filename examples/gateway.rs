//! A gateway to a server whose interfaces it does not know: requests and replies are forwarded as bytes. A
//! servant locator finds the target by the object id, and prints a line for each request.
//!
//! ```text
//! cargo run --example gateway
//! ```

use std::collections::HashMap;

use zorb::dynamic::Bridge;
use zorb::poa::{Refusal, ServantLocator};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Servant};

zorb::idl! {
    module Inside {
        exception Closed { string why; };
        interface Counter {
            unsigned long long count(in string text) raises (Closed);
        };
    };
}

use inside::{Closed, CounterRef, CounterServant, counter::CountError};

struct Counter;

impl CounterServant for Counter {
    async fn count(&self, text: &str) -> Result<u64, CountError> {
        if text.is_empty() {
            return Err(Closed { why: "there is nothing to count".to_owned() }.into());
        }
        Ok(text.chars().count() as u64)
    }
}

/// The targets of the gateway, by the ids of its own objects.
struct Inward(HashMap<String, Servant>);

impl ServantLocator for Inward {
    type Cookie = ();

    async fn preinvoke(&self, id: &ObjectId, _: &Poa, operation: &str) -> Result<(Servant, ()), Refusal> {
        println!("{operation} of {id} goes through");
        let known = self.0.get(&id.to_string()).cloned();
        let bridge = known
            .ok_or("nothing is behind that id")
            .or_system_exception(SystemExceptionKind::ObjectNotExist)?;
        Ok((bridge, ()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let inside: CounterRef = server.activate(Counter)?;

    // The gateway only needs the reference as a text.
    let gateway = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let behind: ObjectRef = gateway.resolve_unchecked(&inside.to_string()).await?;
    let locator = Inward(HashMap::from([("counter".to_owned(), Bridge::to(&behind).servant())]));
    let poa = gateway.root_poa().child("inward").user_ids().servant_locator(locator).create()?;
    let counter: CounterRef = poa.create_reference_with_id("counter")?;

    let client = Orb::builder().build().await?;
    let counter: CounterRef = client.resolve_unchecked(&counter.to_string()).await?;
    println!("{} characters", counter.count("through and through").await?);
    if let Err(CountError::Closed(closed)) = counter.count("").await {
        println!("refused: {}", closed.why);
    }
    Ok(())
}
