//! Annotations and documentation before a declaration.

use super::input::Input;
use super::parser::{Parse, Parser};
use crate::ast::{Annotation, Head};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    pub(super) fn head(&mut self) -> Parse<Head> {
        let mut docs = self.input.docs();
        let mut annotations = Vec::new();
        while self.input.at_punct(Punct::At) && !declares_annotation(&self.input) {
            annotations.push(self.annotation()?);
            docs.lines.extend(self.input.docs().lines);
        }
        Ok(Head { docs, annotations })
    }

    /// Parses `@name`, `@name(value)` or `@name(a = 1, b = 2)`.
    fn annotation(&mut self) -> Parse<Annotation> {
        let start = self.input.span();
        self.input.advance();
        // Names of annotations can be keywords: `@default(5)`.
        let name = match *self.input.kind() {
            TokenKind::Keyword(word) => {
                self.input.advance();
                word.to_owned()
            }
            _ => self.input.annotation_name()?,
        };
        let span = start.to(self.input.last_span());
        let mut args = Vec::new();
        if self.input.take_punct(Punct::ParenOpen) && !self.input.take_punct(Punct::ParenClose) {
            loop {
                let named = matches!(self.input.kind(), TokenKind::Ident { .. } | TokenKind::Keyword(_))
                    && *self.input.kind_at(1) == TokenKind::Punct(Punct::Equal);
                let name = if named { Some(self.input.arg_name()?) } else { None };
                let value = self.expr("the value of an annotation")?;
                args.push((name, value));
                if !self.input.take_punct(Punct::Comma) {
                    break;
                }
            }
            self.input.expect_punct(Punct::ParenClose)?;
        }
        Ok(Annotation { name, args, span })
    }
}

/// Returns whether the current `@` starts the declaration of an annotation: `@annotation name`.
fn declares_annotation(input: &Input<'_>) -> bool {
    matches!(input.kind_at(1), TokenKind::Ident { text, .. } if text == "annotation")
        && matches!(input.kind_at(2), TokenKind::Ident { .. })
}
