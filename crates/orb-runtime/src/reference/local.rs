//! References to local objects: objects of local interfaces, which no message ever names.

use std::any::Any;
use std::sync::Arc;

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// What every typed reference to a local object has. Operations of an interface win over these by name.
///
/// Such a reference is a counted pointer: calls go straight to the object, by no ORB, and references are equal where
/// they lead to the same object. It is no [`ObjectRef`](crate::ObjectRef): it has no IOR, and where one is in a value that
/// is sent, the call fails with MARSHAL minor OMG 4, COMPLETED_NO (COMPLETED_YES for results).
#[doc(alias = "CORBA::LocalObject")]
pub trait LocalReference: Clone + Send + Sync + Sized + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// The interface without the type of the object.
    #[doc(hidden)]
    type Local: LocalObject + ?Sized;

    #[doc(hidden)]
    fn from_local(local: Arc<Self::Local>) -> Self;

    #[doc(hidden)]
    fn as_local(&self) -> &Arc<Self::Local>;

    /// A reference to a new local object.
    fn of<S>(servant: S) -> Self
    where
        Self: ServesLocally<S>,
    {
        Self::serve(servant)
    }

    /// The reference as another interface; `None` if the object does not have it.
    #[doc(alias = "_narrow")]
    fn narrow<R: LocalReference>(&self) -> Option<R> {
        let mut found: Option<Arc<R::Local>> = None;
        Arc::clone(self.as_local()).local(&mut found);
        found.map(R::from_local)
    }

    /// The object itself, if it is of this type.
    fn servant<S: 'static>(&self) -> Option<&S> {
        self.as_local().servant().downcast_ref()
    }
}

/// The reference leads to objects implemented by `S`.
pub trait ServesLocally<S>: LocalReference {
    #[doc(hidden)]
    fn serve(servant: S) -> Self;
}

/// A local object of whatever interface.
pub trait LocalObject: Send + Sync + 'static {
    /// Fills a place of `Option<Arc<L>>`, where `L` is one of the object's interfaces; leaves others.
    fn local(self: Arc<Self>, out: &mut dyn Any);

    /// What implements the object.
    fn servant(&self) -> &dyn Any;
}

/// A value of a native type in a message: it has no form there.
#[derive(Debug)]
pub struct Native<T>(pub T);

impl<T> CdrEncode for Native<T> {
    fn encode(&self, _: &mut Encoder) -> Result<(), EncodeError> {
        not_sent()
    }
}

impl<T> CdrDecode for Native<T> {
    const MIN_SIZE: usize = 1;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        not_received(d)
    }
}

/// What encoding a local reference gives.
///
/// # Errors
/// [`EncodeErrorKind::LocalObject`] always.
#[cold]
pub fn not_sent() -> Result<(), EncodeError> {
    Err(EncodeError::new(EncodeErrorKind::LocalObject))
}

/// What decoding a local reference gives.
///
/// # Errors
/// [`DecodeErrorKind::LocalObject`] always.
#[cold]
pub fn not_received<T>(d: &Decoder<'_>) -> Result<T, DecodeError> {
    Err(DecodeError::new(DecodeErrorKind::LocalObject, d.position()))
}
