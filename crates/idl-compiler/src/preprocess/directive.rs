//! Directives: lines that start with `#`.

use std::rc::Rc;

use super::scan::unspliced;
use super::text::{Kind, Piece};
use super::{Conditional, GuardState, Item, LineNumbering, MAX_DIRECTIVES, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::model::VendorPragma;
use crate::source::Span;
use crate::suggest::closest;

pub(crate) const DIRECTIVES: &[&str] = &[
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "line", "pragma",
    "error", "warning", "ident",
];

/// Pragmas that IDL or the preprocessor defines.
const PRAGMAS: &[&str] = &["prefix", "ID", "version", "once"];

impl Preprocessor<'_> {
    /// Counts and processes a directive, starting after its `#`.
    pub(super) fn directive(&mut self, hash: &Piece) {
        self.usage.directives += 1;
        if self.usage.directives > MAX_DIRECTIVES {
            let message = format!("this text has more than {MAX_DIRECTIVES} preprocessor directives");
            return self.report_limit(Diagnostic::error("too-large", hash.span, message));
        }
        self.directive_line = self.open_files.last().map(|open| open.cursor.line);
        self.process_directive(hash);
        self.directive_line = None;
    }

    fn process_directive(&mut self, hash: &Piece) {
        let Some(open) = self.open_files.last_mut() else { return };
        let before = open.cursor.at;
        let mut line = open.cursor.rest_of_line();
        if line.is_empty() {
            return; // a `#` alone has no effect
        }
        let word = line.remove(0);
        let span = hash.span.to(word.span);
        if word.kind == Kind::Number {
            line.insert(0, word);
            return self.line_directive(span, &line);
        }
        // The text after the keyword, as written: after `#error` and `#pragma` it need not be valid tokens.
        let from = (word.span.end as usize).max(before);
        let text = open.cursor.text.get(from..open.cursor.at).unwrap_or("");
        let text = unspliced(text).unwrap_or_else(|| text.to_owned());
        let text = text.trim();
        let is_first = matches!(open.guard, GuardState::Unread);
        // The file has no include guard if another directive precedes the `#ifndef` or follows the `#endif`,
        // or if the `#ifndef` has an `#else` or `#elif`.
        let in_guard = open.conditions.len() == 1 && matches!(&*word.text, "else" | "elif");
        if is_first || in_guard || matches!(open.guard, GuardState::Closed(_)) {
            open.guard = match line.as_slice() {
                [name] if is_first && word.is("ifndef") && name.is_word() => {
                    GuardState::Open(name.text.clone())
                }
                _ => GuardState::None,
            };
        }
        match &*word.text {
            "include" => self.include(span, line),
            "define" => self.define(span, line),
            "undef" => self.undefine(span, &line),
            "if" => {
                let value = self.condition(span, line);
                self.begin_conditional(span, value);
            }
            name @ ("ifdef" | "ifndef") => {
                let is_defined =
                    self.macro_name(span, &line).map(|name| self.macros.contains_key(&*name.text));
                self.warn_extra_tokens(line.get(1..).unwrap_or_default(), &format!("#{name}"));
                // A malformed condition is false.
                self.begin_conditional(span, is_defined == Some(name == "ifdef"));
            }
            // The branch before this directive was taken. All further branches are skipped.
            name @ ("elif" | "else") => {
                if name == "else" {
                    self.warn_extra_tokens(&line, "#else");
                }
                if self.check_branch(span, name) {
                    self.skip();
                }
            }
            "endif" => self.end_conditional(span, &line),
            "line" => {
                let line = self.expand_list(line, &word);
                self.line_directive(span, &line);
            }
            "pragma" => self.pragma(span, line, text),
            "error" => {
                let message = if text.is_empty() { "#error" } else { text };
                self.incomplete = true;
                self.error("error-line", span, message);
            }
            "warning" => {
                let message = if text.is_empty() { "#warning" } else { text };
                self.report(Diagnostic::warning("warning-line", span, message));
            }
            "ident" => {}
            other if word.kind == Kind::Word => {
                let message = format!("`#{other}` is not a preprocessor directive");
                let error = Diagnostic::error("unknown-directive", span, message);
                let known = closest(other, DIRECTIVES.iter().copied());
                self.report(error.help_if(known.map(|known| format!("did you mean `#{known}`?"))));
            }
            _ => {
                let message = "`#` must start a preprocessor directive";
                self.error("stray-character", hash.span, message);
            }
        }
    }

    pub(super) fn warn_extra_tokens(&mut self, rest: &[Piece], what: &str) {
        if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
            let message = format!("this has no meaning after `{what}`");
            let warning = Diagnostic::warning("extra-tokens", first.span.to(last.span), message);
            self.report(warning.help("put it into a comment"));
        }
    }

    fn begin_conditional(&mut self, span: Span, value: bool) {
        if let Some(open) = self.open_files.last_mut() {
            open.conditions.push(Conditional { span, branch_taken: value, else_span: None });
        }
        if !value {
            self.skip();
        }
    }

    /// Reports an `#elif` or `#else` without `#if` or after `#else`. Returns whether there is an `#if`.
    fn check_branch(&mut self, span: Span, word: &str) -> bool {
        let Some(condition) = self.open_files.last_mut().and_then(|open| open.conditions.last_mut()) else {
            let message = format!("`#{word}` without an `#if` before it");
            self.error("conditional", span, message);
            return false;
        };
        if let Some(else_span) = condition.else_span {
            let error = Diagnostic::error("conditional", span, format!("`#{word}` after an `#else`"));
            self.report(error.and(else_span, "the `#else` is here"));
        } else if word == "else" {
            condition.else_span = Some(span);
        }
        true
    }

    fn end_conditional(&mut self, span: Span, line: &[Piece]) {
        self.warn_extra_tokens(line, "#endif");
        let Some(open) = self.open_files.last_mut() else { return };
        if open.conditions.pop().is_none() {
            return self.error("conditional", span, "`#endif` without an `#if` before it");
        }
        if let (GuardState::Open(name), true) = (&open.guard, open.conditions.is_empty()) {
            open.guard = GuardState::Closed(name.clone());
        }
    }

    /// Skips text up to the branch that is taken, or the `#endif`.
    fn skip(&mut self) {
        let mut depth = 0usize;
        loop {
            let Some(open) = self.open_files.last_mut() else { return };
            if !open.cursor.skip_to_directive() {
                return; // open conditions are reported when the file is closed
            }
            let hash = open.cursor.at.saturating_sub(1);
            self.directive_line = Some(open.cursor.line);
            let mut line = open.cursor.rest_of_line();
            if line.is_empty() {
                continue;
            }
            let word = line.remove(0);
            let span = Span::new(word.span.file, hash..word.span.end as usize);
            let span = if hash < word.span.end as usize { span } else { word.span };
            match &*word.text {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" if depth > 0 => depth -= 1,
                "endif" => return self.end_conditional(span, &line),
                name @ ("else" | "elif") if depth == 0 => {
                    if let Some(open) = self.open_files.last_mut().filter(|open| open.conditions.len() == 1) {
                        open.guard = GuardState::None;
                    }
                    self.check_branch(span, name);
                    let conditions = self.open_files.last().map(|open| open.conditions.as_slice());
                    let branch_taken =
                        conditions.and_then(<[_]>::last).is_some_and(|condition| condition.branch_taken);
                    if name == "else" {
                        self.warn_extra_tokens(&line, "#else");
                    }
                    if !branch_taken && (name == "else" || self.condition(span, line)) {
                        let condition =
                            self.open_files.last_mut().and_then(|open| open.conditions.last_mut());
                        condition.into_iter().for_each(|condition| condition.branch_taken = true);
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    /// Handles `#line 5 "name"`, or `# 5 "name" 1` in the output of another preprocessor. The flag 1 means
    /// the start of an included file, and 2 the return to the including file.
    fn line_directive(&mut self, span: Span, line: &[Piece]) {
        let number = line.first().filter(|piece| piece.kind == Kind::Number);
        let number = number.and_then(|piece| piece.text.parse::<u32>().ok());
        let (Some(number), Some(first)) = (number.filter(|n| *n <= i32::MAX as u32), line.first()) else {
            let span = line.first().map_or(span, |piece| piece.span);
            let error = Diagnostic::error("bad-line", span, "expected a line number");
            return self.report(error.note("the form is `#line NUMBER` or `#line NUMBER \"FILE\"`"));
        };
        let name = line.get(1);
        if let Some(wrong) = name.filter(|piece| file_name(piece).is_none()) {
            let error = Diagnostic::error("bad-line", wrong.span, "expected a file name in quotes");
            return self.report(error.and(first.span, "after this line number"));
        }
        let name: Option<Rc<str>> = name.and_then(file_name).map(Rc::from);
        let Some(open) = self.open_files.last_mut() else { return };
        let number = number as usize;
        open.line_numbering = LineNumbering { start: open.cursor.line, number };
        let has_flag = |flag: &str| line.iter().skip(2).any(|piece| *piece.text == *flag);
        let (at, current) = (open.cursor.at, open.cursor.file);
        if let (true, Some(name)) = (has_flag("1"), &name) {
            let from = Span { expansion: 0, ..span };
            open.including_files.push(current);
            open.cursor.file = self.sources.add_virtual(current, name.to_string(), from);
            let file = open.cursor.file;
            self.sources.mark_line(file, at, number, Some(Rc::clone(name)));
            self.count_file(0, Some(from));
            return;
        } else if has_flag("2") {
            open.cursor.file = open.including_files.pop().unwrap_or(current);
        }
        let file = open.cursor.file;
        self.sources.mark_line(file, at, number, name);
    }

    /// Handles the rest of a `#pragma`. IDL's pragmas go to the parser, and unknown ones are recorded for
    /// tools.
    fn pragma(&mut self, span: Span, line: Vec<Piece>, text: &str) {
        let Some(word) = line.first() else { return };
        match &*word.text {
            "prefix" | "ID" | "version" => self.queue.push_back(Item::Pragma(span, line)),
            "once" => {
                self.warn_extra_tokens(line.get(1..).unwrap_or_default(), "#pragma once");
                let identity = self.open_files.last().and_then(|open| open.identity.clone());
                self.files.pragma_once.extend(identity);
            }
            other => {
                let suggestion = closest(other, PRAGMAS.iter().copied())
                    .filter(|known| other.len() > 3 || known.eq_ignore_ascii_case(other));
                if let Some(known) = suggestion {
                    let message = format!("`#pragma {other}` has no meaning in IDL");
                    let warning = Diagnostic::warning("unknown-pragma", word.span, message);
                    self.report(warning.help(format!("did you mean `#pragma {known}`?")));
                }
                let span = line.last().map_or(span, |last| span.to(last.span));
                self.pragmas.push(VendorPragma { text: text.to_owned(), span });
            }
        }
    }
}

/// Returns the file name in a literal, with escaped quotes and backslashes resolved; `None` if it is empty.
fn file_name(piece: &Piece) -> Option<String> {
    let inside = piece.text.strip_prefix('"')?.strip_suffix('"').filter(|_| piece.kind == Kind::Quoted)?;
    let name = inside.replace("\\\\", "\u{0}").replace("\\\"", "\"").replace('\u{0}', "\\");
    (!name.is_empty()).then_some(name)
}
