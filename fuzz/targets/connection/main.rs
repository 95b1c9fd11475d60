//! The connection machine by operation sequences: calls, replies in every way there is, cancels, closes, time, reads and writes in parts, octets
//! from strangers; one machine alone, or two that are joined.
//!
//! The input is a tape of operations, an octet each and what it needs behind it (`world.rs`). The octet `G` begins a GIOP message as it stands
//! on the wire, so that a capture is a tape as well. After each operation the machine must agree with a simple model of it:
//! each call ends once, nothing is handed out twice, what is counted as waiting and served is what waits and is served, and a machine that
//! does not want to be read has a reason. In the end nothing is left of it. Of two machines with nobody who disturbs them everything comes through.
#![no_main]

mod answers;
mod end;
mod messages;
mod requests;
mod streams;
mod tape;
mod wire;
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| world::run(tape::Tape::new(data)));
