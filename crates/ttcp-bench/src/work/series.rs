//! The options of the test `series`.

use std::fmt;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Maximum number of messages of a series.
pub const MAX_MESSAGES: u32 = 1_000;

/// What messages hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// Bytes, as sockets send them
    #[default]
    Octets,
    /// 16 integers of 2 bytes a unit
    Short,
    /// 8 integers of 4 bytes a unit
    Long,
    /// 8 numbers of 4 bytes a unit
    Float,
    /// 4 numbers of 8 bytes a unit
    Double,
    /// A struct of 32 bytes without padding
    Record,
    /// A struct of 21 bytes, of which padding makes 32
    NaRecord,
    /// The structs without padding, in an any
    Any,
}

impl MessageKind {
    /// The typed kinds, in the order of the tables.
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
    pub const fn a_unit(self) -> u32 {
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

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a message is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallMode {
    /// Call-and-return
    #[default]
    Call,
    /// One-way
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

impl fmt::Display for CallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a series takes beside the number of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct SeriesOptions {
    /// What the messages hold (series)
    #[arg(long, value_enum, value_name = "KIND", default_value_t = MessageKind::Octets)]
    pub kind: MessageKind,
    /// Whether they are answered (series)
    #[arg(long, value_enum, value_name = "MODE", default_value_t = CallMode::Call)]
    pub mode: CallMode,
    /// Units of 32 bytes of a message (series)
    #[arg(long, value_name = "UNITS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub units: u32,
    /// Time from the start of one message to that of the next, or a multiple of it (series)
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 70_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub frame: u64,
}

impl SeriesOptions {
    /// Returns the number of elements of a message.
    pub const fn elements(&self) -> u32 {
        self.units * self.kind.a_unit()
    }

    /// Returns the size of a message, bytes: 16 and the units.
    pub const fn size(&self) -> u64 {
        16 + 32 * self.units as u64
    }
}
