//! Activation, references, ids and servants of a POA's objects.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::object_key::{KeyError, MAX_KEY_BYTES, ObjectId, SlotId};
use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::poa::locator::LocatorSkeleton;
use crate::poa::policy::{ImplicitActivationPolicy, LifespanPolicy, RequestProcessingPolicy};
use crate::poa::servants::{ServantActivator, ServantLocator};
use crate::poa::step_table::RunningStep;
use crate::reference::{ObjectRef, Reference, Serves};
use crate::servant::Servant;
use crate::servant::active_object::{ActiveObject, RunMode};

/// A deactivated object, whose running requests continue. Dropping this value has no effect.
#[derive(Debug)]
pub struct Deactivation {
    entry: Arc<ActiveObject>,
    etherealization: Option<RunningStep>,
}

impl Deactivation {
    /// Waits until the object's requests have ended, and a servant activator has etherealized its servant.
    ///
    /// # Cancel safety
    /// The deactivation continues if this future is dropped.
    pub async fn completed(self) {
        self.entry.wait_until_idle().await;
        if let Some(etherealization) = self.etherealization {
            let _ = etherealization.await;
        }
    }
}

impl Poa {
    /// Activates a servant under an id that the POA chooses, and returns the object's reference. The type of
    /// the reference determines the interface.
    ///
    /// # Errors
    /// The same as for [`activate_object`](Self::activate_object).
    pub fn activate<R: Serves<S>, S>(&self, servant: S) -> Result<R, PoaError> {
        let id = self.activate_object(Servant::of::<R, S>(servant))?;
        Ok(R::from_object(self.reference(R::REPOSITORY_ID, id.as_slice())))
    }

    /// Activates a servant under an id, and returns the object's reference. The type of the reference
    /// determines the interface.
    ///
    /// # Errors
    /// The same as for [`activate_object_with_id`](Self::activate_object_with_id).
    pub fn activate_with_id<R: Serves<S>, S>(
        &self,
        id: impl Into<ObjectId>,
        servant: S,
    ) -> Result<R, PoaError> {
        let id = id.into();
        self.activate_object_with_id(&id, Servant::of::<R, S>(servant))?;
        Ok(R::from_object(self.reference(R::REPOSITORY_ID, id.as_slice())))
    }

    /// Activates a servant under an id that the POA chooses.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has SYSTEM_ID and RETAIN.
    /// * [`ServantAlreadyActive`](PoaError::ServantAlreadyActive) if the servant is active and UNIQUE_ID set.
    /// * `BAD_INV_ORDER` minor OMG 4 after the shutdown of the ORB has begun.
    /// * `OBJECT_NOT_EXIST` minor OMG 2 after `destroy`.
    pub fn activate_object(&self, servant: Servant) -> Result<ObjectId, PoaError> {
        let is_met = self.core.chooses_ids() && self.policies().retains();
        self.require(is_met, "activate_object", "SYSTEM_ID and RETAIN")?;
        let entry = self.activate_servant(None, servant)?;
        Ok(entry.id().into())
    }

    /// Activates a servant under an id.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has RETAIN.
    /// * [`ObjectAlreadyActive`](PoaError::ObjectAlreadyActive) if an object has this id.
    /// * [`ServantAlreadyActive`](PoaError::ServantAlreadyActive) if the servant is active and UNIQUE_ID set.
    /// * `BAD_PARAM` minor OMG 14 if the POA has SYSTEM_ID and did not choose the id, or if the object's key
    ///   would be too long.
    /// * `BAD_INV_ORDER` minor OMG 4 after the shutdown of the ORB has begun.
    /// * `OBJECT_NOT_EXIST` minor OMG 2 after `destroy`.
    pub fn activate_object_with_id(&self, id: &ObjectId, servant: Servant) -> Result<(), PoaError> {
        self.require(self.policies().retains(), "activate_object_with_id", "RETAIN")?;
        self.check_id(id)?;
        self.activate_servant(Some(id), servant).map(drop)
    }

    /// Deactivates an object. From now on, requests for the object get OBJECT_NOT_EXIST, unless the POA has a
    /// default servant or a servant activator. Running requests continue.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has RETAIN.
    /// * [`ObjectNotActive`](PoaError::ObjectNotActive) if no object is active under the id.
    pub fn deactivate_object(&self, id: &ObjectId) -> Result<Deactivation, PoaError> {
        self.require(self.policies().retains(), "deactivate_object", "RETAIN")?;
        let entry = self.entry(id.as_slice()).ok_or(PoaError::ObjectNotActive)?;
        if !self.orb.deactivate(&entry, false) {
            return Err(PoaError::ObjectNotActive);
        }
        Ok(Deactivation { etherealization: self.core.running_etherealization(&entry), entry })
    }

    /// Creates a reference to an object that is not active yet, with an id that the POA chooses.
    /// [`reference_to_id`](Self::reference_to_id) and, in a request, `request().object_id()` return the id.
    ///
    /// A POA with TRANSIENT, SYSTEM_ID, RETAIN and USE_ACTIVE_OBJECT_MAP_ONLY reserves a slot of 24 bytes for
    /// the object. The slot is reused only after the object was activated and deactivated.
    ///
    /// # Errors
    /// [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has SYSTEM_ID.
    pub fn create_reference<R: Reference>(&self) -> Result<R, PoaError> {
        self.require(self.core.chooses_ids(), "create_reference", "SYSTEM_ID")?;
        Ok(R::from_object(self.reference(R::REPOSITORY_ID, &self.next_id())))
    }

    /// Creates a reference to an object that need not be active.
    ///
    /// # Errors
    /// `BAD_PARAM` minor OMG 14 if the POA has SYSTEM_ID and did not choose the id, or if the object's key
    /// would be too long.
    pub fn create_reference_with_id<R: Reference>(&self, id: impl Into<ObjectId>) -> Result<R, PoaError> {
        let id = id.into();
        self.check_id(&id)?;
        Ok(R::from_object(self.reference(R::REPOSITORY_ID, id.as_slice())))
    }

    /// Returns the id of the servant's object. The first of these cases that applies determines the id:
    ///
    /// 1. With RETAIN and UNIQUE_ID, the id under which the servant is active.
    /// 2. With USE_DEFAULT_SERVANT, the called object's id if the servant serves the current request.
    /// 3. With RETAIN and IMPLICIT_ACTIVATION, a new id, under which the servant is activated.
    /// 4. The called object's id if the servant serves the current request.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_DEFAULT_SERVANT, or RETAIN together
    ///   with UNIQUE_ID or IMPLICIT_ACTIVATION.
    /// * [`ServantNotActive`](PoaError::ServantNotActive) if none of the cases applies.
    pub fn servant_to_id(&self, servant: &Servant) -> Result<ObjectId, PoaError> {
        let is_met = self.uses_default_servant() || self.can_find_by_servant();
        let required = "USE_DEFAULT_SERVANT, or RETAIN with UNIQUE_ID or IMPLICIT_ACTIVATION";
        self.require(is_met, "servant_to_id", required)?;
        self.id_of_servant(servant)
    }

    /// Returns the reference of the servant's object, which [`servant_to_id`](Self::servant_to_id) finds or
    /// activates.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has RETAIN together with UNIQUE_ID or
    ///   IMPLICIT_ACTIVATION, or the servant serves the current request.
    /// * [`ServantNotActive`](PoaError::ServantNotActive) as for [`servant_to_id`](Self::servant_to_id).
    #[doc(alias = "_this")]
    pub fn servant_to_reference(&self, servant: &Servant) -> Result<ObjectRef, PoaError> {
        let is_met = self.can_find_by_servant() || self.current_id(servant).is_some();
        self.require(is_met, "servant_to_reference", "RETAIN, and UNIQUE_ID or IMPLICIT_ACTIVATION")?;
        let id = self.id_of_servant(servant)?;
        Ok(self.reference(servant.repository_id(), id.as_slice()))
    }

    /// Returns the servant of the object, or the default servant if the object is not active.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) if the POA has neither RETAIN nor USE_DEFAULT_SERVANT.
    /// * [`WrongAdapter`](PoaError::WrongAdapter) if the object does not belong to this POA.
    /// * [`ObjectNotActive`](PoaError::ObjectNotActive) if there is no such servant.
    pub fn reference_to_servant<R: Reference>(&self, reference: &R) -> Result<Servant, PoaError> {
        let is_met = self.policies().retains() || self.uses_default_servant();
        self.require(is_met, "reference_to_servant", "RETAIN or USE_DEFAULT_SERVANT")?;
        self.servant_with_id(&self.reference_to_id(reference)?)
    }

    /// Returns the id of the object, which need not be active.
    ///
    /// # Errors
    /// [`WrongAdapter`](PoaError::WrongAdapter) if the object does not belong to this POA.
    pub fn reference_to_id<R: Reference>(&self, reference: &R) -> Result<ObjectId, PoaError> {
        let object = reference.as_object();
        let key = object.own_key().filter(|_| Arc::ptr_eq(object.orb(), &self.orb));
        let prefix = &*self.core.node().lookup.key_prefix;
        let id = key.and_then(|key| key.strip_prefix(prefix)).map(ObjectId::from);
        let id = id.filter(|id| !self.core.is_indexed() || self.check_id(id).is_ok());
        id.filter(|_| !prefix.is_empty()).ok_or(PoaError::WrongAdapter)
    }

    /// Returns the servant of the object, or the default servant if the object is not active.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) if the POA has neither RETAIN nor USE_DEFAULT_SERVANT.
    /// * [`ObjectNotActive`](PoaError::ObjectNotActive) if there is no such servant.
    pub fn id_to_servant(&self, id: &ObjectId) -> Result<Servant, PoaError> {
        let is_met = self.policies().retains() || self.uses_default_servant();
        self.require(is_met, "id_to_servant", "RETAIN or USE_DEFAULT_SERVANT")?;
        self.servant_with_id(id)
    }

    /// Returns the reference of an active object.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has RETAIN.
    /// * [`ObjectNotActive`](PoaError::ObjectNotActive) if no object is active under the id.
    pub fn id_to_reference(&self, id: &ObjectId) -> Result<ObjectRef, PoaError> {
        self.require(self.policies().retains(), "id_to_reference", "RETAIN")?;
        let entry = self.entry(id.as_slice()).ok_or(PoaError::ObjectNotActive)?;
        Ok(ObjectRef::own_with_entry(&self.orb, &entry, entry.key()))
    }

    /// Returns the default servant.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_DEFAULT_SERVANT.
    /// * [`NoServant`](PoaError::NoServant) if none is set.
    #[doc(alias = "get_servant")]
    pub fn servant(&self) -> Result<Servant, PoaError> {
        self.require(self.uses_default_servant(), "get_servant", "USE_DEFAULT_SERVANT")?;
        self.default_servant().ok_or(PoaError::NoServant)
    }

    /// Sets or replaces the default servant. Running requests of the previous servant continue.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_DEFAULT_SERVANT.
    /// * `OBJECT_NOT_EXIST` minor OMG 2 after `destroy`.
    pub fn set_servant(&self, servant: Servant) -> Result<(), PoaError> {
        self.require(self.uses_default_servant(), "set_servant", "USE_DEFAULT_SERVANT")?;
        self.set_fallback(servant)
    }

    /// Sets the activator that creates servants on demand.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_SERVANT_MANAGER.
    /// * `OBJ_ADAPTER` minor OMG 4 unless the POA has RETAIN.
    /// * `OBJECT_NOT_EXIST` minor OMG 2 after `destroy`.
    /// * `BAD_INV_ORDER` minor OMG 6 if an activator is set already.
    #[doc(alias = "set_servant_manager")]
    pub fn set_servant_activator(&self, activator: impl ServantActivator) -> Result<(), PoaError> {
        self.require(self.uses_servant_manager(), "set_servant_manager", "USE_SERVANT_MANAGER")?;
        if !self.policies().retains() {
            return Err(PoaError::wrong_manager_kind("a POA with NON_RETAIN requires a servant locator"));
        }
        if !self.core.node().servant_activations.set(Arc::new(activator)) {
            return Err(PoaError::manager_is_set());
        }
        if self.core.is_destroyed() {
            self.core.node().servant_activations.release();
            return Err(PoaError::already_destroyed());
        }
        Ok(())
    }

    /// Sets the locator that finds the servant for each request.
    ///
    /// # Errors
    /// * [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_SERVANT_MANAGER.
    /// * `OBJ_ADAPTER` minor OMG 4 unless the POA has NON_RETAIN.
    /// * `OBJECT_NOT_EXIST` minor OMG 2 after `destroy`.
    /// * `BAD_INV_ORDER` minor OMG 6 if a locator is set already.
    #[doc(alias = "set_servant_manager")]
    pub fn set_servant_locator(&self, locator: impl ServantLocator) -> Result<(), PoaError> {
        self.require(self.uses_servant_manager(), "set_servant_manager", "USE_SERVANT_MANAGER")?;
        if self.policies().retains() {
            return Err(PoaError::wrong_manager_kind("a POA with RETAIN requires a servant activator"));
        }
        // Serializes concurrent calls, so that only the first one sets a locator.
        let _lock = self.core.children();
        if self.core.node().fallback.load().is_some() {
            return Err(PoaError::manager_is_set());
        }
        let skeleton = Arc::new(LocatorSkeleton(locator));
        self.set_fallback(Servant { skeleton, mode: RunMode::default() })
    }

    /// Returns whether a servant activator or locator is set.
    ///
    /// # Errors
    /// [`WrongPolicy`](PoaError::WrongPolicy) unless the POA has USE_SERVANT_MANAGER.
    #[doc(alias = "get_servant_manager")]
    pub fn has_servant_manager(&self) -> Result<bool, PoaError> {
        self.require(self.uses_servant_manager(), "get_servant_manager", "USE_SERVANT_MANAGER")?;
        Ok(self.core.node().servant_activations.has_activator() || self.core.node().fallback.load().is_some())
    }

    fn uses_servant_manager(&self) -> bool {
        self.policies().request_processing == RequestProcessingPolicy::ServantManager
    }

    fn require(&self, is_met: bool, operation: &'static str, policies: &'static str) -> Result<(), PoaError> {
        if is_met { Ok(()) } else { Err(PoaError::wrong_policy(operation, policies)) }
    }

    fn uses_default_servant(&self) -> bool {
        self.policies().request_processing == RequestProcessingPolicy::DefaultServant
    }

    fn activates_implicitly(&self) -> bool {
        self.policies().implicit_activation == ImplicitActivationPolicy::Implicit
    }

    fn can_find_by_servant(&self) -> bool {
        self.policies().retains() && (self.core.has_unique_ids() || self.activates_implicitly())
    }

    fn is_persistent(&self) -> bool {
        self.policies().lifespan == LifespanPolicy::Persistent
    }

    fn entry(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        let found = if self.core.is_indexed() {
            self.orb.adapter().find(&self.core.key(id)).filter(|entry| Arc::ptr_eq(&entry.poa, &self.core))
        } else {
            self.core.node().lookup.objects.get(id)
        };
        found.filter(|entry| !entry.is_deactivated())
    }

    fn next_id(&self) -> Vec<u8> {
        let adapter = self.orb.adapter();
        if self.core.is_indexed() {
            adapter.reserve(&self.core).to_bytes().to_vec()
        } else {
            adapter.next_id(self.is_persistent())
        }
    }

    pub(crate) fn check_id(&self, id: &ObjectId) -> Result<(), PoaError> {
        let bytes = id.as_slice();
        let adapter = self.orb.adapter();
        let is_chosen = if self.core.is_indexed() {
            bytes.try_into().is_ok_and(|bytes| adapter.is_reserved(SlotId::from_bytes(bytes), &self.core))
        } else {
            !self.core.chooses_ids() || adapter.was_chosen(bytes, self.is_persistent())
        };
        if !is_chosen {
            return Err(PoaError::foreign_id());
        }
        let len = self.core.node().lookup.key_prefix.len() + bytes.len();
        if len > MAX_KEY_BYTES { Err(KeyError::TooLong(len).into()) } else { Ok(()) }
    }

    fn activate_servant(
        &self,
        id: Option<&ObjectId>,
        servant: Servant,
    ) -> Result<Arc<ActiveObject>, PoaError> {
        if self.orb.closing.has_begun() {
            return Err(PoaError::shut_down());
        }
        if self.core.is_destroyed() {
            return Err(PoaError::already_destroyed());
        }
        let (adapter, poa) = (self.orb.adapter(), &self.core);
        let identity = servant.identity();
        // If the program has no other handle of the servant, it cannot ask for the servant's objects.
        // Therefore they are not recorded.
        let has_other_handles = Arc::strong_count(&servant.skeleton) > 1;
        if has_other_handles && poa.has_unique_ids() && !poa.objects_of_servant(identity).is_empty() {
            return Err(PoaError::ServantAlreadyActive);
        }
        let entry = match id {
            None if poa.is_indexed() => Some(adapter.activate(poa, servant)),
            None => adapter.activate_with_id(poa, &self.next_id(), servant),
            Some(id) if poa.is_indexed() => {
                let slot_id = id.as_slice().try_into().map(SlotId::from_bytes);
                adapter.activate_reserved(poa, slot_id.map_err(|_| PoaError::foreign_id())?, servant)
            }
            Some(id) => adapter.activate_with_id(poa, id.as_slice(), servant),
        };
        let entry = entry.ok_or(PoaError::ObjectAlreadyActive)?;
        // Pairs with the fence in `PoaCore::finish_destruction`: either the destruction finds this object, or
        // the check below sees the destruction.
        fence(Ordering::SeqCst);
        if poa.is_destroyed() {
            adapter.deactivate(&entry);
            return Err(PoaError::already_destroyed());
        }
        if has_other_handles && !poa.record_servant(identity, &entry, poa.has_unique_ids()) {
            adapter.deactivate(&entry);
            return Err(PoaError::ServantAlreadyActive);
        }
        Ok(entry)
    }

    /// Returns the id of the called object, if this servant serves the current request in this POA.
    fn current_id(&self, servant: &Servant) -> Option<ObjectId> {
        let request = crate::servant::try_request()?;
        let entry = request.entry().filter(|entry| Arc::ptr_eq(&entry.poa, &self.core))?;
        (entry.servant_address() == servant.identity()).then(|| request.object_id().into())
    }

    fn id_of_servant(&self, servant: &Servant) -> Result<ObjectId, PoaError> {
        if self.policies().retains()
            && self.core.has_unique_ids()
            && let Some(entry) = self.core.objects_of_servant(servant.identity()).first()
        {
            return Ok(entry.id().into());
        }
        if self.uses_default_servant()
            && let Some(id) = self.current_id(servant)
        {
            return Ok(id);
        }
        if self.policies().retains() && self.activates_implicitly() {
            return self.activate_servant(None, servant.clone()).map(|entry| entry.id().into());
        }
        self.current_id(servant).ok_or(PoaError::ServantNotActive)
    }

    fn servant_with_id(&self, id: &ObjectId) -> Result<Servant, PoaError> {
        let found = if self.policies().retains() { self.entry(id.as_slice()) } else { None };
        match found {
            Some(entry) => {
                // From now on, the program has a handle, with which it can ask for the servant's objects.
                self.core.record_servant(entry.servant_address(), &entry, false);
                Ok(Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode })
            }
            None if self.uses_default_servant() => self.default_servant().ok_or(PoaError::ObjectNotActive),
            None => Err(PoaError::ObjectNotActive),
        }
    }

    fn set_fallback(&self, servant: Servant) -> Result<(), PoaError> {
        if self.core.is_destroyed() {
            return Err(PoaError::already_destroyed());
        }
        self.orb.adapter().set_fallback(&self.core, servant);
        fence(Ordering::SeqCst);
        if self.core.is_destroyed() {
            self.core.release_fallback();
            return Err(PoaError::already_destroyed());
        }
        Ok(())
    }

    fn default_servant(&self) -> Option<Servant> {
        let entry = self.core.node().fallback.load_full()?;
        Some(Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode })
    }
}
