//! Activation and deactivation of servants.

use std::sync::Arc;

use giop_codec::giop::ObjectKey;

use crate::orb::Orb;
use crate::poa::object_adapter::PlainKeyError;
use crate::reference::{ObjectRef, Reference, Serves};
use crate::runtime::Shared;
use crate::servant::active_object::{ActiveObject, RunMode};
use crate::servant::forward::Forwarder;
use crate::servant::{ForwardRequest, Servant, Skeleton};

/// The reason why a servant could not be activated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActivateError {
    /// Another object is active under this key.
    #[error("the key `{0}` is in use: deactivate its object, or use another key")]
    KeyInUse(String),
    /// The key has the prefix of the keys that the ORB generates.
    #[error("the key `{0}` has the prefix of keys that the ORB generates: use another key")]
    ReservedKey(String),
    /// The root POA is destroyed.
    #[error("the root POA is destroyed")]
    Destroyed,
    /// The shutdown of the ORB has begun.
    #[error("the ORB is shutting down or has shut down")]
    Closed,
}

/// Options for activating a servant: `orb.activation().named("x").blocking().activate(servant)`.
#[derive(Debug, Clone)]
#[must_use = "no servant is activated until `activate` is called"]
pub struct Activation {
    core: Arc<Shared>,
    name: Option<Vec<u8>>,
    mode: RunMode,
}

impl Orb {
    /// Activates a servant under a key that the ORB generates, and returns the reference. The type of the
    /// reference determines the interface of the object, so use the type of the most derived interface.
    ///
    /// # Errors
    /// [`ActivateError::Closed`] after the shutdown has begun, [`ActivateError::Destroyed`] if the root POA
    /// is destroyed.
    pub fn activate<R: Serves<S>, S>(&self, servant: S) -> Result<R, ActivateError> {
        self.activation().activate(servant)
    }

    /// Activates a servant with `name` as the object key. The URL `corbaloc::HOST:PORT/NAME` designates the
    /// object, even after a restart of the server.
    ///
    /// # Errors
    /// [`ActivateError::KeyInUse`] if the name is taken, [`ActivateError::ReservedKey`] if it has the prefix
    /// of generated keys, [`ActivateError::Closed`] after the shutdown has begun.
    pub fn activate_named<R: Serves<S>, S>(
        &self,
        name: impl AsRef<[u8]>,
        servant: S,
    ) -> Result<R, ActivateError> {
        self.activation().named(name).activate(servant)
    }

    /// Forwards calls of `corbaloc::HOST:PORT/NAME` to another object, for example in another process.
    /// LocateRequests are answered with the reference of that object. Returns the reference whose key is the
    /// name. To end the forwarding, pass it to [`deactivate`](Self::deactivate).
    ///
    /// # Errors
    /// The same as for [`activate_named`](Self::activate_named).
    ///
    /// Source clause: "Object Location" (`LOCATION_FORWARD`, `OBJECT_FORWARD`).
    pub fn forward_named(
        &self,
        name: impl AsRef<[u8]>,
        forward: ForwardRequest,
    ) -> Result<ObjectRef, ActivateError> {
        let type_id = forward.to.as_ref().map(|ior| ior.type_id.clone()).unwrap_or_default();
        let entry = self.activation().named(name).activate_skeleton(Arc::new(Forwarder(forward)))?;
        Ok(ObjectRef::own_with_key(&self.core, &type_id, ObjectKey::from(entry.key()), Some(entry)))
    }

    /// Returns a builder that activates a servant with options.
    pub fn activation(&self) -> Activation {
        Activation { core: Arc::clone(&self.core), name: None, mode: RunMode::default() }
    }

    /// Deactivates the object: new calls get OBJECT_NOT_EXIST, and running calls continue. Returns `false` if
    /// the object is not active in this ORB.
    pub fn deactivate<R: Reference>(&self, reference: &R) -> bool {
        reference.as_object().active_entry().is_some_and(|entry| self.core.deactivate(&entry, false))
    }

    /// Deactivates the object and returns the same as [`deactivate`](Self::deactivate), but first waits until
    /// all requests of the object have ended. Waits even if the object was already deactivated.
    ///
    /// # Cancel safety
    /// If the future is dropped, the object stays deactivated.
    pub async fn deactivate_and_wait<R: Reference>(&self, reference: &R) -> bool {
        let was_active = self.deactivate(reference);
        if let Some(entry) = reference.as_object().last_active_entry() {
            entry.wait_until_idle().await;
        }
        was_active
    }
}

impl Activation {
    /// Uses this name as the object key, like [`Orb::activate_named`].
    pub fn named(mut self, name: impl AsRef<[u8]>) -> Self {
        self.name = Some(name.as_ref().to_vec());
        self
    }

    /// Runs requests on a bounded pool of threads: see [`Servant::blocking`].
    pub fn blocking(mut self) -> Self {
        self.mode.blocking = true;
        self
    }

    /// Runs each request in a separate task: see [`Servant::spawned`].
    pub fn spawned(mut self) -> Self {
        self.mode.spawned = true;
        self
    }

    /// Allows a request to start while an earlier oneway of the same connection is still running.
    pub fn concurrent(mut self) -> Self {
        self.mode.concurrent = true;
        self
    }

    /// Activates the servant.
    ///
    /// # Errors
    /// The same as for [`Orb::activate`], or with a name for [`Orb::activate_named`].
    pub fn activate<R: Serves<S>, S>(self, servant: S) -> Result<R, ActivateError> {
        self.activate_erased(Servant::of::<R, S>(servant)).map(R::from_object)
    }

    /// Activates a type-erased servant like [`activate`](Self::activate), and returns an untyped reference.
    pub fn activate_erased(mut self, servant: Servant) -> Result<ObjectRef, ActivateError> {
        let RunMode { blocking, spawned, concurrent, .. } = servant.mode;
        self.mode.blocking |= blocking;
        self.mode.spawned |= spawned;
        self.mode.concurrent |= concurrent;
        let core = Arc::clone(&self.core);
        let entry = self.activate_skeleton(servant.skeleton)?;
        Ok(ObjectRef::own_with_entry(&core, &entry, entry.key()))
    }

    fn activate_skeleton(self, skeleton: Arc<dyn Skeleton>) -> Result<Arc<ActiveObject>, ActivateError> {
        if self.core.closing.has_begun() {
            return Err(ActivateError::Closed);
        }
        let servant = Servant { skeleton, mode: self.mode };
        let adapter = self.core.adapter();
        match &self.name {
            Some(name) => adapter.activate_named(name, servant).map_err(|refused| {
                let name = String::from_utf8_lossy(name).into_owned();
                match refused {
                    PlainKeyError::InUse => ActivateError::KeyInUse(name),
                    PlainKeyError::Reserved => ActivateError::ReservedKey(name),
                }
            }),
            None if adapter.root().is_destroyed() => Err(ActivateError::Destroyed),
            None => Ok(adapter.activate(adapter.root(), servant)),
        }
    }
}
