//! The code that `idl!` generates for the server's interface.

#[allow(missing_docs, reason = "generated code")]
mod idl {
    zorb::idl!("idl/abuse.idl");
}

pub(super) use idl::abuse::{TargetRef, TargetServant};

/// The object key of the server's object.
pub(super) const TARGET: &str = "target";
