//! Typed and untyped object references: their options, equivalence and text form.
//!
//! A reference keeps the state of its ORB alive. Module `client` implements calls through references.

pub mod abstract_value;
pub(crate) mod context;
mod corbaloc;
mod equivalence;
mod local;
pub(crate) mod object;
pub(crate) mod operation;
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
pub(crate) use object::RequiredEncoding;
pub use object::{ObjectRef, ReplyInfo, Retry, SyncScope};
pub use resolve::{InvalidName, NarrowError, ResolveError};
pub use servants::Serves;

/// The methods of every typed reference. If an operation of the interface has the same name as a method, the
/// operation takes precedence.
///
/// References are cheap to clone. The `with_*` methods return another reference to the same object, and do
/// not change this one.
#[doc(alias = "CORBA::Object")]
pub trait Reference: Clone + fmt::Debug + fmt::Display + Send + Sync + Sized + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Creates a reference with this interface, without checking the object's interface. If the object has
    /// another interface, calls raise BAD_OPERATION.
    fn from_object(object: ObjectRef) -> Self;

    /// Returns the untyped reference.
    fn as_object(&self) -> &ObjectRef;

    /// Returns a reference whose calls fail with TIMEOUT after `timeout`.
    #[must_use]
    fn with_timeout(&self, timeout: Duration) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.timeout = Some(Some(timeout))))
    }

    /// Returns a reference whose calls have no timeout.
    #[must_use]
    fn without_timeout(&self) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.timeout = Some(None)))
    }

    /// Returns a reference that sends this context with each request. It replaces a context with this id.
    #[must_use]
    fn with_context(&self, id: ContextId, data: impl Into<Bytes>) -> Self {
        let context = ServiceContext { id, data: data.into() };
        Self::from_object(self.as_object().with_options(|options| {
            let mut contexts = options.contexts.to_vec();
            contexts.retain(|other| other.id != context.id);
            contexts.push(context);
            options.contexts = contexts.into();
        }))
    }

    /// Returns a reference whose calls use these credentials instead of the ORB's: see
    /// [`csi`](crate::csi). Both references share the ORB's connections.
    #[cfg(feature = "csi")]
    #[must_use]
    fn with_credentials(&self, credentials: &crate::csi::Credentials) -> Self {
        Self::from_object(self.as_object().clone_with_credentials(credentials))
    }

    /// Returns a reference whose failed calls are repeated according to `retry`.
    #[must_use]
    fn with_retry(&self, retry: Retry) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.retry = retry))
    }

    /// Returns a reference whose calls fail with TIMEOUT at the time `at`, or earlier after the timeout.
    #[doc(alias = "ReplyEndTimePolicy")]
    #[must_use]
    fn with_deadline(&self, at: Instant) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.deadline = Some(at)))
    }

    /// Returns a reference whose calls may follow forwards and reconnect (TRANSPARENT, the default), only
    /// reconnect (NO_REBIND), or neither (NO_RECONNECT). Calls that need more fail with REBIND, COMPLETED_NO,
    /// until [`validate_connection`](Self::validate_connection) is called.
    ///
    /// Source clause: "Messaging QoS / Rebind Support".
    #[doc(alias = "RebindPolicy")]
    #[must_use]
    fn with_rebind(&self, mode: RebindMode) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.rebind = mode))
    }

    /// Returns the timeout of calls, or `None` if they have no timeout.
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

    /// Returns the scope at which oneway calls complete.
    #[doc(alias = "get_policy")]
    fn sync_scope(&self) -> SyncScope {
        self.as_object().options().sync_scope
    }

    /// Returns whether calls may follow forwards and reconnect.
    #[doc(alias = "get_policy")]
    fn rebind(&self) -> RebindMode {
        self.as_object().options().rebind
    }

    /// Connects to the server and locates the object. Follows forwards regardless of
    /// [`with_rebind`](Self::with_rebind). Subsequent calls use the location that was found.
    ///
    /// # Errors
    /// * OBJECT_NOT_EXIST if the server does not have the object.
    /// * TIMEOUT, and the errors of connecting.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the reference.
    ///
    /// Source clause: "Validating Connection" (`validate_connection`).
    #[doc(alias = "_validate_connection")]
    fn validate_connection(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        self.as_object().bind_now()
    }

    /// Returns a reference for a server that does not accept messages longer than `bytes`. The connection
    /// sends longer GIOP 1.2 requests in fragments of this size, including `@stream` arguments. This applies
    /// to requests for all objects that are called over the connection.
    #[must_use]
    fn with_fragment_size(&self, bytes: usize) -> Self {
        let object = self.as_object().with_options(|options| options.fragment_size = Some(bytes));
        if let Some(link) = object.binding().and_then(|binding| binding.link.upgrade()) {
            link.set_fragment_size(bytes);
        }
        Self::from_object(object)
    }

    /// Returns a reference whose oneway calls complete at this scope.
    #[must_use]
    fn with_sync_scope(&self, scope: SyncScope) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.sync_scope = scope))
    }

    /// Returns a reference that stores additional information of each reply in `info`.
    #[must_use]
    fn with_reply_info(&self, info: &ReplyInfo) -> Self {
        Self::from_object(self.as_object().with_options(|options| options.reply_info = Some(info.clone())))
    }

    /// Returns a reference with another interface. The object is called (`_is_a`) only if the repository id
    /// in the reference does not show that the object has the interface.
    ///
    /// # Errors
    /// * [`NarrowError::WrongInterface`] if the object does not have the interface.
    /// * [`NarrowError::Call`] if the call failed.
    fn narrow<R: Reference>(&self) -> impl Future<Output = Result<R, NarrowError>> + Send {
        resolve::narrow(self.as_object().clone())
    }

    /// Returns the repository id in the reference. It is only a hint: it may be empty, or the id of a base or
    /// derived interface.
    fn repository_id(&self) -> &str {
        &self.as_object().ior().type_id
    }

    /// Returns whether the object has this interface. Calls the object (`_is_a`) only if necessary.
    ///
    /// # Errors
    /// The errors of the call.
    fn is_a(&self, repository_id: &str) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().call_is_a(repository_id)
    }

    /// Asks the object whether it has ceased to exist permanently (`_non_existent`).
    ///
    /// # Errors
    /// The errors of the call, except OBJECT_NOT_EXIST: then the result is `true`.
    fn non_existent(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().call_non_existent()
    }

    /// Asks the server whether it has the object (LocateRequest). Follows forwards. For an object of this
    /// ORB, returns whether it may exist.
    ///
    /// # Errors
    /// The errors of the call.
    fn locate(&self) -> impl Future<Output = Result<bool, SystemException>> + Send {
        self.as_object().locate_exists()
    }

    /// Waits until the operating system has accepted all previous oneway requests of this reference's
    /// connection.
    ///
    /// Success does not imply that the server received or executed them. For that, use [`SyncScope::Server`]
    /// or [`SyncScope::Target`], or make a call that has a reply.
    ///
    /// # Errors
    /// * COMM_FAILURE, COMPLETED_MAYBE: oneway requests may be lost. The connection was closed before all of
    ///   them were written, or it failed and no later call over it was answered. A loss over an earlier
    ///   connection of this reference is reported once.
    /// * TIMEOUT, COMPLETED_MAYBE: the timeout of a call expired before all of them were accepted. They stay
    ///   queued.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection continues writing.
    fn flush(&self) -> impl Future<Output = Result<(), SystemException>> + Send {
        self.as_object().flush_oneways()
    }

    /// Returns whether both references certainly refer to the same object: the object keys of their first
    /// profiles are equal, and they share an address. For objects of this ORB, equal keys suffice. If the
    /// result is `false`, they may still refer to the same object. No server is asked.
    fn is_equivalent<R: Reference>(&self, other: &R) -> bool {
        self.as_object().is_same_object(other.as_object())
    }

    /// Returns a hash from 0 to `max` that is equal for [equivalent](Self::is_equivalent) references, in
    /// every process. It may be stored.
    ///
    /// `Hash` and `==` are stricter: they compare the references byte for byte.
    #[doc(alias = "_hash")]
    fn equivalence_hash(&self, max: u32) -> u32 {
        let hash = self.as_object().key_hash();
        (hash % (u64::from(max) + 1)) as u32
    }

    /// Returns a readable URL of the object with its TCP addresses, or with a Unix socket if there are none.
    /// Returns `None` if a URL can represent none of the reference's addresses.
    ///
    /// The URL contains neither the interface nor the code sets of the server. When the URL is resolved, the
    /// interface is queried. Unless the server is a zorb server, text is then sent in ISO 8859-1. The
    /// stringified reference (`Display`) contains everything.
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

    /// Returns the interoperable object reference (IOR).
    fn ior(&self) -> &Ior {
        self.as_object().ior()
    }

    /// Returns the untyped reference with the same options.
    fn to_object(&self) -> ObjectRef {
        self.as_object().clone()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CallOptions {
    /// `None` means the ORB's default, and `Some(None)` means no timeout.
    pub(crate) timeout: Option<Option<Duration>>,
    pub(crate) retry: Retry,
    pub(crate) sync_scope: SyncScope,
    pub(crate) contexts: Arc<[ServiceContext]>,
    pub(crate) reply_info: Option<ReplyInfo>,
    pub(crate) rebind: RebindMode,
    /// The time at which every call ends at the latest.
    pub(crate) deadline: Option<Instant>,
    pub(crate) fragment_size: Option<usize>,
}
