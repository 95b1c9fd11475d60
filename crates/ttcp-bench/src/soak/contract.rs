//! The code that `idl!` generates for the soak's interfaces, and the contents of calls that both sides know.

use zorb::prelude::*;

#[allow(missing_docs)]
mod idl {
    zorb::idl!("idl/soak.idl", ami("Soak::Slim"), no_warnings);
}

pub(super) use idl::soak::{
    AmiSlimHandler, Choice, Record, Refused, Shade, SlimRef, SlimServant, TargetRef, TargetServant, target,
};

/// Returns the bytes of a call: they differ between calls, and between positions in one call.
pub(super) fn octets(id: u64, len: usize) -> Bytes {
    (0..len).map(|place| octet(id, place)).collect()
}

/// Returns the byte at that position.
pub(super) fn octet(id: u64, place: usize) -> u8 {
    let mixed = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
    (mixed ^ mixed >> 29) as u8
}

/// Returns a checksum that depends on the order of the bytes.
pub(super) fn checksum(sum: u64, octets: &[u8]) -> u64 {
    octets.iter().fold(sum, |sum, octet| (sum.rotate_left(5) ^ u64::from(*octet)).wrapping_add(1))
}

/// The name of an object in the references that the server prints, and its plain key.
pub(super) const TARGET: &str = "target";
/// A name that leads to the object by a location forward.
pub(super) const MOVED: &str = "moved";
/// The object that is served by operation name.
pub(super) const DYNAMIC: &str = "dynamic";
/// The object whose replies are received by handlers.
pub(super) const SLIM: &str = "slim";
/// Number of objects in each POA.
pub(super) const OBJECTS: usize = 4;
