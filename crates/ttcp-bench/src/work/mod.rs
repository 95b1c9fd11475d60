//! The work of a client: a test and its options, which are the same for every peer.

mod parse;
mod series;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub use parse::{parse_bytes, parse_operations, parse_size};
pub use series::{CallMode, MAX_MESSAGES, MessageKind, SeriesOptions};

use crate::reference::Object;

/// The maximum of `--size`, in bytes.
pub const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// Number of calls in one iteration of the published demultiplexing experiments.
pub const CALLS_PER_ITERATION: u32 = 100;

/// The numbers of operations that the interfaces of the test `last` have.
pub const OPERATION_COUNTS: [u32; 2] = [100, 1_000];

/// A test of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// One-way flood of sequences, which the server confirms at the end
    Ttcp,
    /// Two-way calls without parameters, one at a time
    Ping,
    /// Two-way calls that return their argument, one at a time
    Echo,
    /// Two-way calls to the last of 100 operations, one at a time
    Demux,
    /// Two-way calls with several outstanding on one connection
    Pipeline,
    /// Messages of one kind and size, one in each time frame; the time of each is recorded
    Series,
    /// Two-way calls to many objects in pseudo-random order, one at a time
    Objects,
    /// Two-way calls by several simultaneous clients, each with a connection of its own
    Clients,
    /// Calls to the last of 100 or 1,000 operations, which the server counts
    Last,
}

/// The element type of the sequences that the client sends.
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
    /// 8-byte floating-point number
    Double,
    /// `struct { short s; char c; long l; octet o; double d; }`, 24 bytes
    Struct,
    /// The same struct, sent and received in its memory representation
    Zstruct,
    /// The same struct padded to 32 bytes, so that the elements fill a buffer completely (plain sockets only)
    Struct32,
}

impl Element {
    /// Returns the size of one element, in bytes.
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

/// A test and its options.
#[derive(Debug, Clone, Args)]
pub struct Work {
    /// The test
    #[arg(value_enum)]
    pub test: Test,
    /// Element type (ttcp; echo: octet, struct or zstruct)
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = Element::Octet)]
    pub element: Element,
    /// Bytes of elements in one buffer (ttcp, echo)
    #[arg(long, value_parser = parse_size, value_name = "BYTES", default_value = "65536")]
    pub size: u64,
    /// Bytes of elements in the whole flood (ttcp)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES", default_value = "268435456")]
    pub total: u64,
    /// Number of calls (default: 20000; echo 5000; pipeline 100000; clients 50000; series 50; last 10000)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
    /// Number of outstanding calls (pipeline); number of clients (clients)
    #[arg(long, value_name = "CALLS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
    /// Socket buffer sizes in both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub sockbuf: Option<u64>,
    /// Number of operations of the interface whose last operation is called (last)
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = parse_operations)]
    pub operations: u32,
    /// Call without waiting for replies (last)
    #[arg(long)]
    pub oneway: bool,
    /// Also measure how long a zorb server takes to look up the operation (last)
    #[arg(long = "lookup", hide = true)]
    pub measures_lookup: bool,
    /// Number of calls in hundreds, unless --n is given (last)
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: u32,
    /// Write the time of each call in nanoseconds to FILE, one per line (ping, echo, demux, objects, clients)
    #[arg(long, value_name = "FILE")]
    pub samples: Option<std::path::PathBuf>,
    /// The options of the test `series`.
    #[command(flatten)]
    pub series: SeriesOptions,
}

impl Work {
    /// Returns the number of measured calls.
    pub fn calls(&self) -> u32 {
        self.n.unwrap_or(match self.test {
            Test::Last => CALLS_PER_ITERATION * self.iterations,
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

    /// Returns the bytes of all elements in one buffer.
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

    /// Checks limits that depend on the test.
    ///
    /// # Errors
    /// The test is `echo` with a type other than `octet`, `struct` and `zstruct`, or the series is too long.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.test == Test::Echo
            && !matches!(self.element, Element::Octet | Element::Struct | Element::Zstruct)
        {
            anyhow::bail!("the test 'echo' supports only --type octet, struct and zstruct");
        }
        if self.test == Test::Series && self.calls() > MAX_MESSAGES {
            anyhow::bail!("a series can have at most {MAX_MESSAGES} messages (--n), not {}", self.calls());
        }
        Ok(())
    }
}

/// Returns the work of a client's command line.
#[cfg(test)]
pub(crate) fn parse_work(line: &str) -> Work {
    parse_options(line.split(' ')).unwrap()
}

/// Parses the options of a command.
#[cfg(test)]
pub(crate) fn parse_options<'w, A: Args>(words: impl IntoIterator<Item = &'w str>) -> Result<A, clap::Error> {
    let command = A::augment_args(clap::Command::new("ttcp").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Implements `Display` for enums of options, with the text of a value on the command line.
macro_rules! display_as_options {
    ($($type:ty),*) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                clap::ValueEnum::to_possible_value(self).map_or(Ok(()), |value| f.write_str(value.get_name()))
            }
        }
    )*};
}
pub(crate) use display_as_options;

display_as_options!(Test, Element, MessageKind, CallMode);
