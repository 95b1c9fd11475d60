//! The OMG's Naming Service for zorb: `NamingContext` and `NamingContextExt` whole, in a store that a kill at any moment does no harm
//! to, with names that stand for several objects.
//!
//! [`Server`] serves what a [`store`] has. Clients need nothing of this crate: `zorb::cos_naming` has the interfaces, and
//! `orb.naming()`. Those that use groups find their interface in [`zorb_naming`].
//!
//! `docs/NAMING.md` in zorb's repository is about running it.
#![forbid(unsafe_code)]

pub mod import;
mod servant;
mod server;
pub mod store;

/// What this service has beyond the OMG's: [`BalancedContextRef`](zorb_naming::BalancedContextRef), whose names may stand for
/// several objects.
mod stubs {
    zorb::idl!("idl/ZorbNaming.idl", no_warnings);
    zorb::idl!("idl/Bootstrap.idl", no_warnings);
}

pub use server::{KEY, PORT, ServeError, Server, ServerBuilder};
pub use stubs::zorb_naming;
