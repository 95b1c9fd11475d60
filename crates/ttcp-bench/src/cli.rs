//! The command line that all peers share.

use std::fmt;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use zorb::{Demux, Latency, ObjectDemux, OperationDemux, Orb, OrbBuilder, PathDemux};

use crate::many::ManyArgs;
use crate::reference::Object;
use crate::series::{self, SeriesOptions};

/// The largest `--size`, bytes: 1 GiB.
pub const MAX_SIZE: u64 = 1 << 30;

/// Calls in one iteration of the published demultiplexing experiments.
pub const CALLS_AN_ITERATION: u32 = 100;

/// Numbers of operations of the interfaces whose last operation is called.
pub const OPERATIONS: [u32; 2] = [100, 1_000];

/// One kind of experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// One-way flood of sequences, confirmed by a final call
    Ttcp,
    /// Two-way call without parameters, one outstanding
    Ping,
    /// Two-way call that returns its argument
    Echo,
    /// Two-way call of the last of 100 operations, one outstanding
    Demux,
    /// Two-way calls with several outstanding on one connection
    Pipeline,
    /// Messages of one kind and size, one a frame, each with a record of its own
    Series,
    /// Two-way calls of many objects, drawn with a fixed seed, one outstanding
    Objects,
    /// Two-way calls by several clients at once, each with a connection of its own
    Clients,
    /// Calls of the last of 100 or 1,000 operations, which the server counts
    Last,
}

/// The element type of the sequences sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// 1 byte, opaque
    Octet,
    /// 1 byte of text
    Char,
    /// 2-byte integer
    Short,
    /// 4-byte integer
    Long,
    /// 8-byte IEEE 754
    Double,
    /// `struct { short s; char c; long l; octet o; double d; }`, 24 bytes
    Struct,
    /// The same struct, sent and received as it lies in memory
    Zstruct,
    /// The same struct padded to 32 bytes, which divide a buffer: for sockets, which send what lies in memory
    Struct32,
}

impl Element {
    /// User bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            Element::Octet | Element::Char => 1,
            Element::Short => 2,
            Element::Long => 4,
            Element::Double => 8,
            Element::Struct | Element::Zstruct => 24,
            Element::Struct32 => 32,
        }
    }
}

/// What a client shall do: the test and its options, the same for every peer.
#[derive(Debug, Clone, Args)]
pub struct Work {
    /// The experiment
    #[arg(value_enum)]
    pub test: Test,
    /// Element type (ttcp; echo: octet, struct or zstruct)
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = Element::Octet)]
    pub element: Element,
    /// User bytes of one buffer (ttcp, echo)
    #[arg(long, value_parser = size, value_name = "BYTES", default_value = "65536")]
    pub size: u64,
    /// User bytes of the whole flood (ttcp)
    #[arg(long, value_parser = bytes, value_name = "BYTES", default_value = "268435456")]
    pub total: u64,
    /// Calls (default: 20000; echo 5000; pipeline 100000; clients 50000; series 50)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
    /// Calls outstanding at a time (pipeline); clients at a time (clients)
    #[arg(long, value_name = "CALLS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
    /// Socket buffer sizes, both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub sockbuf: Option<u64>,
    /// Operations of the interface whose last one is called (last)
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = operations)]
    pub operations: u32,
    /// Call without waiting for replies (last)
    #[arg(long)]
    pub oneway: bool,
    /// Ask a server of zorb what finding the operation takes by itself (last)
    #[arg(long, hide = true)]
    pub lookup: bool,
    /// Times a hundred calls (last)
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: u32,
    /// Write the time of each call to FILE, nanoseconds, a line each (ping, echo, demux, objects, clients)
    #[arg(long, value_name = "FILE")]
    pub samples: Option<std::path::PathBuf>,
    /// What else a series takes.
    #[command(flatten)]
    pub series: SeriesOptions,
}

impl Work {
    /// Returns the number of measured calls.
    pub fn calls(&self) -> u32 {
        self.n.unwrap_or(match self.test {
            Test::Last => CALLS_AN_ITERATION * self.iterations,
            Test::Echo => 5_000,
            Test::Pipeline => 100_000,
            Test::Series => 50,
            Test::Clients => 50_000,
            Test::Ttcp | Test::Ping | Test::Demux | Test::Objects => 20_000,
        })
    }

    /// Returns the number of elements in one buffer: as many as fit into `--size`, at least one.
    pub fn elements(&self) -> usize {
        usize::try_from((self.size / self.element.bytes()).max(1)).unwrap_or(usize::MAX)
    }

    /// Returns the user bytes in one buffer: [`elements`](Self::elements) times the size of one.
    pub fn payload_bytes(&self) -> u64 {
        (self.size / self.element.bytes()).max(1) * self.element.bytes()
    }

    /// Returns the object that the test calls.
    pub fn object(&self) -> Object {
        match (self.test, self.element) {
            (Test::Demux, _) => Object::Wide,
            (Test::Series, _) => Object::Series,
            (Test::Last, _) => Object::wide(self.operations, self.oneway),
            (Test::Ttcp | Test::Echo, Element::Zstruct) => Object::ZeroCopy,
            _ => Object::Ttcp,
        }
    }

    /// Rejects what the contract has no operation for.
    ///
    /// # Errors
    /// `echo` with a type other than `octet`, `struct` and `zstruct`; a series that is too long.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.test == Test::Echo
            && !matches!(self.element, Element::Octet | Element::Struct | Element::Zstruct)
        {
            anyhow::bail!("echo takes --type octet, struct or zstruct, not {}", self.element);
        }
        if self.test == Test::Series && self.calls() > series::LONGEST {
            anyhow::bail!("a series has {} messages at most, not {}", series::LONGEST, self.calls());
        }
        Ok(())
    }
}

/// Options of `ttcp server`.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// File for the IOR of Ttcp; those of Wide and of the zero-copy structs go to PATH.wide and PATH.zero
    #[arg(long, value_name = "PATH", default_value = "server.ior")]
    pub ior: std::path::PathBuf,
    /// TCP port (0: any free one)
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Address to listen on, which references name
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: String,
    /// Listen on a Unix socket at this path in place of TCP
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "host"])]
    pub unix: Option<std::path::PathBuf>,
    /// Socket buffer sizes, both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub sockbuf: Option<u64>,
    /// Compare each element with what clients send, and end where one differs
    #[arg(long)]
    pub check: bool,
    /// How the servants get their requests
    #[arg(long, value_enum, default_value_t = Skeleton::Ssi)]
    pub skeleton: Skeleton,
    /// How the ORB runs.
    #[command(flatten)]
    pub orb: OrbArgs,
    /// How requests find their objects and operations.
    #[command(flatten)]
    pub demux: DemuxArgs,
    /// Its many objects.
    #[command(flatten)]
    pub many: ManyArgs,
    /// Common options.
    #[command(flatten)]
    pub lifeline: crate::lifeline::LifelineArgs,
}

/// Options of `ttcp client`.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// The experiment.
    #[command(flatten)]
    pub work: Work,
    /// The server's IOR file, or corbaloc::HOST:PORT
    #[arg(long, value_name = "PATH|corbaloc:...", default_value = "server.ior")]
    pub ior: crate::reference::Address,
    /// GIOP version to speak
    #[arg(long, value_enum, default_value_t = Giop::V1_2)]
    pub giop: Giop,
    /// Connections that share the work in turn (ttcp, ping, pipeline), each of an ORB of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// How operations are called
    #[arg(long, value_enum, default_value_t = Invocation::Sii)]
    pub invocation: Invocation,
    /// How the ORB runs.
    #[command(flatten)]
    pub orb: OrbArgs,
}

/// How an ORB of zorb runs, on either side.
#[derive(Debug, Clone, Args)]
pub struct OrbArgs {
    /// tokio flavour
    #[arg(long, value_enum, default_value_t = Runtime::Current)]
    pub runtime: Runtime,
    /// How connections are read and written; where there is no io_uring, it is epoll, and the client says so
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// Ask the socket for up to so many microseconds before going to sleep (needs a core for each side)
    #[arg(long, value_name = "US")]
    pub spin: Option<u64>,
    /// Be woken for every piece of a large message that comes slowly (no SO_RCVLOWAT)
    #[arg(long)]
    pub no_low_water: bool,
    /// The classical copying ORB, to compare with: no direct deposit, no shared arguments
    #[arg(long)]
    pub copying: bool,
}

impl OrbArgs {
    /// Returns a builder with these options.
    pub fn builder(&self) -> OrbBuilder {
        let builder = Orb::builder()
            .deposit(!self.copying)
            .low_water(!self.no_low_water)
            .transport(self.transport.into());
        match self.spin {
            Some(longest) => builder.latency(Latency::Spin(Duration::from_micros(longest))),
            None => builder,
        }
    }
}

/// How a server of zorb finds what a request is for.
#[derive(Debug, Clone, Args)]
pub struct DemuxArgs {
    /// How operations are found; `numeric`: clients of zorb that have the reference call by number
    #[arg(long = "demux-operations", value_enum, value_name = "WAY", default_value_t = Operations::Perfect)]
    pub operations: Operations,
    /// How objects are found in their POA
    #[arg(long = "demux-objects", value_enum, value_name = "WAY", default_value_t = Objects::Active)]
    pub objects: Objects,
    /// How POAs are found
    #[arg(long = "demux-path", value_enum, value_name = "WAY", default_value_t = Path::Flat)]
    pub path: Path,
    /// POAs below each other, with the objects in the lowest; then there are no keys for corbaloc::HOST:PORT
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=255))]
    pub poas: u32,
    /// Other objects beside those that are called, activated before them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub others: u32,
}

impl DemuxArgs {
    /// Returns the look-up strategies.
    pub fn demux(&self) -> Demux {
        Demux::new().operations(self.operations.into()).objects(self.objects.into()).path(self.path.into())
    }
}

/// How operations are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operations {
    /// By a perfect hash
    Perfect,
    /// Name by name
    Linear,
    /// By binary search
    Sorted,
    /// In a hash table
    Hash,
    /// By their numbers, without their names
    Numeric,
}

/// How objects are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Objects {
    /// By an index in the key, where the POA chooses it (`--poas`)
    Active,
    /// In a hash table
    Hash,
    /// One after the other
    Linear,
}

/// How POAs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Path {
    /// By one look, whatever the depth
    Flat,
    /// Name by name
    Layered,
    /// By one look with object and operation
    Delayered,
}

impl From<Operations> for OperationDemux {
    fn from(way: Operations) -> Self {
        match way {
            Operations::Perfect => Self::Perfect,
            Operations::Linear => Self::Linear,
            Operations::Sorted => Self::Sorted,
            Operations::Hash => Self::Hash,
            Operations::Numeric => Self::Numeric,
        }
    }
}

impl From<Objects> for ObjectDemux {
    fn from(way: Objects) -> Self {
        match way {
            Objects::Active => Self::Active,
            Objects::Hash => Self::Hash,
            Objects::Linear => Self::Linear,
        }
    }
}

impl From<Path> for PathDemux {
    fn from(way: Path) -> Self {
        match way {
            Path::Flat => Self::Flat,
            Path::Layered => Self::Layered,
            Path::Delayered => Self::DeLayered,
        }
    }
}

/// Flavour of the tokio runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Runtime {
    /// `current_thread`
    Current,
    /// `multi_thread`, one worker per core
    Multi,
    /// None: a plain thread that calls by `zorb::blocking::wait` (clients only)
    Blocking,
}

/// How a client calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Invocation {
    /// By the stubs that were compiled from the contract
    Sii,
    /// By the names of the operations, with values in anys
    Dii,
}

/// How a servant is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Skeleton {
    /// By the skeletons that were compiled from the contract
    Ssi,
    /// By the names of the operations, with values in anys
    Dsi,
}

/// What reads and writes connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Readiness, and a system call for each read and write
    Epoll,
    /// io_uring (feature `uring`, Linux, `--runtime current`)
    Uring,
    /// io_uring on two threads of the ORB's own, for any runtime (feature `uring`, Linux)
    UringThreads,
}

/// A GIOP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Giop {
    /// GIOP 1.0
    #[value(name = "1.0")]
    V1_0,
    /// GIOP 1.1
    #[value(name = "1.1")]
    V1_1,
    /// GIOP 1.2
    #[value(name = "1.2")]
    V1_2,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Ttcp => "ttcp",
            Test::Ping => "ping",
            Test::Echo => "echo",
            Test::Demux => "demux",
            Test::Pipeline => "pipeline",
            Test::Series => "series",
            Test::Objects => "objects",
            Test::Clients => "clients",
            Test::Last => "last",
        })
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::Octet => "octet",
            Element::Char => "char",
            Element::Short => "short",
            Element::Long => "long",
            Element::Double => "double",
            Element::Struct => "struct",
            Element::Zstruct => "zstruct",
            Element::Struct32 => "struct32",
        })
    }
}

impl From<Transport> for zorb::Transport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Epoll => Self::Epoll,
            Transport::Uring => Self::IoUring,
            Transport::UringThreads => Self::IoUringThreads(2),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Epoll => "epoll",
            Transport::Uring => "uring",
            Transport::UringThreads => "uring-threads",
        })
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Current => "current",
            Runtime::Multi => "multi",
            Runtime::Blocking => "blocking",
        })
    }
}

/// Parses a number of bytes: digits, then nothing or one of `K`, `M`, `G` (or `KiB`, `MiB`, `GiB`), powers of
/// 1024.
///
/// # Errors
/// A message that describes what is wrong with the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(format!("'{unit}' is no unit: write bytes, or K, M, G for powers of 1024")),
    };
    let number: u64 = number.parse().map_err(|e| format!("not a number of bytes: {e}"))?;
    number.checked_mul(1 << shift).filter(|&n| n > 0).ok_or_else(|| format!("{text} is out of range"))
}

/// Parses a number of operations: one of [`OPERATIONS`].
///
/// # Errors
/// There is no interface with that number of operations.
pub fn operations(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n) if OPERATIONS.contains(&n) => Ok(n),
        _ => Err(format!(
            "there is no interface of {text} operations, only of {} and {}",
            OPERATIONS[0], OPERATIONS[1]
        )),
    }
}

/// Parses a buffer size: [`bytes`], at most [`MAX_SIZE`].
///
/// # Errors
/// A message that describes what is wrong with the text.
pub fn size(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        n if n <= MAX_SIZE => Ok(n),
        n => Err(format!("{n} bytes are more than the largest size, {MAX_SIZE}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Client {
        #[command(flatten)]
        args: ClientArgs,
    }

    fn client(line: &str) -> Result<ClientArgs, clap::Error> {
        Client::try_parse_from(std::iter::once("client").chain(line.split(' '))).map(|c| c.args)
    }

    #[test]
    fn bytes_take_binary_units() {
        assert_eq!(bytes("1000"), Ok(1000));
        assert_eq!(bytes("64K"), Ok(65_536));
        assert_eq!(bytes("1MiB"), Ok(1 << 20));
        assert_eq!(bytes("2G"), Ok(2 << 30));
        for bad in ["", "K", "0", "-1", "64 K", "1k", "1TB", "99999999999999999999", "18446744073709551615G"]
        {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert!(size("1G").is_ok() && size("1073741825").is_err());
    }

    #[test]
    fn buffers_hold_whole_elements_and_at_least_one() {
        let work = client("ttcp --type struct --size 65536").unwrap().work;
        assert_eq!((work.elements(), work.payload_bytes()), (2730, 65_520));
        let work = client("ttcp --type struct --size 1").unwrap().work;
        assert_eq!((work.elements(), work.payload_bytes()), (1, 24));
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let ttcp = client("ttcp").unwrap();
        assert_eq!(
            (ttcp.work.total, ttcp.work.size, ttcp.work.element),
            (268_435_456, 65_536, Element::Octet)
        );
        assert_eq!((ttcp.giop, ttcp.work.sockbuf), (Giop::V1_2, None));
        let calls = |test| client(test).unwrap().work.calls();
        assert_eq!(["ping", "demux", "echo", "pipeline"].map(calls), [20_000, 20_000, 5_000, 100_000]);
        assert_eq!(client("ping --n 7").unwrap().work.calls(), 7);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "pong",
            "ping --n 0",
            "pipeline --depth 0",
            "ttcp --type float",
            "ping --giop 1.3",
            "ttcp --size 2G",
        ] {
            assert!(client(bad).is_err(), "{bad}");
        }
        assert!(client("echo --type long").unwrap().work.check().is_err());
        assert!(client("echo --type struct").unwrap().work.check().is_ok());
        assert!(client("echo --type zstruct").unwrap().work.check().is_ok());
        assert!(client("ttcp --type long").unwrap().work.check().is_ok());
    }
}
