//! [`Opaque`]: an `Arc` whose `Send` and `Sync` are proved once, which shortens compile times.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An `Arc` of a type that is `Send` and `Sync`. The wrapper itself is declared as `Send` and `Sync`.
///
/// In each function of generated code that sends an `Arc<T>`, the compiler would visit all types inside `T`.
/// For the types of an ORB, this would take a tenth of a second for each interface.
pub(crate) struct Opaque<T: 'static>(Arc<T>);

#[expect(unsafe_code, reason = "the compiler would otherwise repeat the proof for each stub")]
mod proved {
    use crate::opaque::Opaque;

    // SAFETY: an `Opaque` can only be created from an `Arc` of a type that is `Send` and `Sync`, therefore
    // the `Arc` is `Send` and `Sync`.
    unsafe impl<T> Send for Opaque<T> {}
    // SAFETY: as above, an `Opaque` holds only an `Arc` that is `Send` and `Sync`.
    unsafe impl<T> Sync for Opaque<T> {}
}

impl<T: Send + Sync> From<Arc<T>> for Opaque<T> {
    #[inline]
    fn from(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T> Clone for Opaque<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Opaque<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Opaque<T> {
    #[inline]
    pub(crate) fn to_arc(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)
    }

    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
