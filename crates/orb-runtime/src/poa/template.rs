//! [`IorTemplate`]: references of one POA and interface that differ only in the object.

use std::fmt;
use std::marker::PhantomData;

use giop_codec::giop::ObjectKey;
use giop_codec::ior::{Ior, ProfileTag, TaggedProfile};

#[cfg(feature = "experiments")]
use crate::experiments::OperationDemux;
use crate::object_key::ObjectId;
use crate::poa::error::PoaError;
use crate::poa::handle::Poa;
use crate::reference::{ObjectRef, Reference};

/// A template for references to objects of one POA as one interface. Everything except the object's id is
/// encoded once.
///
/// It serves programs that publish references to very many objects, for example those of a default servant.
/// An IOR takes two allocations per profile, and no look-up of addresses, components and code sets. The
/// result is byte for byte that of [`create_reference_with_id`](Poa::create_reference_with_id).
///
/// ```
/// # use orb_runtime::{ObjectRef, Orb};
/// # async fn example(orb: &Orb) -> Result<(), Box<dyn std::error::Error>> {
/// let accounts = orb.root_poa().child("accounts").persistent().user_ids().create()?;
/// let template = accounts.template::<ObjectRef>();
/// for number in 0..1000 {
///     println!("{}", template.ior(number.to_string())?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct IorTemplate<R> {
    poa: Poa,
    interface: PhantomData<fn() -> R>,
    /// `None` if references differ in more than the key.
    profiles: Option<Vec<Profile>>,
}

/// A profile without the object key.
#[derive(Clone)]
struct Profile {
    tag: ProfileTag,
    /// The bytes before the key's length.
    before: Box<[u8]>,
    /// The bytes from the next multiple of four after the key.
    after: Box<[u8]>,
    little: bool,
}

/// A placeholder for the key. Its length is a multiple of four bytes, so that the bytes after it are aligned
/// to four.
const SAMPLE: &[u8] = b"\xFBzorb's sample of a key.";

impl Poa {
    /// Creates a template for references to objects of this POA as the interface `R`. Everything except the
    /// object's id is encoded once.
    ///
    /// The template keeps the addresses at the time of this call.
    pub fn template<R: Reference>(&self) -> IorTemplate<R> {
        let type_id = R::REPOSITORY_ID;
        let sample = self.orb.ior(type_id, SAMPLE);
        // With numeric operations, each reference has operation numbers of its own.
        #[cfg(feature = "experiments")]
        let sample = sample.filter(|_| self.orb.config.server.demux.operations != OperationDemux::Numeric);
        let profiles = sample.and_then(|ior| ior.profiles.iter().map(Profile::around).collect());
        IorTemplate { poa: self.clone(), interface: PhantomData, profiles }
    }
}

impl<R: Reference> IorTemplate<R> {
    /// Returns the IOR of the object of that id. It has no profile if the ORB does not listen.
    ///
    /// # Errors
    /// Those of [`create_reference_with_id`](Poa::create_reference_with_id).
    pub fn ior(&self, id: impl Into<ObjectId>) -> Result<Ior, PoaError> {
        let id = id.into();
        self.poa.check_id(&id)?;
        let key = self.poa.core.key(id.as_slice());
        let Some(profiles) = &self.profiles else {
            let nowhere = || Ior { type_id: R::REPOSITORY_ID.to_owned(), profiles: Vec::new() };
            return Ok(self.poa.orb.ior(R::REPOSITORY_ID, &key).unwrap_or_else(nowhere));
        };
        let profiles = profiles.iter().map(|profile| profile.with(&key)).collect();
        Ok(Ior { type_id: R::REPOSITORY_ID.to_owned(), profiles })
    }

    /// Returns a reference to the object of that id.
    ///
    /// # Errors
    /// Those of [`ior`](Self::ior).
    pub fn reference(&self, id: impl Into<ObjectId>) -> Result<R, PoaError> {
        let id = id.into();
        let ior = self.ior(id.clone())?;
        let key = ObjectKey::from(self.poa.core.key(id.as_slice()).as_slice());
        Ok(R::from_object(ObjectRef::of_own(&self.poa.orb, ior, key)))
    }
}

impl Profile {
    /// Splits an encoded profile around the placeholder of the key.
    fn around(profile: &TaggedProfile) -> Option<Self> {
        let data = &profile.data;
        let at = data.windows(SAMPLE.len()).position(|octets| octets == SAMPLE)?;
        let before = data.get(..at.checked_sub(4)?)?.into();
        let after = data.get(at + SAMPLE.len()..)?.into();
        Some(Self { tag: profile.tag, before, after, little: data.first()? & 1 == 1 })
    }

    /// Returns the encoded profile with that key.
    fn with(&self, key: &[u8]) -> TaggedProfile {
        let len = key.len() as u32;
        let len = if self.little { len.to_le_bytes() } else { len.to_be_bytes() };
        let end = self.before.len() + len.len() + key.len();
        let padding = end.next_multiple_of(4) - end;
        let mut data = Vec::with_capacity(end + padding + self.after.len());
        data.extend_from_slice(&self.before);
        data.extend_from_slice(&len);
        data.extend_from_slice(key);
        if !self.after.is_empty() {
            data.extend_from_slice(&[0; 3][..padding]);
            data.extend_from_slice(&self.after);
        }
        TaggedProfile { tag: self.tag, data: data.into() }
    }
}

const _: () = assert!(SAMPLE.len().is_multiple_of(4));

impl<R> Clone for IorTemplate<R> {
    fn clone(&self) -> Self {
        Self { poa: self.poa.clone(), interface: PhantomData, profiles: self.profiles.clone() }
    }
}

impl<R> fmt::Debug for IorTemplate<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IorTemplate").field("poa", &self.poa).finish_non_exhaustive()
    }
}
