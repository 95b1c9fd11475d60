//! Maps: allowed types of keys.

use super::Resolver;
use crate::diagnostic::Diagnostic;
use crate::model::{DefKind, Type, TypeId};
use crate::source::Span;

impl Resolver<'_> {
    /// Checks the type of keys. Keys are compared and ordered by their value.
    pub(super) fn check_key(&mut self, key: TypeId, span: Span) -> Option<()> {
        let fits = match self.model.stripped(key) {
            Type::Primitive(primitive) => !primitive.is_float(),
            Type::String(_) | Type::WString(_) | Type::Fixed { .. } => true,
            Type::Named(def) => matches!(self.model.def(*def).kind, DefKind::Enum(_) | DefKind::Bitmask(_)),
            _ => false,
        };
        if fits {
            return Some(());
        }
        let message = format!("the keys of a map cannot be of type `{}`", self.model.describe(key));
        let error = Diagnostic::error("bad-key", span, message);
        self.report(
            error.note("keys are integers, characters, booleans, `fixed`, strings, enums and bitmasks"),
        );
        None
    }
}
