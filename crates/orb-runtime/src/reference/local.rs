//! References to local objects: objects of local interfaces, which cannot be sent in messages.

use std::any::Any;
use std::sync::Arc;

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The methods of every typed reference to a local object. If an operation of the interface has the same name
/// as a method, the operation takes precedence.
///
/// A local reference is a reference-counted pointer. Calls go directly to the object, without an ORB.
/// References are equal if they point to the same object. A local reference is not an
/// [`ObjectRef`](crate::ObjectRef) and has no IOR. Sending a local reference fails with MARSHAL minor OMG 4:
/// with COMPLETED_NO as an argument, and with COMPLETED_YES as a result.
#[doc(alias = "CORBA::LocalObject")]
pub trait LocalReference: Clone + Send + Sync + Sized + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// The type-erased object with its interface.
    #[doc(hidden)]
    type Local: LocalObject + ?Sized;

    #[doc(hidden)]
    fn from_local(local: Arc<Self::Local>) -> Self;

    #[doc(hidden)]
    fn as_local(&self) -> &Arc<Self::Local>;

    /// Creates a local object and returns a reference to it.
    fn of<S>(servant: S) -> Self
    where
        Self: ServesLocally<S>,
    {
        Self::serve(servant)
    }

    /// Returns a reference with another interface, or `None` if the object does not have that interface.
    #[doc(alias = "_narrow")]
    fn narrow<R: LocalReference>(&self) -> Option<R> {
        let mut found: Option<Arc<R::Local>> = None;
        Arc::clone(self.as_local()).downcast_into(&mut found);
        found.map(R::from_local)
    }

    /// Returns the servant, if it has the type `S`.
    fn servant<S: 'static>(&self) -> Option<&S> {
        self.as_local().servant().downcast_ref()
    }
}

/// A local reference type whose interface the servant type `S` implements.
pub trait ServesLocally<S>: LocalReference {
    #[doc(hidden)]
    fn serve(servant: S) -> Self;
}

/// A type-erased local object.
pub trait LocalObject: Send + Sync + 'static {
    /// Sets `out` to this object if `out` is an `Option<Arc<L>>` where `L` is one of the object's interfaces.
    fn downcast_into(self: Arc<Self>, out: &mut dyn Any);

    /// Returns the servant, which implements the object.
    fn servant(&self) -> &dyn Any;
}

/// A value of a `native` type of the IDL, which cannot be sent in messages.
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

/// Returns the error of encoding a local reference.
#[cold]
pub fn not_sent() -> Result<(), EncodeError> {
    Err(EncodeError::new(EncodeErrorKind::LocalObject))
}

/// Returns the error of decoding a local reference.
#[cold]
pub fn not_received<T>(d: &Decoder<'_>) -> Result<T, DecodeError> {
    Err(DecodeError::new(DecodeErrorKind::LocalObject, d.position()))
}
