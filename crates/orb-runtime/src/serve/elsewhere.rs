//! Keys of this ORB's that lead to objects elsewhere.

use std::any::Any;
use std::sync::Arc;

use super::request::OBJECT_ID;
use super::{DispatchSlot, ServerRequest, Skeleton};
use crate::poa::ForwardRequest;

/// Answers every request by where the object is.
pub(crate) struct Elsewhere(pub(crate) ForwardRequest);

impl Skeleton for Elsewhere {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[OBJECT_ID]
    }

    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot) {
        slot.set(async move { request.refuse(self.0.clone().into()) });
    }

    fn elsewhere(&self) -> Option<&ForwardRequest> {
        Some(&self.0)
    }

    /// There is nothing here to be called: collocated calls come as requests too.
    fn local(self: Arc<Self>, _: &mut dyn Any) {}
}
