//! Activating servants.

use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use super::{Orb, OrbCore};
use crate::poa::ForwardRequest;
use crate::reference::{ObjectRef, Reference};
use crate::serve::adapter::KeyRefused;
use crate::serve::elsewhere::Elsewhere;
use crate::serve::entry::{Entry, RunMode};
use crate::serve::{Servant, Serves, Skeleton};

/// Why a servant could not be activated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActivateError {
    /// Another object is active under this key.
    #[error("the key `{0}` is in use: deactivate the object that has it, or take another")]
    KeyInUse(String),
    /// Keys that start so are the ORB's own.
    #[error("the key `{0}` starts as those that the ORB makes: take another")]
    ReservedKey(String),
    /// The root POA is destroyed.
    #[error("the root POA is destroyed")]
    Destroyed,
    /// The ORB has shut down.
    #[error("the ORB is shutting down")]
    Closed,
}

/// How a servant is to be activated: `orb.activation().named("x").blocking().activate(servant)`.
#[derive(Debug, Clone)]
#[must_use = "it does nothing until `activate`"]
pub struct Activation {
    core: Arc<OrbCore>,
    name: Option<Vec<u8>>,
    mode: RunMode,
}

impl Orb {
    /// Activates a servant under a key of the ORB's own and gives the reference. Which interface, its type says:
    /// activate as the most derived one.
    ///
    /// # Errors
    /// [`ActivateError::Closed`] after the shutdown has begun.
    pub fn activate<R, S>(&self, servant: S) -> Result<R, ActivateError>
    where
        R: Serves<S>,
    {
        self.activation().activate(servant)
    }

    /// Activates a servant under a plain key: `corbaloc::HOST:PORT/NAME` reaches it, before and after a restart.
    ///
    /// # Errors
    /// [`ActivateError::KeyInUse`] where the name is taken, [`ActivateError::ReservedKey`] where it starts as those that the ORB makes.
    pub fn activate_named<R, S>(&self, name: impl AsRef<[u8]>, servant: S) -> Result<R, ActivateError>
    where
        R: Serves<S>,
    {
        self.activation().named(name).activate(servant)
    }

    /// Has a plain key lead to an object elsewhere, of another process perhaps: who calls `corbaloc::HOST:PORT/NAME` goes on there, and who asks
    /// by a LocateRequest is told so. Gives the reference of that name, which [`deactivate`](Self::deactivate) ends.
    ///
    /// # Errors
    /// As [`activate_named`](Self::activate_named).
    ///
    /// Source clause: "Object Location" (`LOCATION_FORWARD`, `OBJECT_FORWARD`).
    pub fn forward_named(
        &self,
        name: impl AsRef<[u8]>,
        forward: ForwardRequest,
    ) -> Result<ObjectRef, ActivateError> {
        let type_id = forward.to.ior().type_id.clone();
        let entry = self.activation().named(name).enter(Arc::new(Elsewhere(forward)))?;
        Ok(ObjectRef::of_key(&self.core, &type_id, ObjectKey::from(entry.key()), Some(entry)))
    }

    /// Activates with options.
    pub fn activation(&self) -> Activation {
        Activation { core: Arc::clone(&self.core), name: None, mode: RunMode::default() }
    }

    /// Takes the object out of service: calls get OBJECT_NOT_EXIST from now on, those under way go on. Gives `false` if
    /// the reference is not of an object active here.
    pub fn deactivate<R: Reference>(&self, reference: &R) -> bool {
        reference.as_object().home().is_some_and(|entry| self.core.deactivate(&entry, false))
    }

    /// [`deactivate`](Self::deactivate), then waits until its requests are done.
    ///
    /// # Cancel safety
    /// The object stays deactivated.
    pub async fn deactivate_and_wait<R: Reference>(&self, reference: &R) -> bool {
        let done = self.deactivate(reference);
        if let Some(entry) = reference.as_object().last_home() {
            entry.idle().await;
        }
        done
    }
}

impl Activation {
    /// Under a plain key.
    pub fn named(mut self, name: impl AsRef<[u8]>) -> Self {
        self.name = Some(name.as_ref().to_vec());
        self
    }

    /// On a bounded pool of threads, for servants that sleep, lock or compute for long
    /// (`OrbBuilder::blocking_threads`).
    pub fn blocking(mut self) -> Self {
        self.mode.blocking = true;
        self
    }

    /// Each request in a task of its own, so that one connection's requests run on several workers.
    pub fn spawned(mut self) -> Self {
        self.mode.spawned = true;
        self
    }

    /// Lifts the order: a request may start while an earlier oneway of the same connection is not done.
    pub fn concurrent(mut self) -> Self {
        self.mode.concurrent = true;
        self
    }

    /// Activates the servant.
    ///
    /// # Errors
    /// [`ActivateError`]: the key is in use, or the ORB has shut down.
    pub fn activate<R, S>(self, servant: S) -> Result<R, ActivateError>
    where
        R: Serves<S>,
    {
        self.activate_skeleton(R::skeleton(servant)).map(R::from_object)
    }

    /// Activates an erased servant; the reference is untyped.
    ///
    /// # Errors
    /// As [`activate`](Self::activate).
    pub fn activate_erased(mut self, servant: Servant) -> Result<ObjectRef, ActivateError> {
        let RunMode { blocking, spawned, concurrent, .. } = servant.mode;
        self.mode.blocking |= blocking;
        self.mode.spawned |= spawned;
        self.mode.concurrent |= concurrent;
        self.activate_skeleton(servant.skeleton)
    }

    fn activate_skeleton(self, skeleton: Arc<dyn Skeleton>) -> Result<ObjectRef, ActivateError> {
        let core = Arc::clone(&self.core);
        let entry = self.enter(skeleton)?;
        Ok(ObjectRef::local(&core, &entry, entry.key()))
    }

    fn enter(self, skeleton: Arc<dyn Skeleton>) -> Result<Arc<Entry>, ActivateError> {
        if self.core.is_closing() {
            return Err(ActivateError::Closed);
        }
        match &self.name {
            Some(name) => self.core.adapter().activate_named(name, skeleton, self.mode).map_err(|refused| {
                let name = String::from_utf8_lossy(name).into_owned();
                match refused {
                    KeyRefused::InUse => ActivateError::KeyInUse(name),
                    KeyRefused::Reserved => ActivateError::ReservedKey(name),
                }
            }),
            None if self.core.adapter().root().is_destroyed() => Err(ActivateError::Destroyed),
            None => Ok(self.core.adapter().activate(self.core.adapter().root(), skeleton, self.mode)),
        }
    }
}
