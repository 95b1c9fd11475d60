//! The preprocessor: includes, macros, conditionals, `#pragma` and `#line`, as in the C++ preprocessor.
//!
//! It returns tokens instead of text. Each token has the location where it was written, or for a token of a
//! macro, the location of the macro's use. Parts: `text` (kinds of tokens), `scan` (text to tokens), `files`
//! (sources of includes), `macros` and `expand` (definitions and their uses), `condition` (expressions of
//! `#if`), `directive` and `include` (lines that start with `#`).
//!
//! Hostile input ends in an error. Includes nest at most [`MAX_NESTED`] deep. All files together have at most
//! [`MAX_FILES`] openings, [`MAX_OCTETS`] bytes and [`MAX_DIRECTIVES`] lines with `#`. All macros together
//! expand to at most [`MAX_EXPANDED`] tokens.

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
use crate::model::VendorPragma;
use crate::source::{Opened, Sources, Span};
use expand::Context;
use macros::{Builtin, Macro};
use scan::Cursor;
use text::Text;

/// Maximum number of tokens and documentation comments of one compilation. It bounds memory for a text that
/// consists of `;` only.
pub(crate) const MAX_TOKENS: usize = 1 << 20;

/// Maximum number of files that are open at once.
pub(crate) const MAX_NESTED: usize = crate::MAX_DEPTH;
/// Maximum number of file openings in total.
pub(crate) const MAX_FILES: usize = 10_000;
/// Maximum number of bytes of all files together. A file counts each time it is opened.
pub(crate) const MAX_OCTETS: usize = 64 << 20;
/// Maximum number of tokens from macros in total.
pub(crate) const MAX_EXPANDED: usize = 1 << 20;
/// Maximum number of `#` lines that are processed in total. It bounds memory, because each line can allocate.
pub(crate) const MAX_DIRECTIVES: usize = 1 << 18;
/// Maximum number of bytes of one file.
pub(crate) const MAX_FILE: u64 = 32 << 20;

/// The options that the caller selects.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) files: Rc<dyn Files>,
    /// The search path of `#include`, in order.
    pub(crate) folders: Vec<PathBuf>,
    /// `-D` and `-U` options, in order.
    pub(crate) defines: Vec<Define>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { files: Rc::new(NoFiles), folders: Vec::new(), defines: Vec::new() }
    }
}

/// A macro option of the command line.
#[derive(Clone, Debug)]
pub(crate) enum Define {
    /// `NAME`, `NAME=VALUE`, `NAME(PARAMETERS)=VALUE`.
    Define(String),
    Undefine(String),
}

/// An item that the preprocessor returns.
#[derive(Debug)]
pub(crate) enum Item {
    Token(Piece),
    Doc {
        text: Text,
        inner: bool,
        span: Span,
    },
    /// `#pragma` with a meaning in IDL: the start of the line, and its tokens.
    Pragma(Span, Vec<Piece>),
}

/// The outcome of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imported {
    /// The file was opened and is read next.
    Opened,
    /// The file is already open: a cycle.
    Circle,
    /// The file does not exist, or was already read.
    Nothing,
}

impl Item {
    /// Returns the item's location.
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
    /// The folder that `#include "..."` searches first.
    folder: PathBuf,
    /// Identifies the file; `None` for a text that is not a file.
    identity: Option<PathBuf>,
    conditions: Vec<Conditional>,
    /// Texts that are interrupted by line marks of another preprocessor.
    interrupted: Vec<u32>,
    numbers: Numbers,
    guard: Guard,
}

/// State of the detection of include guards. A file that consists of one `#ifndef NAME` need not be read
/// again while the name is defined.
#[derive(Debug)]
enum Guard {
    /// Only comments so far.
    Unread,
    /// The `#ifndef` is open.
    Open(Text),
    /// The last item that was read is its `#endif`.
    Closed(Text),
    No,
}

impl Guard {
    /// Records a token that is neither a comment nor a `#` line.
    fn token(&mut self) {
        if matches!(self, Guard::Unread | Guard::Closed(_)) {
            *self = Guard::No;
        }
    }
}

/// The line numbering that `#line` sets.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// Line ends before the line at which the numbering starts.
    passed: usize,
    number: usize,
}

impl Numbers {
    /// Returns the number of the line after this many line ends.
    fn line(self, passed: usize) -> usize {
        self.number.saturating_add(passed.saturating_sub(self.passed))
    }
}

/// An `#if` without its `#endif` so far.
#[derive(Debug)]
struct Conditional {
    span: Span,
    /// A branch was already taken.
    taken: bool,
    /// The location of its `#else`.
    otherwise: Option<Span>,
}

pub(crate) struct Preprocessor<'a> {
    settings: &'a Settings,
    pub(crate) sources: &'a mut Sources,
    pub(crate) found: Collector,
    pub(crate) pragmas: Vec<VendorPragma>,
    /// Parts of the text were skipped after an error, so names may be missing although the rest is correct.
    pub(crate) incomplete: bool,
    /// Included files that do not exist.
    pub(crate) missing: Vec<String>,
    /// The end of the last file.
    pub(crate) end: Span,
    /// A limit was exceeded. No more items are returned.
    pub(crate) gave_up: bool,
    stack: Vec<Open>,
    files: FileQueue,
    macros: HashMap<Text, Rc<Macro>>,
    contexts: Vec<Context>,
    /// Above zero while arguments of a macro are collected. Meanwhile files are not closed and `#` lines are
    /// not processed.
    collecting: usize,
    /// Nesting depth of arguments that are being expanded.
    depth: usize,
    /// A condition is being expanded. Only there `defined` is an operator.
    in_condition: bool,
    /// An expansion began or ended before the next token, which therefore is not adjacent to the previous
    /// one.
    apart: bool,
    queue: VecDeque<Item>,
    /// The line of the `#` that is being processed. Its end has already been read.
    directive_line: Option<usize>,
    work: Work,
}

/// The files that were read and are still to be read.
#[derive(Debug, Default)]
struct FileQueue {
    /// Files to compile after the current one.
    waiting: VecDeque<PathBuf>,
    /// Identities of the files to compile. Their definitions do not count as included.
    given: HashSet<PathBuf>,
    /// Files that were opened.
    seen: HashSet<PathBuf>,
    once: HashSet<PathBuf>,
    /// Names of include guards.
    guards: HashMap<PathBuf, Text>,
    /// Texts by identity, so that each file is read once.
    cache: HashMap<PathBuf, Rc<str>>,
}

/// The work that was done, which limits bound.
#[derive(Debug, Default)]
struct Work {
    opened: usize,
    bytes: usize,
    expanded: usize,
    directives: usize,
}

impl<'a> Preprocessor<'a> {
    /// Creates a preprocessor.
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
            files: FileQueue::default(),
            macros: HashMap::new(),
            contexts: Vec::new(),
            collecting: 0,
            depth: 0,
            in_condition: false,
            apart: false,
            queue: VecDeque::new(),
            directive_line: None,
            work: Work::default(),
        };
        for (name, builtin) in Builtin::ALL {
            preprocessor.macros.insert(Text::from(*name), Rc::new(Macro::builtin(name, *builtin)));
        }
        preprocessor
    }

    /// Starts with a text that was added to the sources before.
    pub(crate) fn text(&mut self, file: u32) {
        let text = self.sources.file(file).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        self.push(file, text, PathBuf::new(), None);
        // The text that is pushed last is read first.
        self.command_line();
    }

    /// Starts with files, which are read in order.
    pub(crate) fn files(&mut self, paths: &[PathBuf]) {
        self.files.given = paths.iter().map(|path| self.identity(path)).collect();
        self.files.waiting = paths.iter().cloned().collect();
        while self.stack.is_empty() && self.start_next() {}
        self.command_line();
    }

    /// Opens the next of the given files that has not been read yet; `false` if there is none.
    fn start_next(&mut self) -> bool {
        let Some(path) = self.files.waiting.pop_front() else { return false };
        if !self.files.seen.contains(&self.identity(&path)) {
            self.open(path, None);
        }
        true
    }

    /// Processes `-D` and `-U` before anything else.
    fn command_line(&mut self) {
        let mut text = String::new();
        for define in &self.settings.defines {
            // Prevents a definition from consuming the lines after it.
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

    /// Returns the number of open files.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Returns the next token, comment or pragma; `None` at the end of all files.
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
                // Comments and pragmas before the token come first.
                Some(piece) => self.queue.push_back(Item::Token(piece)),
                None if self.queue.is_empty() => return None,
                None => {}
            }
        }
    }

    /// Returns the next token of the open files without expansion. Processes `#` lines and queues comments.
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

    /// Closes the current file.
    fn close(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        if let (Guard::Closed(name), Some(identity)) = (open.guard, open.identity) {
            self.files.guards.insert(identity, name);
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

    /// Reports that the text has more tokens than the limit.
    pub(crate) fn too_many_tokens(&mut self, span: Span) {
        let message = format!("this text has more than {MAX_TOKENS} tokens");
        self.give_up(Diagnostic::error("too-large", span, message).label("this is one too many"));
    }

    /// Reports an exceeded limit and stops reading.
    fn give_up(&mut self, error: Diagnostic) {
        if !self.gave_up {
            self.report(error);
        }
        (self.gave_up, self.incomplete) = (true, true);
    }
}
