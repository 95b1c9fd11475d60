//! Common Secure Interoperability, version 2: the identity of callers in service contexts, and the security
//! mechanisms that references publish.
//!
//! A client sends an [`SasContext`] in the service context `SecurityAttributeService`. It can contain a user
//! name and password ([`gssup`]), and the identity on whose behalf the client calls ([`IdentityToken`]). The
//! server answers in the service context with the same id in the reply. A component of the server's
//! references tells which logins and identities the server accepts, and whether it requires TLS
//! ([`CompoundSecMechList`]).
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
