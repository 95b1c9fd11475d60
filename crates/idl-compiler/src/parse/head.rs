//! Annotations and documentation before a declaration.

use super::{Parse, Parser};
use crate::ast::{Annotation, Head};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    pub(super) fn head(&mut self) -> Parse<Head> {
        let mut docs = self.docs();
        let mut annotations = Vec::new();
        while self.at_punct(Punct::At) && !self.declares_annotation() {
            annotations.push(self.annotation()?);
            docs.lines.extend(self.docs().lines);
        }
        Ok(Head { docs, annotations })
    }

    /// Returns whether `@annotation name` follows, which declares an annotation.
    fn declares_annotation(&self) -> bool {
        matches!(self.kind_at(1), TokenKind::Ident { text, .. } if text == "annotation")
            && matches!(self.kind_at(2), TokenKind::Ident { .. })
    }

    /// Parses `@name`, `@name(value)` or `@name(a = 1, b = 2)`.
    fn annotation(&mut self) -> Parse<Annotation> {
        let start = self.span();
        self.advance();
        // Names of annotations can be keywords: `@default(5)`.
        let first = match *self.kind() {
            TokenKind::Keyword(word) => {
                self.advance();
                word.to_owned()
            }
            _ => self.annotation_name()?,
        };
        let span = start.to(self.last_span());
        let mut args = Vec::new();
        if self.take_punct(Punct::ParenOpen) && !self.take_punct(Punct::ParenClose) {
            loop {
                let named = matches!(self.kind(), TokenKind::Ident { .. } | TokenKind::Keyword(_))
                    && *self.kind_at(1) == TokenKind::Punct(Punct::Equal);
                let name = if named { Some(self.arg_name()?) } else { None };
                let value = self.expr("the value of an annotation")?;
                args.push((name, value));
                if !self.take_punct(Punct::Comma) {
                    break;
                }
            }
            self.expect_punct(Punct::ParenClose)?;
        }
        Ok(Annotation { name: first, args, span })
    }

    /// Parses `name` or `M::name`. A `::` after a blank belongs to the next type: `@optional ::M::T member`.
    fn annotation_name(&mut self) -> Parse<String> {
        let mut name = if self.take_punct(Punct::Scope) { "::".to_owned() } else { String::new() };
        name.push_str(&self.ident("the name of an annotation")?.text);
        while self.at_punct(Punct::Scope) && self.tokens.get(self.at).is_some_and(|scope| scope.joined) {
            self.advance();
            name.push_str("::");
            name.push_str(&self.ident("a name after `::`")?.text);
        }
        Ok(name)
    }

    fn arg_name(&mut self) -> Parse<crate::ast::Ident> {
        let span = self.span();
        let name = match *self.kind() {
            TokenKind::Keyword(word) => {
                self.advance();
                crate::ast::Ident { text: word.to_owned(), span }
            }
            _ => self.ident("the name of an argument")?,
        };
        self.advance();
        Ok(name)
    }
}
