//! The command line of `ttcp server` and `ttcp client`.

use std::fmt;
use std::time::Duration;

use clap::{Args, ValueEnum};
use zorb::{Demux, ObjectDemux, OperationDemux, Orb, OrbBuilder, PathDemux, WaitStrategy};

use crate::many_objects::ManyArgs;
use crate::parent_watch::ParentWatchArgs;
use crate::reference::Address;
use crate::work::{Work, parse_size};

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
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
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
    pub lifeline: ParentWatchArgs,
}

/// Options of `ttcp client`.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// The experiment.
    #[command(flatten)]
    pub work: Work,
    /// The server's IOR file, or corbaloc::HOST:PORT
    #[arg(long, value_name = "PATH|corbaloc:...", default_value = "server.ior")]
    pub ior: Address,
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
            .zero_copy(!self.copying)
            .receive_low_water_mark(!self.no_low_water)
            .transport(self.transport.into());
        match self.spin {
            Some(longest) => builder.wait_strategy(WaitStrategy::BusyPoll(Duration::from_micros(longest))),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::work::Element;

    #[derive(Parser)]
    struct Client {
        #[command(flatten)]
        args: ClientArgs,
    }

    fn client(line: &str) -> Result<ClientArgs, clap::Error> {
        Client::try_parse_from(std::iter::once("client").chain(line.split(' '))).map(|c| c.args)
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
