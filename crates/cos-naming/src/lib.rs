//! The OMG's Naming Service for zorb, with complete `NamingContext` and `NamingContextExt` interfaces.
//!
//! A name is bound to an object, to another context, or to a group of objects, of which each client gets one.
//!
//! [`Server`] serves the contents of a [`store`]. Clients do not need this crate, unless they manage groups
//! with the interfaces of [`zorb_naming`]: `zorb::cos_naming` has the OMG's interfaces, and `orb.naming()`
//! returns a reference to the service.
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

pub use server::{DEFAULT_KEY, PORT, ServeError, Server, ServerBuilder};
pub use stubs::zorb_naming;
