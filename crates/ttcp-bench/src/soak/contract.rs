//! The interfaces of a soak, and the contents of calls, which client and server compute in the same way.

use zorb::prelude::*;

#[allow(missing_docs, reason = "generated code")]
mod idl {
    zorb::idl!("idl/soak.idl", ami("Soak::Slim"), no_warnings);
}

pub(super) use idl::soak::{
    AmiSlimHandler, Choice, Record, Refused, Shade, SlimRef, SlimServant, TargetRef, TargetServant, target,
};

/// Returns the argument or result of a call: `len` bytes that depend on the call's id and on their index.
pub(super) fn call_bytes(id: u64, len: usize) -> Bytes {
    (0..len).map(|index| call_byte(id, index)).collect()
}

fn call_byte(id: u64, index: usize) -> u8 {
    let mixed = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
    (mixed ^ mixed >> 29) as u8
}

/// Returns a checksum that depends on the order of the bytes. `sum` is the checksum of preceding bytes, or 0.
pub(super) fn checksum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum.rotate_left(5) ^ u64::from(*byte)).wrapping_add(1))
}

// The names of objects. They are object keys, and name the references in the server's report READY.

/// The object that always exists.
pub(super) const TARGET: &str = "target";
/// The key for which the server answers with a location forward to [`TARGET`].
pub(super) const MOVED: &str = "moved";
/// The object that is served by operation name, through the Dynamic Skeleton Interface.
pub(super) const DYNAMIC: &str = "dynamic";
/// The object that is called with reply handlers.
pub(super) const SLIM: &str = "slim";
/// Number of objects in each POA whose objects are activated and deactivated during the soak.
pub(super) const OBJECT_COUNT: usize = 4;
