//! A CORBA Object Request Broker for async Rust: typed stubs from IDL, wire-compatible with every IIOP ORB, and as
//! fast as the socket under it.
//!
//! ```
//! use zorb::prelude::*;
//!
//! zorb::idl! {
//!     module Bank {
//!         exception InsufficientFunds { double balance; };
//!         interface Account {
//!             readonly attribute double balance;
//!             void deposit(in double amount);
//!             void withdraw(in double amount) raises (InsufficientFunds);
//!         };
//!     };
//! }
//!
//! #[derive(Default)]
//! struct MyAccount { balance: std::sync::Mutex<f64> }
//!
//! impl bank::AccountServant for MyAccount {
//!     async fn balance(&self) -> Result<f64, SystemException> { Ok(*self.balance.lock().unwrap()) }
//!     async fn deposit(&self, amount: f64) -> Result<(), SystemException> { *self.balance.lock().unwrap() += amount; Ok(()) }
//!     async fn withdraw(&self, amount: f64) -> Result<(), bank::account::WithdrawError> {
//!         let mut b = self.balance.lock().unwrap();
//!         if *b < amount { return Err(bank::InsufficientFunds { balance: *b }.into()); }
//!         *b -= amount;
//!         Ok(())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
//!     let account: bank::AccountRef = server.activate_named("Account", MyAccount::default())?; // which interface: the type says
//!     println!("{account}");                                                      // IOR:0100...
//!
//!     let client = Orb::builder().build().await?;
//!     let account: bank::AccountRef = client.resolve(&account.to_string()).await?; // IOR:, corbaloc:, corbaname:, file:
//!     account.deposit(10.0).await?;
//!     match account.withdraw(99.0).await {
//!         Err(bank::account::WithdrawError::InsufficientFunds(e)) => println!("only {}", e.balance),
//!         other => other?,
//!     }
//!     account.with_timeout(Duration::from_millis(50)).balance().await?;           // deadline for this call
//!     server.shutdown().await;                                                    // drains, then closes
//!     Ok(())
//! }
//! ```
//!
//! # Cancel safety
//! Every call may be dropped at any await point: a CancelRequest goes out if the request did, the connection stays
//! good, and nothing leaks. A oneway is queued whole or not at all.
//!
//! # Features
//! None yet: everything here needs only tokio.
#![forbid(unsafe_code)]

pub use idl_macros::idl;
pub use orb_runtime::{
    ActivateError, Activation, ArgsError, BuildError, CompletionStatus, InvalidName, Limits, MinorCode,
    NarrowError, ObjectRef, Orb, OrbBuilder, Peer, PoolStats, Reference, ReplyInfo, Request, ResolveError,
    ResultExt, Retry, Servant, ShutdownReport, SyncScope, SystemException, SystemExceptionKind, blocking, minor,
    request, testing, try_request,
};

/// Types of the IDL mapping that Rust itself does not have.
pub use orb_runtime::types::{BoundError, Bounded, Bytes, Char, FixedSeq, LongDouble, Seq, WChar, WString};

/// What the wire carries: references, service contexts, versions.
pub mod wire {
    pub use orb_runtime::wire::*;
}

/// What almost every program needs: `use zorb::prelude::*;`.
pub mod prelude {
    pub use std::time::Duration;

    pub use crate::{
        Bounded, Bytes, Char, CompletionStatus, LongDouble, ObjectRef, Orb, Reference, ResultExt, Seq,
        SystemException, SystemExceptionKind, WChar, WString,
    };
}

/// What generated code names. Nothing here is for users.
#[doc(hidden)]
pub mod __private {
    /// The items that the generated code of this version names.
    pub mod v1 {
        pub use orb_runtime::private::*;
    }
}
