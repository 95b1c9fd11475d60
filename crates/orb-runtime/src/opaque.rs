//! [`Opaque`]: an `Arc` that the compiler does not look into.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An `Arc` of what is `Send` and `Sync`, which says so itself.
///
/// Of an `Arc<T>` the compiler proves both through every type inside of `T`, here all those of an ORB, and again for each place of
/// generated code that needs it: a tenth of a second for an interface. Here it is proved once, where one is made.
pub(crate) struct Opaque<T: 'static>(Arc<T>);

#[expect(unsafe_code, reason = "a proof that is made once, not for each stub")]
mod proved {
    use super::Opaque;

    // SAFETY: it is made of nothing but an `Arc` of a type that is `Send` and `Sync`, so it is an `Arc` that is both.
    unsafe impl<T> Send for Opaque<T> {}
    // SAFETY: the same.
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
    /// Another handle of the same value.
    #[inline]
    pub(crate) fn to_arc(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }

    /// The value, if nothing else shares it.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)
    }

    /// Whether nothing else shares the value.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both share one value.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
