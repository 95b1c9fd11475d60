//! References to the objects of servants.

use std::sync::Arc;

use crate::reference::{ObjectRef, Reference};
use crate::servant::active_object::RunMode;
use crate::servant::forward::ForwardRequest;
use crate::servant::{Request, Servant, Skeleton};

/// The servants for which a reference type can stand. It is the bound for code that activates any interface:
/// `fn publish<R: Serves<S>, S>(orb: &Orb, servant: S) -> Result<R, ActivateError>`.
///
/// Generated: `impl<S: AccountServant> Serves<S> for AccountRef`. There are no other implementations.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a servant of the interface of `{Self}`",
    note = "implement the interface's `...Servant` trait for it, and annotate the reference type that `activate` returns"
)]
pub trait Serves<S>: Reference {
    /// Wraps the servant in its skeleton.
    #[doc(hidden)]
    fn skeleton(servant: S) -> Arc<dyn Skeleton>;
}

impl Servant {
    /// Wraps a servant of the interface of `R`.
    #[must_use]
    pub fn of<R: Serves<S>, S>(servant: S) -> Self {
        Self { skeleton: R::skeleton(servant), mode: RunMode::default() }
    }
}

impl ForwardRequest {
    /// Forwards to the object of that reference.
    #[must_use]
    pub fn to<R: Reference>(reference: &R) -> Self {
        Self { to: reference.as_object().address(), permanent: false }
    }
}

impl Request {
    /// Returns a reference to the object that is called.
    ///
    /// # Panics
    /// Never for the interface that the servant was activated as, or one of its bases.
    #[must_use]
    pub fn target<R: Reference>(&self) -> R {
        let object = match self.entry() {
            Some(entry) => ObjectRef::local(self.core(), entry, self.object_key()),
            None => ObjectRef::nowhere(self.core()),
        };
        R::from_object(object)
    }
}
