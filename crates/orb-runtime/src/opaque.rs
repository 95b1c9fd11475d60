//! [`Opaque`]: an `Arc` that the compiler does not look into.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An `Arc` of what is `Send` and `Sync`, behind a trait object that says so.
///
/// Of an `Arc<T>` the compiler proves both through every type inside of `T`, here all those of an ORB, and again for each place of
/// generated code that needs it: a tenth of a second for an interface. Here it looks no further than at the trait. To reach the value
/// costs an indirect call.
pub(crate) struct Opaque<T: 'static>(Arc<dyn Inside<T>>);

trait Inside<T>: Send + Sync {
    fn get(&self) -> &T;
    fn get_mut(&mut self) -> &mut T;
    fn into_arc(self: Arc<Self>) -> Arc<T>;
}

impl<T: Send + Sync> Inside<T> for T {
    #[inline]
    fn get(&self) -> &T {
        self
    }

    #[inline]
    fn get_mut(&mut self) -> &mut T {
        self
    }

    #[inline]
    fn into_arc(self: Arc<Self>) -> Arc<T> {
        self
    }
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
        (*self.0).get()
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
        Arc::clone(&self.0).into_arc()
    }

    /// The value, if nothing else shares it.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0).map(Inside::get_mut)
    }

    /// Whether nothing else shares the value.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether both share one value.
    #[inline]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}
