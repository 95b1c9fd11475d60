//! The Portable Object Adapter: which objects there are, under which ids and keys, by which policies.

pub(crate) mod key;
mod object_id;
mod policy;

pub use object_id::ObjectId;
pub use policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, InvalidPolicy,
    InvalidPolicyValue, LifespanPolicy, Policies, Policy, RequestProcessingPolicy, ServantRetentionPolicy,
    ThreadModel, policy_id,
};
