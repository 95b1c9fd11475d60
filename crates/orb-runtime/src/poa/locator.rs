//! The skeleton that serves all objects of a POA with a servant locator.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use giop_codec::exception::SystemException;

use crate::object_key::ObjectId;
use crate::poa::servants::ServantLocator;
use crate::servant::request::{OBJECT_REPOSITORY_ID, panicked};
use crate::servant::{DispatchSlot, Outcome, ServerRequest, Skeleton};

/// Serves each request with the servant that the locator returns. Compared to a request for an active object,
/// this takes two more allocations.
pub(crate) struct LocatorSkeleton<L>(pub(crate) L);

impl<L: ServantLocator> Skeleton for LocatorSkeleton<L> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[OBJECT_REPOSITORY_ID]
    }

    /// Answers only for `CORBA::Object`: the interface is unknown before the locator returns a servant.
    fn is_a(&self, repository_id: &str) -> Option<bool> {
        (repository_id == OBJECT_REPOSITORY_ID).then_some(true)
    }

    fn dispatch(self: Arc<Self>, request: ServerRequest, slot: &mut DispatchSlot) {
        slot.set(async move { self.serve(request).await });
    }

    /// Sets nothing, because the servant is unknown before a request arrives. Therefore collocated calls are
    /// dispatched as requests too.
    fn downcast_into(self: Arc<Self>, _: &mut dyn Any) {}
}

impl<L: ServantLocator> LocatorSkeleton<L> {
    async fn serve(&self, request: ServerRequest) -> Outcome {
        let current = request.current.clone();
        let Some(poa) = current.poa() else {
            return request.refuse(SystemException::internal().with_reason("the request has no POA").into());
        };
        let id = ObjectId::from(current.object_id());
        let operation = current.operation().to_owned();
        let found = AssertUnwindSafe(self.0.preinvoke(&id, &poa, &operation)).catch_unwind().await;
        let (servant, cookie) = match found {
            Ok(Ok(found)) => found,
            Ok(Err(refusal)) => return request.refuse(refusal),
            Err(panic) => return request.refuse(panicked(&*panic).into()),
        };
        current.set_servant(servant.clone());
        let mut request = request;
        // No fragment of the reply may be sent before `postinvoke` has run, because `postinvoke` can replace
        // the reply.
        request.encoder.send_next_whole();
        let to = request.to;
        let mut slot = DispatchSlot::new();
        let skeleton = Arc::clone(&servant.skeleton);
        let started = catch_unwind(AssertUnwindSafe(|| skeleton.dispatch(request, &mut slot)));
        let serve = AssertUnwindSafe(poll_fn(|cx| current.enter(|| slot.poll(cx))));
        let served = match started {
            Ok(()) => serve.catch_unwind().await,
            Err(panic) => Err(panic),
        };
        let outcome = served.unwrap_or_else(|panic| to.exception_outcome(panicked(&*panic)));
        let after = self.0.postinvoke(&id, &poa, &operation, cookie, servant);
        match AssertUnwindSafe(after).catch_unwind().await {
            Ok(Ok(())) => outcome,
            Ok(Err(exception)) => to.exception_outcome(exception),
            Err(panic) => to.exception_outcome(panicked(&*panic)),
        }
    }
}
