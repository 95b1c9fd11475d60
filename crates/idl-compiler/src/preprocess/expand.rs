//! Macro expansion: arguments, substitution, rescanning.
//!
//! The name of a macro inside its own expansion is not expanded, neither there nor later (C++ "Rescanning and
//! further replacement"). The remaining tokens of expansions are on a stack. A macro is active while its
//! entry is on the stack.

use std::rc::Rc;

use super::macros::{Builtin, Macro, MacroKind, Part, PartToken};
use super::scan::Cursor;
use super::text::{Kind, Piece};
use super::{MAX_EXPANDED_TOKENS, Preprocessor};

use crate::diagnostic::Diagnostic;
use crate::limits::MAX_DEPTH;

/// Number of bytes of generated text that count as one token.
const BYTES_PER_TOKEN: usize = 16;

/// Tokens of C++ that `##` may form although they are two tokens of IDL.
const PASTED_PAIRS: &[&str] =
    &[">>", ">=", "<=", "==", "!=", "&&", "||", "++", "--", "->", "<:", ":>", "<%", "%>"];

/// An entry of the stack: tokens that are read before the tokens of the entries below.
#[derive(Debug)]
pub(super) struct PendingTokens {
    tokens: Vec<Piece>,
    at: usize,
    /// The macro whose expansion these tokens are, if they are one.
    expanded_macro: Option<Rc<Macro>>,
    /// Whether these tokens are expanded as if nothing followed them, so that the entries below are not read.
    is_barrier: bool,
}

enum Call {
    /// The expansion was pushed on the stack, or an error was reported.
    Done,
    /// No parenthesis follows, so the name is not expanded.
    NotACall,
}

impl Preprocessor<'_> {
    /// Returns the next token with all macros expanded. Processes directives.
    pub(super) fn next_expanded(&mut self) -> Option<Piece> {
        loop {
            let mut piece = self.next_unexpanded()?;
            if self.collecting_arguments == 0 && piece.line_start && piece.is("#") {
                self.directive(&piece);
                continue;
            }
            if piece.kind == Kind::Placemarker {
                continue;
            }
            if self.in_condition && piece.is("defined") {
                return Some(self.defined(&piece));
            }
            let definition = match piece.is_word() && !piece.unexpandable {
                true => self.macros.get(&*piece.text).cloned(),
                false => None,
            };
            let Some(definition) = definition else { return Some(self.mark_expansion_edge(piece)) };
            if definition.active_expansions.get() > 0 {
                piece.unexpandable = true;
                return Some(self.mark_expansion_edge(piece));
            }
            match &definition.kind {
                MacroKind::Object(body) => {
                    let tokens = self.substitute(&definition, body, &[], &piece);
                    self.push_expansion(&definition, tokens, &piece);
                }
                MacroKind::Function { params, variadic, body } => {
                    match self.call(&definition, *params, *variadic, body, &piece) {
                        Call::Done => {}
                        Call::NotACall => return Some(self.mark_expansion_edge(piece)),
                    }
                }
                MacroKind::Builtin(builtin) => return Some(self.builtin(*builtin, &piece)),
            }
        }
    }

    /// Marks the token if an expansion begins or ends before it.
    fn mark_expansion_edge(&mut self, mut piece: Piece) -> Piece {
        piece.at_expansion_edge |= std::mem::take(&mut self.at_expansion_edge);
        piece
    }

    /// Returns the next token without expansion, from the stack, or from the files if the stack is empty.
    pub(super) fn next_unexpanded(&mut self) -> Option<Piece> {
        while let Some(entry) = self.pending.last_mut() {
            if let Some(piece) = entry.tokens.get(entry.at) {
                entry.at += 1;
                return Some(piece.clone());
            }
            if entry.is_barrier {
                return None;
            }
            self.pop_pending();
        }
        self.read_piece()
    }

    fn pop_pending(&mut self) {
        let entry = self.pending.pop();
        if let Some(definition) = entry.and_then(|entry| entry.expanded_macro) {
            definition.active_expansions.set(definition.active_expansions.get().saturating_sub(1));
        }
        self.at_expansion_edge = true;
    }

    /// Pushes the expansion of a macro. `use_site` is the macro's name where it is used.
    fn push_expansion(&mut self, definition: &Rc<Macro>, mut tokens: Vec<Piece>, use_site: &Piece) {
        if let Some(first) = tokens.first_mut() {
            first.spaced = use_site.spaced;
        }
        definition.active_expansions.set(definition.active_expansions.get() + 1);
        let expanded_macro = Some(Rc::clone(definition));
        self.pending.push(PendingTokens { tokens, at: 0, expanded_macro, is_barrier: false });
        self.at_expansion_edge = true;
    }

    /// Pushes tokens that are not the expansion of a macro.
    fn push_tokens(&mut self, tokens: Vec<Piece>) {
        self.pending.push(PendingTokens { tokens, at: 0, expanded_macro: None, is_barrier: false });
    }

    /// Counts tokens that macros produce; `false` if a limit is exceeded.
    fn count_tokens(&mut self, count: usize, use_site: &Piece) -> bool {
        self.usage.expanded_tokens = self.usage.expanded_tokens.saturating_add(count);
        if self.usage.expanded_tokens <= MAX_EXPANDED_TOKENS {
            return !self.limit_exceeded;
        }
        let message = format!("the macros of this text expand to more than {MAX_EXPANDED_TOKENS} tokens");
        let error = Diagnostic::error("too-large", use_site.span, message);
        self.report_limit(error.label(format!("`{}` exceeds the limit", &*use_site.text)));
        false
    }

    fn builtin(&mut self, builtin: Builtin, use_site: &Piece) -> Piece {
        let open = self.open_files.last();
        let (file, at) = open.map_or((0, 0), |open| (open.cursor.file, open.cursor.at));
        let (kind, text) = match builtin {
            Builtin::File => {
                let name = self.sources.file(file).map_or("", |file| file.name_at(at));
                let name = format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
                self.count_tokens(name.len() / BYTES_PER_TOKEN, use_site);
                (Kind::Quoted, name)
            }
            Builtin::Line => {
                let line = open.map_or(1, |open| {
                    open.line_numbering.line(self.directive_line.unwrap_or(open.cursor.line))
                });
                (Kind::Number, line.to_string())
            }
            Builtin::IncludeLevel => (Kind::Number, self.open_files.len().saturating_sub(1).to_string()),
            Builtin::Version => (Kind::Number, version().to_string()),
        };
        let piece = use_site.with(kind, text.as_str());
        self.mark_expansion_edge(piece)
    }

    /// Expands a function-like macro, if arguments follow its name.
    fn call(
        &mut self,
        definition: &Rc<Macro>,
        params: usize,
        variadic: bool,
        body: &[Part],
        use_site: &Piece,
    ) -> Call {
        self.collecting_arguments += 1;
        let next = self.next_unexpanded();
        let opens = next.as_ref().is_some_and(|next| next.is("("));
        let args = if opens { self.arguments(params, variadic, use_site) } else { None };
        self.collecting_arguments -= 1;
        if !opens {
            self.push_tokens(next.into_iter().collect());
            return Call::NotACall;
        }
        let args =
            args.filter(|args| self.check_argument_count(definition, params, variadic, args, use_site));
        let Some(args) = args else {
            self.incomplete = true;
            self.push_tokens(vec![use_site.with(Kind::Bad, "")]);
            return Call::Done;
        };
        let mut args: Vec<Argument> = args.into_iter().map(Argument::new).collect();
        args.resize_with(params, || Argument::new(Vec::new()));
        self.expand_arguments(body, &mut args, use_site);
        let tokens = self.substitute(definition, body, &args, use_site);
        self.push_expansion(definition, tokens, use_site);
        Call::Done
    }

    fn arguments(&mut self, params: usize, variadic: bool, use_site: &Piece) -> Option<Vec<Vec<Piece>>> {
        let mut args = vec![Vec::new()];
        let mut depth = 0usize;
        loop {
            let Some(mut piece) = self.next_unexpanded() else {
                if !self.limit_exceeded {
                    let message = format!("the arguments of macro `{}` have no `)`", &*use_site.text);
                    self.error("macro-arguments", use_site.span, message);
                }
                return None;
            };
            if piece.line_start && piece.is("#") {
                let message = format!(
                    "a preprocessor directive is not allowed inside the arguments of macro `{}`",
                    &*use_site.text
                );
                let error = Diagnostic::error("macro-arguments", piece.span, message);
                self.report(error.and(use_site.span, "used here"));
                self.push_tokens(vec![piece]);
                return None;
            }
            if !self.count_tokens(1, use_site) {
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

    /// Reports a wrong number of arguments. Returns whether the number is right.
    fn check_argument_count(
        &mut self,
        definition: &Macro,
        params: usize,
        variadic: bool,
        args: &[Vec<Piece>],
        use_site: &Piece,
    ) -> bool {
        let is_empty = matches!(args, [only] if only.is_empty());
        let count = if is_empty && params == 0 { 0 } else { args.len() };
        if count == params || variadic && (count >= params || count + 1 == params) {
            return true;
        }
        let plural = if params == 1 { "" } else { "s" };
        let (params, at_least) = if variadic { (params - 1, "at least ") } else { (params, "") };
        let name = &definition.name;
        let message = format!("macro `{name}` takes {at_least}{params} argument{plural}, not {count}");
        let error = Diagnostic::error("macro-arguments", use_site.span, message);
        self.report(error.and_if(definition.span, "defined here"));
        false
    }

    /// Expands each argument that the body uses without `#` and `##`.
    fn expand_arguments(&mut self, body: &[Part], args: &mut [Argument], use_site: &Piece) {
        for (at, part) in body.iter().enumerate() {
            let index = match part {
                Part::Param(index, _) if !is_paste_operand(body, at) => *index,
                // The result of `__VA_OPT__` depends on the expanded variable arguments.
                Part::VaOpt(inside, _) => {
                    self.expand_arguments(inside, args, use_site);
                    args.len().saturating_sub(1)
                }
                _ => continue,
            };
            let arg = args.get(index).filter(|arg| arg.expanded.is_none());
            let Some(tokens) = arg.map(|arg| arg.raw.clone()) else { continue };
            let expanded = self.expand_list(tokens, use_site);
            if let Some(arg) = args.get_mut(index) {
                arg.expanded = Some(expanded);
            }
        }
    }

    /// Expands tokens as if nothing followed them.
    pub(super) fn expand_list(&mut self, tokens: Vec<Piece>, use_site: &Piece) -> Vec<Piece> {
        if self.expansion_depth >= MAX_DEPTH {
            let message = format!("calls of macros nest more than {MAX_DEPTH} levels deep");
            self.report_limit(Diagnostic::error("too-deep", use_site.span, message));
            return Vec::new();
        }
        let entries_below = self.pending.len();
        self.expansion_depth += 1;
        self.collecting_arguments += 1;
        self.pending.push(PendingTokens { tokens, at: 0, expanded_macro: None, is_barrier: true });
        let mut expanded = Vec::new();
        while let Some(piece) = self.next_expanded() {
            expanded.push(piece);
        }
        while self.pending.len() > entries_below {
            self.pop_pending();
        }
        self.collecting_arguments -= 1;
        self.expansion_depth -= 1;
        expanded
    }

    /// Returns the body with the arguments inserted. Each token of the body gets the location of the use.
    fn substitute(
        &mut self,
        definition: &Macro,
        body: &[Part],
        args: &[Argument],
        use_site: &Piece,
    ) -> Vec<Piece> {
        let mut out: Vec<Piece> = Vec::new();
        let mut paste = false;
        for (at, part) in body.iter().enumerate() {
            if self.limit_exceeded {
                break;
            }
            let mut next: Vec<Piece> = match part {
                Part::Paste => {
                    paste = true;
                    continue;
                }
                Part::Token(token) => vec![self.relocated(definition, token, use_site)],
                Part::Stringize(index, token) => {
                    let text = args.get(*index).map_or_else(String::new, |arg| stringize(&arg.raw));
                    vec![self.relocated(definition, token, use_site).with(Kind::Quoted, text.as_str())]
                }
                Part::Param(index, token) => {
                    let Some(arg) = args.get(*index) else { continue };
                    let raw = is_paste_operand(body, at);
                    let tokens = if raw { &arg.raw } else { arg.expanded.as_ref().unwrap_or(&arg.raw) };
                    let mut tokens = tokens.clone();
                    match tokens.first_mut() {
                        Some(first) => first.spaced = token.0.spaced,
                        None if raw => tokens.push(token.0.with(Kind::Placemarker, "")),
                        None => {}
                    }
                    // GNU extension: without variable arguments, `, ## __VA_ARGS__` yields no tokens. With
                    // variable arguments, the `##` has no effect.
                    let variadic = matches!(definition.kind, MacroKind::Function { variadic: true, .. });
                    let drops_comma = variadic && paste && arg.is_last_of(args);
                    if drops_comma && out.last().is_some_and(|last| last.is(",")) {
                        paste = false;
                        if arg.raw.is_empty() {
                            out.pop();
                            continue;
                        }
                    }
                    tokens
                }
                Part::VaOpt(inside, _) => {
                    let variable = args.last().and_then(|arg| arg.expanded.as_ref());
                    let has_variable = variable.is_some_and(|tokens| !tokens.is_empty());
                    if has_variable {
                        self.substitute(definition, inside, args, use_site)
                    } else {
                        Vec::new()
                    }
                }
            };
            let count: usize = next.iter().map(|piece| 1 + piece.text.len() / BYTES_PER_TOKEN).sum();
            if !self.count_tokens(1 + count, use_site) {
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
    fn relocated(&mut self, definition: &Macro, token: &PartToken, use_site: &Piece) -> Piece {
        let span = self.sources.add_expansion(&definition.name, use_site.span, token.0.span);
        Piece { span, ..token.0.clone() }
    }

    fn paste(&mut self, left: Piece, right: &Piece, out: &mut Vec<Piece>) {
        if right.kind == Kind::Placemarker {
            return out.push(left);
        }
        if left.kind == Kind::Placemarker {
            return out.push(Piece { spaced: left.spaced, ..right.clone() });
        }
        let text: Rc<str> = format!("{}{}", &*left.text, &*right.text).into();
        let span = left.span;
        // Each paste copies the text, so the length of the text counts.
        if !self.count_tokens(text.len() / BYTES_PER_TOKEN, &left) {
            return out.push(left);
        }
        if PASTED_PAIRS.contains(&&*text) {
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
                let message = format!("`{}` and `{}` together are not a token", &*left.text, &*right.text);
                let error = Diagnostic::error("bad-paste", span, message);
                self.report(error.note("`##` joins the tokens before and after it into one token"));
                self.incomplete = true;
                out.push(left.with(Kind::Bad, ""));
            }
        }
    }
}

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
fn is_paste_operand(body: &[Part], at: usize) -> bool {
    let is_paste =
        |at: Option<usize>| at.and_then(|at| body.get(at)).is_some_and(|part| *part == Part::Paste);
    is_paste(at.checked_sub(1)) || is_paste(at.checked_add(1))
}

/// Returns the spelling of an argument as a string, for `#`.
fn stringize(tokens: &[Piece]) -> String {
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
