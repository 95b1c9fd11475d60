//! What `idl!` makes of the soak's interfaces, and what both sides know of their contents.

use zorb::prelude::*;

#[allow(missing_docs)]
mod idl {
    zorb::idl!("idl/soak.idl", ami("Soak::Slim"), no_warnings);
}

pub(super) use idl::soak::{
    AmiSlimHandler, Choice, Record, Refused, Shade, SlimRef, SlimServant, TargetRef, TargetServant, target,
};

/// Octets of a call: no two calls have the same, and no two places in one.
pub(super) fn octets(id: u64, len: usize) -> Bytes {
    (0..len).map(|place| octet(id, place)).collect()
}

/// The octet at that place.
pub(super) fn octet(id: u64, place: usize) -> u8 {
    let mixed = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
    (mixed ^ mixed >> 29) as u8
}

/// A checksum that knows the order.
pub(super) fn checksum(sum: u64, octets: &[u8]) -> u64 {
    octets.iter().fold(sum, |sum, octet| (sum.rotate_left(5) ^ u64::from(*octet)).wrapping_add(1))
}

/// The name of an object in the references that the server prints, and as a plain key.
pub(super) const TARGET: &str = "target";
/// A name that leads to it by a location forward.
pub(super) const MOVED: &str = "moved";
/// Served by operation name.
pub(super) const DYNAMIC: &str = "dynamic";
/// Calls of it are answered through handlers.
pub(super) const SLIM: &str = "slim";
/// How many objects of each POA there are.
pub(super) const OBJECTS: usize = 4;
