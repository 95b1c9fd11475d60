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
mod octets;
mod options;
#[path = "../orbs/mod.rs"]
mod orbs;
mod raw;
mod sources;
mod typed;
mod types;
mod value_forms;
mod values;
mod values_elsewhere;
mod zero_copy;

/// The crate `zorb` by another path, for the option `crate`.
mod runtime {
    pub(crate) use zorb::__private;
}
