//! The OMG's Naming Service for zorb: complete `NamingContext` and `NamingContextExt` interfaces. A name is
//! bound to an object, to another context, or to a group of objects of which each caller gets one.
//!
//! [`Server`] serves the contents of a [`store`]. Clients do not need this crate: `zorb::cos_naming` has the
//! interfaces, and `orb.naming()` returns the service. Clients that use groups need [`zorb_naming`].
//!
//! `docs/NAMING.md` in zorb's repository describes how to run the service.
#![forbid(unsafe_code)]

pub mod import;
mod servant;
mod server;
pub mod store;

/// The types generated from the IDL of this crate.
mod stubs {
    zorb::idl!("idl/ZorbNaming.idl", no_warnings);
    zorb::idl!("idl/Bootstrap.idl", no_warnings);
}

pub use server::{KEY, PORT, ServeError, Server, ServerBuilder};
pub use stubs::zorb_naming;
