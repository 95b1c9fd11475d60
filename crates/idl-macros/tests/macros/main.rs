//! What `idl!` makes of IDL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod abstracts;
mod annotations;
mod architecture;
mod calls;
mod field;
mod files;
mod fixed;
mod hybrid;
mod idl4;
#[path = "../mock/mod.rs"]
mod mock;
mod octets;
mod options;
mod sources;
mod typed;
mod types;
mod value_forms;
mod values;
mod values_elsewhere;
mod zero_copy;
