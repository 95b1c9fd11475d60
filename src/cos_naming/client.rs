//! A client of naming services, with names as text and typed references.

use std::future::Future;

use orb_runtime::{NarrowError, OneLine, Orb, Reference, ResolveError, SystemException};

use super::naming_context::{self, NotFoundReason};
use super::{
    Binding, BindingIteratorRef, BindingType, NameComponent, NameTextError, NamingContextRef, parse_name,
    print_name,
};

/// The number of bindings that [`Listing`] requests at a time.
const BINDINGS_PER_PAGE: u32 = 1000;

/// Access to an ORB's naming service. This trait is part of the prelude.
pub trait OrbNaming {
    /// Returns the initial reference `NameService` of `-ORBInitRef`, `OrbBuilder::init_ref` or
    /// `-ORBDefaultInitRef`.
    ///
    /// # Errors
    /// See [`Orb::initial`]: no URL is known, or the URL does not lead to a naming context.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most an open connection.
    fn naming(&self) -> impl Future<Output = Result<Naming, ResolveError>> + Send;
}

impl OrbNaming for Orb {
    async fn naming(&self) -> Result<Naming, ResolveError> {
        Ok(Naming { context: self.initial("NameService").await? })
    }
}

/// A naming context whose names are texts such as `bank/accounts.index` ([`parse_name`]).
///
/// # Cancel safety
/// Dropping the future of a method cancels its current request. The service may have executed the request.
///
/// ```no_run
/// use zorb::prelude::*;
/// # async fn example(orb: Orb, account: zorb::ObjectRef) -> Result<(), Box<dyn std::error::Error>> {
/// let naming = orb.naming().await?;
/// naming.make_contexts("bank/accounts").await?;
/// naming.bind("bank/accounts/mine", &account).await?;
/// let same: zorb::ObjectRef = naming.resolve("bank/accounts/mine").await?;
/// # let _ = same; Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Naming {
    context: NamingContextRef,
}

/// The reason why a request to a naming service failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// The text is not a valid name.
    #[error("`{name}` is not a valid name: {source}")]
    Text {
        /// The text.
        name: String,
        /// The syntax error.
        source: NameTextError,
    },
    /// The service rejects the name.
    #[error("the naming service rejects the name `{0}` as invalid")]
    InvalidName(String),
    /// A part of the name is not bound, or it is bound to an object instead of a context, or the reverse.
    #[error("{}", OneLine::new(&not_found(name, *why, rest)))]
    NotFound {
        /// The whole name.
        name: String,
        /// The reason.
        why: NotFoundReason,
        /// The rest of the name, beginning with the component at which the search ended.
        rest: String,
    },
    /// The service could not process the rest of the name, usually because another service does not answer.
    #[error(
        "the naming service stopped before `{}` in `{name}`: continue in the context of this error, or check whether its server runs",
        OneLine::new(rest)
    )]
    CannotProceed {
        /// The whole name.
        name: String,
        /// The rest of the name.
        rest: String,
        /// The context in which to continue.
        context: Option<NamingContextRef>,
    },
    /// The name is already bound.
    #[error("`{0}` is already bound: rebind it, or unbind it first")]
    AlreadyBound(String),
    /// The name is bound to nil.
    #[error("`{0}` is bound to nil")]
    Nil(String),
    /// The bound object has another interface, or did not answer the query for it.
    #[error("`{name}`: {source}")]
    Narrow {
        /// The name.
        name: String,
        /// The error of the query.
        source: NarrowError,
    },
    /// The call failed.
    #[error(transparent)]
    System(#[from] SystemException),
}

fn not_found(name: &str, why: NotFoundReason, rest: &str) -> String {
    match why {
        NotFoundReason::MissingNode => match missing_context(name, rest) {
            Some(context) => format!("`{name}`: there is no context `{context}`: create it first"),
            None => format!("nothing is bound to `{name}`"),
        },
        NotFoundReason::NotContext => {
            let part = part_at_fault(name, rest).unwrap_or_else(|| rest.to_owned());
            format!("`{name}`: `{part}` is bound to an object, not to a context")
        }
        NotFoundReason::NotObject => format!("`{name}` is bound to a context, not to an object"),
    }
}

/// Returns the name of the missing context, unless only the last component of the name is missing.
fn missing_context(name: &str, rest: &str) -> Option<String> {
    let left = parse_name(rest).ok()?.len();
    if left < 2 { None } else { part_at_fault(name, rest) }
}

/// Returns a name up to and including the first component of `rest`, where the search ended.
fn part_at_fault(name: &str, rest: &str) -> Option<String> {
    let (name, left) = (parse_name(name).ok()?, parse_name(rest).ok()?.len());
    let end = name.len().checked_sub(left.checked_sub(1)?)?;
    (end > 0).then(|| print_name(name.get(..end).unwrap_or_default()))
}

impl NamingError {
    /// Returns the name of the missing context, if this is the reason. [`Naming::make_contexts`] creates it.
    #[must_use]
    pub fn missing_context(&self) -> Option<String> {
        match self {
            Self::NotFound { name, why: NotFoundReason::MissingNode, rest } => missing_context(name, rest),
            _ => None,
        }
    }
}

impl Naming {
    /// Creates a client for names in `context`.
    #[must_use]
    pub fn new(context: NamingContextRef) -> Self {
        Self { context }
    }

    /// Returns the context.
    #[must_use]
    pub fn context(&self) -> &NamingContextRef {
        &self.context
    }

    /// Returns the object with this name. Its interface is queried only if the reference does not contain it.
    ///
    /// # Errors
    /// [`NamingError`].
    pub async fn resolve<R: Reference>(&self, name: &str) -> Result<R, NamingError> {
        let found = self.context.resolve(&parse(name)?).await.map_err(|error| failed(name, error))?;
        let found = found.ok_or_else(|| NamingError::Nil(name.to_owned()))?;
        found.narrow().await.map_err(|source| NamingError::Narrow { name: name.to_owned(), source })
    }

    /// Binds an object to a name that is not bound. All components except the last must be existing contexts.
    ///
    /// # Errors
    /// [`NamingError`], such as [`NamingError::AlreadyBound`].
    pub async fn bind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        self.context.bind(&parse(name)?, object.to_object()).await.map_err(|error| failed(name, error))
    }

    /// Binds an object to a name. Replaces the object that is bound to the name, if there is one.
    ///
    /// # Errors
    /// [`NamingError`]. If a context is bound to the name, it is [`NamingError::NotFound`] with `NotObject`.
    pub async fn rebind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        self.context.rebind(&parse(name)?, object.to_object()).await.map_err(|error| failed(name, error))
    }

    /// Binds a context, which may belong to another naming service. Longer names can then lead through it.
    ///
    /// # Errors
    /// [`NamingError`], such as [`NamingError::AlreadyBound`].
    pub async fn bind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.bind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// Binds a context to a name. Replaces the context that is bound to the name, if there is one.
    ///
    /// # Errors
    /// [`NamingError`]. If an object is bound to the name, it is [`NamingError::NotFound`] with `NotContext`.
    pub async fn rebind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.rebind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// Removes the binding of a name. The bound object or context continues to exist.
    ///
    /// # Errors
    /// [`NamingError`], such as [`NamingError::NotFound`].
    pub async fn unbind(&self, name: &str) -> Result<(), NamingError> {
        self.context.unbind(&parse(name)?).await.map_err(|error| failed(name, error))
    }

    /// Returns the context with this name. Creates it and the contexts in its path if necessary.
    ///
    /// # Errors
    /// [`NamingError`]: for an object in the path, [`NamingError::NotFound`] with `NotContext`.
    pub async fn make_contexts(&self, name: &str) -> Result<Self, NamingError> {
        let parts = parse(name)?;
        for end in 1..=parts.len() {
            match self.context.bind_new_context(parts.get(..end).unwrap_or_default()).await {
                Ok(_) | Err(naming_context::BindNewContextError::AlreadyBound(_)) => {}
                Err(error) => return Err(failed(name, error)),
            }
        }
        self.enter(name).await
    }

    /// Returns the context with this name.
    ///
    /// # Errors
    /// [`NamingError`].
    pub async fn enter(&self, name: &str) -> Result<Self, NamingError> {
        Ok(Self { context: self.resolve(name).await? })
    }

    /// Lists the bindings of this context, page by page.
    #[must_use]
    pub fn list(&self) -> Listing {
        Listing { state: ListingState::NotStarted(self.context.clone()) }
    }
}

/// The bindings of a context, in pages: see [`Naming::list`].
#[derive(Debug)]
pub struct Listing {
    state: ListingState,
}

#[derive(Debug)]
enum ListingState {
    NotStarted(NamingContextRef),
    Started(BindingIteratorRef),
    Done,
}

impl Listing {
    /// Returns the next bindings with their names as text. The result is empty after the last page.
    ///
    /// # Errors
    /// The exception of the call: OBJECT_NOT_EXIST if the service has dropped the unused listing.
    ///
    /// # Cancel safety
    /// If the future is dropped, the requested page is lost, unless it is the first one.
    pub async fn page(&mut self) -> Result<Vec<(String, BindingType)>, SystemException> {
        let page = match &self.state {
            ListingState::NotStarted(context) => {
                let (page, further) = context.list(BINDINGS_PER_PAGE).await?;
                self.state = further.map_or(ListingState::Done, ListingState::Started);
                page
            }
            ListingState::Started(iterator) => {
                let (more, page) = iterator.next_n(BINDINGS_PER_PAGE).await?;
                if !more {
                    // If this call fails, the service drops the iterator after a timeout.
                    let _ = iterator.destroy().await;
                    self.state = ListingState::Done;
                }
                page
            }
            ListingState::Done => Vec::new(),
        };
        let text = |binding: Binding| (print_name(&binding.binding_name), binding.binding_type);
        Ok(page.into_iter().map(text).collect())
    }

    /// Returns whether all bindings were returned. Pages may be empty even before that.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, ListingState::Done)
    }

    /// Ends the listing. An unfinished listing occupies memory of the service until a timeout.
    ///
    /// # Cancel safety
    /// If the future is dropped, the service may keep its iterator until a timeout.
    pub async fn close(&mut self) {
        if let ListingState::Started(iterator) = std::mem::replace(&mut self.state, ListingState::Done) {
            let _ = iterator.destroy().await;
        }
    }

    /// Returns all remaining bindings.
    ///
    /// # Errors
    /// See [`page`](Self::page).
    pub async fn all(mut self) -> Result<Vec<(String, BindingType)>, SystemException> {
        let mut all = Vec::new();
        loop {
            let page = self.page().await?;
            if page.is_empty() && self.is_done() {
                return Ok(all);
            }
            all.extend(page);
        }
    }
}

fn parse(name: &str) -> Result<Vec<NameComponent>, NamingError> {
    parse_name(name).map_err(|source| NamingError::Text { name: name.to_owned(), source })
}

/// Converts an exception of an operation. `name` is the name with which the operation was called.
fn failed(name: &str, error: impl Into<Raised>) -> NamingError {
    let name = name.to_owned();
    match error.into() {
        Raised::NotFound(e) => NamingError::NotFound { name, why: e.why, rest: print_name(&e.rest_of_name) },
        Raised::CannotProceed(e) => {
            NamingError::CannotProceed { name, rest: print_name(&e.rest_of_name), context: e.cxt }
        }
        Raised::InvalidName => NamingError::InvalidName(name),
        Raised::AlreadyBound => NamingError::AlreadyBound(name),
        Raised::System(e) => NamingError::System(e),
    }
}

/// An exception of any operation of a naming context.
enum Raised {
    NotFound(naming_context::NotFound),
    CannotProceed(naming_context::CannotProceed),
    InvalidName,
    AlreadyBound,
    System(SystemException),
}

/// Implements the conversions to [`Raised`], because each operation has its own error type.
macro_rules! raised {
    ($($error:ident $(with $bound:ident)?,)*) => {$(
        impl From<naming_context::$error> for Raised {
            fn from(error: naming_context::$error) -> Self {
                use naming_context::$error as E;
                match error {
                    E::NotFound(e) => Self::NotFound(e),
                    E::CannotProceed(e) => Self::CannotProceed(e),
                    E::InvalidName(_) => Self::InvalidName,
                    $(E::$bound(_) => Self::AlreadyBound,)?
                    E::System(e) => Self::System(e),
                }
            }
        }
    )*};
}

raised! {
    BindError with AlreadyBound,
    RebindError,
    BindContextError with AlreadyBound,
    RebindContextError,
    ResolveError,
    UnbindError,
    BindNewContextError with AlreadyBound,
}
