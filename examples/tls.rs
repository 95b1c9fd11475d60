//! TLS on both sides: the server requires certificates and knows its callers by name. Server and client run
//! in one process, with the files given as arguments. openssl creates files to try it with:
//!
//! ```text
//! openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=demo-ca -keyout ca.key -out ca.pem
//! openssl req -newkey rsa:2048 -nodes -subj /CN=demo -keyout demo.key -out demo.csr
//! printf 'subjectAltName=IP:127.0.0.1' > demo.ext
//! openssl x509 -req -in demo.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 \
//!     -extfile demo.ext -out demo.pem
//! cargo run --features tls --example tls -- ca.pem demo.pem demo.key
//! ```

use zorb::prelude::*;
use zorb::tls::{ClientCertificates, Identity, OutgoingTls, Tls, Trust};

zorb::idl! {
    module Safe {
        interface Door {
            string open();
        };
    };
}

use safe::{DoorRef, DoorServant};

struct Door;

impl DoorServant for Door {
    async fn open(&self) -> Result<String, SystemException> {
        let request = zorb::request();
        let caller = request.tls().and_then(|session| session.subject());
        Ok(format!("open for {}", caller.unwrap_or("nobody")))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(ca), Some(certificate), Some(key)) = (args.next(), args.next(), args.next()) else {
        return Err("give three files: those of the CA, the certificate and its key".into());
    };
    let tls = Tls::builder()
        .identity(Identity::files(certificate, key))
        .trust(Trust::file(ca))
        .client_certificates(ClientCertificates::Required)
        .outgoing(OutgoingTls::Required)
        .build()?;

    let server = Orb::builder().tls(tls.clone()).listen("ssliop://127.0.0.1:0").build().await?;
    let door: DoorRef = server.activate(Door)?;
    println!("{door}");

    // Another ORB, as it would be in another process.
    let client = Orb::builder().tls(tls.clone()).build().await?;
    let door: DoorRef = client.resolve(&door.to_string()).await?;
    println!("{}", door.open().await?);

    // After the files have been replaced, new connections use them; open connections continue.
    tls.reload()?;
    println!("{}", door.open().await?);
    Ok(())
}
