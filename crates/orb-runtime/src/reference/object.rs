//! The untyped reference and the state of its connection.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use giop_codec::cdr::{CdrDecode, CdrEncode, CodeSets, Decoder, Encoder, Nilable};
use giop_codec::giop::{ObjectKey, ServiceContext};
use giop_codec::ior::{ComponentTag, IiopProfile, Ior, RebindMode, TaggedComponent};
use giop_codec::typecode::{TypeDesc, Typed};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Printable, Version};

use crate::connection::Binding;
use crate::endpoint::{Host, profiles};
use crate::opaque::Opaque;
use crate::reference::{CallOptions, Reference};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::find_object_etherealized_after_callers;

/// A reference to an object of any interface (`CORBA::Object`).
///
/// Clones are cheap. References are equal if their IORs are equal byte for byte. See also
/// [`Reference::is_equivalent`].
#[derive(Clone)]
pub struct ObjectRef {
    core: Opaque<RefCore>,
    /// `None` means the default options.
    options: Option<Arc<CallOptions>>,
}

struct RefCore {
    ior: Ior,
    orb: Arc<Shared>,
    /// Set if the object belongs to this ORB.
    own: Option<OwnObject>,
    profiles: OnceLock<Vec<IiopProfile>>,
    binding: ArcSwapOption<Binding>,
    /// The profiles to which calls were forwarded. They replace the reference's own profiles.
    forward: ArcSwapOption<Vec<IiopProfile>>,
    /// Whether the server has confirmed that it has the object.
    is_located: AtomicBool,
    was_bound: AtomicBool,
    /// Whether oneways over an earlier connection may be lost, and no flush has reported this.
    lost_oneways: AtomicBool,
    /// Set if the reference was created from a URL, which contains only a part of the server's reference.
    url: Option<UrlVersion>,
    /// Whether the server must be asked for its own reference to the object.
    must_fetch_reference: AtomicBool,
    required_encoding: Option<RequiredEncoding>,
    /// The credentials of calls, if they differ from the ORB's.
    #[cfg(feature = "csi")]
    credentials: Option<crate::csi::Credentials>,
}

/// Whether the URL of a reference contains an IIOP version. If not, the server's version is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlVersion {
    Unversioned,
    Versioned,
}

/// The GIOP version and the code sets that all requests through a reference must have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequiredEncoding {
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// The key of an object of this ORB, and the active object that was last found under it.
struct OwnObject {
    key: ObjectKey,
    entry: ArcSwapOption<ActiveObject>,
}

/// The rule for repeating failed calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Repeats a call only if it was certainly not executed (COMPLETED_NO), at most twice.
    #[default]
    NotExecuted,
    /// Repeats a call after a lost connection, up to this number of times. Operations may be executed again.
    Idempotent(u32),
    /// Never repeats a call.
    Never,
}

impl Retry {
    /// Returns [`Idempotent`](Self::Idempotent), the only rule that repeats calls with COMPLETED_MAYBE.
    #[must_use]
    pub fn idempotent(times: u32) -> Self {
        Self::Idempotent(times)
    }
}

/// The event at which a oneway call completes for its caller (`Messaging::SyncScope`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncScope {
    /// The request is queued. The queue is bounded, and `flush` reports a later failure.
    #[default]
    #[doc(alias = "SYNC_NONE")]
    Queued,
    /// The operating system has accepted the request.
    #[doc(alias = "SYNC_WITH_TRANSPORT")]
    Transport,
    /// The server has received the request.
    #[doc(alias = "SYNC_WITH_SERVER")]
    Server,
    /// The servant has returned.
    #[doc(alias = "SYNC_WITH_TARGET")]
    Target,
}

/// Additional information of the last reply: see [`Reference::with_reply_info`].
#[derive(Debug, Clone, Default)]
pub struct ReplyInfo {
    contexts: Arc<Mutex<Vec<ServiceContext>>>,
}

impl ReplyInfo {
    /// Creates an empty `ReplyInfo`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the service contexts of the last reply.
    #[must_use]
    pub fn contexts(&self) -> Vec<ServiceContext> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, contexts: Vec<ServiceContext>) {
        *self.contexts.lock().unwrap_or_else(PoisonError::into_inner) = contexts;
    }
}

static DEFAULT_OPTIONS: LazyLock<CallOptions> = LazyLock::new(|| CallOptions {
    timeout: None,
    retry: Retry::default(),
    sync_scope: SyncScope::default(),
    contexts: Arc::new([]),
    reply_info: None,
    rebind: RebindMode::Transparent,
    deadline: None,
    fragment_size: None,
});

impl ObjectRef {
    /// Creates a reference to the object of the IOR. Calls of an object of this ORB use no connection.
    pub(crate) fn new(orb: &Arc<Shared>, ior: Ior) -> Self {
        let own = profiles(&ior).next().filter(|profile| orb.is_own(profile));
        let own = own.map(|profile| OwnObject::new(profile.object_key, None));
        Self::from_parts(orb, ior, own, None)
    }

    /// Creates a reference to the object of this ORB with this key. The entry may serve several objects.
    pub(crate) fn own_with_entry(orb: &Arc<Shared>, entry: &Arc<ActiveObject>, key: &[u8]) -> Self {
        Self::own_with_key(orb, entry.skeleton.repository_id(), ObjectKey::from(key), Some(Arc::clone(entry)))
    }

    /// Creates a reference to an object of this ORB that need not be active.
    pub(crate) fn own_with_key(
        orb: &Arc<Shared>,
        type_id: &str,
        key: ObjectKey,
        entry: Option<Arc<ActiveObject>>,
    ) -> Self {
        let ior = orb.ior(type_id, key.as_slice());
        // In an ORB that does not listen, the reference has no profile and is valid only in this process.
        let ior = ior.unwrap_or_else(|| Ior { type_id: type_id.to_owned(), profiles: Vec::new() });
        Self::from_parts(orb, ior, Some(OwnObject::new(key, entry)), None)
    }

    pub(crate) fn own_with_ior(orb: &Arc<Shared>, ior: Ior, key: ObjectKey) -> Self {
        Self::from_parts(orb, ior, Some(OwnObject::new(key, None)), None)
    }

    pub(crate) fn nil(orb: &Arc<Shared>) -> Self {
        Self::from_parts(orb, Ior::nil(), None, None)
    }

    fn from_parts(
        orb: &Arc<Shared>,
        ior: Ior,
        own: Option<OwnObject>,
        required_encoding: Option<RequiredEncoding>,
    ) -> Self {
        let core = RefCore {
            ior,
            orb: Arc::clone(orb),
            own,
            profiles: OnceLock::new(),
            binding: ArcSwapOption::empty(),
            forward: ArcSwapOption::empty(),
            is_located: AtomicBool::new(false),
            was_bound: AtomicBool::new(false),
            lost_oneways: AtomicBool::new(false),
            url: None,
            must_fetch_reference: AtomicBool::new(false),
            required_encoding,
            #[cfg(feature = "csi")]
            credentials: None,
        };
        Self { core: Arc::new(core).into(), options: None }
    }

    pub(crate) fn of_url(orb: &Arc<Shared>, ior: Ior, url: UrlVersion) -> Self {
        let mut object = Self::new(orb, ior);
        if let Some(core) = object.core.get_mut() {
            core.url = Some(url);
            core.must_fetch_reference = AtomicBool::new(core.own.is_none());
        }
        object
    }

    /// Returns whether the server must be asked for the object's reference, because only a URL is known.
    pub(crate) fn must_fetch_reference(&self) -> bool {
        self.core.must_fetch_reference.load(Ordering::Relaxed)
    }

    pub(crate) fn set_reference_fetched(&self) {
        self.core.must_fetch_reference.store(false, Ordering::Relaxed);
    }

    /// Adds the data of the server's own reference to this one. Returns `false` if the server's reference
    /// refers to another object.
    pub(crate) fn merge_fetched_reference(&self, called: &IiopProfile, reference: &Ior) -> bool {
        let can_raise_version = self.core.url == Some(UrlVersion::Unversioned);
        let Some(profile) = merged_profile(called, reference, can_raise_version) else { return false };
        self.core.forward.store(Some(Arc::new(vec![profile])));
        self.set_reference_fetched();
        self.replace_binding(None);
        true
    }

    /// Returns an unbound reference to the same object with the same options and credentials.
    fn clone_unbound(&self, required_encoding: Option<RequiredEncoding>) -> Self {
        let own = self.core.own.as_ref().map(|own| OwnObject::new(own.key.clone(), None));
        #[cfg_attr(
            not(feature = "csi"),
            expect(unused_mut, reason = "only the feature `csi` adds credentials")
        )]
        let mut same = Self::from_parts(&self.core.orb, self.core.ior.clone(), own, required_encoding);
        #[cfg(feature = "csi")]
        if let (Some(core), Some(credentials)) = (same.core.get_mut(), &self.core.credentials) {
            core.credentials = Some(credentials.clone());
        }
        Self { options: self.options.clone(), ..same }
    }

    #[cfg(feature = "csi")]
    pub(crate) fn clone_with_credentials(&self, credentials: &crate::csi::Credentials) -> Self {
        let mut same = self.clone_unbound(self.core.required_encoding);
        if let Some(core) = same.core.get_mut() {
            core.credentials = Some(credentials.clone());
            core.url = self.core.url;
            core.must_fetch_reference = AtomicBool::new(self.core.url.is_some());
        }
        same
    }

    #[cfg(feature = "csi")]
    pub(crate) fn credentials(&self) -> Option<&crate::csi::Credentials> {
        self.core.credentials.as_ref()
    }

    pub(crate) fn clone_with_required_encoding(&self, version: Version, code_sets: CodeSets) -> Self {
        self.clone_unbound(Some(RequiredEncoding { version, code_sets }))
    }

    pub(crate) fn required_encoding(&self) -> Option<RequiredEncoding> {
        self.core.required_encoding
    }

    pub(crate) fn with_options(&self, f: impl FnOnce(&mut CallOptions)) -> Self {
        let mut options = self.options().clone();
        f(&mut options);
        Self { core: self.core.clone(), options: Some(Arc::new(options)) }
    }

    #[inline]
    pub(crate) fn options(&self) -> &CallOptions {
        self.options.as_deref().unwrap_or_else(|| &DEFAULT_OPTIONS)
    }

    #[inline]
    pub(crate) fn orb(&self) -> &Arc<Shared> {
        &self.core.orb
    }

    /// Returns the object's entry if the object is active in this ORB. While the object is being
    /// etherealized, only its own requests get the entry.
    #[inline]
    pub(crate) fn active_entry(&self) -> Option<Arc<ActiveObject>> {
        let own = self.core.own.as_ref()?;
        let last = own.entry.load();
        match last.as_ref() {
            Some(entry) if !entry.is_deactivated() => Some(Arc::clone(entry)),
            _ => {
                let orb = &self.core.orb;
                own.find(orb).or_else(|| find_object_etherealized_after_callers(orb, own.key.as_slice()))
            }
        }
    }

    /// Returns the last result of [`active_entry`](Self::active_entry), even if the object is not active now.
    pub(crate) fn last_active_entry(&self) -> Option<Arc<ActiveObject>> {
        self.core.own.as_ref()?.entry.load_full()
    }

    #[inline]
    pub(crate) fn own_key(&self) -> Option<&[u8]> {
        self.core.own.as_ref().map(|own| own.key.as_slice())
    }

    /// Returns the interoperable object reference (IOR).
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.core.ior
    }

    /// Returns the IOR, or `None` for an object of an ORB that does not listen.
    pub(crate) fn shared_ior(&self) -> Option<Arc<Ior>> {
        (!self.has_no_address()).then(|| Arc::new(self.core.ior.clone()))
    }

    /// Returns whether this is an object of an ORB that does not listen.
    fn has_no_address(&self) -> bool {
        self.core.own.is_some() && self.core.ior.is_nil()
    }

    /// Returns the profiles to call: the profiles to which calls were forwarded, or else the reference's own.
    pub(crate) fn profiles(&self) -> Vec<IiopProfile> {
        self.core.forward.load_full().map_or_else(|| self.ior_profiles().to_vec(), Arc::unwrap_or_clone)
    }

    pub(crate) fn ior_profiles(&self) -> &[IiopProfile] {
        self.core.profiles.get_or_init(|| profiles(&self.core.ior).collect())
    }

    /// Forwards calls to this location from now on. Returns `false` if the location has no usable profile.
    pub(crate) fn forward_to(&self, ior: &Ior) -> bool {
        let profiles: Vec<IiopProfile> = profiles(ior).collect();
        let is_usable = !profiles.is_empty();
        if is_usable {
            self.core.forward.store(Some(Arc::new(profiles)));
            self.replace_binding(None);
            self.set_located(false);
        }
        is_usable
    }

    /// Uses the reference's own profiles again. Returns `false` if calls were not forwarded.
    pub(crate) fn drop_forward(&self) -> bool {
        self.replace_binding(None);
        self.set_located(false);
        let was_forwarded = self.core.forward.swap(None).is_some();
        if was_forwarded && self.core.url.is_some() {
            self.core.must_fetch_reference.store(true, Ordering::Relaxed);
        }
        was_forwarded
    }

    /// Returns the key if the object belongs to this ORB and calls are not forwarded.
    pub(crate) fn unforwarded_own_key(&self) -> Option<ObjectKey> {
        let own = self.core.own.as_ref()?;
        self.core.forward.load().is_none().then(|| own.key.clone())
    }

    pub(crate) fn is_located(&self) -> bool {
        self.core.is_located.load(Ordering::Relaxed)
    }

    pub(crate) fn set_located(&self, located: bool) {
        self.core.is_located.store(located, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn binding(&self) -> Option<Arc<Binding>> {
        self.core.binding.load_full()
    }

    /// Returns whether the reference was bound since the last call of [`clear_bound`](Self::clear_bound).
    pub(crate) fn was_bound(&self) -> bool {
        self.core.was_bound.load(Ordering::Relaxed)
    }

    pub(crate) fn clear_bound(&self) {
        self.core.was_bound.store(false, Ordering::Relaxed);
    }

    pub(crate) fn bind(&self, binding: Arc<Binding>) {
        self.core.was_bound.store(true, Ordering::Relaxed);
        self.replace_binding(Some(binding));
    }

    /// Removes a binding whose connection is no longer usable, unless it was already replaced.
    pub(crate) fn unbind(&self, used: &Arc<Binding>) {
        if self.core.binding.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
            self.replace_binding(None);
        }
    }

    /// Replaces the binding. Records whether oneways over the previous connection may be lost.
    fn replace_binding(&self, next: Option<Arc<Binding>>) {
        let unreported =
            |before: &Binding| !before.is_loss_reported.load(Ordering::Relaxed) && before.lost_oneways();
        if self.core.binding.swap(next).is_some_and(|before| unreported(&before)) {
            self.core.lost_oneways.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether oneways over an earlier connection may be lost. Clears the flag.
    pub(crate) fn take_lost_oneways(&self) -> bool {
        self.core.lost_oneways.swap(false, Ordering::Relaxed)
    }
}

impl OwnObject {
    fn new(key: ObjectKey, entry: Option<Arc<ActiveObject>>) -> Self {
        Self { key, entry: ArcSwapOption::new(entry) }
    }

    #[cold]
    fn find(&self, orb: &Shared) -> Option<Arc<ActiveObject>> {
        let found = orb.adapter().find(self.key.as_slice()).filter(|entry| !entry.is_deactivated())?;
        self.entry.store(Some(Arc::clone(&found)));
        Some(found)
    }
}

impl Reference for ObjectRef {
    const REPOSITORY_ID: &'static str = crate::servant::request::OBJECT_REPOSITORY_ID;

    fn from_object(object: ObjectRef) -> Self {
        object
    }

    fn as_object(&self) -> &ObjectRef {
        self
    }
}

/// Writes the stringified IOR. For an object of an ORB that does not listen, writes an explanation.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.core.own.is_some() && self.core.ior.profiles.is_empty() {
            return f.write_str("<object of an ORB that does not listen: add .listen(..) to its builder>");
        }
        self.core.ior.fmt(f)
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ObjectRef");
        shown.field("type_id", &Printable::new(&self.core.ior.type_id));
        if let Some(profile) = self.ior_profiles().first() {
            shown.field("address", &format_args!("{}:{}", Host(&profile.host), profile.port));
            shown.field("key", &format_args!("{}", profile.object_key));
        }
        shown.field("local", &self.core.own.is_some()).finish()
    }
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        self.core.is_same(&other.core) || self.core.ior == other.core.ior
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.core.ior.hash(state);
    }
}

impl CdrEncode for ObjectRef {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.keep_context(self.orb());
        if self.has_no_address() {
            return Err(EncodeErrorKind::NoEndpoint.into());
        }
        self.core.ior.encode(e)
    }
}

impl CdrDecode for ObjectRef {
    const MIN_SIZE: usize = <Ior as CdrDecode>::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let at = d.position();
        Self::decode_nilable(d)?.ok_or_else(|| DecodeError::new(DecodeErrorKind::NilReference, at))
    }
}

impl Typed for ObjectRef {
    const DESC: &'static TypeDesc = TypeDesc::OBJECT;
}

impl Nilable for ObjectRef {
    const MIN_SIZE: usize = <Ior as CdrDecode>::MIN_SIZE;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.encode(e)
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        Ior::nil().encode(e)
    }

    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        let at = d.position();
        let ior = Ior::decode(d)?;
        if ior.is_nil() {
            return Ok(None);
        }
        // Decoders of an ORB's messages have the ORB as context. A reference cannot be decoded without an
        // ORB.
        let orb = d.context::<Arc<Shared>>().ok_or_else(|| DecodeError::new(DecodeErrorKind::NoOrb, at))?;
        Ok(Some(Self::new(orb, ior)))
    }
}

/// Merges the called profile with the reference that the server returned, or returns `None` if the reference
/// refers to another object. The address of the called profile is kept, because it may be the only one that
/// is reachable through a tunnel or an address translation. If `can_raise_version`, a newer version of the
/// reference is used.
pub(crate) fn merged_profile(
    called: &IiopProfile,
    reference: &Ior,
    can_raise_version: bool,
) -> Option<IiopProfile> {
    const MERGED_COMPONENTS: [ComponentTag; 4] = [
        ComponentTag::ORB_TYPE,
        ComponentTag::CODE_SETS,
        ComponentTag::ZORB_BLOCKS,
        ComponentTag::ZORB_OPERATIONS,
    ];
    let returned = profiles(reference).find(|profile| profile.object_key == called.object_key)?;
    let mut profile = called.clone();
    if can_raise_version {
        profile.version = profile.version.max(returned.version);
    }
    let is_merged = |component: &TaggedComponent| MERGED_COMPONENTS.contains(&component.tag);
    profile.components.retain(|component| !is_merged(component));
    profile.components.extend(returned.components.into_iter().filter(is_merged));
    Some(profile)
}
