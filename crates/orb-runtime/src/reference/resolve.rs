//! Narrowing of references, and the errors of narrowing references and of resolving URLs.

use std::path::PathBuf;

use giop_codec::exception::SystemException;
use giop_codec::url::UrlError;
use giop_codec::{OneLine, Printable};

use crate::reference::Reference;
use crate::reference::object::ObjectRef;

/// The maximum number of texts in one resolution. A `file:` or `rir:` URL refers to a further text.
pub(crate) const MAX_TEXTS: usize = 10;

/// An error of narrowing a reference.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NarrowError {
    /// The object has another interface.
    #[error(
        "the object does not have the interface {wanted}: its reference contains {}, and `_is_a` returns false",
        Printable::new(found)
    )]
    WrongInterface {
        /// The repository id of the requested interface.
        wanted: &'static str,
        /// The repository id in the reference, or the text `no repository id`.
        found: String,
    },
    /// The object could not be asked.
    #[error("cannot ask the object whether it has the interface {wanted}: {source}")]
    Call {
        /// The repository id of the requested interface.
        wanted: &'static str,
        /// The error of the call.
        source: SystemException,
    },
}

/// An error of resolving a URL or a stringified IOR.
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
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Too many URLs refer to further URLs.
    #[error("{MAX_TEXTS} URLs refer to further URLs: is there a cycle?")]
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
        /// The naming context in which the name was looked up.
        context: String,
        /// The error of the call.
        source: SystemException,
    },
}

/// The initial reference is not configured (`CORBA::ORB::InvalidName`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no initial reference `{0}`: configure its URL with OrbBuilder::init_ref or -ORBInitRef {0}=URL")]
pub struct InvalidName(
    /// The name of the initial reference.
    pub String,
);

pub(crate) async fn narrow<R: Reference>(object: ObjectRef) -> Result<R, NarrowError> {
    match object.is_a(R::REPOSITORY_ID).await {
        Ok(true) => Ok(R::from_object(object)),
        Ok(false) => Err(NarrowError::WrongInterface {
            wanted: R::REPOSITORY_ID,
            found: match object.ior().type_id.as_str() {
                "" => "no repository id".to_owned(),
                id => id.to_owned(),
            },
        }),
        Err(source) => Err(NarrowError::Call { wanted: R::REPOSITORY_ID, source }),
    }
}
