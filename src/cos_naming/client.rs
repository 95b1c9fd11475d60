//! A naming service for programs: names are texts, references are typed.

use std::future::Future;

use orb_runtime::{NarrowError, ObjectRef, OneLine, Orb, Reference, ResolveError, SystemException};

use super::naming_context::{self, NotFoundReason};
use super::{
    Binding, BindingIteratorRef, BindingType, NameComponent, NameTextError, NamingContextRef, parse_name,
    print_name,
};

/// How many bindings [`Listing`] asks for at a time.
const PAGE: u32 = 1000;

/// What an ORB has of its naming service; in the prelude.
pub trait OrbNaming {
    /// The naming service that `-ORBInitRef NameService=URL`, `OrbBuilder::init_ref` or a default names.
    ///
    /// # Errors
    /// As [`Orb::initial`]: no URL is known, or nobody there is a naming context.
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
/// Each call is one request; dropping its future cancels that, and whether it was executed is not known then.
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

/// Why a naming service did not do what it was asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// The text is no name.
    #[error("`{name}` is no name: {source}")]
    Text {
        /// The text.
        name: String,
        /// What is wrong.
        source: NameTextError,
    },
    /// The service does not take the name.
    #[error("the naming service does not take the name `{0}`")]
    InvalidName(String),
    /// A part of the name is not bound, or bound to something else.
    #[error("{}", OneLine::new(&not_found(name, *why, rest)))]
    NotFound {
        /// The whole name.
        name: String,
        /// What is the matter.
        why: NotFoundReason,
        /// What is left of the name from the component on that was not found.
        rest: String,
    },
    /// The service gave up on the way, mostly because another service does not answer.
    #[error(
        "the naming service got no further than `{}` of `{name}`: go on in the context that it names, or look whether that is there",
        OneLine::new(rest)
    )]
    CannotProceed {
        /// The whole name.
        name: String,
        /// What is left of it.
        rest: String,
        /// Where to go on.
        context: Option<NamingContextRef>,
    },
    /// Something has the name.
    #[error("`{0}` is bound already: rebind it, or unbind it first")]
    AlreadyBound(String),
    /// It is bound to no object.
    #[error("`{0}` is bound to nil")]
    Nil(String),
    /// What is bound has another interface, or can not be asked.
    #[error("`{name}`: {source}")]
    Narrow {
        /// The name.
        name: String,
        /// What asking for the interface brought.
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

/// The context on the way to a name that is missing; `None` where it is the name itself, or what the service says makes no sense.
fn missing_context(name: &str, rest: &str) -> Option<String> {
    let left = parse_name(rest).ok()?.len();
    if left < 2 { None } else { part_at_fault(name, rest) }
}

/// A name up to the first component of what is left of it.
fn part_at_fault(name: &str, rest: &str) -> Option<String> {
    let (name, left) = (parse_name(name).ok()?, parse_name(rest).ok()?.len());
    let end = name.len().checked_sub(left.checked_sub(1)?)?;
    (end > 0).then(|| print_name(name.get(..end).unwrap_or_default()))
}

impl NamingError {
    /// The context that is missing on the way to the name, where that is why: [`Naming::make_contexts`] makes it.
    #[must_use]
    pub fn missing_context(&self) -> Option<String> {
        match self {
            Self::NotFound { name, why: NotFoundReason::MissingNode, rest } => missing_context(name, rest),
            _ => None,
        }
    }
}

impl Naming {
    /// The names of that context.
    #[must_use]
    pub fn new(context: NamingContextRef) -> Self {
        Self { context }
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &NamingContextRef {
        &self.context
    }

    /// The object of that name. It is asked for its interface only where its reference does not tell.
    ///
    /// # Errors
    /// [`NamingError`].
    pub async fn resolve<R: Reference>(&self, name: &str) -> Result<R, NamingError> {
        let found = self.context.resolve(&parse(name)?).await.map_err(|error| failed(name, error))?;
        let found = found.ok_or_else(|| NamingError::Nil(name.to_owned()))?;
        found.narrow().await.map_err(|source| NamingError::Narrow { name: name.to_owned(), source })
    }

    /// Gives the object that name, which nothing has yet; all but the last part are contexts that are there.
    ///
    /// # Errors
    /// [`NamingError::AlreadyBound`] among others.
    pub async fn bind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        let object: ObjectRef = object.to_object();
        self.context.bind(&parse(name)?, object).await.map_err(|error| failed(name, error))
    }

    /// Gives the object that name, in place of the object that has it.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotObject` where a context has it, among others.
    pub async fn rebind(&self, name: &str, object: &impl Reference) -> Result<(), NamingError> {
        let object: ObjectRef = object.to_object();
        self.context.rebind(&parse(name)?, object).await.map_err(|error| failed(name, error))
    }

    /// Binds a context, of this service or of another one: names lead on through it.
    ///
    /// # Errors
    /// [`NamingError::AlreadyBound`] among others.
    pub async fn bind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.bind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// The same in place of the context that has the name.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotContext` where an object has it, among others.
    pub async fn rebind_context(&self, name: &str, context: &NamingContextRef) -> Result<(), NamingError> {
        let bound = self.context.rebind_context(&parse(name)?, context.clone()).await;
        bound.map_err(|error| failed(name, error))
    }

    /// The name means nothing from then on. What was bound stays what it is.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] among others.
    pub async fn unbind(&self, name: &str) -> Result<(), NamingError> {
        self.context.unbind(&parse(name)?).await.map_err(|error| failed(name, error))
    }

    /// The context of that name, made with all contexts on the way to it that are not there yet.
    ///
    /// # Errors
    /// [`NamingError::NotFound`] with `NotContext` where an object is on the way, among others.
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

    /// The context of that name.
    ///
    /// # Errors
    /// [`NamingError`].
    pub async fn enter(&self, name: &str) -> Result<Self, NamingError> {
        Ok(Self { context: self.resolve(name).await? })
    }

    /// What is bound in this context, page by page.
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
    /// The next bindings as texts, each in the form of a name; none when all were told ([`is_done`](Self::is_done)).
    ///
    /// # Errors
    /// What the call brought: OBJECT_NOT_EXIST where the service dropped its iterator because it was not asked for long.
    ///
    /// # Cancel safety
    /// A page that was asked for is lost.
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
                    // It ends by itself where this does not reach it.
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

    /// Whether all bindings were told. Before that a page may be empty.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Gives up the bindings that are left, so that the service need not keep its iterator until it drops it by itself.
    ///
    /// # Cancel safety
    /// The service may keep its iterator.
    pub async fn close(&mut self) {
        if let State::Further(iterator) = std::mem::replace(&mut self.state, State::Done) {
            let _ = iterator.destroy().await;
        }
    }

    /// All bindings that are left.
    ///
    /// # Errors
    /// As [`page`](Self::page).
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

/// What an operation raised, in terms of the name that it was called with.
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

/// The exceptions of each operation are a type of their own.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_context_is_named() {
        let error = |name: &str, rest: &str| NamingError::NotFound {
            name: name.to_owned(),
            why: NotFoundReason::MissingNode,
            rest: rest.to_owned(),
        };
        for (name, rest, context) in [
            ("ü/é", "ü/é", Some("ü")),
            ("a/b.k/c", "b.k/c", Some("a/b.k")),
            (r"a\/b/c/d", "c/d", Some(r"a\/b/c")),
            ("a/b", "b", None),
            ("a", "a", None),
            // What a service should not say.
            ("a", "x/y/z", None),
            ("a/b", "", None),
        ] {
            let error = error(name, rest);
            assert_eq!(error.missing_context().as_deref(), context, "{name} {rest}");
            let told = match context {
                Some(context) => format!("`{name}`: there is no context `{context}`: make it first"),
                None => format!("nothing is bound to `{name}`"),
            };
            assert_eq!(error.to_string(), told);
        }
    }
}
