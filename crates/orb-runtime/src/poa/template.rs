//! [`IorTemplate`]: references that differ only in the object id.

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

/// A template for references to objects of one POA with one interface. Everything except the object id is
/// encoded once.
///
/// It is for programs that publish references to very many objects, such as the objects of a default servant.
/// Creating an IOR copies the encoded profiles around the new key. The IOR is byte for byte equal to the IOR
/// of a reference from [`create_reference_with_id`](Poa::create_reference_with_id).
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
    /// `None` if references differ in more than the key, or if the ORB does not listen.
    profiles: Option<Vec<Profile>>,
}

#[derive(Clone)]
struct Profile {
    tag: ProfileTag,
    /// The bytes before the length of the key.
    before: Box<[u8]>,
    /// The bytes after the key and its padding to a multiple of four.
    after: Box<[u8]>,
    is_little_endian: bool,
}

/// The key in the IOR from which the template is made. Its length is a multiple of 4, so no padding follows.
const PLACEHOLDER_KEY: &[u8] = b"\xFBzorb's sample of a key.";

impl Poa {
    /// Creates a template for references to objects of this POA with the interface of `R`. The references
    /// have the ORB's addresses at the time of this call.
    pub fn template<R: Reference>(&self) -> IorTemplate<R> {
        let type_id = R::REPOSITORY_ID;
        let placeholder_ior = self.orb.ior(type_id, PLACEHOLDER_KEY);
        // With numeric operations, each reference has operation numbers of its own.
        #[cfg(feature = "experiments")]
        let placeholder_ior =
            placeholder_ior.filter(|_| self.orb.config.server.demux.operations != OperationDemux::Numeric);
        let profiles = placeholder_ior.and_then(|ior| ior.profiles.iter().map(Profile::split).collect());
        IorTemplate { poa: self.clone(), interface: PhantomData, profiles }
    }
}

impl<R: Reference> IorTemplate<R> {
    /// Returns the IOR of the object with this id. The IOR has no profile if the ORB does not listen.
    ///
    /// # Errors
    /// The same as for [`create_reference_with_id`](Poa::create_reference_with_id).
    pub fn ior(&self, id: impl Into<ObjectId>) -> Result<Ior, PoaError> {
        let id = id.into();
        self.poa.check_id(&id)?;
        let key = self.poa.core.key(id.as_slice());
        let Some(profiles) = &self.profiles else {
            let without_profile = || Ior { type_id: R::REPOSITORY_ID.to_owned(), profiles: Vec::new() };
            return Ok(self.poa.orb.ior(R::REPOSITORY_ID, &key).unwrap_or_else(without_profile));
        };
        let profiles = profiles.iter().map(|profile| profile.with_key(&key)).collect();
        Ok(Ior { type_id: R::REPOSITORY_ID.to_owned(), profiles })
    }

    /// Returns a reference to the object with this id.
    ///
    /// # Errors
    /// The same as for [`ior`](Self::ior).
    pub fn reference(&self, id: impl Into<ObjectId>) -> Result<R, PoaError> {
        let id = id.into();
        let ior = self.ior(id.clone())?;
        let key = ObjectKey::from(self.poa.core.key(id.as_slice()).as_slice());
        Ok(R::from_object(ObjectRef::own_with_ior(&self.poa.orb, ior, key)))
    }
}

impl Profile {
    fn split(profile: &TaggedProfile) -> Option<Self> {
        let data = &profile.data;
        let at = data.windows(PLACEHOLDER_KEY.len()).position(|bytes| bytes == PLACEHOLDER_KEY)?;
        let before = data.get(..at.checked_sub(4)?)?.into();
        let after = data.get(at + PLACEHOLDER_KEY.len()..)?.into();
        Some(Self { tag: profile.tag, before, after, is_little_endian: data.first()? & 1 == 1 })
    }

    fn with_key(&self, key: &[u8]) -> TaggedProfile {
        let len = key.len() as u32;
        let len = if self.is_little_endian { len.to_le_bytes() } else { len.to_be_bytes() };
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

const _: () = assert!(PLACEHOLDER_KEY.len().is_multiple_of(4));

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
