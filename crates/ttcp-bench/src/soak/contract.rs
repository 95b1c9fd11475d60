//! The code that `idl!` generates for the soak's interfaces, and the contents of calls, which both sides can
//! compute.

use zorb::prelude::*;

#[allow(missing_docs, reason = "generated code")]
mod idl {
    zorb::idl!("idl/soak.idl", ami("Soak::Slim"), no_warnings);
}

pub(super) use idl::soak::{
    AmiSlimHandler, Choice, Record, Refused, Shade, SlimRef, SlimServant, TargetRef, TargetServant, target,
};

/// Returns the argument or result of a call: bytes that depend on the call's id and on their position.
pub(super) fn call_bytes(id: u64, len: usize) -> Bytes {
    (0..len).map(|position| call_byte(id, position)).collect()
}

fn call_byte(id: u64, position: usize) -> u8 {
    let mixed = (position as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
    (mixed ^ mixed >> 29) as u8
}

/// Returns a checksum that depends on the order of the bytes.
pub(super) fn checksum(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum.rotate_left(5) ^ u64::from(*byte)).wrapping_add(1))
}

// Names of objects. They are the object keys, and the names of references in the server's report READY.

/// The object that always exists.
pub(super) const TARGET: &str = "target";
/// The key for which the server answers with a location forward to [`TARGET`].
pub(super) const MOVED: &str = "moved";
/// The object that is served by operation name, through the Dynamic Skeleton Interface.
pub(super) const DYNAMIC: &str = "dynamic";
/// The object that is called with reply handlers.
pub(super) const SLIM: &str = "slim";
/// Number of objects in each POA.
pub(super) const OBJECT_COUNT: usize = 4;
