//! Object references: typed and untyped ones, their options, their equivalence and their form as text.
//!
//! A reference keeps the state of its ORB alive. Calls through references are in `client`.

pub mod abstract_value;
pub(crate) mod context;
mod equivalence;
mod local;
pub(crate) mod object;
pub(crate) mod operation;
mod persist;
pub(crate) mod resolve;
mod servants;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use giop_codec::exception::SystemException;
use giop_codec::giop::{ContextId, ServiceContext};
use giop_codec::ior::{Ior, RebindMode};

pub use local::{LocalObject, LocalReference, Native, ServesLocally, not_received, not_sent};
pub(crate) use object::RequiredForm;
pub use object::{ObjectRef, ReplyInfo, Retry, SyncScope};
pub use resolve::{InvalidName, NarrowError, ResolveError};
pub use servants::Serves;

/// The methods of every typed reference. Operations of an interface take precedence over methods of the same
/// name.
///
/// References are cheap to clone. The `with_*` methods return another reference to the same object.
#[doc(alias = "CORBA::Object")]
pub trait Reference: Clone + fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Creates a reference of this interface without checking the object. If the object has another
    /// interface, calls raise BAD_OPERATION.
    fn from_object(object: ObjectRef) -> Self;

    /// Returns the untyped reference.
    fn as_object(&self) -> &ObjectRef;

    /// Returns a reference whose calls end with TIMEOUT after `timeout`.
    #[must_use]
    fn with_timeout(&self, timeout: Duration) -> Self {
        Self::from_object(self.as_object().change(|options| options.timeout = Some(Some(timeout))))
    }

    /// Returns a reference whose calls have no timeout.
    #[must_use]
    fn without_timeout(&self) -> Self {
        Self::from_object(self.as_object().change(|options| options.timeout = Some(None)))
    }

    /// Returns a reference that sends a service context with each request.
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

    /// Returns a reference that calls with other credentials than those of the ORB: see [`csi`](crate::csi).
    /// It shares the connections.
    #[cfg(feature = "csi")]
    #[must_use]
    fn with_credentials(&self, credentials: &crate::csi::Credentials) -> Self {
        Self::from_object(self.as_object().calling_as(credentials))
    }

    /// Returns a reference whose failed calls are repeated according to `retry`.
    #[must_use]
    fn with_retry(&self, retry: Retry) -> Self {
        Self::from_object(self.as_object().change(|options| options.retry = retry))
    }

    /// Returns a reference whose calls end with TIMEOUT at that time, or earlier by its timeout.
    #[doc(alias = "ReplyEndTimePolicy")]
    #[must_use]
    fn with_deadline(&self, at: Instant) -> Self {
        Self::from_object(self.as_object().change(|options| options.until = Some(at)))
    }

    /// Returns a reference whose calls do not follow forwards transparently (NO_REBIND), or do not even
    /// reconnect (NO_RECONNECT). They end with REBIND, COMPLETED_NO, and
    /// [`validate_connection`](Self::validate_connection) binds again.
    ///
    /// Source clause: "Messaging QoS / Rebind Support".
    #[doc(alias = "RebindPolicy")]
    #[must_use]
    fn with_rebind(&self, mode: RebindMode) -> Self {
        Self::from_object(self.as_object().change(|options| options.rebind = mode))
    }

    /// Returns the timeout of its calls; `None` if they have none.
    #[doc(alias = "get_policy")]
    fn timeout(&self) -> Option<Duration> {
        let object = self.as_object();
        object.options().timeout.unwrap_or(object.orb().config.client.timeout)
    }

    /// Returns the rule for repeating failed calls.
    #[doc(alias = "get_policy")]
    fn retry(&self) -> Retry {
        self.as_object().options().retry
    }

    /// Returns the scope at which its oneways complete.
    #[doc(alias = "get_policy")]
    fn sync_scope(&self) -> SyncScope {
        self.as_object().options().scope
    }

    /// Returns whether its calls may follow forwards and reconnect transparently.
    #[doc(alias = "get_policy")]
    fn rebind(&self) -> RebindMode {
        self.as_object().options().rebind
    }

    /// Connects and locates the object. Follows forwards regardless of [`with_rebind`](Self::with_rebind).
    /// Subsequent calls use that location.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the server does not have the object; errors of connecting; TIMEOUT.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the reference.
    ///
    /// Source clause: "Validating Connection" (`validate_connection`).
    #[doc(alias = "_validate_connection")]
    fn validate_connection(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        self.as_object().bind_now()
    }

    /// Returns a reference for a server that does not accept longer messages. Its connection sends all GIOP
    /// 1.2 requests that exceed `bytes` in fragments of that size, for all objects that are called over it,
    /// including `@stream` arguments.
    #[must_use]
    fn with_fragment_size(&self, bytes: usize) -> Self {
        let object = self.as_object().change(|options| options.fragment_size = Some(bytes));
        if let Some(link) = object.binding().and_then(|binding| binding.link.upgrade()) {
            link.cut_at(bytes);
        }
        Self::from_object(object)
    }

    /// Returns a reference whose oneways complete at that scope.
    #[must_use]
    fn with_sync_scope(&self, scope: SyncScope) -> Self {
        Self::from_object(self.as_object().change(|options| options.scope = scope))
    }

    /// Returns a reference that stores additional information of each reply in `info`.
    #[must_use]
    fn with_reply_info(&self, info: &ReplyInfo) -> Self {
        Self::from_object(self.as_object().change(|options| options.info = Some(info.clone())))
    }

    /// Returns the reference as another interface. The object is asked (`_is_a`) only if its type id does not
    /// answer the question.
    ///
    /// # Errors
    /// [`NarrowError::WrongInterface`] with both repository ids; [`NarrowError::Call`] if asking failed.
    fn narrow<R: Reference>(&self) -> impl Future<Output = Result<R, NarrowError>> + Send {
        resolve::narrow(self.as_object().clone())
    }

    /// Returns the repository id in the reference. It is a hint: it may be empty, or name a base or derived
    /// interface of the object's.
    fn repository_id(&self) -> &str {
        &self.as_object().ior().type_id
    }

    /// Asks the object whether it has that interface (`_is_a`).
    ///
    /// # Errors
    /// Errors of the call.
    fn is_a(&self, repository_id: &str) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().call_is_a(repository_id)
    }

    /// Asks whether the object is permanently gone (`_non_existent`).
    ///
    /// # Errors
    /// Errors of the call, except OBJECT_NOT_EXIST, which gives `true`.
    fn non_existent(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().call_non_existent()
    }

    /// Asks the server for the location of the object (LocateRequest), following forwards. Returns `true` if
    /// the object exists.
    ///
    /// # Errors
    /// Errors of the call.
    fn locate(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().call_locate()
    }

    /// Waits until the operating system has accepted all oneways sent so far over the connection of this
    /// reference.
    ///
    /// Success does not imply that the server received or executed them. For that, use [`SyncScope::Server`]
    /// or [`SyncScope::Target`], or make a call that has a reply.
    /// call that has a reply.
    ///
    /// # Errors
    /// * COMM_FAILURE, COMPLETED_MAYBE: oneways may be lost. The connection was closed before all of them
    ///   were written, or it broke and no later call over it was answered. A loss over an earlier connection
    ///   of this reference is reported once.
    /// * TIMEOUT, COMPLETED_MAYBE: not all of them were accepted before the deadline that a call made now
    ///   would have. They stay queued.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection continues writing.
    fn flush(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        self.as_object().flush_oneways()
    }

    /// Returns whether both certainly refer to the same object: the keys of their first profiles are equal,
    /// and they share an address. `false` proves nothing. The server is not asked.
    fn is_equivalent<R: Reference>(&self, other: &R) -> bool {
        self.as_object().same_place(other.as_object())
    }

    /// Returns a number from 0 to `max` that is the same for [equivalent](Self::is_equivalent) references, in
    /// every process. Suitable for persistent tables.
    ///
    /// `Hash` and `==` are stricter: they compare the references byte for byte.
    #[doc(alias = "_hash")]
    fn equivalence_hash(&self, max: u32) -> u32 {
        let hash = self.as_object().place_hash();
        // The result is at most `max`.
        (hash % (u64::from(max) + 1)) as u32
    }

    /// Returns a readable URL of the object with all its addresses; `None` if it has no address that a URL
    /// can hold.
    ///
    /// The URL does not contain the interface, which is queried when it is resolved, nor other data of the
    /// reference. Without the code sets of the server, text is sent in ISO 8859-1. The stringified reference
    /// (`Display`) contains everything.
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

    /// Returns the interoperable reference.
    fn ior(&self) -> &Ior {
        self.as_object().ior()
    }

    /// Returns the untyped reference with the same options.
    fn to_object(&self) -> ObjectRef {
        self.as_object().clone()
    }
}

/// The options of calls through one reference.
#[derive(Debug, Clone)]
pub(crate) struct CallOptions {
    /// `None`: the ORB's default; `Some(None)`: no limit.
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) retry: Retry,
    pub(crate) scope: SyncScope,
    pub(crate) contexts: Arc<[ServiceContext]>,
    pub(crate) info: Option<ReplyInfo>,
    pub(crate) rebind: RebindMode,
    /// The latest deadline of any call.
    pub(crate) until: Option<Instant>,
    pub(crate) fragment_size: Option<usize>,
}
