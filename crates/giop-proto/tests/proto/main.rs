//! Connections without input and output: messages in, messages out.
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
mod architecture;
mod behind;
mod bidirectional;
mod blocks;
mod cancel;
mod closing;
mod completion;
mod deadlines;
mod exchange;
mod flow;
mod fragmenting;
mod fragments;
mod growing;
mod hostile;
mod limits;
mod limits_env;
mod mixed;
mod nameless;
mod overload;
mod payload;
mod pieces;
mod placed;
mod sequences;
mod streams;
mod util;
