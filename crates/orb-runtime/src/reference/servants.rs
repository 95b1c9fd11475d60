//! Associations of servants with reference types.

use std::sync::Arc;

use crate::reference::{ObjectRef, Reference};
use crate::servant::active_object::RunMode;
use crate::servant::forward::ForwardRequest;
use crate::servant::{Request, Servant, Skeleton};

/// A reference type whose interface the servant type `S` implements.
///
/// It is the bound for functions that activate servants of any interface, such as
/// `fn publish<R: Serves<S>, S>(orb: &Orb, servant: S) -> Result<R, ActivateError>`. Only generated code
/// implements it: `impl<S: AccountServant> Serves<S> for AccountRef`.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a servant of the interface of `{Self}`",
    note = "implement the interface's `...Servant` trait for `{S}`, and annotate the reference type that `activate` returns"
)]
pub trait Serves<S>: Reference {
    /// Wraps the servant in its skeleton.
    #[doc(hidden)]
    fn skeleton(servant: S) -> Arc<dyn Skeleton>;
}

impl Servant {
    /// Wraps a servant that implements the interface of `R`.
    #[must_use]
    pub fn of<R: Serves<S>, S>(servant: S) -> Self {
        Self { skeleton: R::skeleton(servant), mode: RunMode::default() }
    }
}

impl ForwardRequest {
    /// Creates a temporary forward to the object of this reference.
    #[must_use]
    pub fn to<R: Reference>(reference: &R) -> Self {
        Self { to: reference.as_object().shared_ior(), is_permanent: false }
    }
}

impl Request {
    /// Returns a reference to the called object, or a nil reference if the description has no target. `R`
    /// should be the interface of the servant or one of its bases, which is not checked.
    #[must_use]
    pub fn target<R: Reference>(&self) -> R {
        let object = match self.entry() {
            Some(entry) => ObjectRef::own_with_entry(self.core(), entry, self.object_key()),
            None => ObjectRef::nil(self.core()),
        };
        R::from_object(object)
    }
}
