//! Where values that were met stand anew.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::Class;

/// Where values stand in what is made, by where they stand in what is walked. Three walks share its machine code.
#[derive(Default)]
pub(crate) struct Places(HashMap<usize, Place>);

pub(crate) struct Place {
    pub(crate) to: usize,
    /// None inside of a custom value, whose types are not looked at.
    class: Option<Arc<Class>>,
}

impl Place {
    /// Whether the value may be where this type is expected.
    pub(crate) fn fits(&self, formal: Option<&str>) -> bool {
        self.class.as_ref().is_none_or(|class| class.is_a(formal))
    }
}

impl Places {
    #[inline(never)]
    pub(crate) fn get(&self, from: usize) -> Option<&Place> {
        self.0.get(&from)
    }

    #[inline(never)]
    pub(crate) fn insert(&mut self, from: usize, to: usize, class: Option<&Arc<Class>>) {
        self.0.insert(from, Place { to, class: class.cloned() });
    }
}
