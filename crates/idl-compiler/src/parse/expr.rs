//! Constant expressions.

use super::parser::{Parse, Parser};
use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind, Wideness};

/// Binary operators by precedence, lowest first.
const PRECEDENCES: &[&[(Punct, Binary)]] = &[
    &[(Punct::Or, Binary::Or)],
    &[(Punct::Xor, Binary::Xor)],
    &[(Punct::And, Binary::And)],
    &[(Punct::ShiftLeft, Binary::ShiftLeft), (Punct::Greater, Binary::ShiftRight)],
    &[(Punct::Plus, Binary::Add), (Punct::Minus, Binary::Subtract)],
    &[(Punct::Star, Binary::Multiply), (Punct::Slash, Binary::Divide), (Punct::Percent, Binary::Remainder)],
];

/// A chain of operators of one precedence, without its last operand, which has not been parsed yet.
struct PendingOperators {
    level: usize,
    first: Expr,
    rest: Vec<(Binary, Expr)>,
    operator: Binary,
}

impl PendingOperators {
    fn into_expr(mut self, last: Expr) -> Expr {
        let span = self.first.span.to(last.span);
        self.rest.push((self.operator, last));
        Expr { kind: ExprKind::Binary(Box::new(self.first), self.rest), span }
    }
}

impl Parser<'_> {
    /// Parses an expression. `what` describes its purpose in messages.
    pub(super) fn expr(&mut self, what: &str) -> Parse<Expr> {
        let depth = self.depth;
        let expr = self.enter_level().and_then(|()| self.binary(what));
        self.depth = depth;
        expr
    }

    /// Parses operands and binary operators. Each precedence with pending operators is a nesting level.
    fn binary(&mut self, what: &str) -> Parse<Expr> {
        // Pending operators, the lowest precedence first.
        let mut open: Vec<PendingOperators> = Vec::new();
        let mut operand = self.unary(what)?;
        loop {
            let found =
                PRECEDENCES.iter().enumerate().find_map(|(at, level)| Some((at, self.operator(level)?)));
            while let Some(done) = open.pop_if(|open| found.is_none_or(|(level, _)| level < open.level)) {
                operand = done.into_expr(operand);
                self.depth -= 1;
            }
            let Some((level, operator)) = found else { return Ok(operand) };
            match open.last_mut().filter(|open| open.level == level) {
                Some(open) => open.rest.push((std::mem::replace(&mut open.operator, operator), operand)),
                None => {
                    self.enter_level()?;
                    open.push(PendingOperators { level, first: operand, rest: Vec::new(), operator });
                }
            }
            operand = self.unary("an operand")?;
        }
    }

    fn operator(&mut self, level: &[(Punct, Binary)]) -> Option<Binary> {
        let (punct, operator) = *level.iter().find(|(punct, _)| self.input.at_punct(*punct))?;
        if punct == Punct::Greater {
            let is_shift = self.input.kind_at(1) == &TokenKind::Punct(punct)
                && self.input.tokens.get(self.input.at + 1).is_some_and(|next| next.joined);
            if self.in_angle || !is_shift {
                return None;
            }
            self.input.advance();
        }
        self.input.advance();
        Some(operator)
    }

    fn unary(&mut self, what: &str) -> Parse<Expr> {
        let start = self.input.span();
        let operator = match self.input.kind() {
            TokenKind::Punct(Punct::Plus) => Unary::Plus,
            TokenKind::Punct(Punct::Minus) => Unary::Minus,
            TokenKind::Punct(Punct::Tilde) => Unary::Complement,
            TokenKind::Punct(Punct::ParenOpen) => return self.parenthesised(),
            _ => return self.primary(what),
        };
        self.input.advance();
        // Each operator of a sequence counts as a nesting level.
        let operand = self.nested(|parser| parser.unary("an operand"))?;
        Ok(Expr { span: start.to(operand.span), kind: ExprKind::Unary(operator, Box::new(operand)) })
    }

    fn primary(&mut self, what: &str) -> Parse<Expr> {
        let span = self.input.span();
        let kind = match self.input.kind() {
            TokenKind::Integer(value) => ExprKind::Integer(*value),
            TokenKind::Float(text) => ExprKind::Float(text.clone()),
            TokenKind::Char { code, wide } => ExprKind::Char { code: *code, wide: *wide },
            TokenKind::Keyword("TRUE") => ExprKind::Bool(true),
            TokenKind::Keyword("FALSE") => ExprKind::Bool(false),
            TokenKind::BadLiteral => ExprKind::Bad,
            TokenKind::Fixed(digits) => ExprKind::Fixed(digits.clone()),
            TokenKind::Text { .. } => return self.strings(),
            TokenKind::Ident { .. } | TokenKind::Punct(Punct::Scope) => {
                let name = self.input.name("a constant")?;
                return Ok(Expr { span: name.span, kind: ExprKind::Name(name) });
            }
            TokenKind::Punct(Punct::ParenOpen) => return self.parenthesised(),
            _ => return self.input.expected(what),
        };
        self.input.advance();
        Ok(Expr { kind, span })
    }

    fn parenthesised(&mut self) -> Parse<Expr> {
        let start = self.input.span();
        self.input.advance();
        let outer = std::mem::replace(&mut self.in_angle, false);
        let inner = self.expr("an expression");
        self.in_angle = outer;
        let inner = inner?;
        self.input.expect_punct(Punct::ParenClose)?;
        Ok(Expr { span: start.to(self.input.last_span()), ..inner })
    }

    /// Parses adjacent string literals and joins them.
    fn strings(&mut self) -> Parse<Expr> {
        let start = self.input.span();
        let mut joined = String::new();
        let mut wideness = None;
        while let TokenKind::Text { text, wide } = self.input.kind() {
            joined.push_str(text);
            let (wide, first) = (*wide, *wideness.get_or_insert(*wide));
            if wide != first {
                let message = "narrow and wide string literals cannot be joined";
                let error = Diagnostic::error("type-mismatch", self.input.span(), message);
                self.input.report(error.and(start, "the first literal"));
                wideness = Some(Wideness::ByType);
            }
            self.input.advance();
        }
        let wide = wideness.unwrap_or(Wideness::Narrow);
        Ok(Expr { kind: ExprKind::Text { text: joined, wide }, span: start.to(self.input.last_span()) })
    }
}
