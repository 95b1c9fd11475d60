//! `ttcp hold`: runs a client while many other connections are open, and measures the server's resources.
//!
//! It replaces the client program of a peer, so it is started and stopped like any client.

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

const SOCKET_TIMEOUT: Duration = Duration::from_secs(30);
/// The figure with the mean time of a call over an idle connection, one connection after the other.
pub(super) const IDLE_CALL_US: &str = "turn_us";
/// The key of the server's figures in the line that this program prints.
pub(super) const SERVER_FIGURES: &str = "beside";

/// Options of `ttcp hold`.
#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// Number of connections to hold open, with two calls over each
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub connections: u32,
    /// Id of the server process, whose memory is measured
    #[arg(long, value_name = "PID")]
    pub server_pid: u32,
    /// Address of the server, or path of a file with its IOR
    #[arg(long, value_name = "IP:PORT|PATH")]
    pub server_address: String,
    /// The option to exit with the parent process.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
    /// Client and its arguments; the measured figures are added to its JSON line
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub client: Vec<String>,
}

/// Opens the connections with a call over each, runs the client, and calls over each connection once more.
/// Prints the client's JSON line with the measured figures added.
pub fn hold(args: &HoldArgs) -> anyhow::Result<ExitCode> {
    args.parent_watch.start()?;
    system::raise_open_file_limit();
    let mut figures = BTreeMap::new();
    let memory = || system::memory_bytes(args.server_pid);
    figures.insert("memory_bytes", memory()? as f64);
    let mut held = Vec::new();
    if args.connections > 0 {
        let server = Server::of(&args.server_address)?;
        let start = Instant::now();
        held.push(server.connect_and_call(0)?);
        // The first connection triggers one-time initialization in a server.
        figures.insert("first_memory_bytes", memory()? as f64);
        let first = start.elapsed();
        for number in 1..args.connections {
            held.push(server.connect_and_call(number)?);
        }
        figures.insert("open_secs", start.elapsed().as_secs_f64());
        figures.insert("first_secs", first.as_secs_f64());
        figures.insert("all_memory_bytes", memory()? as f64);
        figures.insert("threads", system::thread_count(args.server_pid)? as f64);
        let mut line = run_client(&args.client)?;
        let start = Instant::now();
        for (number, stream) in held.iter().enumerate() {
            // The number differs from the one of the first call, so that a repeated reply is detected.
            let number = u64::MAX - number as u64;
            server.echo(stream, number).context("a call over an idle connection failed")?;
        }
        figures.insert(IDLE_CALL_US, start.elapsed().as_secs_f64() * 1e6 / held.len() as f64);
        print_with_figures(&mut line, figures)?;
    } else {
        print_with_figures(&mut run_client(&args.client)?, figures)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_with_figures(line: &mut Value, figures: BTreeMap<&str, f64>) -> anyhow::Result<()> {
    line.as_object_mut()
        .context("the client's last line is not a JSON object")?
        .insert(SERVER_FIGURES.into(), serde_json::to_value(figures)?);
    Ok(report::print_line(line)?)
}

/// Runs the client, and returns its last line.
fn run_client(words: &[String]) -> anyhow::Result<Value> {
    let (program, arguments) = words.split_first().context("no client is given")?;
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
    /// The key of the object to call; `None` for a server of plain sockets.
    key: Option<ObjectKey>,
}

impl Server {
    /// Returns the server with an address of the form IP:PORT, or with the reference in an IOR file.
    pub(super) fn of(text: &str) -> anyhow::Result<Server> {
        if let Ok(address) = text.parse() {
            return Ok(Server { address, key: None });
        }
        let Ok(address) = text.parse::<Address>();
        let Address::File(path) = &address else { bail!("{text} is neither IP:PORT nor an IOR file") };
        let ior: Ior =
            address.url(Object::Ttcp)?.parse().with_context(|| format!("no IOR in {}", path.display()))?;
        let profile = ior.iiop_profile().context("the reference has no TCP address")?;
        let mut addresses = (profile.host.as_str(), profile.port).to_socket_addrs()?;
        let address = addresses.next().with_context(|| format!("{} has no address", profile.host))?;
        Ok(Server { address, key: Some(profile.object_key) })
    }

    /// Opens a connection, and makes a call over it whose argument and reply is `number`.
    pub(super) fn connect_and_call(&self, number: u32) -> anyhow::Result<TcpStream> {
        let opened = TcpStream::connect_timeout(&self.address, SOCKET_TIMEOUT).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
            stream.set_write_timeout(Some(SOCKET_TIMEOUT))?;
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
        self.echo(&stream, u64::from(number)).with_context(|| format!("connection {} failed", number + 1))?;
        Ok(stream)
    }

    fn echo(&self, mut stream: &TcpStream, number: u64) -> anyhow::Result<()> {
        let bytes = number.to_be_bytes();
        let reply = match &self.key {
            Some(key) => {
                stream.write_all(&giop::request(key.as_slice(), giop::ECHO, &bytes))?;
                giop::echo_reply(stream)?
            }
            None => raw::echo(stream, &bytes)?,
        };
        ensure!(reply == bytes, "the reply differs from the request");
        Ok(())
    }
}
