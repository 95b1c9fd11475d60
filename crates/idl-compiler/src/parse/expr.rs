//! Constant expressions.

use super::{Parse, Parser};
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind, Wideness};

/// Binary operators by precedence, loosest first.
const LEVELS: &[&[(Punct, Binary)]] = &[
    &[(Punct::Or, Binary::Or)],
    &[(Punct::Xor, Binary::Xor)],
    &[(Punct::And, Binary::And)],
    &[(Punct::ShiftLeft, Binary::ShiftLeft), (Punct::Greater, Binary::ShiftRight)],
    &[(Punct::Plus, Binary::Add), (Punct::Minus, Binary::Subtract)],
    &[(Punct::Star, Binary::Multiply), (Punct::Slash, Binary::Divide), (Punct::Percent, Binary::Remainder)],
];

impl Parser<'_> {
    /// An expression; `what` it is for goes into messages.
    pub(super) fn expr(&mut self, what: &str) -> Parse<Expr> {
        self.nested(|parser| parser.binary(LEVELS, what))
    }

    fn binary(&mut self, levels: &[&[(Punct, Binary)]], what: &str) -> Parse<Expr> {
        let Some((level, tighter)) = levels.split_first() else { return self.unary(what) };
        let first = self.binary(tighter, what)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(level) {
            rest.push((operator, self.binary(tighter, "an operand")?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let span = first.span.to(self.last_span());
        Ok(Expr { kind: ExprKind::Binary(Box::new(first), rest), span })
    }

    fn operator(&mut self, level: &[(Punct, Binary)]) -> Option<Binary> {
        let (punct, operator) = *level.iter().find(|(punct, _)| self.at_punct(*punct))?;
        if punct == Punct::Greater {
            let adjacent = self.kind_at(1) == &TokenKind::Punct(punct)
                && self.tokens.get(self.at + 1).is_some_and(|next| next.joined);
            if self.in_angle || !adjacent {
                return None;
            }
            self.advance();
        }
        self.advance();
        Some(operator)
    }

    fn unary(&mut self, what: &str) -> Parse<Expr> {
        let start = self.span();
        let operator = match self.kind() {
            TokenKind::Punct(Punct::Plus) => Unary::Plus,
            TokenKind::Punct(Punct::Minus) => Unary::Minus,
            TokenKind::Punct(Punct::Tilde) => Unary::Complement,
            _ => return self.primary(what),
        };
        self.advance();
        let operand = self.primary("an operand")?;
        Ok(Expr { span: start.to(operand.span), kind: ExprKind::Unary(operator, Box::new(operand)) })
    }

    fn primary(&mut self, what: &str) -> Parse<Expr> {
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::Integer(value) => ExprKind::Integer(*value),
            TokenKind::Float(text) => ExprKind::Float(text.clone()),
            TokenKind::Char { code, wide } => ExprKind::Char { code: *code, wide: *wide },
            TokenKind::Keyword("TRUE") => ExprKind::Bool(true),
            TokenKind::Keyword("FALSE") => ExprKind::Bool(false),
            TokenKind::BadLiteral => ExprKind::Bad,
            TokenKind::Fixed(digits) => ExprKind::Fixed(digits.clone()),
            TokenKind::Text { .. } => return self.strings(),
            TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope) => {
                let name = self.name("a constant")?;
                return Ok(Expr { span: name.span, kind: ExprKind::Name(name) });
            }
            TokenKind::Punct(Punct::ParenOpen) => {
                self.advance();
                let inner = self.with_angle(false, |parser| parser.expr("an expression"))?;
                self.expect_punct(Punct::ParenClose)?;
                return Ok(Expr { span: span.to(self.last_span()), ..inner });
            }
            _ => return self.expected(what),
        };
        self.advance();
        Ok(Expr { kind, span })
    }

    /// Adjacent string literals, joined.
    fn strings(&mut self) -> Parse<Expr> {
        let start = self.span();
        let mut joined = String::new();
        let mut all = None;
        while let TokenKind::Text { text, wide } = self.kind() {
            joined.push_str(text);
            let (wide, first) = (*wide, *all.get_or_insert(*wide));
            if wide != first {
                let error = Diagnostic::error(
                    "type-mismatch",
                    self.span(),
                    "narrow and wide string literals cannot be joined",
                );
                self.report(error.and(start, "the first literal"));
                all = Some(Wideness::ByType);
            }
            self.advance();
        }
        let wide = all.unwrap_or(Wideness::Narrow);
        Ok(Expr { kind: ExprKind::Text { text: joined, wide }, span: start.to(self.last_span()) })
    }
}
