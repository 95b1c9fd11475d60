//! Narrowing of references, and the errors of narrowing and of resolving texts.

use std::path::PathBuf;

use giop_codec::exception::SystemException;
use giop_codec::url::UrlError;
use giop_codec::{OneLine, Printable};

use crate::reference::Reference;
use crate::reference::object::ObjectRef;

/// The maximum nesting depth of URLs that lead to further URLs, by `file:` and `rir:`.
pub(crate) const NESTING: usize = 10;

/// An error of narrowing a reference.
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
    /// Asking the object failed.
    #[error("cannot ask the object whether it is of {wanted}: {source}")]
    Call {
        /// The repository id asked for.
        wanted: &'static str,
        /// The error of the call.
        source: SystemException,
    },
}

/// An error of resolving a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The text is malformed.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The reference is nil.
    #[error("`{0}` is a nil reference")]
    Nil(String),
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Too many URLs lead to further URLs.
    #[error("{NESTING} URLs lead from one to the next: is there a circle?")]
    Nesting,
    /// The initial reference is unknown.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The object has another interface, or cannot be asked.
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
        /// The naming context of the look-up.
        context: String,
        /// The error of the call.
        source: SystemException,
    },
}

/// The initial reference is not configured (`CORBA::ORB::InvalidName`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no initial reference `{0}`: give its URL by OrbBuilder::init_ref or -ORBInitRef {0}=URL")]
pub struct InvalidName(
    /// The name.
    pub String,
);

pub(crate) async fn narrow<R: Reference>(object: ObjectRef) -> Result<R, NarrowError> {
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
