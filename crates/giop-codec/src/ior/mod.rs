//! Interoperable object references: IOR, profiles, components, and their text form.

mod component;
mod encapsulation;
mod profile;
mod reference;
mod text;

pub use component::{ComponentTag, SslSecTrans, TaggedComponent};
pub(crate) use encapsulation::open_encapsulation_slice;
pub use encapsulation::{encapsulation, open_encapsulation};
pub use profile::{IiopProfile, ProfileError};
pub use reference::{Ior, ProfileTag, TaggedProfile};
pub use text::{ParseIorError, ParseIorErrorKind};

/// Most profiles that a reference may have; more is `MARSHAL`.
pub const MAX_PROFILES: usize = 64;
/// Most components that a profile may have; more is `MARSHAL`.
pub const MAX_COMPONENTS: usize = 64;
/// Longest repository id in octets; more is `MARSHAL`.
pub const MAX_REPOSITORY_ID: usize = 1024;
