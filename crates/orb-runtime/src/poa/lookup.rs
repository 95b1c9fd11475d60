//! Finding the objects of an ORB by their keys.

use std::sync::Arc;

use giop_codec::exception::{MinorCode, SystemException, minor};
use giop_codec::giop::ObjectKey;

use crate::object_key::SystemId;
use crate::poa::object_adapter::{Located, ObjectAdapter};
use crate::poa::policy::LifespanPolicy;
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_core::Gate;

impl Shared {
    #[inline]
    #[expect(clippy::expect_used, reason = "the builder always sets it")]
    pub(crate) fn adapter(&self) -> &Arc<ObjectAdapter> {
        self.extensions.adapter.get().expect("an ORB has an object adapter")
    }

    /// Returns whether a request for the key may find an object: now, after the request has been held, or
    /// because an activator creates the object or its POA.
    pub(crate) fn may_be_here(&self, key: &[u8]) -> bool {
        let may_exist = match self.adapter().locate_with_missing_poa(key) {
            Located::Object(entry) => {
                !entry.is_deactivated() || entry.poa.node().servant_activations.has_activator()
            }
            Located::MissingObject(poa, _) => {
                poa.gate() == Gate::Holding || poa.node().servant_activations.has_activator()
            }
            Located::MissingPoa(parent, _) => {
                parent.gate() == Gate::Holding || parent.node().adapter_activations.has_activator()
            }
            Located::NotFound => false,
        };
        may_exist || (self.pauses.awaits_resume() && self.adapter().is_activatable_key(key))
    }

    /// Deactivates an object. If its POA has a servant activator, that etherealizes the servant after the
    /// last request. Returns `false` if the object was deactivated before.
    pub(crate) fn deactivate(self: &Arc<Self>, entry: &Arc<ActiveObject>, cleanup_in_progress: bool) -> bool {
        if entry.poa.node().servant_activations.has_activator() {
            entry.poa.etherealize(self, entry, cleanup_in_progress)
        } else {
            self.adapter().deactivate(entry)
        }
    }
}

impl ObjectAdapter {
    /// Returns the exception for a key whose POA does not exist. If the key contains the index of an object
    /// or is malformed, it does not identify a POA, and the exception says that the object does not exist.
    #[cold]
    pub(crate) fn no_such_adapter(&self, key: &[u8]) -> SystemException {
        match self.is_activatable_key(key) {
            true => not_exist(minor::OBJECT_NOT_EXIST_NO_ADAPTER, no_object(key)),
            false => no_such_object(key),
        }
    }
}

#[cold]
pub(crate) fn no_such_object(key: &[u8]) -> SystemException {
    not_exist(minor::OBJECT_NOT_EXIST_NO_OBJECT, no_object(key))
}

#[cold]
pub(crate) fn no_such_poa(name: &str) -> SystemException {
    not_exist(minor::OBJECT_NOT_EXIST_NO_ADAPTER, format!("there is no POA `{name}`"))
}

fn no_object(key: &[u8]) -> String {
    format!("no object is active under the key {}", ObjectKey::from(key))
}

fn not_exist(minor: MinorCode, text: String) -> SystemException {
    SystemException::object_not_exist().with_minor(minor).with_reason(text)
}

impl SystemId {
    /// Parses an id that a POA with this lifespan and SYSTEM_ID chose. Returns `None` for other bytes.
    #[must_use]
    pub fn parse(lifespan: LifespanPolicy, id: &[u8]) -> Option<Self> {
        match lifespan {
            LifespanPolicy::Transient => Some(Self::Counted(u64::from_be_bytes(id.try_into().ok()?))),
            LifespanPolicy::Persistent => {
                let (boot, count) = id.split_first_chunk()?;
                Some(Self::Stamped { boot: *boot, count: u32::from_be_bytes(count.try_into().ok()?) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_poa_chose_are_parsed() {
        let stamped = SystemId::Stamped { boot: [1, 2, 3, 4, 5, 6, 7, 8], count: 3 };
        let cases: [(_, _, &[u8]); 2] = [
            (LifespanPolicy::Transient, SystemId::Counted(0x0102), &[0, 0, 0, 0, 0, 0, 1, 2]),
            (LifespanPolicy::Persistent, stamped, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 3]),
        ];
        for (lifespan, id, bytes) in cases {
            assert_eq!(id.object_id().as_slice(), bytes);
            assert_eq!(SystemId::parse(lifespan, bytes), Some(id));
            for foreign in ["", "account/7!", "account/7890123"] {
                assert_eq!(SystemId::parse(lifespan, foreign.as_bytes()), None, "{foreign}");
            }
        }
        let id = |boot| SystemId::Stamped { boot, count: 1 }.object_id();
        assert_ne!(id([1; 8]), id([2; 8]), "ids of different runs differ");
    }
}
