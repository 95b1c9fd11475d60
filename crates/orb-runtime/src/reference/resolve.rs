//! From texts to references, and from one interface to another.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use giop_codec::exception::SystemException;
use giop_codec::ior::Ior;
use giop_codec::url::{Corbaloc, Corbaname, ObjectUrl, UrlError};
use giop_codec::{OneLine, Printable, Version};

use super::object::Url;
use super::{ObjectRef, Reference};
use crate::orb::{Orb, OrbCore};

/// How deep URLs may lead to further URLs, by `file:` and `rir:`.
const NESTING: usize = 10;

/// Why a reference is not of the interface asked for.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NarrowError {
    /// The object has another interface.
    #[error(
        "the object is no {wanted}: its reference says {}, and it answers `_is_a` with false",
        Printable::new(found)
    )]
    WrongInterface {
        /// The repository id asked for.
        wanted: &'static str,
        /// The repository id in the reference.
        found: String,
    },
    /// The object could not be asked.
    #[error("cannot ask the object whether it is of {wanted}: {source}")]
    Call {
        /// The repository id asked for.
        wanted: &'static str,
        /// What the call brought.
        source: SystemException,
    },
}

/// Why a text gives no reference.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The text is malformed.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// It is a reference to nothing.
    #[error("`{0}` is a nil reference")]
    Nil(String),
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A URL leads to a URL, and so on.
    #[error("{NESTING} URLs lead from one to the next: is there a circle?")]
    Nesting,
    /// An initial reference is not known.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The object is of another interface, or cannot be asked.
    #[error(transparent)]
    Narrow(#[from] NarrowError),
    /// The naming service did not resolve the name.
    #[error(
        "cannot resolve `{}` in the naming context {}: {source}",
        OneLine::new(name),
        OneLine::new(context)
    )]
    Naming {
        /// The name.
        name: String,
        /// Where it was looked up.
        context: String,
        /// What the call brought.
        source: SystemException,
    },
}

/// An initial reference that nothing was said about (`CORBA::ORB::InvalidName`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no initial reference `{0}`: give its URL by OrbBuilder::init_ref or -ORBInitRef {0}=URL")]
pub struct InvalidName(
    /// The name.
    pub String,
);

impl Orb {
    /// The reference that a text means: `IOR:...`, `corbaloc:...`, `corbaname:...` or `file:...`.
    ///
    /// The object is asked for its interface only where the text does not tell: `corbaloc:` never does.
    ///
    /// # Errors
    /// [`ResolveError`] says what is wrong, with the character's position in malformed texts.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most an open connection.
    #[doc(alias = "string_to_object")]
    pub async fn resolve<R: Reference>(&self, text: &str) -> Result<R, ResolveError> {
        let object = resolve_text(self.core(), text.to_owned(), 0).await?;
        Ok(narrow(object).await?)
    }

    /// The same without asking for the interface: a wrong one answers BAD_OPERATION.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub async fn resolve_unchecked<R: Reference>(&self, text: &str) -> Result<R, ResolveError> {
        Ok(R::from_object(resolve_text(self.core(), text.to_owned(), 0).await?))
    }

    /// The object that an interoperable reference names; `None` for a nil one. Nobody is asked anything.
    pub fn object(&self, ior: Ior) -> Option<ObjectRef> {
        (!ior.is_nil()).then(|| ObjectRef::new(self.core(), ior))
    }

    /// An initial reference: what `init_ref` or `-ORBInitRef` named so, else the name behind `-ORBDefaultInitRef`.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and [`ResolveError::InvalidName`].
    #[doc(alias = "resolve_initial_references")]
    pub async fn initial<R: Reference>(&self, name: &str) -> Result<R, ResolveError> {
        let url = initial_url(self.core(), name)?;
        self.resolve(&url).await
    }

    /// The names of all initial references that `init_ref` or `-ORBInitRef` set, sorted.
    #[doc(alias = "list_initial_services")]
    pub fn initial_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.core().config.initial.keys().cloned().collect();
        names.sort();
        names
    }
}

fn initial_url(orb: &OrbCore, name: &str) -> Result<String, InvalidName> {
    let config = &orb.config;
    if let Some(url) = config.initial.get(name) {
        return Ok(url.clone());
    }
    let prefix = config.default_initial.as_ref().ok_or_else(|| InvalidName(name.to_owned()))?;
    Ok(format!("{}/{name}", prefix.trim_end_matches('/')))
}

type Resolving<'a> = Pin<Box<dyn Future<Output = Result<ObjectRef, ResolveError>> + Send + 'a>>;

fn resolve_text(orb: &Arc<OrbCore>, text: String, depth: usize) -> Resolving<'_> {
    Box::pin(async move {
        if depth >= NESTING {
            return Err(ResolveError::Nesting);
        }
        match text.parse::<ObjectUrl>()? {
            ObjectUrl::Ior(ior) => object(orb, ior, &text),
            ObjectUrl::Corbaloc(url) => resolve_corbaloc(orb, url, &text, depth).await,
            ObjectUrl::Corbaname(Corbaname { context, name }) => {
                let shown = context.to_string();
                let context = resolve_corbaloc(orb, context, &text, depth).await?;
                if name.is_empty() {
                    return Ok(context);
                }
                crate::naming::resolve_str(&context, &name).await.map_err(|source| ResolveError::Naming {
                    name,
                    context: shown,
                    source,
                })
            }
            ObjectUrl::File(path) => {
                let text = tokio::fs::read_to_string(&path).await;
                let text = text.map_err(|source| ResolveError::File { path, source })?;
                resolve_text(orb, text.trim().to_owned(), depth + 1).await
            }
        }
    })
}

async fn resolve_corbaloc(
    orb: &Arc<OrbCore>,
    url: Corbaloc,
    text: &str,
    depth: usize,
) -> Result<ObjectRef, ResolveError> {
    match url {
        Corbaloc::Rir { name } => {
            let url = initial_url(orb, &name)?;
            resolve_text(orb, url, depth + 1).await
        }
        url => {
            let ior = url.to_ior()?;
            let address = text.split_once('/').map_or(text, |(address, _)| address);
            let unversioned = !address.contains('@');
            // In GIOP 1.0 nothing that the server could tell would count.
            let asks =
                unversioned || ior.iiop_profile().is_some_and(|profile| profile.version > Version::V1_0);
            let url = if unversioned { Url::Unversioned } else { Url::Versioned };
            Ok(if asks { ObjectRef::of_url(orb, ior, url) } else { ObjectRef::new(orb, ior) })
        }
    }
}

fn object(orb: &Arc<OrbCore>, ior: Ior, text: &str) -> Result<ObjectRef, ResolveError> {
    if ior.is_nil() {
        return Err(ResolveError::Nil(text.to_owned()));
    }
    Ok(ObjectRef::new(orb, ior))
}

pub(super) async fn narrow<R: Reference>(object: ObjectRef) -> Result<R, NarrowError> {
    match object.is_a(R::REPOSITORY_ID).await {
        Ok(true) => Ok(R::from_object(object)),
        Ok(false) => Err(NarrowError::WrongInterface {
            wanted: R::REPOSITORY_ID,
            found: match object.ior().type_id.as_str() {
                "" => "nothing".to_owned(),
                id => id.to_owned(),
            },
        }),
        Err(source) => Err(NarrowError::Call { wanted: R::REPOSITORY_ID, source }),
    }
}
