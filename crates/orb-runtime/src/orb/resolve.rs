//! Conversion of URLs and stringified IORs to references.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use giop_codec::Version;
use giop_codec::ior::Ior;
use giop_codec::url::{Corbaloc, Corbaname, ObjectUrl};

use crate::orb::Orb;
use crate::reference::object::UrlVersion;
use crate::reference::resolve::{MAX_TEXTS, narrow};
use crate::reference::{InvalidName, ObjectRef, Reference, ResolveError};
use crate::runtime::Shared;

impl Orb {
    /// Resolves a text to a reference: `IOR:...`, `corbaloc:...`, `corbaname:...` or `file:...`.
    ///
    /// If the text does not contain the interface of the object, the server is asked whether the object has
    /// the interface of `R`. A `corbaloc:` URL never contains an interface.
    ///
    /// # Errors
    /// [`ResolveError`] describes the problem. For malformed texts, it contains the position of the fault.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect except that a connection may stay open.
    #[doc(alias = "string_to_object")]
    pub async fn resolve<R: Reference>(&self, text: &str) -> Result<R, ResolveError> {
        let object = resolve_text(self.core(), text.to_owned(), 0).await?;
        Ok(narrow(object).await?)
    }

    /// Resolves a text to a reference without checking the interface. If the object has another interface,
    /// calls raise BAD_OPERATION.
    ///
    /// # Errors
    /// The same as for [`resolve`](Self::resolve), but the interface is not checked.
    pub async fn resolve_unchecked<R: Reference>(&self, text: &str) -> Result<R, ResolveError> {
        Ok(R::from_object(resolve_text(self.core(), text.to_owned(), 0).await?))
    }

    /// Creates a reference from an IOR. Returns `None` for a nil IOR. No message is sent.
    pub fn object_from_ior(&self, ior: Ior) -> Option<ObjectRef> {
        (!ior.is_nil()).then(|| ObjectRef::new(self.core(), ior))
    }

    /// Resolves an initial reference: the URL that was set by
    /// [`OrbBuilder::init_ref`](crate::OrbBuilder::init_ref) or `-ORBInitRef` for this name, or else the name
    /// appended to the URL of `-ORBDefaultInitRef`.
    ///
    /// # Errors
    /// The same as for [`resolve`](Self::resolve), and [`ResolveError::InvalidName`] for an unknown name.
    #[doc(alias = "resolve_initial_references")]
    pub async fn initial<R: Reference>(&self, name: &str) -> Result<R, ResolveError> {
        let url = initial_url(self.core(), name)?;
        self.resolve(&url).await
    }

    /// Returns the sorted names of all initial references that were set by `init_ref` or `-ORBInitRef`.
    #[doc(alias = "list_initial_services")]
    pub fn initial_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.core().config.client.initial_references.keys().cloned().collect();
        names.sort();
        names
    }
}

fn initial_url(orb: &Shared, name: &str) -> Result<String, InvalidName> {
    let config = &orb.config;
    if let Some(url) = config.client.initial_references.get(name) {
        return Ok(url.clone());
    }
    let prefix = config.client.default_initial_url.as_ref().ok_or_else(|| InvalidName(name.to_owned()))?;
    Ok(format!("{}/{name}", prefix.trim_end_matches('/')))
}

type Resolving<'a> = Pin<Box<dyn Future<Output = Result<ObjectRef, ResolveError>> + Send + 'a>>;

fn resolve_text(orb: &Arc<Shared>, text: String, depth: usize) -> Resolving<'_> {
    Box::pin(async move {
        if depth >= MAX_TEXTS {
            return Err(ResolveError::Nesting);
        }
        match text.parse::<ObjectUrl>()? {
            ObjectUrl::Ior(ior) if ior.is_nil() => Err(ResolveError::Nil(text)),
            ObjectUrl::Ior(ior) => Ok(ObjectRef::new(orb, ior)),
            ObjectUrl::Corbaloc(url) => resolve_corbaloc(orb, url, &text, depth).await,
            ObjectUrl::Corbaname(Corbaname { context, name }) => {
                let context_text = context.to_string();
                let context = resolve_corbaloc(orb, context, &text, depth).await?;
                if name.is_empty() {
                    return Ok(context);
                }
                crate::client::corbaname::resolve_str(&context, &name)
                    .await
                    .map_err(|source| ResolveError::Naming { name, context: context_text, source })
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
    orb: &Arc<Shared>,
    url: Corbaloc,
    text: &str,
    depth: usize,
) -> Result<ObjectRef, ResolveError> {
    match url {
        Corbaloc::Rir { name } => resolve_text(orb, initial_url(orb, &name)?, depth + 1).await,
        url => {
            let ior = url.to_ior()?;
            let address = text.split_once('/').map_or(text, |(address, _)| address);
            let is_unversioned = !address.contains('@');
            // The server's own reference to the object has more data than the URL, except in GIOP 1.0.
            let asks_server =
                is_unversioned || ior.iiop_profile().is_some_and(|profile| profile.version > Version::V1_0);
            let url = if is_unversioned { UrlVersion::Unversioned } else { UrlVersion::Versioned };
            Ok(if asks_server { ObjectRef::of_url(orb, ior, url) } else { ObjectRef::new(orb, ior) })
        }
    }
}
