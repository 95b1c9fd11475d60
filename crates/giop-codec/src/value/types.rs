//! [`ValueTypes`]: value types known only by their type codes.

use std::collections::HashMap;
use std::sync::Arc;

use super::{DecodeContext, concrete};
use crate::typecode::TypeCode;

/// Value types by their repository ids, for values that are read without compiled types. A peer may send one
/// of them where one of its bases is expected.
///
/// A clone shares the table.
#[derive(Clone, Debug, Default)]
pub struct ValueTypes {
    by_id: Arc<HashMap<Box<str>, TypeCode>>,
}

impl ValueTypes {
    /// Returns the type with that repository id.
    pub fn find(&self, repository_id: &str) -> Option<&TypeCode> {
        self.by_id.get(repository_id)
    }

    /// Returns the number of types.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

/// Adds value types and boxes. Other types, and abstract value types, are ignored, because they have no
/// values. If several have one id, the first is kept.
impl Extend<TypeCode> for ValueTypes {
    fn extend<I: IntoIterator<Item = TypeCode>>(&mut self, codes: I) {
        let by_id = Arc::make_mut(&mut self.by_id);
        for code in codes {
            let code = code.unaliased();
            if let Some(id) = concrete(code.nodes.at(code.root)).map(Box::from) {
                by_id.entry(id).or_insert(code);
            }
        }
    }
}

impl FromIterator<TypeCode> for ValueTypes {
    fn from_iter<I: IntoIterator<Item = TypeCode>>(codes: I) -> ValueTypes {
        let mut types = ValueTypes::default();
        types.extend(codes);
        types
    }
}

impl<'a> IntoIterator for &'a ValueTypes {
    type Item = &'a TypeCode;
    type IntoIter = std::collections::hash_map::Values<'a, Box<str>, TypeCode>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_id.values()
    }
}

impl DecodeContext for ValueTypes {
    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.find(repository_id).cloned()
    }
}
