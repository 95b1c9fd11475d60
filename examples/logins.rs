//! Authentication and authorization: a server with user logins and access rules, and a client that logs in,
//! both in this process.
//!
//! ```text
//! cargo run --features csi --example logins
//! ```

use zorb::csi::{Credentials, Logins, Rules, Users};
use zorb::prelude::*;

zorb::idl! {
    module Guarded {
        interface Vault {
            string look();
            string take();
        };
    };
}

use guarded::{VaultRef, VaultServant};

struct Vault;

impl VaultServant for Vault {
    async fn look(&self) -> Result<String, SystemException> {
        let who = zorb::request().principal();
        Ok(format!("{} looks", who.as_ref().map_or("nobody", |who| who.name())))
    }
    async fn take(&self) -> Result<String, SystemException> {
        Ok("taken".to_owned())
    }
}

/// All logged-in users may look, and ann may do the rest. A program has this in a file: `Rules::file`.
const RULES: &str = r#"
default = "deny"

[[rule]]
decision = "allow"
users = "*"
operations = ["look", "_is_a"]

[[rule]]
decision = "allow"
users = "ann"
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Likewise `Users::file`: such lines, one for each user.
    let users = format!(
        "{}\n{}\n",
        Users::hash_entry("ann", "open sesame")?,
        Users::hash_entry("bob", "knock knock")?
    );

    // On an untrusted network: `ssliop://` with the feature `tls`, and without these two permissions.
    let logins = Logins::new(Users::text(&users)?).realm("vault").allow_plaintext_passwords();
    let server = Orb::builder().listen("iiop://127.0.0.1:0").logins(logins).authorizer(Rules::text(RULES)?);
    let server = server.build().await?;
    let vault: VaultRef = server.activate(Vault)?;

    let ann = Credentials::login("ann", "open sesame").allow_plaintext_passwords();
    let bob = Credentials::login("bob", "knock knock").allow_plaintext_passwords();
    let client = Orb::builder().credentials(ann).build().await?;
    let vault: VaultRef = client.resolve(&vault.to_string()).await?;
    println!("{}", vault.look().await?);
    println!("{}", vault.take().await?);

    // The same object over the same connection, as another user.
    let vault = vault.with_credentials(&bob);
    println!("{}", vault.look().await?);
    if let Err(refused) = vault.take().await {
        println!("{refused}");
    }
    println!("{:?}", server.csi_stats());
    Ok(())
}
