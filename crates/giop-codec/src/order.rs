//! Byte order and GIOP version, the two parameters of every encoder and decoder.

use core::fmt;

/// The byte order of a GIOP message or an encapsulation ("GIOP Message Header", flags bit 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big = 0,
    /// Least significant byte first.
    Little = 1,
}

impl ByteOrder {
    /// The byte order of this machine, in which zorb sends.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// Returns the order given by bit 0 of `flag`; the other bits are ignored.
    #[inline]
    pub const fn from_flag(flag: u8) -> ByteOrder {
        if flag & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// Returns the flag byte of this order: 0 or 1.
    #[inline]
    pub const fn flag(self) -> u8 {
        self as u8
    }

    /// Returns the opposite order.
    #[inline]
    pub const fn swapped(self) -> ByteOrder {
        match self {
            ByteOrder::Big => ByteOrder::Little,
            ByteOrder::Little => ByteOrder::Big,
        }
    }

    /// Returns whether data in this order must be byte-swapped on this machine.
    #[inline]
    pub const fn is_foreign(self) -> bool {
        self.flag() != ByteOrder::NATIVE.flag()
    }
}

/// The GIOP version of a message or of an IIOP profile. The major version is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// GIOP 1.0: no fragments, no wide characters.
    V1_0 = 0,
    /// GIOP 1.1: fragments, wide characters of fixed width.
    V1_1 = 1,
    /// GIOP 1.2, the version that zorb prefers.
    V1_2 = 2,
}

impl Version {
    /// Returns the minor number, 0 to 2.
    #[inline]
    pub const fn minor(self) -> u8 {
        self as u8
    }

    /// Returns version 1.`minor`, or `None` for a minor number above 2.
    #[inline]
    pub const fn from_minor(minor: u8) -> Option<Version> {
        match minor {
            0 => Some(Version::V1_0),
            1 => Some(Version::V1_1),
            2 => Some(Version::V1_2),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor())
    }
}
