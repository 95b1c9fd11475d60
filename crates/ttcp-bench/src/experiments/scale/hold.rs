//! `ttcp hold`: runs a client while many other connections to its server are open, and measures the resources
//! of the server.
//!
//! It replaces the client of a peer, so it is started and ended like any client.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use zorb::wire::{Ior, ObjectKey};

use crate::giop;
use crate::parent_watch::ParentWatchArgs;
use crate::raw;
use crate::reference::{Address, Object};
use crate::report;
use crate::system;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Options of `ttcp hold`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// Connections to open and keep, each with a call
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub connections: u32,
    /// Server process whose memory is measured
    #[arg(long, value_name = "PID")]
    pub server: u32,
    /// Address of the server, from its READY line
    #[arg(long, value_name = "HOST:PORT|PATH|corbaloc:...")]
    pub ready: String,
    /// Common options.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
    /// Client and its arguments; the findings are added to its result
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub client: Vec<String>,
}

/// Opens the connections, runs the client, and calls over each connection once more. Prints the client's
/// result with the findings.
pub fn hold(args: &HoldArgs) -> anyhow::Result<ExitCode> {
    args.parent_watch.start()?;
    system::raise_open_file_limit();
    let mut found = BTreeMap::new();
    let memory = || system::memory_bytes(args.server);
    found.insert("memory_bytes", memory()? as f64);
    let mut held = Vec::new();
    if args.connections > 0 {
        let service = Server::of(&args.ready)?;
        let start = Instant::now();
        held.push(service.open(0)?);
        // The first connection triggers one-time initialization in a server.
        found.insert("first_memory_bytes", memory()? as f64);
        let first = start.elapsed();
        for number in 1..args.connections {
            held.push(service.open(number)?);
        }
        found.insert("open_secs", start.elapsed().as_secs_f64());
        found.insert("first_secs", first.as_secs_f64());
        found.insert("all_memory_bytes", memory()? as f64);
        found.insert("threads", system::thread_count(args.server)? as f64);
        let mut line = client(&args.client)?;
        let start = Instant::now();
        for (number, stream) in held.iter().enumerate() {
            // The number differs from the previous one, so that a stale reply is detected.
            let number = u64::MAX - number as u64;
            service.echo(stream, number).context("over an idle connection")?;
        }
        found.insert("turn_us", start.elapsed().as_secs_f64() * 1e6 / held.len() as f64);
        print_line(&mut line, found)?;
    } else {
        print_line(&mut client(&args.client)?, found)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(line: &mut Value, found: BTreeMap<&str, f64>) -> anyhow::Result<()> {
    line.as_object_mut()
        .context("the client's line is not an object")?
        .insert("beside".into(), serde_json::to_value(found)?);
    Ok(report::print_line(line)?)
}

fn client(words: &[String]) -> anyhow::Result<Value> {
    let (program, arguments) = words.split_first().context("no client")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start the client ({program})"))?;
    let mut last = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout.take(1 << 20)).lines() {
            last = Some(line?).filter(|line| !line.is_empty()).unwrap_or(last);
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "the client ended with {status}");
    serde_json::from_str(&last).with_context(|| format!("the client's last line is not a result: {last:?}"))
}

pub(super) struct Server {
    address: SocketAddr,
    key: Option<ObjectKey>,
}

impl Server {
    pub(super) fn of(ready: &str) -> anyhow::Result<Server> {
        if let Ok(address) = ready.parse() {
            return Ok(Server { address, key: None });
        }
        let Ok(address) = ready.parse::<Address>();
        let Address::File(path) = &address else { bail!("{ready} is not HOST:PORT or an IOR file") };
        let ior: Ior =
            address.url(Object::Ttcp)?.parse().with_context(|| format!("in {}", path.display()))?;
        let profile = ior.iiop_profile().context("the reference has no address")?;
        let mut addresses = (profile.host.as_str(), profile.port).to_socket_addrs()?;
        let address = addresses.next().with_context(|| format!("{} has no address", profile.host))?;
        Ok(Server { address, key: Some(profile.object_key) })
    }

    pub(super) fn open(&self, number: u32) -> anyhow::Result<TcpStream> {
        let opened = TcpStream::connect_timeout(&self.address, TIMEOUT).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            Ok(stream)
        });
        let stream = opened.map_err(|error| match error.kind() {
            ErrorKind::AddrNotAvailable => {
                format!("no local port is free: {error}; see sysctl net.ipv4.ip_local_port_range")
            }
            _ if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                format!("{error}: raise the hard limit (ulimit -Hn)")
            }
            _ => error.to_string(),
        });
        let stream = stream
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot open connection {} to {}", number + 1, self.address))?;
        self.echo(&stream, u64::from(number)).with_context(|| format!("over connection {}", number + 1))?;
        Ok(stream)
    }

    fn echo(&self, mut stream: &TcpStream, number: u64) -> anyhow::Result<()> {
        let octets = number.to_be_bytes();
        let reply = match &self.key {
            Some(key) => {
                stream.write_all(&giop::request(key.as_slice(), giop::ECHO, &octets))?;
                giop::echo_reply(stream)?
            }
            None => raw::echo(stream, &octets)?,
        };
        ensure!(reply == octets, "the reply differs from the request");
        Ok(())
    }
}
