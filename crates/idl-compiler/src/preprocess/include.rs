//! `#include`: search for the file, and reading it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::text::{Kind, Piece};
use super::{Imported, MAX_FILES, MAX_NESTED, MAX_OCTETS, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::source::{Opened, Span, decoded};
use crate::standard::{self, StandardFile};

/// The file that an `#include` names.
struct Wanted {
    name: String,
    /// The name is in quotes: the folder of the including file is searched first.
    quoted: bool,
    span: Span,
}

impl Preprocessor<'_> {
    /// Handles `#include`, starting after the keyword.
    pub(super) fn include(&mut self, directive: Span, line: Vec<Piece>) {
        let Some(wanted) = self.wanted(directive, line) else {
            self.incomplete = true;
            return;
        };
        let quoted = self.stack.last().filter(|_| wanted.quoted).map(|open| open.folder.clone());
        let folders: Vec<PathBuf> = quoted.into_iter().chain(self.settings.folders.iter().cloned()).collect();
        // An absolute path is the same for all folders and is tried once.
        let mut tried: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let path = folder.join(&wanted.name);
            if tried.contains(&path) {
                continue;
            }
            match self.read(&path) {
                Ok(text) => return self.open_text(path, text, Some(wanted.span)),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    tried.push(path)
                }
                Err(error) => {
                    self.incomplete = true;
                    let message = format!("cannot read `{}`: {error}", path.display());
                    return self.error("include", wanted.span, message);
                }
            }
        }
        match standard::find(&wanted.name) {
            Some(file) => self.open_standard(file, Some(wanted.span)),
            None => self.not_found(&wanted, &tried),
        }
    }

    /// Opens the first file of these names for an `import`, unless it was read before.
    pub(crate) fn import(&mut self, names: &[String], span: Span) -> Imported {
        if !(self.queue.is_empty() && self.contexts.is_empty()) {
            return Imported::Nothing;
        }
        let beside = self.stack.last().map(|open| open.folder.clone());
        let folders: Vec<PathBuf> = beside.into_iter().chain(self.settings.folders.iter().cloned()).collect();
        let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        for path in paths {
            let Ok(text) = self.read(&path) else { continue };
            let identity = self.settings.files.identity(&path);
            return self.import_once(&identity, |this| this.open_text(path, text, Some(span)));
        }
        match names.iter().find_map(|name| standard::find(name)) {
            Some(file) => self.import_once(&file.path(), |this| this.open_standard(file, Some(span))),
            None => Imported::Nothing,
        }
    }

    /// Opens a file for an `import`, unless it was opened before.
    fn import_once(&mut self, identity: &Path, open: impl FnOnce(&mut Self)) -> Imported {
        if self.stack.iter().any(|open| open.identity.as_deref() == Some(identity)) {
            return Imported::Circle;
        }
        let before = self.stack.len();
        if !self.files.seen.contains(identity) {
            open(self);
        }
        if self.stack.len() > before { Imported::Opened } else { Imported::Nothing }
    }

    fn not_found(&mut self, wanted: &Wanted, tried: &[PathBuf]) {
        let name = &wanted.name;
        self.missing.push(name.clone());
        let mut error = Diagnostic::error("include", wanted.span, format!("there is no file `{name}`"));
        if tried.is_empty() {
            error = error.note("no folder is searched for `<...>`");
        }
        for path in tried {
            error = error.note(format!("not `{}`", path.display()));
        }
        let beside = self.stack.last().map(|open| open.folder.join(name));
        let beside = beside.filter(|path| !wanted.quoted && self.settings.files.read(path).is_ok());
        self.report(match beside {
            Some(_) => error.help(format!("it stands beside this file: write `#include \"{name}\"`")),
            None => error.help("say where it is: `-I FOLDER`, `include = [\"FOLDER\"]` in the macro, `.include(\"FOLDER\")` in the build script"),
        });
    }

    /// Returns the included name, `"name"` or `<name>`, possibly from macros.
    fn wanted(&mut self, directive: Span, line: Vec<Piece>) -> Option<Wanted> {
        let whole = match (line.first(), line.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => directive,
        };
        let direct = line.first().is_some_and(|first| first.kind == Kind::Quoted || first.is("<"));
        let line = match (direct, line.first().cloned()) {
            (false, Some(first)) => self.expand_list(line, &first),
            _ => line,
        };
        let first = line.first();
        if let Some(literal) = first.filter(|first| first.kind == Kind::Quoted) {
            let name = literal.text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                self.no_more(line.get(1..).unwrap_or_default(), "#include");
                return Some(Wanted { name: name.to_owned(), quoted: true, span: literal.span });
            }
        }
        if let Some(open) = first.filter(|first| first.is("<"))
            && let Some(at) = line.iter().position(|piece| piece.is(">"))
            && let Some(close) = line.get(at)
        {
            let written = open.span.end as usize..close.span.start as usize;
            let text = self.stack.last().and_then(|top| top.cursor.text.get(written)).unwrap_or("");
            let name = match direct {
                true => text.to_owned(),
                false => joined(line.get(1..at).unwrap_or_default()),
            };
            if !name.is_empty() {
                self.no_more(line.get(at + 1..).unwrap_or_default(), "#include");
                return Some(Wanted { name, quoted: false, span: open.span.to(close.span) });
            }
        }
        let error = Diagnostic::error("include", whole, "expected `\"FILE\"` or `<FILE>` behind `#include`");
        self.report(error);
        None
    }

    /// Opens an input file of the compiler.
    pub(super) fn open(&mut self, path: PathBuf, from: Option<Span>) {
        if let Some(file) = standard::given(&path) {
            return self.open_standard(file, from);
        }
        match self.read(&path) {
            Ok(text) => self.open_text(path, text, from),
            Err(error) => {
                self.incomplete = true;
                let message = format!("cannot read `{}`: {error}", path.display());
                self.report(Diagnostic::without_place("cannot-read", message));
            }
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<Rc<str>> {
        let identity = self.settings.files.identity(path);
        if let Some(text) = self.files.cache.get(&identity) {
            return Ok(Rc::clone(text));
        }
        let text: Rc<str> = decoded(self.settings.files.read(path)?).into();
        self.files.cache.insert(identity, Rc::clone(&text));
        Ok(text)
    }

    fn open_text(&mut self, path: PathBuf, text: Rc<str>, from: Option<Span>) {
        let opened = Opened { path: Some(self.settings.files.watched(&path)), from, ..Opened::default() };
        self.open_as(path, text, opened);
    }

    /// Opens a standard file of the compiler.
    fn open_standard(&mut self, file: &'static StandardFile, from: Option<Span>) {
        let opened = Opened { from, standard: Some(file), ..Opened::default() };
        self.open_as(file.path(), file.text.into(), opened);
    }

    /// Returns the path that identifies a file.
    pub(super) fn identity(&self, path: &Path) -> PathBuf {
        standard::given(path).map_or_else(|| self.settings.files.identity(path), StandardFile::path)
    }

    fn open_as(&mut self, path: PathBuf, text: Rc<str>, opened: Opened) {
        let (identity, from) = (self.identity(&path), opened.from);
        let guarded = self.files.guards.get(&identity).is_some_and(|name| self.macros.contains_key(name));
        if guarded || self.files.once.contains(&identity) || self.was_given(&identity) {
            return;
        }
        if let (Some(span), true) = (from, self.stack.len() >= MAX_NESTED) {
            return self.too_deep(span, &path, &identity);
        }
        if !self.may_open(text.len(), from) {
            return;
        }
        let opened = Opened { included: !self.files.given.contains(&identity), ..opened };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let file = self.sources.add_text(path.display().to_string(), Rc::clone(&text), opened);
        self.files.seen.insert(identity.clone());
        self.push(file, text, folder, Some(identity));
    }

    /// Counts a file of this size in bytes. Reports an error and gives up if a limit is exceeded.
    pub(super) fn may_open(&mut self, octets: usize, from: Option<Span>) -> bool {
        self.work.opened += 1;
        self.work.bytes = self.work.bytes.saturating_add(octets);
        if self.work.opened <= MAX_FILES && self.work.bytes <= MAX_OCTETS {
            return true;
        }
        let what = match self.work.opened > MAX_FILES {
            true => format!("more than {MAX_FILES} files are opened"),
            false => format!("the files together are larger than {} MiB", MAX_OCTETS >> 20),
        };
        let error = match from {
            Some(span) => Diagnostic::error("too-large", span, what),
            None => Diagnostic::without_place("too-large", what),
        };
        self.give_up(error.note("a file that is included again counts again, unless `#pragma once` or an include guard leaves all of it out"));
        false
    }

    /// Returns whether this is one of several input files and has already been read, so that its definitions
    /// are present.
    fn was_given(&self, identity: &Path) -> bool {
        let open = self.stack.iter().any(|open| open.identity.as_deref() == Some(identity));
        self.files.given.len() > 1
            && self.files.given.contains(identity)
            && self.files.seen.contains(identity)
            && !open
    }

    /// Reports that includes nest too deep, most likely because files include each other.
    fn too_deep(&mut self, span: Span, path: &Path, identity: &Path) {
        let message = format!("files include each other more than {MAX_NESTED} levels deep");
        let error = Diagnostic::error("include-depth", span, message);
        let circle = self.stack.iter().rposition(|open| open.identity.as_deref() == Some(identity));
        let error = match circle {
            Some(at) => {
                let files = self.stack.iter().skip(at);
                let names = files.filter_map(|open| Some(self.sources.file(open.cursor.file)?.name.clone()));
                let names: Vec<String> = names.chain([path.display().to_string()]).collect();
                error.note(format!("they go in a circle: {}", names.join(" -> ")))
            }
            None => error,
        };
        self.give_up(error.help("put `#pragma once` at the top of a file that may be included again"));
    }
}

/// Returns tokens as they were written, including blanks.
fn joined(tokens: &[Piece]) -> String {
    let mut text = String::new();
    for piece in tokens {
        if piece.spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&piece.text);
    }
    text
}
