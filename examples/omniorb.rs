//! Interoperation with omniORB: a client of any server with the interface `Ttcp` of
//! `tests/interop/idl/bench.idl`, and a server for omniORB's clients. Nothing here is specific to omniORB:
//! the same programs interoperate with JacORB, TAO and zorb.
//!
//! ```text
//! cargo run --release --example omniorb                                  # with itself
//! cargo run --release --example omniorb -- server [PORT] [IOR-FILE]      # until Ctrl-C
//! cargo run --release --example omniorb -- client IOR:...|corbaloc:...|file:///PATH
//! ```
//!
//! With omniORB on the other end (`scripts/build-peers.sh` builds its programs into `target/interop`):
//!
//! ```text
//! target/interop/omniorb/bench-server --ior /tmp/ttcp.ior --port 47002
//! cargo run --release --example omniorb -- client file:///tmp/ttcp.ior
//! cargo run --release --example omniorb -- client corbaloc:iiop:1.2@127.0.0.1:47002/ttcp
//!
//! cargo run --release --example omniorb -- server 47003
//! target/interop/omniorb/bench-client ping --ior corbaloc:iiop:1.2@127.0.0.1:47003
//! target/interop/omniorb/bench-client ttcp --type struct --size 65536 \
//!     --ior corbaloc:iiop:1.0@127.0.0.1:47003
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zorb::prelude::*;

/// The code that `idl!` generates for the contract.
mod bench {
    zorb::idl!("tests/interop/idl/bench.idl");
}

use bench::{BinStruct, TtcpRef, TtcpServant};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: omniorb client IOR:...|corbaloc:...|file:///PATH   calls a server that is there
       omniorb server [PORT] [IOR-FILE]                      serves until Ctrl-C
       omniorb                                               calls itself";

/// Counts received data, like omniORB's bench server.
#[derive(Default)]
struct Counter {
    octets: AtomicU64,
}

impl Counter {
    fn count(&self, octets: usize) -> Result<(), SystemException> {
        self.octets.fetch_add(octets as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl TtcpServant for Counter {
    async fn send_short_seq(&self, s: Seq<i16>) -> Result<(), SystemException> {
        self.count(s.len() * 2)
    }

    async fn send_long_seq(&self, s: Seq<i32>) -> Result<(), SystemException> {
        self.count(s.len() * 4)
    }

    async fn send_double_seq(&self, s: Seq<f64>) -> Result<(), SystemException> {
        self.count(s.len() * 8)
    }

    async fn send_char_seq(&self, s: Seq<Char>) -> Result<(), SystemException> {
        self.count(s.len())
    }

    async fn send_octet_seq(&self, s: Bytes) -> Result<(), SystemException> {
        self.count(s.len())
    }

    async fn send_struct_seq(&self, s: &[BinStruct]) -> Result<(), SystemException> {
        self.count(s.len() * 24)
    }

    async fn sync(&self) -> Result<u64, SystemException> {
        Ok(self.octets.swap(0, Ordering::Relaxed))
    }

    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn echo_octets(&self, s: Bytes) -> Result<Bytes, SystemException> {
        Ok(s)
    }

    async fn echo_structs(&self, s: &[BinStruct]) -> Result<Vec<BinStruct>, SystemException> {
        Ok(s.to_vec())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // `-ORBInitRef` and similar options are removed from the arguments, as with every ORB.
    let (builder, rest) = Orb::from_args(std::env::args().skip(1))?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            println!("{USAGE}\n");
            with_itself().await
        }
        ["client", reference] => {
            let orb = builder.build().await?;
            call(&orb, reference).await?;
            orb.shutdown().await;
            Ok(())
        }
        ["server", rest @ ..] if rest.len() <= 2 => {
            let port = rest.first().unwrap_or(&"0");
            let orb = builder.listen(format!("iiop://127.0.0.1:{port}")).start_paused().build().await?;
            serve(&orb, rest.get(1).copied()).await
        }
        _ => Err(USAGE.into()),
    }
}

async fn with_itself() -> Result<(), BoxError> {
    let server = Orb::builder().listen("iiop://127.0.0.1:0").build().await?;
    let ttcp: TtcpRef = server.activate_named("ttcp", Counter::default())?;
    let client = Orb::builder().build().await?;
    call(&client, &ttcp.to_string()).await?;
    // A corbaloc may request an older GIOP.
    for version in ["1.0", "1.1", "1.2"] {
        let url = format!("corbaloc:iiop:{version}@{}/ttcp", server.endpoints().join(""));
        client.resolve::<TtcpRef>(&url).await?.ping().await?;
        println!("{url} answers");
    }
    client.shutdown().await;
    server.shutdown().await;
    Ok(())
}

async fn serve(orb: &Orb, file: Option<&str>) -> Result<(), BoxError> {
    // A plain key, so that a corbaloc reaches the object without its IOR.
    let ttcp: TtcpRef = orb.activate_named("ttcp", Counter::default())?;
    println!("{ttcp}");
    for endpoint in orb.endpoints() {
        println!("corbaloc:iiop:1.2@{endpoint}/ttcp");
    }
    if let Some(path) = file {
        std::fs::write(path, ttcp.to_string())?;
    }
    let report = orb.run_until(zorb::signal::shutdown()).await?;
    println!("{} connections closed", report.connections);
    Ok(())
}

/// Calls every kind of operation that the interface has.
async fn call(orb: &Orb, reference: &str) -> Result<(), BoxError> {
    let ttcp: TtcpRef = orb.resolve(reference).await?;

    let n = 2000;
    let start = Instant::now();
    for _ in 0..n {
        ttcp.ping().await?;
    }
    println!("ping: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / f64::from(n));

    let octets: Bytes = (0..100_000u32).map(|i| i as u8).collect();
    let same = ttcp.echo_octets(octets.clone()).await? == octets;
    println!("echo of {} octets: {}", octets.len(), if same { "the same" } else { "different" });

    let structs: Vec<BinStruct> = (0..1000)
        .map(|i| BinStruct { s: i, c: Char(b'z'), l: i32::from(i) * 7, o: i as u8, d: f64::from(i) / 4.0 })
        .collect();
    let same = ttcp.echo_structs(&structs).await? == structs;
    println!("echo of {} structs: {}", structs.len(), if same { "the same" } else { "different" });

    let doubles: Seq<f64> = (0..8192).map(f64::from).collect();
    let messages = 1024;
    ttcp.sync().await?;
    let start = Instant::now();
    for _ in 0..messages {
        ttcp.send_double_seq(doubles.clone()).await?;
    }
    // A server with several threads may answer before the last oneways are counted.
    let (sent, mut received) = (messages * doubles.len() as u64 * 8, 0);
    while received < sent && start.elapsed() < Duration::from_secs(60) {
        received += ttcp.sync().await?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("doubles, 64 KiB a message: {:.1} Gbit/s, {received} of {sent} octets", {
        received as f64 * 8.0 / seconds / 1e9
    });
    Ok(())
}
