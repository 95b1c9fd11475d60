//! The untyped reference and what it remembers of its connection.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use giop_codec::cdr::{CdrDecode, CdrEncode, CodeSets, Decoder, Encoder, Nilable};
use giop_codec::giop::{AddressingDisposition, ObjectKey, ServiceContext};
use giop_codec::ior::RebindMode;
use giop_codec::ior::{IiopProfile, Ior};
use giop_codec::typecode::{TypeDesc, Typed};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Printable, Version};

use super::{CallOptions, Reference};
use crate::link::Link;
use crate::opaque::Opaque;
use crate::orb::OrbCore;
use crate::orb::endpoint::{Host, profiles};
use crate::serve::ending_behind_us;
use crate::serve::entry::Entry;

/// A reference to an object of any interface (`CORBA::Object`).
///
/// Cheap to clone; clones share the connection. Two are equal when their IORs are byte for byte; see [`Reference::is_equivalent`].
#[derive(Clone)]
pub struct ObjectRef {
    core: Opaque<RefCore>,
    /// `None`: the defaults.
    options: Option<Arc<CallOptions>>,
}

struct RefCore {
    ior: Ior,
    orb: Arc<OrbCore>,
    /// Of an object of this ORB.
    own: Option<Own>,
    profiles: OnceLock<Vec<IiopProfile>>,
    binding: ArcSwapOption<Binding>,
    /// Where the server sent us: profiles to use in place of the reference's own.
    forward: ArcSwapOption<Vec<IiopProfile>>,
    /// A server said where the object is, or that it is with itself.
    located: AtomicBool,
    /// It was bound once.
    bound: AtomicBool,
    /// Oneways over an earlier connection may be lost, which no flush has reported yet.
    lost_oneways: AtomicBool,
    /// It comes from a URL, so that a server of zorb's is asked for more.
    url: Option<Url>,
    /// It has not been asked yet.
    asks: AtomicBool,
    /// What it takes of connections, if not whatever there is.
    demand: Option<Demand>,
    /// As whom it calls, if not as its ORB.
    #[cfg(feature = "csi")]
    credentials: Option<crate::csi::Credentials>,
}

/// What the URL of a reference says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Url {
    /// No version: the server may name any.
    Unversioned,
    /// A version, which stays.
    Versioned,
}

/// The form that all requests through a reference have: only connections that take it will do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// The key of an object of this ORB, and the object, while it is active.
struct Own {
    key: ObjectKey,
    entry: ArcSwapOption<Entry>,
}

/// The connection over which a reference calls, and how.
#[derive(Debug)]
pub(crate) struct Binding {
    /// Weak, so that the socket of a connection that ended is closed although references remember it.
    pub(crate) link: Weak<Link>,
    /// What became of its oneways, when the link is gone.
    pub(crate) loss: Arc<AtomicBool>,
    /// A flush has reported it.
    pub(crate) loss_reported: AtomicBool,
    pub(crate) runtime: tokio::runtime::Id,
    pub(crate) version: Version,
    pub(crate) key: ObjectKey,
    pub(crate) profile: IiopProfile,
    pub(crate) code_sets: CodeSets,
    /// Tells the server the code sets, and that lists of blocks are read, until its first reply.
    pub(crate) announce: Vec<ServiceContext>,
    /// What each request says: who calls.
    pub(crate) always: Vec<ServiceContext>,
    /// The server reads lists of blocks.
    pub(crate) blocks: bool,
    /// It reads derived values as [`Encoder::set_ends_bases`](giop_codec::cdr::Encoder::set_ends_bases) has them.
    pub(crate) ends_bases: bool,
    /// The form of address that the server asked for.
    pub(crate) addressing: AskedFor,
    /// Its requests ask the server for the reference of the object, as long as [`ObjectRef::asks`] says so.
    pub(crate) asks: bool,
}

/// A form of address that a server asked for; the object key until it does.
#[derive(Debug, Default)]
pub(crate) struct AskedFor(AtomicU8);

impl AskedFor {
    #[inline]
    pub(crate) fn get(&self) -> Option<AddressingDisposition> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(AddressingDisposition::Profile),
            2 => Some(AddressingDisposition::Reference),
            _ => Some(AddressingDisposition::Key),
        }
    }

    /// Remembers it for this request and those that follow; `false`: it was asked for before.
    pub(crate) fn set(&self, form: AddressingDisposition) -> bool {
        let number = match form {
            AddressingDisposition::Profile => 1,
            AddressingDisposition::Reference => 2,
            AddressingDisposition::Key => 3,
        };
        self.0.swap(number, Ordering::Relaxed) != number
    }
}

/// When calls are made again after a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Only what surely was not executed (COMPLETED_NO), once for each address.
    #[default]
    NotExecuted,
    /// The operations may be executed twice: after a lost connection they are made again up to so many times.
    Idempotent(u32),
    /// Never.
    Never,
}

impl Retry {
    /// The operations may be executed more than once: the only way past COMPLETED_MAYBE.
    #[must_use]
    pub fn idempotent(times: u32) -> Self {
        Self::Idempotent(times)
    }
}

/// When a oneway completes for its caller (`Messaging::SyncScope`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncScope {
    /// When it is queued; the queue is bounded, and a later failure is reported by `flush`.
    #[default]
    #[doc(alias = "SYNC_NONE")]
    Queued,
    /// When the operating system has it.
    #[doc(alias = "SYNC_WITH_TRANSPORT")]
    Transport,
    /// When the server has it.
    #[doc(alias = "SYNC_WITH_SERVER")]
    Server,
    /// When the servant is done.
    #[doc(alias = "SYNC_WITH_TARGET")]
    Target,
}

/// What came beside the last reply: see [`Reference::with_reply_info`].
#[derive(Debug, Clone, Default)]
pub struct ReplyInfo {
    contexts: Arc<Mutex<Vec<ServiceContext>>>,
}

impl ReplyInfo {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The service contexts of the last reply.
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
    /// A reference to what the IOR names; to the object itself where it lives in this ORB.
    pub(crate) fn new(orb: &Arc<OrbCore>, ior: Ior) -> Self {
        let own = profiles(&ior).next().filter(|profile| orb.is_own(profile));
        let own = own.map(|profile| Own::new(profile.object_key, None));
        Self::with_own(orb, ior, own)
    }

    /// A reference to an object of this ORB: to that of the key, where the entry stands for many.
    pub(crate) fn local(orb: &Arc<OrbCore>, entry: &Arc<Entry>, key: &[u8]) -> Self {
        Self::of_key(orb, entry.skeleton.repository_id(), ObjectKey::from(key), Some(Arc::clone(entry)))
    }

    /// A reference to an object of this ORB that may not be active.
    pub(crate) fn of_key(
        orb: &Arc<OrbCore>,
        type_id: &str,
        key: ObjectKey,
        entry: Option<Arc<Entry>>,
    ) -> Self {
        let ior = orb.ior(type_id, key.as_slice());
        // An ORB that does not listen: a reference without a profile, good inside this process.
        let ior = ior.unwrap_or_else(|| Ior { type_id: type_id.to_owned(), profiles: Vec::new() });
        Self::with_own(orb, ior, Some(Own::new(key, entry)))
    }

    /// A reference to an object of this ORB, of which the IOR is known.
    pub(crate) fn of_own(orb: &Arc<OrbCore>, ior: Ior, key: ObjectKey) -> Self {
        Self::with_own(orb, ior, Some(Own::new(key, None)))
    }

    /// A reference that leads nowhere.
    pub(crate) fn nowhere(orb: &Arc<OrbCore>) -> Self {
        Self::with_own(orb, Ior::nil(), None)
    }

    fn with_own(orb: &Arc<OrbCore>, ior: Ior, own: Option<Own>) -> Self {
        Self::new_core(orb, ior, own, None)
    }

    fn new_core(orb: &Arc<OrbCore>, ior: Ior, own: Option<Own>, demand: Option<Demand>) -> Self {
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

    /// The reference that a URL is.
    pub(super) fn of_url(orb: &Arc<OrbCore>, ior: Ior, url: Url) -> Self {
        let mut object = Self::new(orb, ior);
        if let Some(core) = object.core.get_mut() {
            core.url = Some(url);
            core.asks = AtomicBool::new(core.own.is_none());
        }
        object
    }

    /// Whether the server is to be asked for the reference of the object: all that is known is a URL.
    pub(crate) fn asks(&self) -> bool {
        self.core.asks.load(Ordering::Relaxed)
    }

    /// The server has answered a request that asked, and told nothing.
    pub(crate) fn set_asked(&self) {
        self.core.asks.store(false, Ordering::Relaxed);
    }

    /// Takes in what a server that was asked tells of the object. `false`: it sends the call elsewhere.
    pub(crate) fn learn(&self, called: &IiopProfile, reference: &Ior) -> bool {
        let raises = self.core.url == Some(Url::Unversioned);
        let Some(profile) = crate::invoke::told(called, reference, raises) else { return false };
        self.core.forward.store(Some(Arc::new(vec![profile])));
        self.set_asked();
        self.leave_binding(None);
        true
    }

    /// Another reference to the same object, with a binding of its own and the credentials of this one.
    fn anew(&self, demand: Option<Demand>) -> Self {
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

    /// Another reference to the same object, which calls as somebody else.
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

    /// As whom it calls, if not as its ORB.
    #[cfg(feature = "csi")]
    pub(crate) fn credentials(&self) -> Option<&crate::csi::Credentials> {
        self.core.credentials.as_ref()
    }

    /// Another reference to the same object, whose requests have that form alone.
    pub(crate) fn for_bodies(&self, version: Version, code_sets: CodeSets) -> Self {
        self.anew(Some(Demand { version, code_sets }))
    }

    /// The form of its requests, where only one will do.
    pub(crate) fn demand(&self) -> Option<Demand> {
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
    pub(crate) fn orb(&self) -> &Arc<OrbCore> {
        &self.core.orb
    }

    /// The object itself, or what stands for it, while it is active in this ORB: for its own requests until they are done.
    #[inline]
    pub(crate) fn home(&self) -> Option<Arc<Entry>> {
        let own = self.core.own.as_ref()?;
        let last = own.entry.load();
        match last.as_ref() {
            Some(entry) if !entry.is_gone() => Some(Arc::clone(entry)),
            _ => {
                let orb = &self.core.orb;
                own.find(orb).or_else(|| ending_behind_us(orb, own.key.as_slice()))
            }
        }
    }

    /// The object that [`home`](Self::home) gave last, also when it is no longer active.
    pub(crate) fn last_home(&self) -> Option<Arc<Entry>> {
        self.core.own.as_ref()?.entry.load_full()
    }

    /// The key, if the object is one of this ORB's.
    #[inline]
    pub(crate) fn own_key(&self) -> Option<&[u8]> {
        self.core.own.as_ref().map(|own| own.key.as_slice())
    }

    /// The interoperable reference.
    #[must_use]
    pub fn ior(&self) -> &Ior {
        &self.core.ior
    }

    /// The profiles to call: where the server sent us, else the reference's own.
    pub(crate) fn profiles(&self) -> Vec<IiopProfile> {
        match self.core.forward.load_full() {
            Some(forward) => (*forward).clone(),
            None => self.own_profiles().to_vec(),
        }
    }

    /// The reference's own profiles.
    pub(super) fn own_profiles(&self) -> &[IiopProfile] {
        self.core.profiles.get_or_init(|| profiles(&self.core.ior).collect())
    }

    /// Calls the place that the server named from now on.
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

    /// Goes back from a forwarded place to the reference's own; `false` if it was there already.
    pub(crate) fn go_home(&self) -> bool {
        self.leave_binding(None);
        self.set_located(false);
        let was_away = self.core.forward.swap(None).is_some();
        if was_away && self.core.url.is_some() {
            self.core.asks.store(true, Ordering::Relaxed);
        }
        was_away
    }

    /// The key, if the object is one of this ORB's and nobody has sent us elsewhere.
    pub(crate) fn called_here(&self) -> Option<ObjectKey> {
        let own = self.core.own.as_ref()?;
        self.core.forward.load().is_none().then(|| own.key.clone())
    }

    /// Whether a server was asked where the object is.
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

    /// Whether it was bound since that was forgotten last.
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

    /// Forgets a connection that is of no more use.
    pub(crate) fn unbind(&self, used: &Arc<Binding>) {
        if self.core.binding.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
            self.leave_binding(None);
        }
    }

    /// Replaces the binding, and remembers whether oneways over the one before may be lost.
    fn leave_binding(&self, next: Option<Arc<Binding>>) {
        let unreported =
            |before: &Binding| !before.loss_reported.load(Ordering::Relaxed) && before.lost_oneways();
        if self.core.binding.swap(next).is_some_and(|before| unreported(&before)) {
            self.core.lost_oneways.store(true, Ordering::Relaxed);
        }
    }

    /// Whether oneways over an earlier connection may be lost. Returns it once.
    pub(super) fn take_lost_oneways(&self) -> bool {
        self.core.lost_oneways.swap(false, Ordering::Relaxed)
    }
}

impl Binding {
    /// Whether its connection ended and oneways may be lost.
    pub(super) fn lost_oneways(&self) -> bool {
        match self.link.upgrade() {
            Some(link) => link.lost_oneways(),
            None => self.loss.load(Ordering::Acquire),
        }
    }
}

impl Own {
    fn new(key: ObjectKey, entry: Option<Arc<Entry>>) -> Self {
        Self { key, entry: ArcSwapOption::new(entry) }
    }

    #[cold]
    fn find(&self, orb: &OrbCore) -> Option<Arc<Entry>> {
        let found = orb.adapter().find(self.key.as_slice()).filter(|entry| !entry.is_gone())?;
        self.entry.store(Some(Arc::clone(&found)));
        Some(found)
    }
}

impl Reference for ObjectRef {
    const REPOSITORY_ID: &'static str = crate::serve::request::OBJECT_ID;

    fn from_object(object: ObjectRef) -> Self {
        object
    }

    fn as_object(&self) -> &ObjectRef {
        self
    }
}

/// The stringified IOR; of an object in an ORB that does not listen a note that says so.
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
        if self.core.own.is_some() && self.core.ior.is_nil() {
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
        // Only messages of an ORB hold references; decoding octets without one can not make them.
        let orb = d.context::<Arc<OrbCore>>().ok_or_else(|| DecodeError::new(DecodeErrorKind::NoOrb, at))?;
        Ok(Some(Self::new(orb, ior)))
    }
}
