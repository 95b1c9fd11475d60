//! The skeleton of object keys whose requests are forwarded to objects elsewhere.

use std::any::Any;
use std::sync::Arc;

use crate::servant::forward::ForwardRequest;
use crate::servant::request::OBJECT_ID;
use crate::servant::{DispatchSlot, ServerRequest, Skeleton};

/// Skeleton that answers every request with the location of the object.
pub(crate) struct Forwarder(pub(crate) ForwardRequest);

impl Skeleton for Forwarder {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[OBJECT_ID]
    }

    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot) {
        slot.set(async move { request.refuse(self.0.clone().into()) });
    }

    fn elsewhere(&self) -> Option<&ForwardRequest> {
        Some(&self.0)
    }

    /// Has no local servant: collocated calls are dispatched as requests too.
    fn local(self: Arc<Self>, _: &mut dyn Any) {}
}
