//! The skeleton of an object key whose requests are forwarded to an object of another server.

use std::any::Any;
use std::sync::Arc;

use crate::servant::forward::ForwardRequest;
use crate::servant::request::OBJECT_REPOSITORY_ID;
use crate::servant::{DispatchSlot, ServerRequest, Skeleton};

/// A skeleton that answers every request with a LOCATION_FORWARD reply.
pub(crate) struct Forwarder(pub(crate) ForwardRequest);

impl Skeleton for Forwarder {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[OBJECT_REPOSITORY_ID]
    }

    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot) {
        slot.set(async move { request.refuse(self.0.clone().into()) });
    }

    fn forward_location(&self) -> Option<&ForwardRequest> {
        Some(&self.0)
    }

    /// Sets nothing, because there is no local servant: collocated calls are dispatched as requests too.
    fn local(self: Arc<Self>, _: &mut dyn Any) {}
}
