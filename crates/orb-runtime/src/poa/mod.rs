//! The Portable Object Adapter: which objects there are, under which ids and keys, by which policies.

pub(crate) mod core;
mod handle;
pub(crate) mod key;
pub(crate) mod manager;
mod object_id;
mod policy;

pub use handle::Poa;
pub use manager::{AdapterInactive, Completion, PoaManager, PoaManagerState};
pub use object_id::ObjectId;
pub use policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, InvalidPolicy,
    InvalidPolicyValue, LifespanPolicy, Policies, Policy, RequestProcessingPolicy, ServantRetentionPolicy,
    ThreadModel, policy_id,
};
