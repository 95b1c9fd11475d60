// A type that is no servant of the interface is told which trait it has to implement.
#[path = "../mock/mod.rs"]
mod mock;

mod generated {
    idl_macros::idl! {
        crate = crate::mock;
        module Bank {
            interface Account { void deposit(in double amount); };
            interface Savings : Account { double interest(); };
        };
    }
}

use generated::bank;
use mock::__private::v1::SystemException;

struct Nothing;

struct Half;

impl bank::SavingsServant for Half {
    async fn interest(&self) -> Result<f64, SystemException> {
        Ok(0.0)
    }
}

struct Account;

impl bank::AccountServant for Account {
    async fn deposit(&self, amount: f64) -> Result<(), SystemException> {
        let _ = amount;
        Ok(())
    }
}

fn main() {
    let _: bank::AccountRef = mock::activate(Nothing);
    let _: bank::SavingsRef = mock::activate(Account);
}
