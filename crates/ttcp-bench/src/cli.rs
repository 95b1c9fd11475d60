//! The command line of `ttcp server` and `ttcp client`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use zorb::{Demux, ObjectDemux, OperationDemux, Orb, OrbBuilder, PathDemux, WaitStrategy};

use crate::many_objects::AdditionalObjectsArgs;
use crate::parent_watch::ParentWatchArgs;
use crate::reference::Address;
use crate::work::{Work, display_as_options, parse_size};

/// Options of `ttcp server`.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// File for the IOR of Ttcp; the IORs of the other objects are written to PATH.KEY, such as PATH.wide
    #[arg(long, value_name = "PATH", default_value = "server.ior")]
    pub ior: std::path::PathBuf,
    /// TCP port (0: any free one)
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Address to listen on, also used in references
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: String,
    /// Listen on a Unix socket at this path instead of TCP
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "host"])]
    pub unix: Option<std::path::PathBuf>,
    /// Socket buffer sizes, both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub sockbuf: Option<u64>,
    /// Compare each received element with the test pattern, and exit at the first difference
    #[arg(long)]
    pub check: bool,
    /// How servants are called
    #[arg(long, value_enum, default_value_t = SkeletonKind::Ssi)]
    pub skeleton: SkeletonKind,
    /// Options of the ORB.
    #[command(flatten)]
    pub orb: OrbArgs,
    /// How the server finds the objects and operations of requests.
    #[command(flatten)]
    pub demux: DemuxArgs,
    /// Additional objects.
    #[command(flatten)]
    pub additional: AdditionalObjectsArgs,
    /// The option to exit with the parent process.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
}

/// Options of `ttcp client`.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// The test.
    #[command(flatten)]
    pub work: Work,
    /// The server's IOR file, or corbaloc::HOST:PORT
    #[arg(long, value_name = "PATH|corbaloc:...", default_value = "server.ior")]
    pub ior: Address,
    /// Highest GIOP version to use
    #[arg(long, value_enum, default_value_t = GiopVersion::V1_2)]
    pub giop: GiopVersion,
    /// Number of connections that are used in turn (ttcp, ping, pipeline), each by an ORB of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// How operations are called
    #[arg(long, value_enum, default_value_t = Invocation::Sii)]
    pub invocation: Invocation,
    /// Options of the ORB.
    #[command(flatten)]
    pub orb: OrbArgs,
}

/// Options of an ORB of zorb, in a client or a server.
#[derive(Debug, Clone, Args)]
pub struct OrbArgs {
    /// Flavour of the tokio runtime
    #[arg(long, value_enum, default_value_t = Runtime::Current)]
    pub runtime: Runtime,
    /// How connections are read and written; without io_uring, epoll is used and the client reports it
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// Poll the socket for up to this many microseconds before sleeping (needs a core for each side)
    #[arg(long, value_name = "US")]
    pub spin: Option<u64>,
    /// Wake up for every part of a large message that arrives slowly (no SO_RCVLOWAT)
    #[arg(long)]
    pub no_low_water: bool,
    /// Copy all data, like a classical ORB, for comparison (disables zero-copy)
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
            Some(micros) => builder.wait_strategy(WaitStrategy::BusyPoll(Duration::from_micros(micros))),
            None => builder,
        }
    }
}

/// How a server of zorb finds the object and the operation of a request. Objects are in object adapters
/// (POAs), which can be nested.
#[derive(Debug, Clone, Args)]
pub struct DemuxArgs {
    /// How operations are found; with numeric, zorb's clients send numbers if they have the server's
    /// reference
    #[arg(long = "demux-operations", value_enum, value_name = "WAY", default_value_t = OperationLookup::Perfect)]
    pub operations: OperationLookup,
    /// How objects are found in their POA
    #[arg(long = "demux-objects", value_enum, value_name = "WAY", default_value_t = ObjectLookup::Active)]
    pub objects: ObjectLookup,
    /// How POAs are found
    #[arg(long = "demux-path", value_enum, value_name = "WAY", default_value_t = PathLookup::Flat)]
    pub path: PathLookup,
    /// Number of nested POAs, with the objects in the innermost; corbaloc::HOST:PORT then finds no objects
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=255))]
    pub poas: u32,
    /// Number of objects that are never called; they are activated before all other objects
    #[arg(long = "others", value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub uncalled_objects: u32,
}

impl DemuxArgs {
    /// Returns the look-up strategies.
    pub fn demux(&self) -> Demux {
        Demux::new().operations(self.operations.into()).objects(self.objects.into()).path(self.path.into())
    }
}

/// How operations are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OperationLookup {
    /// By a perfect hash
    Perfect,
    /// By comparing one name after the other
    Linear,
    /// By binary search
    Sorted,
    /// In a hash table
    Hash,
    /// By numbers in requests, instead of names
    Numeric,
}

/// How objects are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectLookup {
    /// By an index in the object key, if the POA chooses the key (`--poas`)
    Active,
    /// In a hash table
    Hash,
    /// By comparing one key after the other
    Linear,
}

/// How POAs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PathLookup {
    /// By one look-up for the whole path
    Flat,
    /// By one look-up for each level
    Layered,
    /// By one look-up for path, object and operation
    Delayered,
}

impl From<OperationLookup> for OperationDemux {
    fn from(lookup: OperationLookup) -> Self {
        match lookup {
            OperationLookup::Perfect => Self::Perfect,
            OperationLookup::Linear => Self::Linear,
            OperationLookup::Sorted => Self::Sorted,
            OperationLookup::Hash => Self::Hash,
            OperationLookup::Numeric => Self::Numeric,
        }
    }
}

impl From<ObjectLookup> for ObjectDemux {
    fn from(lookup: ObjectLookup) -> Self {
        match lookup {
            ObjectLookup::Active => Self::Active,
            ObjectLookup::Hash => Self::Hash,
            ObjectLookup::Linear => Self::Linear,
        }
    }
}

impl From<PathLookup> for PathDemux {
    fn from(lookup: PathLookup) -> Self {
        match lookup {
            PathLookup::Flat => Self::Flat,
            PathLookup::Layered => Self::Layered,
            PathLookup::Delayered => Self::DeLayered,
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
    /// No tokio: a plain thread that calls by `zorb::blocking::wait` (clients only)
    Blocking,
}

/// How a client makes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Invocation {
    /// By stubs compiled from the IDL (Static Invocation Interface)
    Sii,
    /// By operation names and values in anys (Dynamic Invocation Interface)
    Dii,
}

/// How a servant is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SkeletonKind {
    /// By skeletons compiled from the IDL (Static Skeleton Interface)
    Ssi,
    /// By operation names and values in anys (Dynamic Skeleton Interface)
    Dsi,
}

/// How connections are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// epoll, and a system call for each read and write
    Epoll,
    /// io_uring (feature `uring`, Linux, `--runtime current`)
    Uring,
    /// io_uring on two threads of the ORB, for any runtime (feature `uring`, Linux)
    UringThreads,
}

/// A GIOP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum GiopVersion {
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

display_as_options!(Transport, Runtime);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Element, parse_options};

    fn client(line: &str) -> Result<ClientArgs, clap::Error> {
        parse_options(line.split(' '))
    }

    #[test]
    fn a_buffer_has_at_least_one_element_and_only_whole_ones() {
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
        assert_eq!((ttcp.giop, ttcp.work.sockbuf), (GiopVersion::V1_2, None));
        let calls = |test| client(test).unwrap().work.calls();
        assert_eq!(["ping", "demux", "echo", "pipeline"].map(calls), [20_000, 20_000, 5_000, 100_000]);
        assert_eq!(client("ping --n 7").unwrap().work.calls(), 7);
    }

    #[test]
    fn invalid_options_are_rejected() {
        let invalid =
            ",pong,ping --n 0,pipeline --depth 0,ttcp --type float,ping --giop 1.3,ttcp --size 2G".split(',');
        for line in invalid {
            assert!(client(line).is_err(), "{line}");
        }
        assert!(client("echo --type long").unwrap().work.check().is_err());
        assert!(client("echo --type struct").unwrap().work.check().is_ok());
        assert!(client("echo --type zstruct").unwrap().work.check().is_ok());
        assert!(client("ttcp --type long").unwrap().work.check().is_ok());
    }
}
