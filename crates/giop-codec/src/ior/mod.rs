//! Interoperable object references: IOR, profiles, components, and their text form.

mod component;
mod encapsulation;
mod object_key;
mod operations;
mod policies;
mod profile;
mod reference;
mod text;

pub use component::{ComponentTag, OmniUnixAddress, OrbType, SslSecTrans, TaggedComponent};
pub use encapsulation::{encapsulation, open_encapsulation};
pub(crate) use encapsulation::{
    open_encapsulation_slice, put_octets, read_list, read_octets_shared, read_octets_within,
};
pub use object_key::ObjectKey;
pub use operations::{InterfaceNumbers, MAX_NUMBERED_INTERFACES, OperationNumbers};
pub use policies::{
    InvocationPolicy, MAX_POLICIES, OtsPolicy, Policies, Policy, PolicyType, RangeOf, RebindMode,
    RoutingType, SyncScope, UtcTime,
};
pub(crate) use profile::without_brackets;
pub use profile::{IiopProfile, ProfileError, UiopProfile};
pub use reference::{Ior, ProfileTag, TaggedProfile};
pub use text::{ParseIorError, ParseIorErrorKind};

/// The maximum number of profiles in a reference; more raise `MARSHAL`.
pub const MAX_PROFILES: usize = 64;
/// The maximum number of components in a profile. A profile with more does not decode.
pub const MAX_COMPONENTS: usize = 64;
/// The maximum length of a repository id in bytes; a longer one raises `MARSHAL`.
pub const MAX_REPOSITORY_ID_BYTES: usize = 1024;
