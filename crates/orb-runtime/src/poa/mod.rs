//! The Portable Object Adapter: objects, their ids and keys, and the policies of adapters.

mod births;
mod builder;
pub(crate) mod core;
mod destroy;
mod error;
mod handle;
pub(crate) mod key;
mod locator;
pub(crate) mod making;
pub(crate) mod manager;
pub(crate) mod map;
mod object_id;
mod objects;
mod policies;
mod policy;
pub(crate) mod servants;
pub(crate) mod steps;
mod template;

pub use births::AdapterActivator;
pub use builder::{PoaBuilder, ids, serving};
pub use destroy::Destruction;
pub use error::PoaError;
pub use handle::{ManagerAlreadyExists, Poa};
pub use manager::{AdapterInactive, Completion, PoaManager, PoaManagerState};
pub use object_id::ObjectId;
pub use objects::Deactivation;
pub use policies::{InvalidPolicy, Policies};
pub use policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy,
    InvalidPolicyValue, LifespanPolicy, Policy, RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel,
    policy_id,
};
pub use servants::{ForwardRequest, Refusal, ServantActivator, ServantLocator};
pub use template::IorTemplate;
