//! Replacement for the spans of calls without the feature `tracing`: records nothing and takes no memory.

use std::marker::PhantomData;

use giop_codec::giop::ServiceContext;

use crate::reference::ObjectRef;
use crate::reference::operation::Called;
use crate::telemetry::RequestSpan;
use crate::transport::Peer;

/// The telemetry of a call: none.
#[derive(Clone, Copy)]
pub(crate) struct CallObserver<'a>(PhantomData<&'a ()>);

impl<'a> CallObserver<'a> {
    pub(crate) const NOBODY: Self = Self(PhantomData);

    #[inline(always)]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        None
    }

    #[inline(always)]
    pub(crate) fn sent_to(self, _: &Peer) {}
}

/// Begins a collocated call.
#[inline(always)]
pub(crate) fn local(_: &ObjectRef, _: &Called<'_>) -> RequestSpan {
    RequestSpan
}
