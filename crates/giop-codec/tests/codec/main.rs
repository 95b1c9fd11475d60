//! CDR, GIOP, IOR, type codes, anys and values: bytes as they are on the wire.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod alloc;
mod any;
mod any_received;
mod any_values;
mod architecture;
mod cdr_blocks;
mod cdr_captured;
mod cdr_fixed;
mod cdr_flow;
mod cdr_limits;
mod cdr_positions;
mod cdr_rewrites;
mod cdr_segments;
mod cdr_sequences;
mod cdr_text;
mod cdr_types;
mod code_sets;
mod csi;
mod depth;
mod dynamic_hostile;
mod dynany;
mod giop_allocations;
mod giop_blocks;
mod giop_captures;
mod giop_round_trip;
mod ior_components;
mod ior_reference;
mod ior_url;
#[cfg(feature = "serde")]
mod json;
mod program;
mod shapes;
mod typecode;
mod typecode_create;
mod typecode_hostile;
mod typecode_types;
mod value_bases;
mod value_graphs;
mod value_octets;
mod values;
