//! What a naming service keeps, and the trait of those who keep it.

mod disk;
#[cfg(feature = "etcd")]
mod etcd;
mod index;
mod key;
mod memory;
mod record;

use std::future::Future;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use zorb::cos_naming::BindingType;
use zorb::{CompletionStatus, OneLine};

use crate::servant::Decoded;

pub use disk::{DiskStore, OpenError, RepairError, Repaired};
#[cfg(feature = "etcd")]
pub use etcd::{ConnectError, EtcdConfig, EtcdStore, Reads};
pub use key::Key;
pub use memory::MemoryStore;
pub use record::{Group, Member, Strategy, Target};

/// The number of a naming context: a part of the key of its object, so it never changes and is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The context that the service begins with. It can not be destroyed.
    pub const ROOT: Self = Self(0);
}

/// Keeps contexts and their bindings: in memory ([`MemoryStore`]), in a file ([`DiskStore`]), in an etcd cluster (`EtcdStore`, feature
/// `etcd`), or anywhere else.
///
/// Each [`Change`] is atomic: it is made whole or refused, two of them never mix, and when its future is done whoever reads here sees
/// it. Other servers of the same store never see less than they saw before. What a durable store has acknowledged it has for good. A
/// future that is dropped leaves open whether its change is made.
///
/// Reads are asynchronous since a store may have to ask others; one that has what it is asked for answers at once.
pub trait Store: Send + Sync + 'static {
    /// What is bound to a name in a context.
    ///
    /// # Errors
    /// [`StoreError`].
    fn lookup(
        &self,
        context: ContextId,
        key: &Key,
    ) -> impl Future<Output = Result<Lookup, StoreError>> + Send;

    /// Whether there is such a context.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_context(&self, context: ContextId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Bindings of a context in the order of their keys, after the key `after`, within a limit; `None` where there is no such context.
    ///
    /// A binding that is there all the time between two pages is in one of them.
    ///
    /// # Errors
    /// [`StoreError`].
    fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> impl Future<Output = Result<Option<Page>, StoreError>> + Send;

    /// Makes a change. Gives the context that it made, for those that make one.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] where what is there does not allow it; nothing is changed then. [`ChangeError::Store`].
    fn change(&self, change: Change) -> impl Future<Output = Result<Option<ContextId>, ChangeError>> + Send;

    /// How it is, without asking anybody. A store that has everything itself is always current.
    fn state(&self) -> StoreState {
        StoreState::default()
    }

    /// What is wrong with it now, for people; `None` where it works. Such a store recovers by itself.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// How much a page has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Bindings.
    pub bindings: usize,
    /// Bytes of the reply that the page becomes, about. One binding fits in any case.
    pub bytes: usize,
}

/// Some bindings of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The bindings, in the order of their keys.
    pub bindings: Vec<(Key, BindingType)>,
    /// Whether the context has bindings after these.
    pub more: bool,
}

/// What a binding takes in a reply beside its name, in bytes: lengths, ends of strings, padding, its type.
const AROUND_A_NAME: usize = 32;

impl Page {
    /// The first of these bindings, within a limit.
    ///
    /// # Errors
    /// Those of the bindings.
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

/// How a store is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreState {
    /// Those that keep the names do not answer for so long: what is read may be older than what they have. `None` where it is not.
    pub away: Option<Duration>,
}

/// The same store, for whoever else works with it.
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

/// What [`Store::lookup`] finds.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// Something is bound.
    Bound(Arc<Bound>),
    /// Nothing is.
    Free,
    /// There is no such context.
    NoContext,
}

/// What is bound to a name.
#[derive(Debug)]
pub struct Bound {
    /// To what it leads.
    pub target: Target,
    /// The references in it, where they have been asked for and there is room for them.
    pub(crate) decoded: OnceLock<Decoded>,
}

impl Bound {
    /// Of a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, decoded: OnceLock::new() }
    }
}

/// A change of what is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// Binds a name.
    Bind {
        /// In that context.
        context: ContextId,
        /// The name.
        key: Key,
        /// To what.
        target: Target,
        /// In place of what.
        over: Over,
    },
    /// Binds an object to a free name for some time; where it has the name so already, the time begins anew.
    BindFor {
        /// In that context.
        context: ContextId,
        /// The name.
        key: Key,
        /// The object.
        target: Target,
        /// How long, at least: whole seconds.
        time: Duration,
    },
    /// Makes a context and binds it to a name that is free.
    BindNewContext {
        /// In that context.
        context: ContextId,
        /// The name.
        key: Key,
    },
    /// Makes a context that has no name.
    NewContext,
    /// Frees a name.
    Unbind {
        /// In that context.
        context: ContextId,
        /// The name.
        key: Key,
    },
    /// Ends a context that has no bindings.
    Destroy {
        /// Which.
        context: ContextId,
    },
    /// Puts a member into a group, in place of the one of the same name.
    Join {
        /// In that context.
        context: ContextId,
        /// The name of the group.
        key: Key,
        /// The member.
        member: Member,
    },
    /// Takes a member out of a group.
    Leave {
        /// In that context.
        context: ContextId,
        /// The name of the group.
        key: Key,
        /// The name of the member.
        member: String,
    },
}

impl Change {
    /// About how many bytes of names and references it has.
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

/// What a binding may replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Nothing: the name must be free.
    Nothing,
    /// An object, if there is one.
    Object,
    /// A context, if there is one.
    Context,
}

/// Why a change is not made: what is kept does not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no such context.
    NoContext,
    /// The name is not free.
    AlreadyBound,
    /// Nothing is bound to the name.
    Free,
    /// A context is bound where an object is meant.
    IsContext,
    /// An object is bound where a context is meant.
    IsObject,
    /// An object is bound where a group is meant.
    NoGroup,
    /// The group has no such member.
    NoMember,
    /// The group has as many members as it may ([`Group::MAX_MEMBERS`]), or as large ones ([`Group::MAX_BYTES`]).
    Full,
    /// The context has bindings.
    NotEmpty,
    /// The first context stays.
    Root,
    /// This store has no bindings that end by themselves.
    NoLeases,
}

/// Why a change is not made.
#[derive(Debug, Clone)]
pub enum ChangeError {
    /// What is kept does not allow it.
    Refused(Refused),
    /// The store can not.
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

/// Why a store can not do what it is for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A change was not made, and the store takes none until its disk works again, which it finds out by itself. Clients get PERSIST_STORE,
    /// COMPLETED_NO.
    #[error("the name is not stored, and nothing was changed: {what}")]
    NotWritten {
        /// What failed.
        what: Arc<str>,
    },
    /// It does not work: clients see PERSIST_STORE.
    #[error("the store of names does not work: {}", OneLine::new(&**.0))]
    Broken(Arc<str>),
    /// Those that keep the names do not answer: clients see TRANSIENT.
    #[error("the store of names is away: {}", OneLine::new(&**what))]
    Away {
        /// Who says what.
        what: Arc<str>,
        /// Whether a change was made: that may be unknown.
        completion: CompletionStatus,
    },
}

impl StoreError {
    pub(crate) fn new(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string().into())
    }
}
