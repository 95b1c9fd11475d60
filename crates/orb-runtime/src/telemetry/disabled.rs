//! Replaces the module `telemetry` if the feature `tracing` is disabled. It records nothing.

use std::marker::PhantomData;

use giop_codec::exception::SystemException;
use giop_codec::giop::ServiceContext;

use crate::transport::Peer;

#[derive(Default)]
pub(crate) struct RequestSpan;

pub(crate) struct ServantSpan;

impl RequestSpan {
    #[inline(always)]
    pub(crate) fn servant_span(&self) -> ServantSpan {
        ServantSpan
    }

    #[inline(always)]
    pub(crate) fn record_results(&self) {}

    #[inline(always)]
    pub(crate) fn record_user_exception(&self, _: &str) {}

    #[inline(always)]
    pub(crate) fn record_system_exception(&self, _: &SystemException) {}

    #[inline(always)]
    pub(crate) fn record_local_exception(&self, _: &dyn std::fmt::Display) {}

    #[inline(always)]
    pub(crate) fn count_call(&self) {}

    #[inline(always)]
    pub(crate) fn end(&mut self) {}
}

#[derive(Clone, Copy)]
pub(crate) struct CallObserver<'a>(PhantomData<&'a ()>);

impl<'a> CallObserver<'a> {
    pub(crate) const NONE: Self = Self(PhantomData);

    #[inline(always)]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        None
    }

    #[inline(always)]
    pub(crate) fn record_peer(self, _: &Peer) {}
}

#[inline(always)]
pub(crate) fn in_span<R>(_: ServantSpan, f: impl FnOnce() -> R) -> R {
    f()
}
