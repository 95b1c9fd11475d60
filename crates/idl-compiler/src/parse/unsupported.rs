//! Parts of IDL that this compiler does not take yet: recognised, reported once at their word, and skipped whole.

use super::item::Place;
use super::{Parse, Parser};
use crate::ast::ItemKind;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::TokenKind;

/// Words of newer language versions that start a definition.
const NEW_DEFINITIONS: &[&str] =
    &["component", "home", "eventtype", "import", "porttype", "connector", "port", "mirrorport"];

impl Parser<'_> {
    pub(super) fn unsupported(&mut self, span: Span, what: &str) {
        self.report(Diagnostic::error("unsupported", span, format!("{what} is not supported yet")));
    }

    /// Skips an unsupported definition, if one starts here.
    pub(super) fn unsupported_item(&mut self, place: Place) -> Parse<Option<ItemKind>> {
        let span = self.span();
        let what = match self.kind() {
            TokenKind::Keyword(word @ ("abstract" | "custom")) => match self.kind_at(1) {
                TokenKind::Ident { text, escaped: false } if text == "eventtype" => format!("{word} {text}"),
                _ => return Ok(None),
            },
            // `component x;` in an interface would be `component` as a type.
            TokenKind::Ident { .. } if !matches!(place, Place::Interface | Place::Value) => {
                match self.new_word() {
                    Some(word) if NEW_DEFINITIONS.contains(&word) => word.to_owned(),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        self.unsupported(span, &format!("`{what}`"));
        for _ in what.split(' ') {
            self.advance();
        }
        let name = if what == "import" { None } else { self.optional_ident() };
        self.recover();
        Ok(Some(ItemKind::Unsupported(name)))
    }
}
