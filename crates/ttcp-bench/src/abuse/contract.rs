//! The code that `idl!` generates for the interface that is called.

#[allow(missing_docs)]
mod idl {
    zorb::idl!("idl/abuse.idl");
}

pub(super) use idl::abuse::{TargetRef, TargetServant};

/// The name of the object as a plain key.
pub(super) const TARGET: &str = "target";
