//! Macro definitions: `#define` and `#undef`.

use std::cell::Cell;
use std::rc::Rc;

use super::text::{Kind, Piece, Text};
use super::{Preprocessor, Span};
use crate::diagnostic::Diagnostic;

#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Rc<str>,
    /// Location of the name in its definition; `None` for a builtin.
    pub(super) span: Option<Span>,
    pub(super) kind: MacroKind,
    /// Number of expansions of this macro on the stack. Above zero, the name is not expanded.
    pub(super) active_expansions: Cell<u32>,
}

#[derive(Debug)]
pub(super) enum MacroKind {
    Object(Vec<Part>),
    Function { params: usize, variadic: bool, body: Vec<Part> },
    Builtin(Builtin),
}

/// A part of a macro's body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Token(PartToken),
    /// The parameter with this index.
    Param(usize, PartToken),
    /// `#` and the parameter with this index.
    Stringize(usize, PartToken),
    /// `##`.
    Paste,
    /// `__VA_OPT__(...)`.
    VaOpt(Vec<Part>, PartToken),
}

/// A token of a body. Equality compares the kind, the spelling, and whether white space precedes the token.
#[derive(Clone, Debug)]
pub(super) struct PartToken(pub(super) Piece);

impl PartialEq for PartToken {
    fn eq(&self, other: &Self) -> bool {
        (self.0.kind, &self.0.text, self.0.spaced) == (other.0.kind, &other.0.text, other.0.spaced)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    File,
    Line,
    IncludeLevel,
    Version,
}

impl Builtin {
    pub(super) const ALL: &'static [(&'static str, Builtin)] = &[
        ("__FILE__", Builtin::File),
        ("__LINE__", Builtin::Line),
        ("__INCLUDE_LEVEL__", Builtin::IncludeLevel),
        ("__ZORB_IDL__", Builtin::Version),
    ];
}

impl Macro {
    pub(super) fn builtin(name: &str, builtin: Builtin) -> Self {
        let (name, kind) = (name.into(), MacroKind::Builtin(builtin));
        Macro { name, span: None, kind, active_expansions: Cell::new(0) }
    }

    fn is_same(&self, other: &Macro) -> bool {
        match (&self.kind, &other.kind) {
            (MacroKind::Object(a), MacroKind::Object(b)) => a == b,
            (
                MacroKind::Function { params: a, variadic: va, body: x },
                MacroKind::Function { params: b, variadic: vb, body: y },
            ) => a == b && va == vb && x == y,
            _ => false,
        }
    }
}

#[derive(Default)]
struct Params {
    names: Vec<Text>,
    variadic: bool,
}

impl Preprocessor<'_> {
    pub(super) fn define(&mut self, directive: Span, line: Vec<Piece>) {
        let Some(name) = self.macro_name(directive, &line) else { return };
        let mut rest = line.get(1..).unwrap_or_default();
        let mut params = None;
        if let Some(open) = rest.first().filter(|piece| piece.is("(") && !piece.spaced) {
            match parse_parameters(rest.get(1..).unwrap_or_default(), open) {
                Ok((found, after)) => (params, rest) = (Some(found), after),
                Err(error) => return self.report(error),
            }
        }
        let body = match parse_body(rest, params.as_ref()) {
            Ok(body) => body,
            Err(error) => return self.report(error),
        };
        let kind = match params {
            None => MacroKind::Object(body),
            Some(params) => {
                MacroKind::Function { params: params.names.len(), variadic: params.variadic, body }
            }
        };
        let span = Some(name.span);
        let new = Macro { name: Rc::from(&*name.text), span, kind, active_expansions: Cell::new(0) };
        if let Some(earlier) = self.macros.get(&*name.text).filter(|earlier| !earlier.is_same(&new)) {
            let message = format!("the macro `{}` is redefined differently", &*name.text);
            let warning = Diagnostic::warning("macro-redefined", name.span, message);
            let warning = warning.and_if(earlier.span, "the earlier definition");
            self.report(warning.help(format!("write `#undef {}` before it if intended", &*name.text)));
        }
        self.macros.insert(name.text.clone(), Rc::new(new));
    }

    pub(super) fn undefine(&mut self, directive: Span, line: &[Piece]) {
        let Some(name) = self.macro_name(directive, line) else { return };
        self.macros.remove(&*name.text);
        self.warn_extra_tokens(line.get(1..).unwrap_or_default(), "#undef");
    }

    /// Returns the name after `#define`, `#undef`, `#ifdef` or `#ifndef`.
    pub(super) fn macro_name(&mut self, directive: Span, line: &[Piece]) -> Option<Piece> {
        let (span, message) = match line.first() {
            Some(name) if name.is_word() && !name.is("defined") => return Some(name.clone()),
            Some(name) if name.is_word() => (name.span, "`defined` cannot be the name of a macro".to_owned()),
            Some(other) => (other.span, format!("expected the name of a macro, found `{}`", &*other.text)),
            None => (directive, "expected the name of a macro after this".to_owned()),
        };
        self.error("bad-macro", span, message);
        None
    }
}

/// Maximum number of named parameters. It bounds the search for each word of a body. C++ requires 256.
const MAX_PARAMETERS: usize = 256;

/// Parses parameters after the opening parenthesis. Also returns the tokens after the closing one.
fn parse_parameters<'p>(line: &'p [Piece], open: &Piece) -> Result<(Params, &'p [Piece]), Diagnostic> {
    let mut params = Params::default();
    let mut rest = line;
    if let Some((_, after)) = rest.split_first().filter(|(first, _)| first.is(")")) {
        return Ok((params, after));
    }
    loop {
        let bad = |message: String, piece: Option<&Piece>| {
            Diagnostic::error("bad-macro", piece.map_or(open.span, |piece| piece.span), message)
        };
        let Some((name, after)) = rest.split_first() else {
            return Err(bad("the parameters of this macro have no `)`".to_owned(), None));
        };
        rest = after;
        if name.is("...") {
            params.names.push(Text::from("__VA_ARGS__"));
            params.variadic = true;
        } else if name.is_word() {
            if name.is("__VA_ARGS__") {
                return Err(bad("`__VA_ARGS__` cannot be the name of a parameter".to_owned(), Some(name)));
            }
            if params.names.contains(&name.text) {
                return Err(bad(format!("duplicate parameter `{}`", &*name.text), Some(name)));
            }
            if params.names.len() == MAX_PARAMETERS {
                return Err(bad(format!("more than {MAX_PARAMETERS} parameters"), Some(name)));
            }
            params.names.push(name.text.clone());
            // GNU extension: `args...`.
            if let Some((_, after)) = rest.split_first().filter(|(dots, _)| dots.is("...")) {
                (params.variadic, rest) = (true, after);
            }
        } else {
            let message = format!("expected the name of a parameter, found `{}`", &*name.text);
            return Err(bad(message, Some(name)));
        }
        match rest.split_first() {
            Some((close, after)) if close.is(")") => return Ok((params, after)),
            Some((comma, after)) if comma.is(",") && !params.variadic => rest = after,
            Some((other, _)) => {
                let wanted = if params.variadic { "`)`" } else { "`,` or `)`" };
                return Err(bad(format!("expected {wanted}, found `{}`", &*other.text), Some(other)));
            }
            None => return Err(bad("the parameters of this macro have no `)`".to_owned(), None)),
        }
    }
}

fn parse_body(line: &[Piece], params: Option<&Params>) -> Result<Vec<Part>, Diagnostic> {
    let mut body = Vec::new();
    let mut at = 0;
    let param = |piece: &Piece| {
        let params = params.filter(|_| piece.is_word())?;
        params.names.iter().position(|name| *name == piece.text)
    };
    let variadic = params.is_some_and(|params| params.variadic);
    while let Some(piece) = line.get(at) {
        at += 1;
        let mut piece = piece.clone();
        (piece.line_start, piece.spaced) = (false, piece.spaced && !body.is_empty());
        if piece.is("##") {
            if body.is_empty() || at == line.len() {
                let message = "`##` must stand between two tokens, not at the start or end of the body";
                return Err(Diagnostic::error("bad-macro", piece.span, message));
            }
            body.push(Part::Paste);
        } else if piece.is("#") && params.is_some() {
            let Some(index) = line.get(at).and_then(&param) else {
                let message = "`#` must be followed by a parameter of the macro";
                return Err(Diagnostic::error("bad-macro", piece.span, message));
            };
            at += 1;
            body.push(Part::Stringize(index, PartToken(piece)));
        } else if let Some(index) = param(&piece) {
            body.push(Part::Param(index, PartToken(piece)));
        } else if piece.is("__VA_OPT__") && variadic {
            let close = closing_parenthesis(line, at)
                .ok_or_else(|| Diagnostic::error("bad-macro", piece.span, "`__VA_OPT__` needs `(...)`"))?;
            let tokens = line.get(at + 1..close).unwrap_or_default();
            if tokens.iter().any(|token| token.is("__VA_OPT__")) {
                return Err(Diagnostic::error("bad-macro", piece.span, "`__VA_OPT__` cannot be nested"));
            }
            body.push(Part::VaOpt(parse_body(tokens, params)?, PartToken(piece)));
            at = close + 1;
        } else if piece.is("__VA_ARGS__") && !variadic {
            let message = "`__VA_ARGS__` is allowed only in macros with the parameter `...`";
            return Err(Diagnostic::error("bad-macro", piece.span, message));
        } else {
            body.push(Part::Token(PartToken(piece)));
        }
    }
    Ok(body)
}

/// Returns the index of the parenthesis that closes the one at `open`; `None` if there is no such pair.
fn closing_parenthesis(line: &[Piece], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, piece) in line.iter().enumerate().skip(open) {
        if piece.is("(") {
            depth += 1;
        } else if piece.is(")") {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (at > open).then_some(at);
        }
    }
    None
}

impl Piece {
    /// Returns the text, escaped for insertion into a string literal.
    pub(super) fn escaped(&self) -> String {
        match self.kind {
            Kind::Quoted => self.text.replace('\\', "\\\\").replace('"', "\\\""),
            _ => self.text.to_string(),
        }
    }
}
