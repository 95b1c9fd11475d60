//! In place of `telemetry` where the feature `tracing` is not compiled in: nobody looks on, and nothing is kept for it.

use std::marker::PhantomData;

use giop_codec::exception::SystemException;
use giop_codec::giop::ServiceContext;

use crate::transport::Peer;

/// Who looks on at a call: nobody.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a>(PhantomData<&'a ()>);

impl<'a> Watch<'a> {
    pub(crate) const NOBODY: Self = Self(PhantomData);

    #[inline(always)]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        None
    }

    #[inline(always)]
    pub(crate) fn sent_to(self, _: &Peer) {}
}

/// What is kept of a request that is served: nothing.
#[derive(Default)]
pub(crate) struct Seen;

/// What is entered around a servant: nothing.
pub(crate) struct Kept;

impl Seen {
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

/// Runs `f`.
#[inline(always)]
pub(crate) fn within<R>(_: Kept, f: impl FnOnce() -> R) -> R {
    f()
}
