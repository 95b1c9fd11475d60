//! The OMG's Naming Service for zorb: complete `NamingContext` and `NamingContextExt` interfaces, with a
//! store that survives a kill at any moment, and with names that stand for several objects.
//!
//! [`Server`] serves the contents of a [`store`]. Clients do not need this crate: `zorb::cos_naming` has the
//! interfaces, and `orb.naming()`. The interface for clients that use groups is in [`zorb_naming`].
//!
//! `docs/NAMING.md` in zorb's repository describes its operation.
#![forbid(unsafe_code)]

pub mod import;
mod servant;
mod server;
pub mod store;

/// The extensions of this service: [`BalancedContextRef`](zorb_naming::BalancedContextRef), whose names may
/// stand for several objects.
mod stubs {
    zorb::idl!("idl/ZorbNaming.idl", no_warnings);
    zorb::idl!("idl/Bootstrap.idl", no_warnings);
}

pub use server::{KEY, PORT, ServeError, Server, ServerBuilder};
pub use stubs::zorb_naming;
