//! Maps: allowed types of keys.

use super::symbols::Symbols;
use crate::diagnostic::Diagnostic;
use crate::model::{DefKind, Type, TypeId};
use crate::source::Span;

/// Checks that values of the key type can be compared and ordered.
pub(super) fn check_key(symbols: &mut Symbols<'_>, key: TypeId, span: Span) -> Option<()> {
    let fits = match symbols.model.stripped(key) {
        Type::Primitive(primitive) => !primitive.is_float(),
        Type::String(_) | Type::WString(_) | Type::Fixed { .. } => true,
        Type::Named(def) => matches!(symbols.model.def(*def).kind, DefKind::Enum(_) | DefKind::Bitmask(_)),
        _ => false,
    };
    if fits {
        return Some(());
    }
    let message = format!("the keys of a map cannot be of type `{}`", symbols.model.describe(key));
    let error = Diagnostic::error("bad-key", span, message);
    symbols
        .report(error.note("keys are integers, characters, booleans, `fixed`, strings, enums and bitmasks"));
    None
}
