// A method that is not `async` is told so; its parameters are named as users name them.
mod generated {
    idl_macros::idl! {
        module Bank {
            valuetype Note { public string text; };
            interface Account {
                void deposit(in double amount);
                void remark(in Note what);
                void close();
            };
        };
    }
}

use generated::bank;
use zorb::SystemException;

struct Account;

impl bank::AccountServant for Account {
    fn deposit(&self, amount: f64) -> Result<(), SystemException> {
        let _ = amount;
        Ok(())
    }

    async fn remark(&self, what: bank::Note) -> Result<(), SystemException> {
        let _ = what;
        Ok(())
    }

    async fn close(&self) {}
}

struct Shared;

impl bank::AccountServant for Shared {
    async fn deposit(&self, amount: f64) -> Result<(), SystemException> {
        let held = std::rc::Rc::new(amount);
        std::future::ready(()).await;
        drop(held);
        Ok(())
    }

    // What an `async fn` stands for may be written out.
    fn remark(
        &self,
        _: Option<zorb::Value<bank::Note>>,
    ) -> impl Future<Output = Result<(), SystemException>> + Send {
        std::future::ready(Ok(()))
    }

    async fn close(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn main() {}
