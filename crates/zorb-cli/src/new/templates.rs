//! The texts of a new project.

use idl_compiler::emit::ServantNames;

use super::object_name;

/// The properties of the project.
pub(super) struct Project<'a> {
    /// The name of the package.
    pub(super) name: &'a str,
    /// The IDL, as a path in the project.
    pub(super) idl: &'a str,
    /// The value of the dependency on zorb.
    pub(super) zorb: &'a str,
    pub(super) servants: &'a [ServantNames],
}

impl Project<'_> {
    pub(super) fn manifest(&self) -> String {
        format!(
            r#"[package]
name = "{name}"
version = "0.1.0"
edition = "2024"

[dependencies]
zorb = {zorb}
tokio = {{ version = "1", features = ["macros", "rt-multi-thread"] }}
"#,
            name = self.name,
            zorb = self.zorb,
        )
    }

    pub(super) fn library(&self) -> String {
        format!(
            r#"//! What server and client share.

/// The Rust of `{idl}`.
pub mod idl {{
    zorb::idl!("{idl}", include = ["idl"]);
}}

pub mod servants;
"#,
            idl = self.idl,
        )
    }

    pub(super) fn server(&self) -> String {
        let mut text = format!(
            r#"//! The server: `cargo run --bin server`. Ctrl-C and SIGTERM end it after the calls in progress.

use {library}::{{idl, servants}};
use zorb::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    // Requests are held until `run_until`: clients that come early wait for the objects.
    let orb = Orb::builder().listen("iiop://127.0.0.1:2900").start_paused().build().await?;
"#,
            library = self.library_name(),
        );
        for servant in self.objects() {
            let (object, reference) = (object_name(servant), inside(&servant.reference));
            text.push_str(&format!(
                "    let _: {reference} = orb.activate_named(\"{object}\", servants::{servant})?;\n    println!(\"{interface}: corbaloc::127.0.0.1:2900/{object}\");\n",
                servant = servant.servant,
                interface = servant.interface,
            ));
        }
        text.push_str(
            r#"    orb.run_until(zorb::signal::shutdown()).await?;
    Ok(())
}
"#,
        );
        text
    }

    pub(super) fn client(&self) -> String {
        let mut text = format!(
            r#"//! A client: `cargo run --bin client` while the server runs.

use {library}::idl;
use zorb::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let orb = Orb::builder().timeout(Duration::from_secs(5)).build().await?;
"#,
            library = self.library_name(),
        );
        for servant in self.objects() {
            let (object, reference) = (object_name(servant), inside(&servant.reference));
            text.push_str(&format!(
                "    let object: {reference} = orb.resolve(\"corbaloc::127.0.0.1:2900/{object}\").await?;\n    // Its operations are methods of `object`.\n    println!(\"{interface}: {{}}\", object.is_a(\"{id}\").await?);\n",
                interface = servant.interface,
                id = servant.repository_id.escape_default(),
            ));
        }
        text.push_str("    orb.shutdown().await;\n    Ok(())\n}\n");
        text
    }

    pub(super) fn readme(&self) -> String {
        format!(
            r#"# {name}

A CORBA server and client in Rust with [zorb](https://crates.io/crates/zorb), made by `zorb new`.

| | |
|---|---|
| `{idl}` | the interface |
| `src/lib.rs` | the Rust of the interface, by `zorb::idl!` |
| `src/servants.rs` | what the server does: each method answers `NO_IMPLEMENT` until it is written |
| `src/bin/server.rs` | the server, which listens on 127.0.0.1:2900 |
| `src/bin/client.rs` | a client |

```console
$ cargo run --bin server
```

```console
$ cargo run --bin client
$ zorb ping corbaloc::127.0.0.1:2900/{object}
```

`zorb idl skeleton {idl} --module crate::idl` prints the servants anew when the interface changes. `zorb idl breaking` says which changes of
the interface old clients do not understand.
"#,
            name = self.name,
            idl = self.idl,
            object = self.objects().next().map_or("", object_name),
        )
    }

    /// Returns the servants of objects that clients can reach.
    fn objects(&self) -> impl Iterator<Item = &ServantNames> {
        self.servants.iter().filter(|servant| !servant.is_local)
    }

    /// Returns the name of the package in Rust.
    fn library_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// Returns a path below `crate::idl` as the binaries name it.
fn inside(path: &str) -> &str {
    path.strip_prefix("crate::").unwrap_or(path)
}
