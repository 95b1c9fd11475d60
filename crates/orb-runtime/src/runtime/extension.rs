//! The state of modules that depend on `runtime`. The ORB owns this state without knowing its types.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// The state of one module. Only the module itself knows the type.
#[derive(Default)]
pub(crate) struct Extension(OnceLock<Box<dyn Any + Send + Sync>>);

#[derive(Debug, Default)]
pub(crate) struct Extensions {
    pub(crate) client: Extension,
    /// The state of `poa`: the object adapter.
    pub(crate) adapter: Extension,
    /// The state of `dynamic`: types and interfaces that are known at run time.
    pub(crate) interfaces: Extension,
    /// The state of `csi`: access control and credentials.
    #[cfg(feature = "csi")]
    pub(crate) security: Extension,
    #[cfg(feature = "tracing")]
    pub(crate) propagator: Extension,
    #[cfg(feature = "admin")]
    pub(crate) admin: Extension,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Extension,
}

impl Extension {
    pub(crate) fn new<T: Any + Send + Sync>(state: T) -> Self {
        Self(OnceLock::from(Box::new(state) as Box<dyn Any + Send + Sync>))
    }

    #[cfg(feature = "admin")]
    pub(crate) fn set<T: Any + Send + Sync>(&self, state: T) {
        let _ = self.0.set(Box::new(state));
    }

    /// Returns the state, or `None` if it is not set or has another type.
    #[inline]
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// Returns the state, which is created on first use.
    #[inline]
    #[expect(clippy::expect_used, reason = "each extension has one owner, which always uses the same type")]
    pub(crate) fn get_or_default<T: Any + Default + Send + Sync>(&self) -> &T {
        self.0.get_or_init(|| Box::<T>::default()).downcast_ref().expect("the state of another module")
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("is_set", &self.0.get().is_some()).finish_non_exhaustive()
    }
}
