//! The connection machine by operation sequences: calls, replies in every way, cancels, closes, time, partial
//! reads and writes, bytes from strangers. One machine alone, or two that are connected.
//!
//! The input is a tape of operations: a byte for each, followed by its parameters (`world.rs`). The byte `G`
//! begins a GIOP message in its wire format, so that a capture is a tape as well.
//!
//! After each operation the machine must agree with a simple model of it. Each call ends once, and nothing is
//! delivered twice. The counters of waiting and served requests are correct, and a machine that does not want
//! to be read has a reason. At the end, no state is left. Between two undisturbed machines, everything is
//! delivered.
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
