//! Object references.

mod equivalence;
mod local;
mod object;
mod operations;
mod persist;
mod resolve;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use giop_codec::exception::SystemException;
use giop_codec::giop::{ContextId, ServiceContext};
use giop_codec::ior::{Ior, RebindMode};

use bytes::Bytes;

pub use local::{LocalObject, LocalReference, Native, ServesLocally, not_received, not_sent};
pub(crate) use object::{AskedFor, Binding, Demand};
pub use object::{ObjectRef, ReplyInfo, Retry, SyncScope};
pub use resolve::{InvalidName, NarrowError, ResolveError};

/// What every typed reference has. Operations of an interface win over these by name.
///
/// References are cheap to clone; the `with_*` methods give another reference to the same object.
#[doc(alias = "CORBA::Object")]
pub trait Reference: Clone + fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Takes the object as one of this interface, unchecked: a wrong one answers BAD_OPERATION.
    fn from_object(object: ObjectRef) -> Self;

    /// The untyped reference.
    fn as_object(&self) -> &ObjectRef;

    /// The same object, each call of which ends with TIMEOUT after `timeout`.
    #[must_use]
    fn with_timeout(&self, timeout: Duration) -> Self {
        Self::from_object(self.as_object().change(|options| options.timeout = Some(Some(timeout))))
    }

    /// The same object, the calls of which may take as long as they like.
    #[must_use]
    fn without_timeout(&self) -> Self {
        Self::from_object(self.as_object().change(|options| options.timeout = Some(None)))
    }

    /// The same object; a service context travels with each request.
    #[must_use]
    fn with_context(&self, id: ContextId, data: impl Into<Bytes>) -> Self {
        let context = ServiceContext { id, data: data.into() };
        Self::from_object(self.as_object().change(|options| {
            let mut contexts = options.contexts.to_vec();
            contexts.retain(|other| other.id != context.id);
            contexts.push(context);
            options.contexts = contexts.into();
        }))
    }

    /// The same object, called as somebody else than the ORB says: see [`csi`](crate::csi). Other connections are not needed for that.
    #[cfg(feature = "csi")]
    #[must_use]
    fn with_credentials(&self, credentials: &crate::csi::Credentials) -> Self {
        Self::from_object(self.as_object().calling_as(credentials))
    }

    /// The same object; calls that fail are made again as the rule allows.
    #[must_use]
    fn with_retry(&self, retry: Retry) -> Self {
        Self::from_object(self.as_object().change(|options| options.retry = retry))
    }

    /// The same object, each call of which ends with TIMEOUT at that time, or before it when its timeout has passed.
    #[doc(alias = "ReplyEndTimePolicy")]
    #[must_use]
    fn with_deadline(&self, at: Instant) -> Self {
        Self::from_object(self.as_object().change(|options| options.until = Some(at)))
    }

    /// The same object, whose calls may not follow forwards (NO_REBIND), or not even make a new connection (NO_RECONNECT), unseen:
    /// they end with REBIND, COMPLETED_NO, and [`validate_connection`](Self::validate_connection) binds anew.
    ///
    /// Source clause: "Messaging QoS / Rebind Support".
    #[doc(alias = "RebindPolicy")]
    #[must_use]
    fn with_rebind(&self, mode: RebindMode) -> Self {
        Self::from_object(self.as_object().change(|options| options.rebind = mode))
    }

    /// How long its calls may take; `None`: as long as they like.
    #[doc(alias = "get_policy")]
    fn timeout(&self) -> Option<Duration> {
        let object = self.as_object();
        object.options().timeout.unwrap_or(object.orb().config.timeout)
    }

    /// When its calls are made again.
    #[doc(alias = "get_policy")]
    fn retry(&self) -> Retry {
        self.as_object().options().retry
    }

    /// When its oneways complete.
    #[doc(alias = "get_policy")]
    fn sync_scope(&self) -> SyncScope {
        self.as_object().options().scope
    }

    /// Whether its calls may go elsewhere unseen.
    #[doc(alias = "get_policy")]
    fn rebind(&self) -> RebindMode {
        self.as_object().options().rebind
    }

    /// Connects, and finds the place of the object, following forwards whatever [`with_rebind`](Self::with_rebind) says: calls that follow go there.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the server does not have the object; what connecting brought; TIMEOUT.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    ///
    /// Source clause: "Validating Connection" (`validate_connection`).
    #[doc(alias = "_validate_connection")]
    fn validate_connection(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        operations::validate_connection(self.as_object())
    }

    /// The same object, of a server that takes no longer messages: the connection that is called over sends all requests of GIOP 1.2 that are larger than
    /// this in fragments of so many bytes, for all objects that are called over it, `@stream` arguments included.
    #[must_use]
    fn with_fragment_size(&self, bytes: usize) -> Self {
        let object = self.as_object().change(|options| options.fragment_size = Some(bytes));
        if let Some(link) = object.binding().and_then(|binding| binding.link.upgrade()) {
            link.cut_at(bytes);
        }
        Self::from_object(object)
    }

    /// The same object; its oneways complete at that scope.
    #[must_use]
    fn with_sync_scope(&self, scope: SyncScope) -> Self {
        Self::from_object(self.as_object().change(|options| options.scope = scope))
    }

    /// The same object; what came beside each reply is left in `info`.
    #[must_use]
    fn with_reply_info(&self, info: &ReplyInfo) -> Self {
        Self::from_object(self.as_object().change(|options| options.info = Some(info.clone())))
    }

    /// The reference as another interface. The object is asked (`_is_a`) only where its type id does not tell.
    ///
    /// # Errors
    /// [`NarrowError::WrongInterface`] names both repository ids; [`NarrowError::Call`] is what asking brought.
    fn narrow<R: Reference>(&self) -> impl Future<Output = Result<R, NarrowError>> + Send {
        resolve::narrow(self.as_object().clone())
    }

    /// The repository id in the reference: a hint that may be empty, or a base or derived interface of what it is narrowed to.
    fn repository_id(&self) -> &str {
        &self.as_object().ior().type_id
    }

    /// Asks the object whether it has that interface (`_is_a`).
    ///
    /// # Errors
    /// What the call brought.
    fn is_a(&self, repository_id: &str) -> impl Future<Output = Result<bool, SystemException>> + Send {
        operations::is_a(self.as_object(), repository_id)
    }

    /// Asks whether the object is gone for good (`_non_existent`).
    ///
    /// # Errors
    /// What the call brought, but not OBJECT_NOT_EXIST: that is `true`.
    fn non_existent(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        operations::non_existent(self.as_object())
    }

    /// Asks the server where the object is (LocateRequest), following forwards: `true` if it is there.
    ///
    /// # Errors
    /// What the call brought.
    fn locate(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        operations::locate(self.as_object())
    }

    /// Waits until the operating system has all oneways sent so far over the connection of this reference.
    ///
    /// Success does not say that the server received or executed them: for that use [`SyncScope::Server`] or [`SyncScope::Target`], or make a
    /// call that has a reply.
    ///
    /// # Errors
    /// * COMM_FAILURE, COMPLETED_MAYBE: oneways may be lost. The connection was closed before all of them were written, or it broke and no
    ///   later call over it was answered. A loss over an earlier connection of this reference is reported once.
    /// * TIMEOUT, COMPLETED_MAYBE: the server has not taken all of them before the deadline that a call made now would have. They stay
    ///   queued.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the connection goes on writing.
    fn flush(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        operations::flush(self.as_object())
    }

    /// Whether both surely mean the same object: the key of their first profiles is the same, and one of their addresses. `false` proves
    /// nothing. The server is not asked.
    fn is_equivalent<R: Reference>(&self, other: &R) -> bool {
        self.as_object().same_place(other.as_object())
    }

    /// A number from 0 to `max` that is the same for references that are [equivalent](Self::is_equivalent), in every process: for tables
    /// that are kept.
    ///
    /// `Hash` and `==` are stricter: they compare the references octet for octet.
    #[doc(alias = "_hash")]
    fn equivalence_hash(&self, max: u32) -> u32 {
        let hash = self.as_object().place_hash();
        // At most `max`.
        (hash % (u64::from(max) + 1)) as u32
    }

    /// A URL of the object that people can read, with all its addresses; `None` where it has no address that a URL can hold.
    ///
    /// It names neither the interface, which is asked for by whoever resolves it, nor what else the reference says: without the
    /// server's code sets text is in ISO 8859-1. The stringified reference (`Display`) holds all.
    ///
    /// ```
    /// # use orb_runtime::{ObjectRef, Orb, Reference};
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let orb = Orb::builder().build().await.unwrap();
    /// let object: ObjectRef = orb.resolve("corbaloc::1.2@example.org/NameService").await.unwrap();
    /// assert_eq!(object.to_corbaloc().unwrap(), "corbaloc:iiop:1.2@example.org:2809/NameService");
    /// # });
    /// ```
    fn to_corbaloc(&self) -> Option<String> {
        self.as_object().corbaloc().map(|url| url.to_string())
    }

    /// The interoperable reference behind it.
    fn ior(&self) -> &Ior {
        self.as_object().ior()
    }

    /// Its untyped twin, with the same options.
    fn to_object(&self) -> ObjectRef {
        self.as_object().clone()
    }
}

/// What calls through one reference do differently.
#[derive(Debug, Clone)]
pub(crate) struct CallOptions {
    /// `None`: the ORB's default; `Some(None)`: no limit.
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) retry: Retry,
    pub(crate) scope: SyncScope,
    pub(crate) contexts: Arc<[ServiceContext]>,
    pub(crate) info: Option<ReplyInfo>,
    pub(crate) rebind: RebindMode,
    /// No call lasts longer than to then.
    pub(crate) until: Option<Instant>,
    pub(crate) fragment_size: Option<usize>,
}
