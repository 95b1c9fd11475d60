//! The untyped reference and the state of its connection.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use giop_codec::cdr::{CdrDecode, CdrEncode, CodeSets, Decoder, Encoder, Nilable};
use giop_codec::giop::{ObjectKey, ServiceContext};
use giop_codec::ior::{ComponentTag, IiopProfile, Ior, RebindMode};
use giop_codec::typecode::{TypeDesc, Typed};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Printable, Version};

use crate::connection::Binding;
use crate::endpoint::{Host, profiles};
use crate::opaque::Opaque;
use crate::reference::{CallOptions, Reference};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::etherealizing_in_caller;

/// A reference to an object of any interface (`CORBA::Object`).
///
/// Clones are cheap. References are equal if the bytes of their IORs are: see [`Reference::is_equivalent`].
#[derive(Clone)]
pub struct ObjectRef {
    core: Opaque<RefCore>,
    /// `None`: the defaults.
    options: Option<Arc<CallOptions>>,
}

struct RefCore {
    ior: Ior,
    orb: Arc<Shared>,
    /// Set for an object of this ORB.
    own: Option<Own>,
    profiles: OnceLock<Vec<IiopProfile>>,
    binding: ArcSwapOption<Binding>,
    /// Profiles of the forward target, used in place of the reference's own.
    forward: ArcSwapOption<Vec<IiopProfile>>,
    /// A server has confirmed the location of the object, or forwarded the reference to it.
    located: AtomicBool,
    /// Set once it has been bound.
    bound: AtomicBool,
    /// Oneways over an earlier connection may be lost, and no flush has reported that yet.
    lost_oneways: AtomicBool,
    /// It was created from a URL, so that a zorb server is asked for the rest of the reference.
    url: Option<Url>,
    /// The server is still to be asked.
    asks: AtomicBool,
    /// The required form of connections, if there is one.
    demand: Option<RequiredForm>,
    /// The credentials of its calls, if they differ from those of the ORB.
    #[cfg(feature = "csi")]
    credentials: Option<crate::csi::Credentials>,
}

/// Whether the URL of a reference contains a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Url {
    /// It has no version: the server may choose any.
    Unversioned,
    /// It has a version, which is kept.
    Versioned,
}

/// The required form of all requests through a reference. Connections of another form are not used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequiredForm {
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// The key of an object of this ORB, and its entry while it is active.
struct Own {
    key: ObjectKey,
    entry: ArcSwapOption<ActiveObject>,
}

/// The rule for repeating failed calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Repeats only requests that were certainly not executed (COMPLETED_NO), once for each address.
    #[default]
    NotExecuted,
    /// The operations may run twice: after a lost connection, a call is repeated up to that many times.
    Idempotent(u32),
    /// Never repeats.
    Never,
}

impl Retry {
    /// Allows operations to be executed more than once. Only this rule repeats calls with COMPLETED_MAYBE.
    #[must_use]
    pub fn idempotent(times: u32) -> Self {
        Self::Idempotent(times)
    }
}

/// The point at which a oneway completes for its caller (`Messaging::SyncScope`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncScope {
    /// It is queued. The queue is bounded, and `flush` reports a later failure.
    #[default]
    #[doc(alias = "SYNC_NONE")]
    Queued,
    /// The operating system has accepted it.
    #[doc(alias = "SYNC_WITH_TRANSPORT")]
    Transport,
    /// The server has received it.
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
    /// Creates an empty one.
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

static DEFAULTS: LazyLock<CallOptions> = LazyLock::new(|| CallOptions {
    timeout: None,
    retry: Retry::default(),
    scope: SyncScope::default(),
    contexts: Arc::new([]),
    info: None,
    rebind: RebindMode::Transparent,
    until: None,
    fragment_size: None,
});

impl ObjectRef {
    /// Creates a reference to the object of the IOR. An object of this ORB is called directly.
    pub(crate) fn new(orb: &Arc<Shared>, ior: Ior) -> Self {
        let own = profiles(&ior).next().filter(|profile| orb.is_own(profile));
        let own = own.map(|profile| Own::new(profile.object_key, None));
        Self::with_own(orb, ior, own)
    }

    /// Creates a reference to the object of this ORB with that key. The entry may serve several objects.
    pub(crate) fn local(orb: &Arc<Shared>, entry: &Arc<ActiveObject>, key: &[u8]) -> Self {
        Self::of_key(orb, entry.skeleton.repository_id(), ObjectKey::from(key), Some(Arc::clone(entry)))
    }

    /// Creates a reference to an object of this ORB that may not be active.
    pub(crate) fn of_key(
        orb: &Arc<Shared>,
        type_id: &str,
        key: ObjectKey,
        entry: Option<Arc<ActiveObject>>,
    ) -> Self {
        let ior = orb.ior(type_id, key.as_slice());
        // In an ORB that does not listen, the reference has no profile and is valid only in this process.
        let ior = ior.unwrap_or_else(|| Ior { type_id: type_id.to_owned(), profiles: Vec::new() });
        Self::with_own(orb, ior, Some(Own::new(key, entry)))
    }

    /// Creates a reference to an object of this ORB whose IOR is known.
    pub(crate) fn of_own(orb: &Arc<Shared>, ior: Ior, key: ObjectKey) -> Self {
        Self::with_own(orb, ior, Some(Own::new(key, None)))
    }

    /// Creates a nil reference.
    pub(crate) fn nowhere(orb: &Arc<Shared>) -> Self {
        Self::with_own(orb, Ior::nil(), None)
    }

    fn with_own(orb: &Arc<Shared>, ior: Ior, own: Option<Own>) -> Self {
        Self::new_core(orb, ior, own, None)
    }

    fn new_core(orb: &Arc<Shared>, ior: Ior, own: Option<Own>, demand: Option<RequiredForm>) -> Self {
        let core = RefCore {
            ior,
            orb: Arc::clone(orb),
            own,
            profiles: OnceLock::new(),
            binding: ArcSwapOption::empty(),
            forward: ArcSwapOption::empty(),
            located: AtomicBool::new(false),
            bound: AtomicBool::new(false),
            lost_oneways: AtomicBool::new(false),
            url: None,
            asks: AtomicBool::new(false),
            demand,
            #[cfg(feature = "csi")]
            credentials: None,
        };
        Self { core: Arc::new(core).into(), options: None }
    }

    /// Creates a reference from a URL.
    pub(crate) fn of_url(orb: &Arc<Shared>, ior: Ior, url: Url) -> Self {
        let mut object = Self::new(orb, ior);
        if let Some(core) = object.core.get_mut() {
            core.url = Some(url);
            core.asks = AtomicBool::new(core.own.is_none());
        }
        object
    }

    /// Returns whether to ask the server for the object's reference, because only a URL is known.
    pub(crate) fn asks(&self) -> bool {
        self.core.asks.load(Ordering::Relaxed)
    }

    /// Records that the server was asked and its answer was not used.
    pub(crate) fn set_asked(&self) {
        self.core.asks.store(false, Ordering::Relaxed);
    }

    /// Updates the reference with the server's answer. Returns `false` if that forwards to another object.
    pub(crate) fn learn(&self, called: &IiopProfile, reference: &Ior) -> bool {
        let raises = self.core.url == Some(Url::Unversioned);
        let Some(profile) = told(called, reference, raises) else { return false };
        self.core.forward.store(Some(Arc::new(vec![profile])));
        self.set_asked();
        self.leave_binding(None);
        true
    }

    /// Returns a reference to the same object, with this one's credentials and its own binding.
    fn anew(&self, demand: Option<RequiredForm>) -> Self {
        let own = self.core.own.as_ref().map(|own| Own::new(own.key.clone(), None));
        #[cfg_attr(
            not(feature = "csi"),
            expect(unused_mut, reason = "it has credentials where there are any")
        )]
        let mut same = Self::new_core(&self.core.orb, self.core.ior.clone(), own, demand);
        #[cfg(feature = "csi")]
        if let (Some(core), Some(credentials)) = (same.core.get_mut(), &self.core.credentials) {
            core.credentials = Some(credentials.clone());
        }
        Self { options: self.options.clone(), ..same }
    }

    /// Returns another reference to the same object, with other credentials.
    #[cfg(feature = "csi")]
    pub(crate) fn calling_as(&self, credentials: &crate::csi::Credentials) -> Self {
        let mut same = self.anew(self.core.demand);
        if let Some(core) = same.core.get_mut() {
            core.credentials = Some(credentials.clone());
            core.url = self.core.url;
            core.asks = AtomicBool::new(self.core.url.is_some());
        }
        same
    }

    /// Returns the credentials of its calls, if they differ from those of the ORB.
    #[cfg(feature = "csi")]
    pub(crate) fn credentials(&self) -> Option<&crate::csi::Credentials> {
        self.core.credentials.as_ref()
    }

    /// Returns another reference to the same object, whose requests are sent only in that form.
    pub(crate) fn for_bodies(&self, version: Version, code_sets: CodeSets) -> Self {
        self.anew(Some(RequiredForm { version, code_sets }))
    }

    /// Returns the required form of its requests.
    pub(crate) fn demand(&self) -> Option<RequiredForm> {
        self.core.demand
    }

    pub(crate) fn change(&self, f: impl FnOnce(&mut CallOptions)) -> Self {
        let mut options = self.options().clone();
        f(&mut options);
        Self { core: self.core.clone(), options: Some(Arc::new(options)) }
    }

    #[inline]
    pub(crate) fn options(&self) -> &CallOptions {
        match &self.options {
            Some(options) => options,
            None => &DEFAULTS,
        }
    }

    #[inline]
    pub(crate) fn orb(&self) -> &Arc<Shared> {
        &self.core.orb
    }

    /// Returns the object's entry while it is active in this ORB, and to its requests until they are done.
    #[inline]
    pub(crate) fn home(&self) -> Option<Arc<ActiveObject>> {
        let own = self.core.own.as_ref()?;
        let last = own.entry.load();
        match last.as_ref() {
            Some(entry) if !entry.is_gone() => Some(Arc::clone(entry)),
            _ => {
                let orb = &self.core.orb;
                own.find(orb).or_else(|| etherealizing_in_caller(orb, own.key.as_slice()))
            }
        }
    }

    /// Returns the last result of [`home`](Self::home), even if that object is no longer active.
    pub(crate) fn last_home(&self) -> Option<Arc<ActiveObject>> {
        self.core.own.as_ref()?.entry.load_full()
    }

    /// Returns the key, if the object belongs to this ORB.
    #[inline]
    pub(crate) fn own_key(&self) -> Option<&[u8]> {
        self.core.own.as_ref().map(|own| own.key.as_slice())
    }

    /// Returns the interoperable reference.
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.core.ior
    }

    /// Returns the interoperable reference, or `None` for an object of an ORB that does not listen.
    pub(crate) fn address(&self) -> Option<Arc<Ior>> {
        (!self.has_no_address()).then(|| Arc::new(self.core.ior.clone()))
    }

    /// Returns whether this is an object of an ORB that does not listen.
    fn has_no_address(&self) -> bool {
        self.core.own.is_some() && self.core.ior.is_nil()
    }

    /// Returns the profiles to call: those of the forward, or else the reference's own.
    pub(crate) fn profiles(&self) -> Vec<IiopProfile> {
        match self.core.forward.load_full() {
            Some(forward) => (*forward).clone(),
            None => self.own_profiles().to_vec(),
        }
    }

    /// Returns the reference's own profiles.
    pub(crate) fn own_profiles(&self) -> &[IiopProfile] {
        self.core.profiles.get_or_init(|| profiles(&self.core.ior).collect())
    }

    /// Forwards calls to that location from now on. Returns `false` if it has no usable profile.
    pub(crate) fn forward_to(&self, ior: &Ior) -> bool {
        let profiles: Vec<IiopProfile> = profiles(ior).collect();
        let usable = !profiles.is_empty();
        if usable {
            self.core.forward.store(Some(Arc::new(profiles)));
            self.leave_binding(None);
            self.set_located(false);
        }
        usable
    }

    /// Drops the forward, so that the reference's own profiles are used. Returns `false` if there was none.
    pub(crate) fn go_home(&self) -> bool {
        self.leave_binding(None);
        self.set_located(false);
        let was_away = self.core.forward.swap(None).is_some();
        if was_away && self.core.url.is_some() {
            self.core.asks.store(true, Ordering::Relaxed);
        }
        was_away
    }

    /// Returns the key, if the object belongs to this ORB and was not forwarded.
    pub(crate) fn called_here(&self) -> Option<ObjectKey> {
        let own = self.core.own.as_ref()?;
        self.core.forward.load().is_none().then(|| own.key.clone())
    }

    /// Returns whether a server has confirmed the location of the object.
    pub(crate) fn is_located(&self) -> bool {
        self.core.located.load(Ordering::Relaxed)
    }

    pub(crate) fn set_located(&self, located: bool) {
        self.core.located.store(located, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn binding(&self) -> Option<Arc<Binding>> {
        self.core.binding.load_full()
    }

    /// Returns whether it was bound since the last call of [`forget_bound`](Self::forget_bound).
    pub(crate) fn was_bound(&self) -> bool {
        self.core.bound.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_bound(&self) {
        self.core.bound.store(false, Ordering::Relaxed);
    }

    pub(crate) fn bind(&self, binding: Arc<Binding>) {
        self.core.bound.store(true, Ordering::Relaxed);
        self.leave_binding(Some(binding));
    }

    /// Forgets a connection that is no longer usable.
    pub(crate) fn unbind(&self, used: &Arc<Binding>) {
        if self.core.binding.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
            self.leave_binding(None);
        }
    }

    /// Replaces the binding, and records whether oneways over the previous one may be lost.
    fn leave_binding(&self, next: Option<Arc<Binding>>) {
        let unreported =
            |before: &Binding| !before.loss_reported.load(Ordering::Relaxed) && before.lost_oneways();
        if self.core.binding.swap(next).is_some_and(|before| unreported(&before)) {
            self.core.lost_oneways.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether oneways over an earlier connection may be lost. Clears the flag.
    pub(crate) fn take_lost_oneways(&self) -> bool {
        self.core.lost_oneways.swap(false, Ordering::Relaxed)
    }
}

impl Own {
    fn new(key: ObjectKey, entry: Option<Arc<ActiveObject>>) -> Self {
        Self { key, entry: ArcSwapOption::new(entry) }
    }

    #[cold]
    fn find(&self, orb: &Shared) -> Option<Arc<ActiveObject>> {
        let found = orb.adapter().find(self.key.as_slice()).filter(|entry| !entry.is_gone())?;
        self.entry.store(Some(Arc::clone(&found)));
        Some(found)
    }
}

impl Reference for ObjectRef {
    const REPOSITORY_ID: &'static str = crate::servant::request::OBJECT_ID;

    fn from_object(object: ObjectRef) -> Self {
        object
    }

    fn as_object(&self) -> &ObjectRef {
        self
    }
}

/// Writes the stringified IOR, or a note for an object of an ORB that does not listen.
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
        if let Some(profile) = self.own_profiles().first() {
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
        e.note_context(self.orb());
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
        // Decoders of an ORB's messages have it as context. Decoding other bytes cannot create references.
        let orb = d.context::<Arc<Shared>>().ok_or_else(|| DecodeError::new(DecodeErrorKind::NoOrb, at))?;
        Ok(Some(Self::new(orb, ior)))
    }
}

/// Merges the called profile with the reference that the server returned. Returns `None` if that reference is
/// of another object.
///
/// The address stays that of the URL, because a published address may not be reachable through a tunnel or an
/// address translation. `raises`: the version may become newer.
pub(crate) fn told(called: &IiopProfile, reference: &Ior, raises: bool) -> Option<IiopProfile> {
    const TOLD: [ComponentTag; 4] = [
        ComponentTag::ORB_TYPE,
        ComponentTag::CODE_SETS,
        ComponentTag::ZORB_BLOCKS,
        ComponentTag::ZORB_OPERATIONS,
    ];
    let told = profiles(reference).find(|told| told.object_key == called.object_key)?;
    let mut profile = called.clone();
    if raises {
        profile.version = profile.version.max(told.version);
    }
    profile.components.retain(|component| !TOLD.contains(&component.tag));
    profile.components.extend(told.components.into_iter().filter(|component| TOLD.contains(&component.tag)));
    Some(profile)
}
