//! Callbacks: a client passes a reference to its own servant, and the server calls it back, later and during
//! a call.
//!
//! The client's ORB listens as well (on a free port of 127.0.0.1), because a callback comes over a connection
//! of its own.
//!
//! ```text
//! cargo run --example callbacks
//! ```
#![allow(clippy::unwrap_used, reason = "no servant panics while it holds the lock")]

use std::sync::Mutex;

use tokio::sync::mpsc;
use zorb::prelude::*;

zorb::idl! {
    module Market {
        exception Declined { string reason; };

        /// What a client of the exchange implements.
        interface Trader {
            readonly attribute string name;
            oneway void quoted(in string symbol, in double price);
            boolean agree(in string symbol, in double price);
        };

        interface Exchange {
            /// From now on the trader hears of every quote.
            void watch(in Trader trader);
            /// Tells the traders, and how many they are.
            unsigned long quote(in string symbol, in double price);
            /// Asks the buyer back before it sells: the price may have changed.
            double buy(in string symbol, in Trader buyer) raises (Declined);
        };
    };
}

use market::{Declined, ExchangeRef, ExchangeServant, TraderRef, TraderServant, exchange::BuyError};

/// The server's object. It keeps references to its clients' objects like any others.
#[derive(Default)]
struct Floor {
    traders: Mutex<Vec<TraderRef>>,
    price: Mutex<f64>,
}

impl ExchangeServant for Floor {
    async fn watch(&self, trader: Option<TraderRef>) -> Result<(), SystemException> {
        // A reference may be nil in CORBA; passing nil results in BAD_PARAM.
        let trader = trader.ok_or("nil is no trader").or_system_exception(SystemExceptionKind::BadParam)?;
        self.traders.lock().unwrap().push(trader);
        Ok(())
    }

    async fn quote(&self, symbol: &str, price: f64) -> Result<u32, SystemException> {
        *self.price.lock().unwrap() = price;
        let mut told = 0;
        // The lock is not held during calls to other objects.
        let traders = self.traders.lock().unwrap().clone();
        for trader in traders {
            match trader.quoted(symbol, price).await {
                Ok(()) => told += 1,
                Err(error) => println!("exchange: a trader is gone: {error}"),
            }
        }
        Ok(told)
    }

    async fn buy(&self, symbol: &str, buyer: Option<TraderRef>) -> Result<f64, BuyError> {
        let buyer = buyer.ok_or("nil is no buyer").or_system_exception(SystemExceptionKind::BadParam)?;
        let price = *self.price.lock().unwrap();
        // The caller still awaits this operation while its own object answers. Calls made here end with the
        // request at the latest.
        let name = buyer.name().await?;
        if !buyer.agree(symbol, price).await? {
            return Err(Declined { reason: format!("{name} finds {price} too much") }.into());
        }
        println!("exchange: sold {symbol} to {name} for {price}");
        Ok(price)
    }
}

/// The client's object.
struct Careful {
    limit: f64,
    quotes: mpsc::UnboundedSender<(String, f64)>,
}

impl TraderServant for Careful {
    async fn name(&self) -> Result<String, SystemException> {
        Ok("Ada".to_owned())
    }

    async fn quoted(&self, symbol: &str, price: f64) -> Result<(), SystemException> {
        // The receiver may have been dropped; the exchange need not know.
        let _ = self.quotes.send((symbol.to_owned(), price));
        Ok(())
    }

    async fn agree(&self, symbol: &str, price: f64) -> Result<bool, SystemException> {
        let caller = zorb::request().peer().to_string();
        println!("trader: {caller} asks whether I take {symbol} for {price}");
        Ok(price <= self.limit)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let exchange: ExchangeRef = server.activate_named("Exchange", Floor::default())?;

    // Without `listen`, the reference of the client's object could not be reached.
    let client = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let exchange: ExchangeRef = client.resolve(&exchange.to_string()).await?;
    let (quotes, mut heard) = mpsc::unbounded_channel();
    let me: TraderRef = client.activate(Careful { limit: 100.0, quotes })?;

    exchange.watch(&me).await?;
    println!("client: {} trader told", exchange.quote("ZORB", 99.5).await?);
    // The sender of a oneway does not wait for it: it may arrive at any time.
    if let Some((symbol, price)) = heard.recv().await {
        println!("client: heard that {symbol} costs {price}");
    }
    println!("client: bought for {}", exchange.buy("ZORB", &me).await?);

    exchange.quote("ZORB", 120.0).await?;
    match exchange.buy("ZORB", &me).await {
        Err(BuyError::Declined(declined)) => println!("client: {declined}"),
        other => println!("client: unexpected: {other:?}"),
    }

    // Nil is a value of every reference type.
    match exchange.watch(None).await {
        Err(error) => println!("client: {error}"),
        Ok(()) => println!("client: unexpected: the exchange watches nobody"),
    }

    client.shutdown().await;
    server.shutdown().await;
    Ok(())
}
