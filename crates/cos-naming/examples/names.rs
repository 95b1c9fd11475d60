//! A naming service in a terminal, with its names in a file.
//!
//! ```text
//! cargo run --release -p cos-naming --example names -- names.redb
//! cargo run --release -p cos-naming --example names -- names.redb -ORBListenEndpoints iiop://127.0.0.1:2810
//! cargo run --release -p cos-naming --example names -- --repair names.redb
//! cargo run --release -p cos-naming --example names -- \
//!     --import /var/lib/omniorb/omninames-host.dat names.redb
//! ```

use std::error::Error;
use std::sync::Arc;

use cos_naming::Server;
use cos_naming::import::import_omninames;
use cos_naming::store::DiskStore;
use zorb::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listens = std::env::args().any(|argument| argument.starts_with("-ORBListen"));
    let (builder, rest) = Orb::from_args(std::env::args().skip(1))?;
    match rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--repair", file] => {
            let repaired = DiskStore::repair(file)?;
            println!("{} contexts, {} bindings", repaired.contexts, repaired.bindings);
            println!("the damaged file is {}", repaired.damaged_file.display());
        }
        ["--import", names, file] => {
            let store = Arc::new(DiskStore::open(file)?);
            println!("{}", import_omninames(&store, &std::fs::read(names)?).await?);
        }
        [file] => {
            let builder = if listens { builder } else { builder.listen("iiop://127.0.0.1:2809") };
            let store = DiskStore::open(file)?;
            let orb = builder.start_paused().build().await?;
            let names = Server::builder(store).serve(&orb)?;
            for endpoint in orb.endpoints() {
                println!("-ORBInitRef NameService=corbaloc:iiop:1.2@{endpoint}/{}", cos_naming::DEFAULT_KEY);
            }
            println!("{}", names.root());
            orb.run_until(zorb::signal::shutdown()).await?;
        }
        _ => return Err("which file has the names?".into()),
    }
    Ok(())
}
