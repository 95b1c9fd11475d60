//! The data of a naming service, and the trait of its stores.

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

pub use disk::{DiskStore, OpenError, RepairError, Repaired};
#[cfg(feature = "etcd")]
pub use etcd::{ConnectError, EtcdConfig, EtcdStore, Reads};
pub use key::Key;
pub use memory::MemoryStore;
pub use record::{Group, Member, Strategy, Target};

/// The number of a naming context. It is a part of the key of its object, so it never changes and is never
/// reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The root context of the service. It cannot be destroyed.
    pub const ROOT: Self = Self(0);
}

/// A store of contexts and their bindings: in memory ([`MemoryStore`]), in a file ([`DiskStore`]), in an etcd
/// cluster (`EtcdStore`, feature `etcd`), or any other implementation.
///
/// Each [`Change`] is atomic. It is made completely or refused, concurrent changes do not interleave, and it
/// is visible to all readers of this store when its future completes. Other servers of the same store never
/// see an older state than before. A durable store never loses an acknowledged change. If the future is
/// dropped, the change may be made or not.
///
/// Reads are asynchronous because a store may have to ask other systems. A store that has the data answers
/// immediately.
pub trait Store: Send + Sync + 'static {
    /// Returns the binding of a name in a context.
    ///
    /// # Errors
    /// [`StoreError`].
    fn lookup(
        &self,
        context: ContextId,
        key: &Key,
    ) -> impl Future<Output = Result<Lookup, StoreError>> + Send;

    /// Returns whether a context exists.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_context(&self, context: ContextId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Returns bindings of a context in the order of their keys, after the key `after`, within a limit.
    /// Returns `None` if the context does not exist.
    ///
    /// A binding that exists all the time between two pages is in one of them.
    ///
    /// # Errors
    /// [`StoreError`].
    fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> impl Future<Output = Result<Option<Page>, StoreError>> + Send;

    /// Makes a change. Returns the new context, if the change creates one.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if the contents of the store do not allow it; nothing is changed then.
    /// [`ChangeError::Store`].
    fn change(&self, change: Change) -> impl Future<Output = Result<Option<ContextId>, ChangeError>> + Send;

    /// Returns the state of the store, without communication. A store that has all data itself is always
    /// current.
    fn state(&self) -> StoreState {
        StoreState::default()
    }

    /// Returns a description of a current problem, for administrators. `None` if the store works. Such a
    /// store recovers by itself.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// The limit of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The maximum number of bindings.
    pub bindings: usize,
    /// The approximate maximum size in bytes of the reply with the page. One binding is always returned.
    pub bytes: usize,
}

/// Some bindings of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The bindings, in the order of their keys.
    pub bindings: Vec<(Key, BindingType)>,
    /// True if the context has bindings after these.
    pub more: bool,
}

/// The size in bytes of a binding in a reply beside its name: lengths, ends of strings, padding, its type.
const AROUND_A_NAME: usize = 32;

impl Page {
    /// Creates a page of the first of these bindings, within a limit.
    ///
    /// # Errors
    /// The first error among the bindings.
    pub fn of<E>(
        bindings: impl IntoIterator<Item = Result<(Key, BindingType), E>>,
        limit: PageLimit,
    ) -> Result<Self, E> {
        let mut page = Self::default();
        let mut bytes = 0;
        for binding in bindings {
            let (key, binding_type) = binding?;
            bytes += key.text().len() + AROUND_A_NAME;
            let is_first = page.bindings.is_empty();
            if page.bindings.len() >= limit.bindings || bytes > limit.bytes && !is_first {
                page.more = true;
                break;
            }
            page.bindings.push((key, binding_type));
        }
        Ok(page)
    }
}

/// The state of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// The time since which the storage system does not answer, so that reads may be outdated. `None` if it
    /// answers.
    pub away: Option<Duration>,
}

/// A shared handle of the same store.
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
    Bound(Arc<Bound>),
    /// The name is not bound.
    Free,
    /// The context does not exist.
    NoContext,
}

/// The decoded references of a binding, and the capacity that they use.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// One reference, or one for each member of a group.
    pub(crate) references: Box<[Option<ObjectRef>]>,
    pub(crate) room: Arc<AtomicUsize>,
}

impl Drop for Decoded {
    fn drop(&mut self) {
        self.room.fetch_sub(self.references.len(), Ordering::Relaxed);
    }
}

/// The binding of a name.
#[derive(Debug)]
pub struct Bound {
    /// The target of the binding.
    pub target: Target,
    /// The decoded references of the target, after they were resolved and if there was capacity for them.
    pub(crate) decoded: OnceLock<Decoded>,
}

impl Bound {
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
        over: Over,
    },
    /// Binds an object to a free name for some time. If the object already has the name in this way, its time
    /// is renewed.
    BindFor {
        /// The context.
        context: ContextId,
        /// The name.
        key: Key,
        /// The object.
        target: Target,
        /// The minimum time, in whole seconds.
        time: Duration,
    },
    /// Creates a context and binds it to a free name.
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
    /// Adds a member to a group, or replaces the one of the same name.
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
    /// Returns the approximate number of bytes of names and references in it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Bind { key, target, .. } | Self::BindFor { key, target, .. } => {
                key.text().len() + target.size()
            }
            Self::Join { key, member, .. } => key.text().len() + member.size(),
            Self::BindNewContext { key, .. } | Self::Unbind { key, .. } | Self::Leave { key, .. } => {
                key.text().len()
            }
            Self::NewContext | Self::Destroy { .. } => 0,
        }
    }
}

/// The kind of binding that a new one may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Nothing: the name must be free.
    Nothing,
    /// An object, if there is one.
    Object,
    /// A context, if there is one.
    Context,
}

/// The reason why the contents of a store do not allow a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The context does not exist.
    NoContext,
    /// The name is not free.
    AlreadyBound,
    /// Nothing is bound to the name.
    Free,
    /// A context is bound where an object is expected.
    IsContext,
    /// An object is bound where a context is expected.
    IsObject,
    /// An object is bound where a group is expected.
    NoGroup,
    /// The group has no such member.
    NoMember,
    /// The group has the maximum number of members ([`Group::MAX_MEMBERS`]) or of bytes
    /// ([`Group::MAX_BYTES`]).
    Full,
    /// The context has bindings.
    NotEmpty,
    /// The root context cannot be destroyed.
    Root,
    /// This store does not support bindings that end by themselves.
    NoLeases,
}

/// The reason why a change was not made.
#[derive(Debug, Clone)]
pub enum ChangeError {
    /// The contents of the store do not allow it.
    Refused(Refused),
    /// The store failed.
    Store(StoreError),
}

impl From<Refused> for ChangeError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
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
    /// The change was not made, and the store rejects changes until its disk works again, which it detects by
    /// itself. Clients receive PERSIST_STORE, COMPLETED_NO.
    #[error("the name is not stored, and nothing was changed: {what}")]
    NotWritten {
        /// What failed.
        what: Arc<str>,
    },
    /// The store does not work. Clients receive PERSIST_STORE.
    #[error("the store of names does not work: {}", OneLine::new(&**.0))]
    Broken(Arc<str>),
    /// The storage system does not answer. Clients receive TRANSIENT.
    #[error("the store of names is away: {}", OneLine::new(&**what))]
    Away {
        /// The error, with its source.
        what: Arc<str>,
        /// Tells whether the change was made, which may be unknown.
        completion: CompletionStatus,
    },
}

impl StoreError {
    pub(crate) fn new(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string().into())
    }
}
