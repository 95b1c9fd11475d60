// A type that is no servant of the interface is told which trait it has to implement.
mod generated {
    idl_macros::idl! {
        module Bank {
            interface Account { void deposit(in double amount); };
            interface Savings : Account { double interest(); };
        };
    }
}

use generated::bank;
use zorb::SystemException;

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

fn activate(orb: &zorb::Orb) -> Result<(), zorb::ActivateError> {
    let _: bank::AccountRef = orb.activate(Nothing)?;
    let _: bank::SavingsRef = orb.activate(Account)?;
    Ok(())
}

fn main() {}
