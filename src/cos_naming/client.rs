//! A client of naming services, with names as text and typed references.

use std::future::Future;

use orb_runtime::{NarrowError, OneLine, Orb, Reference, ResolveError, SystemException};

use super::naming_context::{self, NotFoundReason};
use super::{
    Binding, BindingIteratorRef, BindingType, NameComponent, NameTextError, NamingContextRef, parse_name,
    print_name,
};

/// The number of bindings that [`Listing`] requests at a time.
const PAGE: u32 = 1000;

/// Access to an ORB's naming service. In the prelude.
pub trait OrbNaming {
    /// Returns the naming service of `-ORBInitRef NameService=URL`, `OrbBuilder::init_ref` or the default.
    ///
    /// # Errors
    /// See [`Orb::initial`]: no URL is known, or the object there is not a naming context.
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
/// Each call is one request. Dropping its future cancels the request, which may have been executed or not.
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
    #[error("`{name}` is no name: {source}")]
    Text {
        /// The text.
        name: String,
        /// The syntax error.
        source: NameTextError,
    },
    /// The service rejects the name.
    #[error("the naming service does not take the name `{0}`")]
    InvalidName(String),
    /// A part of the name is not bound, or bound to something else.
    #[error("{}", OneLine::new(&not_found(name, *why, rest)))]
    NotFound {
        /// The whole name.
        name: String,
        /// The reason.
        why: NotFoundReason,
        /// The rest of the name, from the component that was not found.
        rest: String,
    },
    /// The service stopped before the end of the name, mostly because another service does not answer.
    #[error(
        "the naming service got no further than `{}` of `{name}`: go on in the context that it names, or look whether that is there",
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
    /// The name is bound already.
    #[error("`{0}` is bound already: rebind it, or unbind it first")]
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
            Some(context) => format!("`{name}`: there is no context `{context}`: make it first"),
            None => format!("nothing is bound to `{name}`"),
        },
        NotFoundReason::NotContext => {
            let part = part_at_fault(name, rest).unwrap_or_else(|| rest.to_owned());
            format!("`{name}`: `{part}` is bound to an object, not to a context")
        }
        NotFoundReason::NotObject => format!("`{name}` is bound to a context, not to an object"),
    }
}

/// Returns the missing context in a name, unless the name itself is missing or `rest` is invalid.
fn missing_context(name: &str, rest: &str) -> Option<String> {
    let left = parse_name(rest).ok()?.len();
    if left < 2 { None } else { part_at_fault(name, rest) }
}

/// Returns a name up to the first component of its remaining part.
fn part_at_fault(name: &str, rest: &str) -> Option<String> {
    let (name, left) = (parse_name(name).ok()?, parse_name(rest).ok()?.len());
    let end = name.len().checked_sub(left.checked_sub(1)?)?;
    (end > 0).then(|| print_name(name.get(..end).unwrap_or_default()))
}

impl NamingError {
    /// Returns the missing context, if that is the reason. [`Naming::make_contexts`] creates it.
    #[must_use]
    pub fn missing_context(&self) -> Option<String> {
        match self {
            Self::NotFound { name, why: NotFoundReason::MissingNode, rest } => missing_context(name, rest),
            _ => None,
        }
    }
}

impl Naming {
    /// Creates a client for the names of that context.
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

    /// Binds an object to a free name. All components except the last must be existing contexts.
    ///
    /// # Errors
    /// [`NamingError::AlreadyBound`] among others.
    pub async fn bind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        self.context.bind(&parse(name)?, object.to_object()).await.map_err(|error| failed(name, error))
    }

    /// Binds an object to a name, replacing the object bound to it.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotObject` if a context is bound to the name, among others.
    pub async fn rebind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        self.context.rebind(&parse(name)?, object.to_object()).await.map_err(|error| failed(name, error))
    }

    /// Binds a context, of this service or of another one. Names can lead through it.
    ///
    /// # Errors
    /// [`NamingError::AlreadyBound`] among others.
    pub async fn bind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.bind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// Binds a context to a name, replacing the context bound to it.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotContext` if an object is bound to the name, among others.
    pub async fn rebind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.rebind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// Removes the binding of a name. The bound object or context continues to exist.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] among others.
    pub async fn unbind(&self, name: &str) -> Result<(), NamingError> {
        self.context.unbind(&parse(name)?).await.map_err(|error| failed(name, error))
    }

    /// Returns the context with this name. It and the contexts in its path are created if necessary.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotContext` if an object is in the path, among others.
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

    /// Returns the context with that name.
    ///
    /// # Errors
    /// [`NamingError`].
    pub async fn enter(&self, name: &str) -> Result<Self, NamingError> {
        Ok(Self { context: self.resolve(name).await? })
    }

    /// Lists the bindings of this context, page by page.
    #[must_use]
    pub fn list(&self) -> Listing {
        Listing { state: State::Begin(self.context.clone()) }
    }
}

/// The bindings of a context, in pages: see [`Naming::list`].
#[derive(Debug)]
pub struct Listing {
    state: State,
}

#[derive(Debug)]
enum State {
    Begin(NamingContextRef),
    Further(BindingIteratorRef),
    Done,
}

impl Listing {
    /// Returns the next bindings with their names as text. Empty if [`is_done`](Self::is_done).
    ///
    /// # Errors
    /// The exception of the call. OBJECT_NOT_EXIST if the service dropped an unused iterator.
    ///
    /// # Cancel safety
    /// A requested page is lost.
    pub async fn page(&mut self) -> Result<Vec<(String, BindingType)>, SystemException> {
        let page = match &self.state {
            State::Begin(context) => {
                let (page, further) = context.list(PAGE).await?;
                self.state = further.map_or(State::Done, State::Further);
                page
            }
            State::Further(iterator) => {
                let (more, page) = iterator.next_n(PAGE).await?;
                if !more {
                    // If this call does not arrive, the iterator ends by itself.
                    let _ = iterator.destroy().await;
                    self.state = State::Done;
                }
                page
            }
            State::Done => Vec::new(),
        };
        let text = |binding: Binding| (print_name(&binding.binding_name), binding.binding_type);
        Ok(page.into_iter().map(text).collect())
    }

    /// Returns whether all bindings were returned. Before that a page may be empty.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Drops the remaining bindings, so that the service need not keep its iterator until it times out.
    ///
    /// # Cancel safety
    /// The service may keep its iterator.
    pub async fn close(&mut self) {
        if let State::Further(iterator) = std::mem::replace(&mut self.state, State::Done) {
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

/// Converts the exceptions of an operation, with the name that it was called with.
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

enum Raised {
    NotFound(naming_context::NotFound),
    CannotProceed(naming_context::CannotProceed),
    InvalidName,
    AlreadyBound,
    System(SystemException),
}

/// Each operation has an exception type of its own.
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
