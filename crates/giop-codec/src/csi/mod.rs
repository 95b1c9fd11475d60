//! Common Secure Interoperability, version 2: who calls, said beside a request, and what a reference says that its server wants to
//! know.
//!
//! A client sends an [`SasContext`] in the service context `SecurityAttributeService`: its user name and password ([`gssup`]), and for
//! whom it speaks ([`IdentityToken`]). The server answers in the same context of the reply. Which of these it takes, and whether TLS
//! is to be under it, stands in a component of its references ([`CompoundSecMechList`]).
//! Source clause: "Secure Interoperability / Common Secure Interoperability".

mod context;
pub mod gssup;
mod identity;
mod mechanisms;
mod oid;

pub use context::{
    AuthorizationElement, ContextFailure, EstablishContext, MAX_AUTHORIZATION_ELEMENTS, SasContext,
};
pub use identity::{IdentityToken, IdentityTypes};
pub use mechanisms::{
    AsContextSec, AssociationOptions, CompoundSecMech, CompoundSecMechList, MAX_ADDRESSES, MAX_MECHANISMS,
    SasContextSec, ServiceConfiguration, TlsSecTrans, TransportAddress, TransportMechanism,
};
pub use oid::{ExportedName, Oid};
