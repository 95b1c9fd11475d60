//! The options of the test `series`.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Maximum number of messages of a series.
pub const MAX_MESSAGES: u32 = 1_000;

/// The contents of messages. A message consists of a head of 16 bytes, and of units of 32 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// Bytes (for plain sockets only)
    #[default]
    Octets,
    /// 16 integers of 2 bytes in each unit
    Short,
    /// 8 integers of 4 bytes in each unit
    Long,
    /// 8 floating-point numbers of 4 bytes in each unit
    Float,
    /// 4 floating-point numbers of 8 bytes in each unit
    Double,
    /// A struct of 32 bytes without padding in each unit
    Record,
    /// A struct of 21 bytes, which is padded to 32, in each unit
    NaRecord,
    /// The same structs as of `record`, in an any
    Any,
}

impl MessageKind {
    /// All kinds except [`Octets`](Self::Octets), in the order of tables.
    pub const TYPED: [MessageKind; 7] = [
        MessageKind::Short,
        MessageKind::Long,
        MessageKind::Float,
        MessageKind::Double,
        MessageKind::Record,
        MessageKind::NaRecord,
        MessageKind::Any,
    ];

    /// Returns the number of elements in a unit of 32 bytes.
    pub const fn elements_per_unit(self) -> u32 {
        match self {
            MessageKind::Octets => 32,
            MessageKind::Short => 16,
            MessageKind::Long | MessageKind::Float => 8,
            MessageKind::Double => 4,
            MessageKind::Record | MessageKind::NaRecord | MessageKind::Any => 1,
        }
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            MessageKind::Octets => "octets",
            MessageKind::Short => "short",
            MessageKind::Long => "long",
            MessageKind::Float => "float",
            MessageKind::Double => "double",
            MessageKind::Record => "record",
            MessageKind::NaRecord => "na-record",
            MessageKind::Any => "any",
        }
    }
}

/// Whether a message has a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallMode {
    /// A call with a reply
    #[default]
    Call,
    /// A oneway call
    Oneway,
}

impl CallMode {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            CallMode::Call => "call",
            CallMode::Oneway => "oneway",
        }
    }
}

/// The options of a series, except the number of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct SeriesOptions {
    /// Contents of the messages (series)
    #[arg(long, value_enum, value_name = "KIND", default_value_t = MessageKind::Octets)]
    pub kind: MessageKind,
    /// Whether messages have replies (series)
    #[arg(long, value_enum, value_name = "MODE", default_value_t = CallMode::Call)]
    pub mode: CallMode,
    /// Number of 32-byte units in each message (series)
    #[arg(long, value_name = "UNITS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub units: u32,
    /// Time from the start of one message to the start of the next; after a message that takes longer, the
    /// next one starts at the next multiple of this time (series)
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 70_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub frame: u64,
}

impl SeriesOptions {
    /// Returns the number of elements of a message.
    pub const fn elements(&self) -> u32 {
        self.units * self.kind.elements_per_unit()
    }

    /// Returns the size of a message in bytes: a head of 16 bytes and the units.
    pub const fn size(&self) -> u64 {
        16 + 32 * self.units as u64
    }
}
