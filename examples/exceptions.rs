//! Exceptions: those of an operation's raises clause with their members, system exceptions, application
//! errors converted to them, deadlines, panics, wrong references. Each is matched by the caller and printed
//! with `Display`.
//!
//! ```text
//! cargo run --example exceptions
//! ```
#![allow(clippy::panic, reason = "one servant shows what a panic costs")]

use zorb::prelude::*;

zorb::idl! {
    module Shop {
        /// Less is there than asked for.
        exception OutOfStock { string item; long left; };
        exception PriceChanged { double was; double now; };
        exception Closed {};

        interface Till {
            /// The sum to pay.
            double buy(in string item, in long count, in double price)
                raises (OutOfStock, PriceChanged, Closed);
            /// Reads a file that is not there.
            string audit(in string path);
            void nap(in unsigned long milliseconds);
            void stumble();
        };

        interface Door { void open(); };
    };
}

use shop::{Closed, DoorRef, OutOfStock, PriceChanged, TillRef, TillServant, till::BuyError};

struct Counter;

impl TillServant for Counter {
    async fn buy(&self, item: &str, count: i32, price: f64) -> Result<f64, BuyError> {
        match item {
            // Each exception of the clause converts by `into`, and so does a system exception.
            "bread" if count > 3 => Err(OutOfStock { item: item.to_owned(), left: 3 }.into()),
            "bread" if price != 2.5 => Err(PriceChanged { was: price, now: 2.5 }.into()),
            "bread" => Ok(f64::from(count) * price),
            "night" => Err(Closed {}.into()),
            _ => {
                Err(format!("{item} is not sold here")).or_system_exception(SystemExceptionKind::BadParam)?
            }
        }
    }

    async fn audit(&self, path: &str) -> Result<String, SystemException> {
        // `.or_system_exception(kind)` turns any error into a system exception with that error as its source.
        // The source remains local: a peer receives kind, minor code and completion status.
        match std::fs::read_to_string(path).or_system_exception(SystemExceptionKind::PersistStore) {
            Err(error) => {
                println!("  servant: {error}");
                Err(error)
            }
            text => text,
        }
    }

    async fn nap(&self, milliseconds: u32) -> Result<(), SystemException> {
        let request = zorb::request();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(milliseconds.into())) => Ok(()),
            // A servant that does not check runs to its end, although its caller's deadline has passed.
            () = request.cancelled() => {
                println!("  servant: {} waits no more", request.peer());
                Ok(())
            }
        }
    }

    async fn stumble(&self) -> Result<(), SystemException> {
        panic!("over my own feet")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The panic below is intended, so its backtrace is suppressed.
    std::panic::set_hook(Box::new(|panic| {
        println!("  servant: panic {:?}", panic.payload().downcast_ref::<&str>());
    }));

    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let here: TillRef = server.activate_named("Till", Counter)?;
    let client = Orb::builder().build().await?;
    let till: TillRef = client.resolve(&here.to_string()).await?;

    println!("exceptions of the raises clause:");
    for (item, count, price) in
        [("bread", 2, 2.5), ("bread", 9, 2.5), ("bread", 1, 2.0), ("night", 1, 1.0), ("tar", 1, 1.0)]
    {
        match till.buy(item, count, price).await {
            Ok(sum) => println!("  {sum} for {count} {item}"),
            Err(BuyError::OutOfStock(e)) => println!("  only {} of {}: {e}", e.left, e.item),
            Err(BuyError::PriceChanged(e)) => println!("  {} instead of {}: {e}", e.now, e.was),
            Err(BuyError::Closed(e)) => println!("  {e}"),
            Err(BuyError::System(e)) => println!("  {e}"),
        }
    }

    println!("an error of the program as a system exception:");
    show(till.audit("/no/such/file").await);

    println!("a deadline, for one call and for a whole reference:");
    show(till.with_timeout(Duration::from_millis(20)).nap(10_000).await);
    let hasty = till.with_timeout(Duration::from_millis(20));
    show(hasty.nap(10_000).await);
    show(hasty.nap(0).await);

    println!("a panic costs one request:");
    show(till.stumble().await);
    show(till.nap(0).await);

    println!("wrong references:");
    let address = server.endpoints().join(",");
    show(client.resolve::<DoorRef>(&till.to_string()).await);
    show(client.resolve::<TillRef>("IOR:000x").await);
    show(client.resolve::<TillRef>("corbaloc:iiop:1.2@localhost:x/Till").await);
    show(client.resolve::<TillRef>("file:///no/such/file").await);
    let nobody: TillRef = client.resolve_unchecked(&format!("corbaloc::{address}/Nobody")).await?;
    show(nobody.nap(0).await);
    let door: DoorRef = client.resolve_unchecked(&till.to_string()).await?;
    show(door.open().await);

    println!("a server that is gone:");
    server.shutdown().await;
    show(till.nap(0).await);
    Ok(())
}

/// Prints the result of a call: an error's `Display` is one line that includes its causes.
fn show<T: std::fmt::Debug>(result: Result<T, impl std::fmt::Display>) {
    match result {
        Ok(value) => println!("  {value:?}"),
        Err(error) => println!("  {error}"),
    }
}
