//! The preprocessor: includes, macros, conditionals, `#pragma`, `#line`, as the C++ preprocessor has them.
//!
//! It hands out tokens, not text, each with the place where it was written or, if a macro brought it, where that is used.
//! Parts: `text` (what a token is), `scan` (text to tokens), `files` (where includes come from), `macros` and `expand`
//! (definitions and their uses), `condition` (expressions of `#if`), `directive` and `include` (lines that start with `#`).
//!
//! Hostile input ends in an error: includes nest [`MAX_NESTED`] deep, all files together have [`MAX_FILES`] openings,
//! [`MAX_OCTETS`] octets and [`MAX_DIRECTIVES`] lines with `#`, all macros together expand to [`MAX_EXPANDED`] tokens.

mod condition;
mod directive;
mod expand;
mod files;
mod include;
mod macros;
mod scan;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use directive::DIRECTIVES;
pub use files::{Disk, Files, Memory, NoFiles};
pub(crate) use text::{Kind, Piece};

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use crate::diagnostic::{Collector, Diagnostic};
use crate::lex::MAX_TOKENS;
use crate::model::VendorPragma;
use crate::source::{Opened, Sources, Span};
use expand::Context;
use macros::{Builtin, Macro};
use scan::Cursor;
use text::Text;

/// Files that may be open at once.
pub(crate) const MAX_NESTED: usize = crate::MAX_DEPTH;
/// Files that may be opened in all.
pub(crate) const MAX_FILES: usize = 10_000;
/// Octets of all files together, each counted whenever it is opened.
pub(crate) const MAX_OCTETS: usize = 64 << 20;
/// Tokens that macros may give in all.
pub(crate) const MAX_EXPANDED: usize = 1 << 20;
/// Lines with `#` that may be obeyed in all: each may leave something in memory.
pub(crate) const MAX_DIRECTIVES: usize = 1 << 18;
/// Octets of one file.
pub(crate) const MAX_FILE: u64 = 32 << 20;

/// What the caller chooses.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) files: Rc<dyn Files>,
    /// Where `#include` looks, in order.
    pub(crate) folders: Vec<PathBuf>,
    /// `Some` as behind `-D`, `None` for `-U`.
    pub(crate) defines: Vec<Define>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { files: Rc::new(NoFiles), folders: Vec::new(), defines: Vec::new() }
    }
}

/// A macro of the command line.
#[derive(Clone, Debug)]
pub(crate) enum Define {
    /// `NAME`, `NAME=VALUE`, `NAME(PARAMETERS)=VALUE`.
    Define(String),
    Undefine(String),
}

/// What the preprocessor hands out.
#[derive(Debug)]
pub(crate) enum Item {
    Token(Piece),
    Doc {
        text: Text,
        inner: bool,
        span: Span,
    },
    /// `#pragma` with a meaning in IDL: the place of the line's beginning, and its tokens.
    Pragma(Span, Vec<Piece>),
}

/// What became of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imported {
    /// The file is what is read next.
    Opened,
    /// The file is being read already.
    Circle,
    /// There is no such file, or it was read before.
    Nothing,
}

impl Item {
    /// Where it stands.
    pub(crate) fn span(&self) -> Span {
        match self {
            Item::Token(piece) => piece.span,
            Item::Doc { span, .. } | Item::Pragma(span, _) => *span,
        }
    }
}

/// A file being read.
#[derive(Debug)]
struct Open {
    cursor: Cursor,
    /// Where `#include "..."` looks first.
    folder: PathBuf,
    /// What tells the file from others; `None` for what is no file.
    identity: Option<PathBuf>,
    conditions: Vec<Conditional>,
    /// Texts that line marks of another preprocessor have interrupted.
    interrupted: Vec<u32>,
    numbers: Numbers,
    guard: Guard,
}

/// Whether all of a file stands in one `#ifndef NAME`, so that it need not be read again while the name is defined.
#[derive(Debug)]
enum Guard {
    /// Nothing but comments so far.
    Unread,
    /// The `#ifndef` is open.
    Open(Text),
    /// Its `#endif` was the last that was read.
    Closed(Text),
    No,
}

impl Guard {
    /// Something stands here that is no comment and no line with `#`.
    fn token(&mut self) {
        if matches!(self, Guard::Unread | Guard::Closed(_)) {
            *self = Guard::No;
        }
    }
}

/// How lines are counted: from some line on from some number, as `#line` says.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// Line ends before that line.
    passed: usize,
    number: usize,
}

impl Numbers {
    /// Number of the line behind this many line ends.
    fn line(self, passed: usize) -> usize {
        self.number.saturating_add(passed.saturating_sub(self.passed))
    }
}

/// An `#if` without its `#endif`.
#[derive(Debug)]
struct Conditional {
    span: Span,
    /// Some branch was taken.
    taken: bool,
    /// The place of its `#else`.
    otherwise: Option<Span>,
}

pub(crate) struct Preprocessor<'a> {
    settings: &'a Settings,
    pub(crate) sources: &'a mut Sources,
    pub(crate) found: Collector,
    pub(crate) pragmas: Vec<VendorPragma>,
    /// Something was left out after an error, so names may be missing for no fault of the rest.
    pub(crate) incomplete: bool,
    /// Files that are included and are not there.
    pub(crate) missing: Vec<String>,
    /// The end of the last file.
    pub(crate) end: Span,
    /// Input that would never end: nothing more is handed out.
    pub(crate) gave_up: bool,
    stack: Vec<Open>,
    /// Files to compile after this one.
    waiting: VecDeque<PathBuf>,
    /// Identities of the files to compile; what they define is not included.
    given: HashSet<PathBuf>,
    /// Files that were opened.
    seen: HashSet<PathBuf>,
    once: HashSet<PathBuf>,
    /// Names that guard whole files.
    guards: HashMap<PathBuf, Text>,
    /// Texts by identity, so that a file is read once.
    cache: HashMap<PathBuf, Rc<str>>,
    macros: HashMap<Text, Rc<Macro>>,
    contexts: Vec<Context>,
    /// Above zero while arguments of a macro are collected: files are not left, lines with `#` not obeyed.
    collecting: usize,
    /// How deep arguments of arguments are being expanded.
    depth: usize,
    /// A condition is being expanded, in which `defined` has a meaning.
    in_condition: bool,
    /// An expansion began or ended before the next token, which so does not touch the one before.
    apart: bool,
    queue: VecDeque<Item>,
    opened: usize,
    octets: usize,
    expanded: usize,
    directives: usize,
    /// The line of the `#` that is being obeyed, whose end was read already.
    directive_line: Option<usize>,
}

impl<'a> Preprocessor<'a> {
    /// For a text of which `file` is the number, and then for the files `waiting`.
    pub(crate) fn new(settings: &'a Settings, sources: &'a mut Sources) -> Self {
        let mut preprocessor = Preprocessor {
            settings,
            sources,
            found: Collector::default(),
            pragmas: Vec::new(),
            incomplete: false,
            missing: Vec::new(),
            end: Span::START,
            gave_up: false,
            stack: Vec::new(),
            waiting: VecDeque::new(),
            given: HashSet::new(),
            seen: HashSet::new(),
            once: HashSet::new(),
            guards: HashMap::new(),
            cache: HashMap::new(),
            macros: HashMap::new(),
            contexts: Vec::new(),
            collecting: 0,
            depth: 0,
            in_condition: false,
            apart: false,
            queue: VecDeque::new(),
            opened: 0,
            octets: 0,
            expanded: 0,
            directives: 0,
            directive_line: None,
        };
        for (name, builtin) in Builtin::ALL {
            preprocessor.macros.insert(Text::from(*name), Rc::new(Macro::builtin(name, *builtin)));
        }
        preprocessor
    }

    /// Starts with a text that was added before.
    pub(crate) fn text(&mut self, file: u32) {
        let text = self.sources.file(file).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        self.push(file, text, PathBuf::new(), None);
        // What is pushed last is read first.
        self.command_line();
    }

    /// Starts with files, one after the other.
    pub(crate) fn files(&mut self, paths: &[PathBuf]) {
        self.given = paths.iter().map(|path| self.identity(path)).collect();
        self.waiting = paths.iter().cloned().collect();
        while self.stack.is_empty() && self.start_next() {}
        self.command_line();
    }

    /// Opens the next of the given files that was not read yet; `false` if there is none.
    fn start_next(&mut self) -> bool {
        let Some(path) = self.waiting.pop_front() else { return false };
        if !self.seen.contains(&self.identity(&path)) {
            self.open(path, None);
        }
        true
    }

    /// Obeys `-D` and `-U` before anything else.
    fn command_line(&mut self) {
        let mut text = String::new();
        for define in &self.settings.defines {
            // What would swallow the lines behind it ends here.
            let one_line = |text: &str| {
                let open = text.contains("/*") || text.trim_end().ends_with('\\');
                text.replace(['\n', '\r'], " ") + if open { " /**/" } else { "" }
            };
            match define {
                Define::Undefine(name) => text.push_str(&format!("#undef {}\n", one_line(name))),
                Define::Define(define) => {
                    let (name, value) = define.split_once('=').unwrap_or((define, "1"));
                    text.push_str(&format!("#define {} {}\n", one_line(name), one_line(value)));
                }
            }
        }
        if !text.is_empty() {
            let text: Rc<str> = text.into();
            let file =
                self.sources.add_text("<command line>".to_owned(), Rc::clone(&text), Opened::default());
            self.push(file, text, PathBuf::new(), None);
        }
    }

    fn push(&mut self, file: u32, text: Rc<str>, folder: PathBuf, identity: Option<PathBuf>) {
        let cursor = Cursor::new(file, text);
        let (conditions, interrupted) = (Vec::new(), Vec::new());
        let number = self.sources.file(file).map_or(1, |file| file.first_line);
        let numbers = Numbers { passed: 0, number };
        let guard = Guard::Unread;
        self.stack.push(Open { cursor, folder, identity, conditions, interrupted, numbers, guard });
    }

    /// How many files are open.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// The next token, comment or pragma; `None` at the end of everything.
    pub(crate) fn next(&mut self) -> Option<Item> {
        loop {
            if self.gave_up {
                return None;
            }
            if let Some(item) = self.queue.pop_front() {
                return Some(item);
            }
            match self.token() {
                Some(piece) if self.queue.is_empty() => return Some(Item::Token(piece)),
                // After the comments and pragmas before it.
                Some(piece) => self.queue.push_back(Item::Token(piece)),
                None if self.queue.is_empty() => return None,
                None => {}
            }
        }
    }

    /// The next token of the open files, nothing expanded. Lines that start with `#` are obeyed, and comments queued.
    fn read_piece(&mut self) -> Option<Piece> {
        loop {
            if self.gave_up {
                return None;
            }
            let Some(open) = self.stack.last_mut() else {
                if !self.start_next() {
                    return None;
                }
                continue;
            };
            let Some(piece) = open.cursor.next() else {
                if self.collecting > 0 {
                    return None;
                }
                self.close();
                continue;
            };
            match piece.kind {
                Kind::Newline => {}
                Kind::Doc { inner } => {
                    self.queue.push_back(Item::Doc { text: piece.text, inner, span: piece.span })
                }
                _ => {
                    if self.collecting > 0 || !(piece.line_start && piece.is("#")) {
                        open.guard.token();
                    }
                    return Some(piece);
                }
            }
        }
    }

    /// The end of a file.
    fn close(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        if let (Guard::Closed(name), Some(identity)) = (open.guard, open.identity) {
            self.guards.insert(identity, name);
        }
        let end = open.cursor.text.len();
        self.end = Span::new(open.cursor.file, end..end);
        if let Some(span) = open.cursor.open_comment {
            self.error("unterminated", span, "this comment has no end");
        }
        for condition in open.conditions {
            let error = Diagnostic::error("conditional", condition.span, "this condition has no `#endif`");
            self.report(match condition.otherwise {
                Some(span) => error.and(span, "its `#else`"),
                None => error,
            });
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    /// The text has more tokens than are held.
    pub(crate) fn too_many_tokens(&mut self, span: Span) {
        let message = format!("this text has more than {MAX_TOKENS} tokens");
        self.give_up(Diagnostic::error("too-large", span, message).label("this is one too many"));
    }

    /// Reports input that would never end and reads no further.
    fn give_up(&mut self, error: Diagnostic) {
        if !self.gave_up {
            self.report(error);
        }
        (self.gave_up, self.incomplete) = (true, true);
    }
}
