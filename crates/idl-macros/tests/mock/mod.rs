//! A stand-in for the runtime that generated code uses. It marshals, dispatches and unmarshals every call in
//! place, or passes it directly to the servant if the reference says so. `idl!(.., crate = crate::mock)`
//! selects it.
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub mod __private {
    pub mod v1;
}

pub use __private::v1::{Reference, SystemException};

/// Publishes a servant; calls to it are marshalled.
pub fn activate<R: __private::v1::Serves<S>, S>(servant: S) -> R {
    __private::v1::activate(servant)
}

/// The same object, called without marshalling.
pub fn collocated<R: Reference>(reference: &R) -> R {
    let object = __private::v1::ObjectRef { collocated: true, ..reference.as_object().clone() };
    R::from_object(object)
}

/// Runs a future that never waits for anything but itself.
pub fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}
