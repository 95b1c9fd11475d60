//! The preprocessor: includes, macros, conditionals, `#pragma` and `#line`, as in the C++ preprocessor.
//!
//! It returns tokens instead of text. The location of a token is where it is written, but the location of a
//! token from the body of a macro is where the macro is used.
//!
//! The constants of this module limit files, directives and tokens, so that hostile input ends in an error.

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
pub(crate) use scan::OWN_ANNOTATIONS;
pub(crate) use text::{Kind, Piece};

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

use crate::diagnostic::{Collector, Diagnostic};
use crate::model::VendorPragma;
use crate::source::{FileInfo, Sources, Span};
use expand::PendingTokens;
use macros::{Builtin, Macro};
use scan::Cursor;
use text::Text;

/// Maximum number of tokens and documentation comments of a compilation. It bounds the memory for them.
pub(crate) const MAX_TOKENS: usize = 1 << 20;

/// Maximum number of files that are open at once, because each includes the next.
pub(crate) const MAX_OPEN_FILES: usize = crate::limits::MAX_DEPTH;
/// Maximum number of file openings in total.
pub(crate) const MAX_FILES: usize = 10_000;
/// Maximum size of all files together. A file counts each time it is opened.
pub(crate) const MAX_TOTAL_BYTES: usize = 64 << 20;
/// Maximum number of tokens from macros in total.
pub(crate) const MAX_EXPANDED_TOKENS: usize = 1 << 20;
/// Maximum number of directives in total. It bounds memory, because each directive can allocate.
pub(crate) const MAX_DIRECTIVES: usize = 1 << 18;
/// Maximum size of one file.
pub(crate) const MAX_FILE_BYTES: u64 = 32 << 20;

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

#[derive(Clone, Debug)]
pub(crate) enum Define {
    /// `NAME`, `NAME=VALUE`, `NAME(PARAMETERS)=VALUE`.
    Define(String),
    Undefine(String),
}

#[derive(Debug)]
pub(crate) enum Item {
    Token(Piece),
    /// A documentation comment. It is `inner` if it begins with `//!` or `/*!`.
    Doc {
        text: Text,
        inner: bool,
        span: Span,
    },
    /// A `#pragma` with a meaning in IDL: the location of `#pragma`, and the tokens after it.
    Pragma(Span, Vec<Piece>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Imported {
    /// The file was opened and is read next.
    Opened,
    /// The file is already being read: files import each other.
    Cycle,
    /// The file does not exist, was already read, or cannot be opened because other tokens are pending.
    NotOpened,
}

impl Item {
    pub(crate) fn span(&self) -> Span {
        match self {
            Item::Token(piece) => piece.span,
            Item::Doc { span, .. } | Item::Pragma(span, _) => *span,
        }
    }
}

#[derive(Debug)]
struct OpenFile {
    cursor: Cursor,
    /// The folder that `#include "..."` searches first.
    folder: PathBuf,
    /// Identifies the file; `None` for a text that is not a file.
    identity: Option<PathBuf>,
    conditions: Vec<Conditional>,
    /// In the output of another preprocessor: the indices in `Sources` of the including files.
    including_files: Vec<u32>,
    line_numbering: LineNumbering,
    guard: GuardState,
}

/// The state of the detection of a file's include guard. A file with a guard need not be read again.
#[derive(Debug)]
enum GuardState {
    /// Only comments so far.
    Unread,
    /// Inside the `#ifndef` of this name.
    Open(Text),
    /// Only comments so far after the `#endif`.
    Closed(Text),
    /// The file has no include guard.
    None,
}

impl GuardState {
    /// Records a token that belongs neither to a comment nor to a directive.
    fn record_token(&mut self) {
        if matches!(self, GuardState::Unread | GuardState::Closed(_)) {
            *self = GuardState::None;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct LineNumbering {
    /// Number of line ends before the line at which the numbering starts.
    start: usize,
    /// Number of the line at which the numbering starts.
    number: usize,
}

impl LineNumbering {
    /// Returns the number of the line with this many line ends before it.
    fn line(self, line_ends: usize) -> usize {
        self.number.saturating_add(line_ends.saturating_sub(self.start))
    }
}

/// An `#if` whose `#endif` has not been read.
#[derive(Debug)]
struct Conditional {
    span: Span,
    /// Whether the current branch or an earlier one was taken.
    branch_taken: bool,
    else_span: Option<Span>,
}

pub(crate) struct Preprocessor<'a> {
    settings: &'a Settings,
    pub(crate) sources: &'a mut Sources,
    pub(crate) diagnostics: Collector,
    pub(crate) pragmas: Vec<VendorPragma>,
    /// Whether parts of the text were skipped after an error, so that names may be missing.
    pub(crate) incomplete: bool,
    /// Included files that do not exist.
    pub(crate) missing_files: Vec<String>,
    /// The end of the file that was closed last.
    pub(crate) end: Span,
    /// Whether a limit was exceeded. Then no more items are returned.
    pub(crate) limit_exceeded: bool,
    open_files: Vec<OpenFile>,
    files: KnownFiles,
    macros: HashMap<Text, Rc<Macro>>,
    pending: Vec<PendingTokens>,
    /// Above zero while arguments of a macro are collected, or a list of tokens is expanded. Then directives
    /// are not processed, and files are not closed.
    collecting_arguments: usize,
    /// Number of token lists that are being expanded, each inside the expansion of the previous one.
    expansion_depth: usize,
    /// Whether a condition is being expanded. Only there is `defined` an operator.
    in_condition: bool,
    /// Whether an expansion begins or ends before the next token.
    at_expansion_edge: bool,
    queue: VecDeque<Item>,
    /// The number of line ends before the directive that is being processed. Its own line end has been read.
    directive_line: Option<usize>,
    usage: Usage,
}

/// What the preprocessor knows about files. The identity of a file is one path that stands for all its paths.
#[derive(Debug, Default)]
struct KnownFiles {
    /// Paths of the input files after the current one.
    remaining_inputs: VecDeque<PathBuf>,
    /// Identities of all input files.
    inputs: HashSet<PathBuf>,
    /// Identities of all files that have been opened.
    opened: HashSet<PathBuf>,
    /// Identities of the files with `#pragma once`.
    pragma_once: HashSet<PathBuf>,
    /// Names of include guards, by the identity of the file.
    guards: HashMap<PathBuf, Text>,
    /// Texts by the identity of the file, so that each file is read once.
    cache: HashMap<PathBuf, Rc<str>>,
}

/// What the preprocessor has processed so far, for the comparison with the limits.
#[derive(Debug, Default)]
struct Usage {
    files: usize,
    bytes: usize,
    expanded_tokens: usize,
    directives: usize,
}

impl<'a> Preprocessor<'a> {
    pub(crate) fn new(settings: &'a Settings, sources: &'a mut Sources) -> Self {
        let mut preprocessor = Preprocessor {
            settings,
            sources,
            diagnostics: Collector::default(),
            pragmas: Vec::new(),
            incomplete: false,
            missing_files: Vec::new(),
            end: Span::START,
            limit_exceeded: false,
            open_files: Vec::new(),
            files: KnownFiles::default(),
            macros: HashMap::new(),
            pending: Vec::new(),
            collecting_arguments: 0,
            expansion_depth: 0,
            in_condition: false,
            at_expansion_edge: false,
            queue: VecDeque::new(),
            directive_line: None,
            usage: Usage::default(),
        };
        for (name, builtin) in Builtin::ALL {
            preprocessor.macros.insert(Text::from(*name), Rc::new(Macro::builtin(name, *builtin)));
        }
        preprocessor
    }

    pub(crate) fn push_text(&mut self, file: u32) {
        let text = self.sources.file(file).map_or_else(|| Rc::from(""), |file| Rc::clone(&file.text));
        self.push(file, text, PathBuf::new(), None);
        // The text that is pushed last is read first.
        self.push_options();
    }

    pub(crate) fn push_input_files(&mut self, paths: &[PathBuf]) {
        self.files.inputs = paths.iter().map(|path| self.identity(path)).collect();
        self.files.remaining_inputs = paths.iter().cloned().collect();
        while self.open_files.is_empty() && self.open_next_input() {}
        self.push_options();
    }

    /// Opens the next input file, unless it was already read; `false` if there are no more input files.
    fn open_next_input(&mut self) -> bool {
        let Some(path) = self.files.remaining_inputs.pop_front() else { return false };
        if !self.files.opened.contains(&self.identity(&path)) {
            self.open(path, None);
        }
        true
    }

    /// Pushes a text with the `-D` and `-U` options.
    fn push_options(&mut self) {
        let mut text = String::new();
        for define in &self.settings.defines {
            // An option with an open comment or a `\` at its end must not consume the next option.
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
                self.sources.add_text("<command line>".to_owned(), Rc::clone(&text), FileInfo::default());
            self.push(file, text, PathBuf::new(), None);
        }
    }

    fn push(&mut self, file: u32, text: Rc<str>, folder: PathBuf, identity: Option<PathBuf>) {
        let cursor = Cursor::new(file, text);
        let number = self.sources.file(file).map_or(1, |file| file.first_line);
        self.open_files.push(OpenFile {
            cursor,
            folder,
            identity,
            conditions: Vec::new(),
            including_files: Vec::new(),
            line_numbering: LineNumbering { start: 0, number },
            guard: GuardState::Unread,
        });
    }

    pub(crate) fn open_file_count(&self) -> usize {
        self.open_files.len()
    }

    /// Returns the next token, documentation comment or pragma; `None` at the end of all files.
    pub(crate) fn next(&mut self) -> Option<Item> {
        loop {
            if self.limit_exceeded {
                return None;
            }
            if let Some(item) = self.queue.pop_front() {
                return Some(item);
            }
            match self.next_expanded() {
                Some(piece) if self.queue.is_empty() => return Some(Item::Token(piece)),
                // The comments and pragmas before the token are already in the queue.
                Some(piece) => self.queue.push_back(Item::Token(piece)),
                None if self.queue.is_empty() => return None,
                None => {}
            }
        }
    }

    /// Returns the next token of the open files without expansion. Queues documentation comments.
    fn read_piece(&mut self) -> Option<Piece> {
        loop {
            if self.limit_exceeded {
                return None;
            }
            let Some(open) = self.open_files.last_mut() else {
                if !self.open_next_input() {
                    return None;
                }
                continue;
            };
            let Some(piece) = open.cursor.next() else {
                if self.collecting_arguments > 0 {
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
                    if self.collecting_arguments > 0 || !(piece.line_start && piece.is("#")) {
                        open.guard.record_token();
                    }
                    return Some(piece);
                }
            }
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open_files.pop() else { return };
        if let (GuardState::Closed(name), Some(identity)) = (open.guard, open.identity) {
            self.files.guards.insert(identity, name);
        }
        let end = open.cursor.text.len();
        self.end = Span::new(open.cursor.file, end..end);
        if let Some(span) = open.cursor.unterminated_comment {
            self.error("unterminated", span, "this comment has no end");
        }
        for condition in open.conditions {
            let error = Diagnostic::error("conditional", condition.span, "this condition has no `#endif`");
            self.report(error.and_if(condition.else_span, "its `#else`"));
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    pub(crate) fn too_many_tokens(&mut self, span: Span) {
        let message = format!("this text has more than {MAX_TOKENS} tokens");
        self.report_limit(Diagnostic::error("too-large", span, message).label("this exceeds the limit"));
    }

    /// Reports an exceeded limit and stops reading.
    fn report_limit(&mut self, error: Diagnostic) {
        if !self.limit_exceeded {
            self.report(error);
        }
        (self.limit_exceeded, self.incomplete) = (true, true);
    }
}
