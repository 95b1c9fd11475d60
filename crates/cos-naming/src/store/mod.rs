//! The data of a naming service, and [`Store`], the trait of everything that can store it.

mod disk;
#[cfg(feature = "etcd")]
mod etcd;
mod index;
mod key;
mod memory;
mod record;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zorb::cos_naming::BindingType;
use zorb::{CompletionStatus, ObjectRef, OneLine};

pub use disk::{DiskStore, OpenError, RepairError, RepairSummary};
#[cfg(feature = "etcd")]
pub use etcd::{ConnectError, EtcdConfig, EtcdStore, ReadConsistency};
pub use key::Key;
pub use memory::MemoryStore;
pub use record::{Group, Member, Strategy, Target};

/// The number of a naming context. It is never reused, because references to the context contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The root context of the service. It cannot be destroyed.
    pub const ROOT: Self = Self(0);
}

/// A store of contexts and their bindings.
///
/// The implementations of this crate store them in memory ([`MemoryStore`]), in a file ([`DiskStore`]), or in
/// an etcd cluster (`EtcdStore`, feature `etcd`).
///
/// Each [`Change`] is atomic: it is made completely or not at all, and concurrent changes do not interleave.
/// When the future of a change completes, all readers of this store see the change. If the future is dropped,
/// the change is made or not. Several servers may share the data. None of them sees a state that is older
/// than one that it has already seen. A durable store never loses a change whose future has succeeded.
///
/// Reads are asynchronous because some stores have to query a remote system. They fail with [`StoreError`] if
/// the store fails.
pub trait Store: Send + Sync + 'static {
    /// Returns the binding of a name in a context.
    fn lookup(
        &self,
        context: ContextId,
        key: &Key,
    ) -> impl Future<Output = Result<Lookup, StoreError>> + Send;

    /// Returns whether a context exists.
    fn has_context(&self, context: ContextId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Returns a page of the bindings of a context, in the order of their keys. The page starts after the key
    /// `after`, or with the first binding. Returns `None` if the context does not exist.
    ///
    /// A caller gets all bindings by repeating the call with the last key of each page. A binding that exists
    /// during all these calls is on exactly one of the pages.
    fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> impl Future<Output = Result<Option<Page>, StoreError>> + Send;

    /// Makes a change. Returns the new context if the change creates one.
    ///
    /// # Errors
    /// * [`ChangeError::Refused`] if the contents of the store do not allow the change. Nothing is changed.
    /// * [`ChangeError::Store`] if the store failed.
    fn change(&self, change: Change) -> impl Future<Output = Result<Option<ContextId>, ChangeError>> + Send;

    /// Returns whether the storage system is available, without querying it. Local stores always are.
    fn state(&self) -> StoreState {
        StoreState::default()
    }

    /// Returns a description of the current problem for administrators, or `None` if the store works. A store
    /// recovers without their help when the cause of the problem has ended.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// The limit of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The maximum number of bindings.
    pub bindings: usize,
    /// The approximate maximum size of the reply in bytes. A page with one binding may exceed it.
    pub bytes: usize,
}

/// Some bindings of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The bindings, in the order of their keys.
    pub bindings: Vec<(Key, BindingType)>,
    /// True if the context has further bindings after these.
    pub has_more: bool,
}

/// The approximate size in bytes of a binding in a reply, without its name.
const BINDING_OVERHEAD_BYTES: usize = 32;

impl Page {
    /// Creates a page of as many of the first bindings as the limit permits.
    ///
    /// # Errors
    /// The first error of the iterator.
    pub fn from_bindings<E>(
        bindings: impl IntoIterator<Item = Result<(Key, BindingType), E>>,
        limit: PageLimit,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let mut bytes = 0;
        for binding in bindings {
            let (key, binding_type) = binding?;
            bytes += key.text().len() + BINDING_OVERHEAD_BYTES;
            let is_first = page.bindings.is_empty();
            if page.bindings.len() >= limit.bindings || bytes > limit.bytes && !is_first {
                page.has_more = true;
                break;
            }
            page.bindings.push((key, binding_type));
        }
        Ok(page)
    }
}

/// The availability of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// For how long the storage system has not answered, so that reads may be outdated. `None` if it answers.
    pub unavailable_for: Option<Duration>,
}

/// A store that several owners share.
impl<S: Store> Store for Arc<S> {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        S::lookup(self, context, key).await
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        S::has_context(self, context).await
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        S::page(self, context, after, limit).await
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        S::change(self, change).await
    }

    fn state(&self) -> StoreState {
        S::state(self)
    }

    fn problem(&self) -> Option<String> {
        S::problem(self)
    }
}

/// The result of [`Store::lookup`].
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The name is bound.
    Bound(Arc<StoredBinding>),
    /// The name is not bound.
    NotBound,
    /// The context does not exist.
    NoContext,
}

/// The decoded references of a binding. While this value exists, they are counted in `total_count`.
#[derive(Debug)]
pub(crate) struct DecodedReferences {
    pub(crate) references: Box<[Option<ObjectRef>]>,
    /// The number of references of all bindings of a service that are kept decoded.
    pub(crate) total_count: Arc<AtomicUsize>,
}

impl Drop for DecodedReferences {
    fn drop(&mut self) {
        self.total_count.fetch_sub(self.references.len(), Ordering::Relaxed);
    }
}

/// The binding of a name in a store.
#[derive(Debug)]
pub struct StoredBinding {
    /// The target of the binding.
    pub target: Target,
    /// Set when the name is first resolved, unless too many references are kept decoded already.
    pub(crate) decoded: OnceLock<DecodedReferences>,
}

impl StoredBinding {
    /// Creates a binding to a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, decoded: OnceLock::new() }
    }
}

/// A change of the contents of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// Binds a name.
    Bind {
        /// The context.
        context: ContextId,
        /// The name.
        key: Key,
        /// The new target.
        target: Target,
        /// The kind of binding that may be replaced.
        may_replace: MayReplace,
    },
    /// Binds an object to a name for a limited time. The name must be free, or be bound to the same object
    /// for a limited time. In the latter case, the time starts again.
    BindFor {
        /// The context.
        context: ContextId,
        /// The name.
        key: Key,
        /// The object.
        target: Target,
        /// The minimum duration of the binding, in whole seconds.
        time: Duration,
    },
    /// Creates a context and binds it to a name, which must be free.
    BindNewContext {
        /// The context of the binding.
        context: ContextId,
        /// The name.
        key: Key,
    },
    /// Creates a context without a name.
    NewContext,
    /// Removes a binding.
    Unbind {
        /// The context.
        context: ContextId,
        /// The name.
        key: Key,
    },
    /// Destroys a context without bindings.
    Destroy {
        /// The context.
        context: ContextId,
    },
    /// Adds a member to a group, or replaces the member of the same name.
    Join {
        /// The context.
        context: ContextId,
        /// The name of the group.
        key: Key,
        /// The member.
        member: Member,
    },
    /// Removes a member from a group.
    Leave {
        /// The context.
        context: ContextId,
        /// The name of the group.
        key: Key,
        /// The name of the member.
        member: String,
    },
}

impl Change {
    pub(crate) fn byte_size(&self) -> usize {
        match self {
            Self::Bind { key, target, .. } | Self::BindFor { key, target, .. } => {
                key.text().len() + target.byte_size()
            }
            Self::Join { key, member, .. } => key.text().len() + member.byte_size(),
            Self::BindNewContext { key, .. } | Self::Unbind { key, .. } | Self::Leave { key, .. } => {
                key.text().len()
            }
            Self::NewContext | Self::Destroy { .. } => 0,
        }
    }
}

/// The kind of binding that a new binding may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayReplace {
    /// No binding. The name must be free.
    Nothing,
    /// The binding of an object or a group. The name may also be free.
    Object,
    /// The binding of a context. The name may also be free.
    Context,
}

/// The reason why the contents of a store do not allow a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The context does not exist.
    NoContext,
    /// The name is bound already.
    AlreadyBound,
    /// Nothing is bound to the name.
    NotBound,
    /// A context is bound where an object is expected.
    IsContext,
    /// An object or a group is bound where a context is expected.
    IsObject,
    /// A single object is bound where a group is expected.
    NotGroup,
    /// The group has no member with this name.
    NoMember,
    /// The group would have more than [`Group::MAX_MEMBERS`] members or more than [`Group::MAX_BYTES`] bytes.
    GroupFull,
    /// The context has bindings.
    NotEmpty,
    /// The root context cannot be destroyed.
    IsRoot,
    /// This store does not support bindings for a limited time.
    TimeLimitUnsupported,
}

/// The reason why a change was not made.
#[derive(Debug, Clone)]
pub enum ChangeError {
    /// The contents of the store do not allow the change.
    Refused(Refusal),
    /// The store failed.
    Store(StoreError),
}

impl From<Refusal> for ChangeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The failure of a store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The change was not made because the disk failed. The store rejects changes until the disk works again.
    /// Clients receive PERSIST_STORE, COMPLETED_NO.
    #[error("the change was not made because it cannot be stored: {reason}")]
    NotWritten {
        /// What failed.
        reason: Arc<str>,
    },
    /// The store failed, and the change may have been made. Clients receive PERSIST_STORE, COMPLETED_MAYBE.
    #[error("the storage of the naming service failed: {}", OneLine::new(&**.0))]
    Broken(Arc<str>),
    /// The storage system does not answer. Clients receive TRANSIENT.
    #[error("the storage of the naming service does not answer: {}", OneLine::new(&**reason))]
    Unavailable {
        /// The error.
        reason: Arc<str>,
        /// Whether the change was made. `Maybe` if this is not known.
        completion: CompletionStatus,
    },
}

impl StoreError {
    pub(crate) fn broken(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string().into())
    }
}
