//! Replacement for `telemetry` without the feature `tracing`: records nothing and takes no memory.

use std::marker::PhantomData;

use giop_codec::exception::SystemException;
use giop_codec::giop::ServiceContext;

use crate::transport::Peer;

/// The telemetry of a request: none.
#[derive(Default)]
pub(crate) struct RequestSpan;

/// The span of a servant: none.
pub(crate) struct Kept;

impl RequestSpan {
    #[inline(always)]
    pub(crate) fn kept(&self) -> Kept {
        Kept
    }

    #[inline(always)]
    pub(crate) fn results(&self) {}

    #[inline(always)]
    pub(crate) fn user_exception(&self, _: &str) {}

    #[inline(always)]
    pub(crate) fn system_exception(&self, _: &SystemException) {}

    #[inline(always)]
    pub(crate) fn local_exception(&self, _: &dyn std::fmt::Display) {}

    #[inline(always)]
    pub(crate) fn count(&self) {}

    #[inline(always)]
    pub(crate) fn end(&mut self) {}
}

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

/// Runs `f`.
#[inline(always)]
pub(crate) fn within<R>(_: Kept, f: impl FnOnce() -> R) -> R {
    f()
}
