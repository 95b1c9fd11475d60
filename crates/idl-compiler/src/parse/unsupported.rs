//! Parts of IDL that this compiler does not take yet: recognised, reported once at their word, and skipped whole.

use super::item::Place;
use super::{Parse, Parser};
use crate::ast::ItemKind;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// Words of newer language versions that start a definition.
const NEW_DEFINITIONS: &[&str] = &[
    "component",
    "home",
    "eventtype",
    "import",
    "bitset",
    "bitmask",
    "porttype",
    "connector",
    "port",
    "mirrorport",
];

impl Parser<'_> {
    pub(super) fn unsupported(&mut self, span: Span, what: &str) {
        self.report(Diagnostic::error("unsupported", span, format!("{what} is not supported yet")));
    }

    /// Skips an unsupported definition, if one starts here.
    pub(super) fn unsupported_item(&mut self, place: Place) -> Parse<Option<ItemKind>> {
        let span = self.span();
        let what = match self.kind() {
            TokenKind::Punct(Punct::At) => {
                self.advance();
                "@annotation".to_owned()
            }
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
            TokenKind::Ident { .. } => match self.new_word() {
                Some(word @ ("bitset" | "bitmask")) => word.to_owned(),
                _ => return Ok(None),
            },
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

    /// Skips `<...>`, if it is here.
    pub(super) fn skip_angles(&mut self) {
        self.skip_between(Punct::Less, Punct::Greater);
    }

    fn skip_between(&mut self, open: Punct, close: Punct) {
        if !self.at_punct(open) {
            return;
        }
        let mut depth = 0usize;
        loop {
            match self.kind() {
                TokenKind::Punct(punct) if *punct == open => depth += 1,
                TokenKind::Punct(punct) if *punct == close => depth = depth.saturating_sub(1),
                TokenKind::Punct(Punct::Semicolon | Punct::BraceOpen | Punct::BraceClose)
                | TokenKind::End => {
                    return;
                }
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return;
            }
        }
    }
}
