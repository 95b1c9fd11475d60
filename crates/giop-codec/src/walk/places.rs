//! The positions of copied values.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::Class;

/// The positions of copied values in the target, by their positions in the source. Copying, reading and
/// writing share its machine code.
#[derive(Default)]
pub(crate) struct CopiedValues(HashMap<usize, CopiedValue>);

/// A copied value.
pub(crate) struct CopiedValue {
    /// Its position in the target.
    pub(crate) to: usize,
    /// `None` for a value in the state of a custom value, because its type is not known.
    class: Option<Arc<Class>>,
}

impl CopiedValue {
    /// Returns whether the value may be used where this type is expected.
    pub(crate) fn fits(&self, formal: Option<&str>) -> bool {
        self.class.as_ref().is_none_or(|class| class.is_a(formal))
    }
}

impl CopiedValues {
    #[inline(never)]
    pub(crate) fn get(&self, from: usize) -> Option<&CopiedValue> {
        self.0.get(&from)
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, from: usize, to: usize, class: Option<&Arc<Class>>) {
        self.0.insert(from, CopiedValue { to, class: class.cloned() });
    }
}
