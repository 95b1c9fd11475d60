//! The quick start: an interface in IDL, a servant, a reference, calls over TCP, an exception and a deadline.
//!
//! ```text
//! cargo run --example quickstart
//! ```
#![allow(clippy::unwrap_used, reason = "no servant panics while it holds the lock")]

use zorb::prelude::*;

zorb::idl! {
    module Bank {
        /// What withdrawing too much brings.
        exception InsufficientFunds { double balance; };
        interface Account {
            readonly attribute double balance;
            void deposit(in double amount);
            void withdraw(in double amount) raises (InsufficientFunds);
        };
    };
}

#[derive(Default)]
struct MyAccount {
    balance: std::sync::Mutex<f64>,
}

impl bank::AccountServant for MyAccount {
    async fn balance(&self) -> Result<f64, SystemException> {
        Ok(*self.balance.lock().unwrap())
    }

    async fn deposit(&self, amount: f64) -> Result<(), SystemException> {
        *self.balance.lock().unwrap() += amount;
        Ok(())
    }

    async fn withdraw(&self, amount: f64) -> Result<(), bank::account::WithdrawError> {
        let mut balance = self.balance.lock().unwrap();
        if *balance < amount {
            return Err(bank::InsufficientFunds { balance: *balance }.into());
        }
        *balance -= amount;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    // The reference's type determines the interface of the servant.
    let account: bank::AccountRef = server.activate_named("Account", MyAccount::default())?;
    println!("{account}");

    // A client only needs the text; IOR:, corbaloc:, corbaname: and file: are supported.
    let client = Orb::builder().build().await?;
    let account: bank::AccountRef = client.resolve(&account.to_string()).await?;
    account.deposit(10.0).await?;
    match account.withdraw(99.0).await {
        Err(bank::account::WithdrawError::InsufficientFunds(e)) => println!("only {}", e.balance),
        other => other?,
    }

    // A deadline for the calls through this reference.
    let balance = account.with_timeout(Duration::from_millis(50)).balance().await?;
    println!("balance {balance}");

    server.shutdown().await; // drains, then closes
    Ok(())
}
