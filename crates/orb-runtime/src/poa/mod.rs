//! The Portable Object Adapter: objects, their ids and keys, and the policies of adapters.

mod active_object_map;
mod adapter_activation;
mod builder;
mod destroy;
mod error;
#[cfg(feature = "experiments")]
mod experiments;
mod handle;
mod locator;
pub(crate) mod lookup;
pub(crate) mod manager;
pub(crate) mod node;
pub(crate) mod object_adapter;
mod objects;
mod policies;
mod policy;
mod servant_activation;
mod servants;
mod slots;
pub(crate) mod step_table;
mod template;

pub use adapter_activation::AdapterActivator;
pub use builder::{PoaBuilder, ids, serving};
pub use destroy::Destruction;
pub use error::PoaError;
pub use handle::{ManagerAlreadyExists, Poa};
pub use manager::{AdapterInactive, Completion, PoaManager, PoaManagerState};
pub use objects::Deactivation;
pub use policies::{InvalidPolicy, Policies};
pub use policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy,
    InvalidPolicyValue, LifespanPolicy, Policy, RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel,
    policy_id,
};
pub use servants::{ServantActivator, ServantLocator};
pub use template::IorTemplate;

pub use crate::object_key::ObjectId;
pub use crate::servant::{ForwardRequest, Refusal};
