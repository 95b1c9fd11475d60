//! Objects that need no memory: a million accounts by one servant, whose references remain valid after a
//! restart, and auditors that are created on demand.
//!
//! ```text
//! cargo run --example adapters
//! ```

use zorb::poa::{Refusal, ServantActivator};
use zorb::prelude::*;
use zorb::{ObjectId, Poa, Servant};

zorb::idl! {
    module Books {
        interface Account {
            readonly attribute string owner;
        };
        interface Auditor {
            string report();
        };
    };
}

use books::{AccountRef, AccountServant, AuditorRef, AuditorServant};

/// Serves every account: the request contains the id of the called one.
struct Accounts;

impl AccountServant for Accounts {
    async fn owner(&self) -> Result<String, SystemException> {
        let request = zorb::request();
        // A real servant queries its database here.
        Ok(format!("the owner of {}", ObjectId::from(request.object_id())))
    }
}

struct Auditor(String);

impl AuditorServant for Auditor {
    async fn report(&self) -> Result<String, SystemException> {
        Ok(format!("{} found nothing", self.0))
    }
}

/// Creates auditors on demand.
struct Agency;

impl ServantActivator for Agency {
    async fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Servant, Refusal> {
        println!("{id} is hired");
        Ok(Servant::of::<AuditorRef, _>(Auditor(id.to_string())))
    }

    async fn etherealize(&self, id: &ObjectId, _: &Poa, _: Servant, _: bool, _: bool) {
        println!("{id} goes");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // With a fixed port, it serves the same references after a restart.
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let root = server.root_poa();
    let accounts = Servant::of::<AccountRef, _>(Accounts);
    let accounts = root.child("accounts").user_ids().persistent().default_servant(accounts).without_map();
    let accounts = accounts.create()?;
    let auditors = root.child("auditors").user_ids().servant_activator(Agency).create()?;

    let client = Orb::builder().build().await?;
    for id in ["account/7", "account/999999"] {
        let here: AccountRef = accounts.create_reference_with_id(id)?;
        let account: AccountRef = client.resolve(&here.to_string()).await?;
        println!("{id} belongs to {}", account.owner().await?);
    }
    let here: AuditorRef = auditors.create_reference_with_id("Ms Hill")?;
    let auditor: AuditorRef = client.resolve(&here.to_string()).await?;
    println!("{}", auditor.report().await?);

    // New requests are held, and those in progress complete.
    let manager = root.manager();
    manager.hold_requests()?.completed().await?;
    manager.activate()?;
    println!("{}", auditor.report().await?);

    // Ends the auditor as well.
    server.shutdown().await;
    Ok(())
}
