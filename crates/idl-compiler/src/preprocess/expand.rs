//! Macro expansion: arguments, substitution, rescanning.
//!
//! A macro is a plain name inside its own expansion, and a name that was plain once stays so (C++ "Rescanning
//! and further replacement"). The remaining tokens of expansions are on a stack. A macro is active while its
//! entry is on the stack.

use std::rc::Rc;

use super::macros::{Builtin, Macro, MacroKind, Part, PartToken};
use super::scan::Cursor;
use super::text::{Kind, Piece};
use super::{MAX_EXPANDED, Preprocessor};

/// Bytes of text from `##` that count as one token.
const OCTETS: usize = 16;

use crate::MAX_DEPTH;
use crate::diagnostic::Diagnostic;

/// Two-character tokens that `##` may form from two tokens.
const DOUBLE: &[&str] = &[">>", ">=", "<=", "==", "!=", "&&", "||", "++", "--", "->", "<:", ":>", "<%", "%>"];

/// Tokens that are read before those of the entries below.
#[derive(Debug)]
pub(super) struct Context {
    tokens: Vec<Piece>,
    at: usize,
    /// The macro that the tokens come from.
    of: Option<Rc<Macro>>,
    /// The entries below are not read, because these tokens are an argument that is expanded by itself.
    barrier: bool,
}

/// The outcome at the name of a function-like macro.
enum Call {
    /// The expansion was pushed on the stack, or an error was reported.
    Done,
    /// No parenthesis follows: a plain name.
    Plain,
}

impl Preprocessor<'_> {
    /// Returns the next token with all macros expanded.
    pub(super) fn token(&mut self) -> Option<Piece> {
        loop {
            let mut piece = self.pull()?;
            if self.collecting == 0 && piece.line_start && piece.is("#") {
                self.directive(&piece);
                continue;
            }
            if piece.kind == Kind::Nothing {
                continue;
            }
            if self.in_condition && piece.is("defined") {
                return Some(self.defined(&piece));
            }
            let of = match piece.is_word() && !piece.painted {
                true => self.macros.get(&*piece.text).cloned(),
                false => None,
            };
            let Some(of) = of else { return Some(self.set_apart(piece)) };
            if of.active.get() > 0 {
                piece.painted = true;
                return Some(self.set_apart(piece));
            }
            match &of.kind {
                MacroKind::Object(body) => {
                    let tokens = self.substitute(&of, body, &[], &piece);
                    self.enter(&of, tokens, &piece);
                }
                MacroKind::Function { params, variadic, body } => {
                    match self.call(&of, *params, *variadic, body, &piece) {
                        Call::Done => {}
                        Call::Plain => return Some(self.set_apart(piece)),
                    }
                }
                MacroKind::Builtin(builtin) => return Some(self.builtin(*builtin, &piece)),
            }
        }
    }

    /// Marks a token next to the start or end of an expansion as not adjacent to the previous one.
    fn set_apart(&mut self, mut piece: Piece) -> Piece {
        piece.apart |= std::mem::take(&mut self.apart);
        piece
    }

    /// Returns the next token without expansion: from the stack, then from the files.
    pub(super) fn pull(&mut self) -> Option<Piece> {
        while let Some(context) = self.contexts.last_mut() {
            if let Some(piece) = context.tokens.get(context.at) {
                context.at += 1;
                return Some(piece.clone());
            }
            if context.barrier {
                return None;
            }
            self.leave();
        }
        self.read_piece()
    }

    fn leave(&mut self) {
        let context = self.contexts.pop();
        if let Some(of) = context.and_then(|context| context.of) {
            of.active.set(of.active.get().saturating_sub(1));
        }
        self.apart = true;
    }

    fn enter(&mut self, of: &Rc<Macro>, mut tokens: Vec<Piece>, used: &Piece) {
        if let Some(first) = tokens.first_mut() {
            first.spaced = used.spaced;
        }
        of.active.set(of.active.get() + 1);
        self.contexts.push(Context { tokens, at: 0, of: Some(Rc::clone(of)), barrier: false });
        self.apart = true;
    }

    /// Counts tokens that macros produce; `false` if there are too many.
    fn charge(&mut self, count: usize, used: &Piece) -> bool {
        self.work.expanded = self.work.expanded.saturating_add(count);
        if self.work.expanded <= MAX_EXPANDED {
            return !self.gave_up;
        }
        let message = format!("the macros of this text expand to more than {MAX_EXPANDED} tokens");
        let error = Diagnostic::error("too-large", used.span, message);
        self.give_up(error.label(format!("`{}` is one too many", &*used.text)));
        false
    }

    fn builtin(&mut self, builtin: Builtin, used: &Piece) -> Piece {
        let open = self.stack.last();
        let (file, at) = open.map_or((0, 0), |open| (open.cursor.file, open.cursor.at));
        let (kind, text) = match builtin {
            Builtin::File => {
                let name = self.sources.file(file).map_or("", |file| file.name_at(at));
                let name = format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
                self.charge(name.len() / OCTETS, used);
                (Kind::Quoted, name)
            }
            Builtin::Line => {
                let line =
                    open.map_or(1, |open| open.numbers.line(self.directive_line.unwrap_or(open.cursor.line)));
                (Kind::Number, line.to_string())
            }
            Builtin::IncludeLevel => (Kind::Number, self.stack.len().saturating_sub(1).to_string()),
            Builtin::Version => (Kind::Number, version().to_string()),
        };
        let piece = used.with(kind, text.as_str());
        self.set_apart(piece)
    }

    /// Handles a function-like macro at its name.
    fn call(&mut self, of: &Rc<Macro>, params: usize, variadic: bool, body: &[Part], used: &Piece) -> Call {
        self.collecting += 1;
        let next = self.pull();
        let opens = next.as_ref().is_some_and(|next| next.is("("));
        let args = if opens { self.arguments(params, variadic, used) } else { None };
        self.collecting -= 1;
        if !opens {
            self.contexts.extend(next.map(|next| Context {
                tokens: vec![next],
                at: 0,
                of: None,
                barrier: false,
            }));
            return Call::Plain;
        }
        let Some(args) = args.filter(|args| self.fits(of, params, variadic, args, used)) else {
            self.incomplete = true;
            let tokens = vec![used.with(Kind::Bad, "")];
            self.contexts.push(Context { tokens, at: 0, of: None, barrier: false });
            return Call::Done;
        };
        let mut args: Vec<Argument> = args.into_iter().map(Argument::new).collect();
        args.resize_with(params, || Argument::new(Vec::new()));
        self.expand_arguments(body, &mut args, used);
        let tokens = self.substitute(of, body, &args, used);
        self.enter(of, tokens, used);
        Call::Done
    }

    /// Reads arguments after the opening parenthesis, up to the closing one.
    fn arguments(&mut self, params: usize, variadic: bool, used: &Piece) -> Option<Vec<Vec<Piece>>> {
        let mut args = vec![Vec::new()];
        let mut depth = 0usize;
        loop {
            let Some(mut piece) = self.pull() else {
                if !self.gave_up {
                    let message = format!("the arguments of macro `{}` have no `)`", &*used.text);
                    self.error("macro-arguments", used.span, message);
                }
                return None;
            };
            if piece.line_start && piece.is("#") {
                let message =
                    format!("a preprocessor line inside of the arguments of macro `{}`", &*used.text);
                let error = Diagnostic::error("macro-arguments", piece.span, message);
                self.report(error.and(used.span, "used here"));
                self.contexts.push(Context { tokens: vec![piece], at: 0, of: None, barrier: false });
                return None;
            }
            if !self.charge(1, used) {
                return None;
            }
            if depth == 0 && piece.is(")") {
                return Some(args);
            }
            if depth == 0 && piece.is(",") && !(variadic && args.len() >= params) {
                args.push(Vec::new());
                continue;
            }
            if piece.is("(") {
                depth += 1;
            } else if piece.is(")") {
                depth -= 1;
            }
            piece.line_start = false;
            args.last_mut()?.push(piece);
        }
    }

    /// Returns whether the number of arguments is right.
    fn fits(&mut self, of: &Macro, params: usize, variadic: bool, args: &[Vec<Piece>], used: &Piece) -> bool {
        let none = matches!(args, [only] if only.is_empty());
        let count = if none && params == 0 { 0 } else { args.len() };
        if count == params || variadic && (count >= params || count + 1 == params) {
            return true;
        }
        let plural = if params == 1 { "" } else { "s" };
        let (params, least) = match variadic {
            true => (params - 1, "at least "),
            false => (params, ""),
        };
        let message = format!("macro `{}` takes {least}{params} argument{plural}, not {count}", of.name);
        let error = Diagnostic::error("macro-arguments", used.span, message);
        self.report(match of.span {
            Some(span) => error.and(span, "defined here"),
            None => error,
        });
        false
    }

    /// Expands, each by itself, the arguments that the body uses other than with `#` and `##`.
    fn expand_arguments(&mut self, body: &[Part], args: &mut [Argument], used: &Piece) {
        for (at, part) in body.iter().enumerate() {
            let index = match part {
                Part::Param(index, _) if !beside_paste(body, at) => *index,
                // The result of `__VA_OPT__` depends on the expanded variable arguments.
                Part::VaOpt(inside, _) => {
                    self.expand_arguments(inside, args, used);
                    args.len().saturating_sub(1)
                }
                _ => continue,
            };
            let Some(tokens) =
                args.get(index).filter(|arg| arg.expanded.is_none()).map(|arg| arg.raw.clone())
            else {
                continue;
            };
            let expanded = self.expand_list(tokens, used);
            if let Some(arg) = args.get_mut(index) {
                arg.expanded = Some(expanded);
            }
        }
    }

    /// Expands tokens as if nothing followed them.
    pub(super) fn expand_list(&mut self, tokens: Vec<Piece>, used: &Piece) -> Vec<Piece> {
        if self.depth >= MAX_DEPTH {
            let message = format!("calls of macros nest more than {MAX_DEPTH} levels deep");
            self.give_up(Diagnostic::error("too-deep", used.span, message));
            return Vec::new();
        }
        let below = self.contexts.len();
        self.depth += 1;
        self.collecting += 1;
        self.contexts.push(Context { tokens, at: 0, of: None, barrier: true });
        let mut expanded = Vec::new();
        while let Some(piece) = self.token() {
            expanded.push(piece);
        }
        while self.contexts.len() > below {
            self.leave();
        }
        self.collecting -= 1;
        self.depth -= 1;
        expanded
    }

    /// Returns the body with the arguments inserted. Each token gets the location of the use.
    fn substitute(&mut self, of: &Macro, body: &[Part], args: &[Argument], used: &Piece) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        let mut paste = false;
        for (at, part) in body.iter().enumerate() {
            if self.gave_up {
                break;
            }
            let mut next: Vec<Piece> = match part {
                Part::Paste => {
                    paste = true;
                    continue;
                }
                Part::Token(token) => vec![self.moved(of, token, used)],
                Part::Stringize(index, token) => {
                    let text = args.get(*index).map_or_else(String::new, |arg| stringized(&arg.raw));
                    vec![self.moved(of, token, used).with(Kind::Quoted, text.as_str())]
                }
                Part::Param(index, token) => {
                    let Some(arg) = args.get(*index) else { continue };
                    let raw = beside_paste(body, at);
                    let tokens = if raw { &arg.raw } else { arg.expanded.as_ref().unwrap_or(&arg.raw) };
                    let mut tokens = tokens.clone();
                    match tokens.first_mut() {
                        Some(first) => first.spaced = token.0.spaced,
                        None if raw => tokens.push(token.0.with(Kind::Nothing, "")),
                        None => {}
                    }
                    // GNU extension: `, ## __VA_ARGS__` yields nothing without variable arguments. With some,
                    // nothing is pasted.
                    let variadic = matches!(of.kind, MacroKind::Function { variadic: true, .. });
                    if variadic
                        && paste
                        && arg.is_last_of(args)
                        && out.last().is_some_and(|last| last.is(","))
                    {
                        paste = false;
                        if arg.raw.is_empty() {
                            out.pop();
                            continue;
                        }
                    }
                    tokens
                }
                Part::VaOpt(inside, _) => {
                    let some = args.last().and_then(|arg| arg.expanded.as_ref());
                    let some = some.is_some_and(|tokens| !tokens.is_empty());
                    if some { self.substitute(of, inside, args, used) } else { Vec::new() }
                }
            };
            let size: usize = next.iter().map(|piece| 1 + piece.text.len() / 16).sum();
            if !self.charge(1 + size, used) {
                break;
            }
            if std::mem::take(&mut paste)
                && !next.is_empty()
                && let Some(left) = out.pop()
            {
                let right = next.remove(0);
                self.paste(left, &right, &mut out);
            }
            out.append(&mut next);
        }
        out
    }

    /// Returns a token of a body with the location of the macro's use.
    fn moved(&mut self, of: &Macro, token: &PartToken, used: &Piece) -> Piece {
        let span = self.sources.expanded(&of.name, used.span, token.0.span);
        Piece { span, ..token.0.clone() }
    }

    /// Pastes two tokens: `left ## right`.
    fn paste(&mut self, left: Piece, right: &Piece, out: &mut Vec<Piece>) {
        if right.kind == Kind::Nothing {
            return out.push(left);
        }
        if left.kind == Kind::Nothing {
            return out.push(Piece { spaced: left.spaced, ..right.clone() });
        }
        let text: Rc<str> = format!("{}{}", &*left.text, &*right.text).into();
        let span = left.span;
        // Repeated pasting copies the text each time, so its length counts as work.
        if !self.charge(text.len() / OCTETS, &left) {
            return out.push(left);
        }
        if DOUBLE.contains(&&*text) {
            out.extend([left, Piece { spaced: false, ..right.clone() }]);
            return;
        }
        let mut cursor = Cursor::new(span.file, Rc::clone(&text));
        let whole = cursor
            .next()
            .filter(|piece| *piece.text == *text && !matches!(piece.kind, Kind::Doc { .. } | Kind::Newline));
        match whole {
            Some(piece) => out.push(Piece { span, spaced: left.spaced, line_start: false, ..piece }),
            None => {
                let message = format!("`{}` and `{}` together are no token", &*left.text, &*right.text);
                let error = Diagnostic::error("bad-paste", span, message);
                self.report(error.note("`##` joins what stands beside it to one token"));
                self.incomplete = true;
                out.push(left.with(Kind::Bad, ""));
            }
        }
    }
}

/// An argument of a macro call.
struct Argument {
    raw: Vec<Piece>,
    expanded: Option<Vec<Piece>>,
}

impl Argument {
    fn new(raw: Vec<Piece>) -> Self {
        Argument { raw, expanded: None }
    }

    fn is_last_of(&self, args: &[Argument]) -> bool {
        args.last().is_some_and(|last| std::ptr::eq(self, last))
    }
}

/// Returns whether the part at this index is an operand of `##`.
fn beside_paste(body: &[Part], at: usize) -> bool {
    let is_paste =
        |at: Option<usize>| at.and_then(|at| body.get(at)).is_some_and(|part| *part == Part::Paste);
    is_paste(at.checked_sub(1)) || is_paste(at.checked_add(1))
}

/// Returns the spelling of an argument as a string, for `#`.
fn stringized(tokens: &[Piece]) -> String {
    let mut text = String::from("\"");
    for (index, piece) in tokens.iter().enumerate() {
        if index > 0 && piece.spaced {
            text.push(' ');
        }
        text.push_str(&piece.escaped());
    }
    text.push('"');
    text
}

/// Returns the major, minor and patch version of this compiler in two digits each.
fn version() -> u32 {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    number(major) * 10_000 + number(minor) * 100 + number(env!("CARGO_PKG_VERSION_PATCH"))
}
