//! `#include` and `import`: finds and opens files.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::text::{Kind, Piece};
use super::{Imported, MAX_FILES, MAX_OPEN_FILES, MAX_TOTAL_BYTES, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::source::{FileInfo, Span, decode};
use crate::standard::{self, StandardFile};

struct IncludeName {
    name: String,
    /// Whether the name is in quotes, so that the folder of the including file is searched first.
    is_quoted: bool,
    span: Span,
}

impl Preprocessor<'_> {
    pub(super) fn include(&mut self, directive: Span, line: Vec<Piece>) {
        let Some(include) = self.include_name(directive, line) else {
            self.incomplete = true;
            return;
        };
        let own_folder = self.open_files.last().filter(|_| include.is_quoted).map(|open| open.folder.clone());
        let folders = own_folder.into_iter().chain(self.settings.folders.iter().cloned());
        let folders: Vec<PathBuf> = folders.collect();
        let is_missing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        // An absolute path does not depend on the folder, and is tried only once.
        let mut tried: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let path = folder.join(&include.name);
            if tried.contains(&path) {
                continue;
            }
            match self.read(&path) {
                Ok(text) => return self.open_text(path, text, Some(include.span)),
                Err(error) if is_missing(&error) => tried.push(path),
                Err(error) => {
                    self.incomplete = true;
                    let message = format!("cannot read `{}`: {error}", path.display());
                    return self.error("include", include.span, message);
                }
            }
        }
        match standard::find(&include.name) {
            Some(file) => self.open_standard(file, Some(include.span)),
            None => self.not_found(&include, &tried),
        }
    }

    /// Opens the first of these files that exists, unless it was opened before or other tokens are pending.
    pub(crate) fn import(&mut self, names: &[String], span: Span) -> Imported {
        if !(self.queue.is_empty() && self.pending.is_empty()) {
            return Imported::NotOpened;
        }
        let importing_folder = self.open_files.last().map(|open| open.folder.clone());
        let folders: Vec<PathBuf> =
            importing_folder.into_iter().chain(self.settings.folders.iter().cloned()).collect();
        let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        for path in paths {
            let Ok(text) = self.read(&path) else { continue };
            let identity = self.settings.files.identity(&path);
            return self.import_once(&identity, |this| this.open_text(path, text, Some(span)));
        }
        match names.iter().find_map(|name| standard::find(name)) {
            Some(file) => self.import_once(&file.path(), |this| this.open_standard(file, Some(span))),
            None => Imported::NotOpened,
        }
    }

    /// Opens a file for an `import`, unless it was opened before.
    fn import_once(&mut self, identity: &Path, open: impl FnOnce(&mut Self)) -> Imported {
        if self.open_files.iter().any(|open| open.identity.as_deref() == Some(identity)) {
            return Imported::Cycle;
        }
        let count_before = self.open_files.len();
        if !self.files.opened.contains(identity) {
            open(self);
        }
        if self.open_files.len() > count_before { Imported::Opened } else { Imported::NotOpened }
    }

    fn not_found(&mut self, include: &IncludeName, tried: &[PathBuf]) {
        let name = &include.name;
        self.missing_files.push(name.clone());
        let mut error = Diagnostic::error("include", include.span, format!("there is no file `{name}`"));
        if tried.is_empty() {
            error = error.note("`<...>` is searched only in include folders, and none is configured");
        }
        for path in tried {
            error = error.note(format!("there is no `{}`", path.display()));
        }
        let in_same_folder = self.open_files.last().map(|open| open.folder.join(name));
        let in_same_folder =
            in_same_folder.filter(|path| !include.is_quoted && self.settings.files.read(path).is_ok());
        self.report(match in_same_folder {
            Some(_) => error.help(format!("it is in the folder of this file: write `#include \"{name}\"`")),
            None => error.help("name the folder that contains it: `-I FOLDER`, `include = [\"FOLDER\"]` in the macro, `.include(\"FOLDER\")` in the build script"),
        });
    }

    /// Returns the file name of an `#include`: `"name"`, `<name>`, or a macro that expands to one of these.
    fn include_name(&mut self, directive: Span, line: Vec<Piece>) -> Option<IncludeName> {
        let whole = match (line.first(), line.last()) {
            (Some(first), Some(last)) => first.span.to(last.span),
            _ => directive,
        };
        let is_written = line.first().is_some_and(|first| first.kind == Kind::Quoted || first.is("<"));
        let line = match (is_written, line.first().cloned()) {
            (false, Some(first)) => self.expand_list(line, &first),
            _ => line,
        };
        let first = line.first();
        if let Some(literal) = first.filter(|first| first.kind == Kind::Quoted) {
            let name = literal.text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                self.warn_extra_tokens(line.get(1..).unwrap_or_default(), "#include");
                return Some(IncludeName { name: name.to_owned(), is_quoted: true, span: literal.span });
            }
        }
        if let Some(open) = first.filter(|first| first.is("<"))
            && let Some(at) = line.iter().position(|piece| piece.is(">"))
            && let Some(close) = line.get(at)
        {
            let written = open.span.end as usize..close.span.start as usize;
            let text = self.open_files.last().and_then(|top| top.cursor.text.get(written)).unwrap_or("");
            let name = match is_written {
                true => text.to_owned(),
                false => spelling(line.get(1..at).unwrap_or_default()),
            };
            if !name.is_empty() {
                self.warn_extra_tokens(line.get(at + 1..).unwrap_or_default(), "#include");
                return Some(IncludeName { name, is_quoted: false, span: open.span.to(close.span) });
            }
        }
        let error = Diagnostic::error("include", whole, "expected `\"FILE\"` or `<FILE>` after `#include`");
        self.report(error);
        None
    }

    /// Opens an input file of the compiler.
    pub(super) fn open(&mut self, path: PathBuf, from: Option<Span>) {
        if let Some(file) = standard::find_by_path(&path) {
            return self.open_standard(file, from);
        }
        match self.read(&path) {
            Ok(text) => self.open_text(path, text, from),
            Err(error) => {
                self.incomplete = true;
                let message = format!("cannot read `{}`: {error}", path.display());
                self.report(Diagnostic::without_location("cannot-read", message));
            }
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<Rc<str>> {
        let identity = self.settings.files.identity(path);
        if let Some(text) = self.files.cache.get(&identity) {
            return Ok(Rc::clone(text));
        }
        let text: Rc<str> = decode(self.settings.files.read(path)?).into();
        self.files.cache.insert(identity, Rc::clone(&text));
        Ok(text)
    }

    fn open_text(&mut self, path: PathBuf, text: Rc<str>, from: Option<Span>) {
        let info = FileInfo {
            path: Some(self.settings.files.watch_path(&path)),
            include_span: from,
            ..FileInfo::default()
        };
        self.open_file(path, text, info);
    }

    fn open_standard(&mut self, file: &'static StandardFile, from: Option<Span>) {
        let info = FileInfo { include_span: from, standard: Some(file), ..FileInfo::default() };
        self.open_file(file.path(), file.text.into(), info);
    }

    pub(super) fn identity(&self, path: &Path) -> PathBuf {
        standard::find_by_path(path).map_or_else(|| self.settings.files.identity(path), StandardFile::path)
    }

    fn open_file(&mut self, path: PathBuf, text: Rc<str>, info: FileInfo) {
        let (identity, from) = (self.identity(&path), info.include_span);
        let is_guarded = self.files.guards.get(&identity).is_some_and(|name| self.macros.contains_key(name));
        if is_guarded || self.files.pragma_once.contains(&identity) || self.is_input_already_read(&identity) {
            return;
        }
        if let (Some(span), true) = (from, self.open_files.len() >= MAX_OPEN_FILES) {
            return self.too_deep(span, &path, &identity);
        }
        if !self.count_file(text.len(), from) {
            return;
        }
        let info = FileInfo { included: !self.files.inputs.contains(&identity), ..info };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let file = self.sources.add_text(path.display().to_string(), Rc::clone(&text), info);
        self.files.opened.insert(identity.clone());
        self.push(file, text, folder, Some(identity));
    }

    /// Counts a file that is opened. If a limit is exceeded, reports this, stops reading and returns `false`.
    pub(super) fn count_file(&mut self, bytes: usize, from: Option<Span>) -> bool {
        self.usage.files += 1;
        self.usage.bytes = self.usage.bytes.saturating_add(bytes);
        if self.usage.files <= MAX_FILES && self.usage.bytes <= MAX_TOTAL_BYTES {
            return true;
        }
        let what = match self.usage.files > MAX_FILES {
            true => format!("more than {MAX_FILES} files are opened"),
            false => format!("the files together are larger than {} MiB", MAX_TOTAL_BYTES >> 20),
        };
        let error = match from {
            Some(span) => Diagnostic::error("too-large", span, what),
            None => Diagnostic::without_location("too-large", what),
        };
        self.report_limit(error.note(
            "each inclusion of a file counts, unless `#pragma once` or an include guard skips the whole file",
        ));
        false
    }

    /// Returns whether this is one of several input files, and was already read to its end.
    fn is_input_already_read(&self, identity: &Path) -> bool {
        let is_open = self.open_files.iter().any(|open| open.identity.as_deref() == Some(identity));
        self.files.inputs.len() > 1
            && self.files.inputs.contains(identity)
            && self.files.opened.contains(identity)
            && !is_open
    }

    /// Reports that includes are nested too deeply. If files include each other, the report names them.
    fn too_deep(&mut self, span: Span, path: &Path, identity: &Path) {
        let message = format!("includes are nested more than {MAX_OPEN_FILES} levels deep");
        let mut error = Diagnostic::error("include-depth", span, message);
        let cycle_start = self.open_files.iter().rposition(|open| open.identity.as_deref() == Some(identity));
        if let Some(at) = cycle_start {
            let files = self.open_files.iter().skip(at);
            let names = files.filter_map(|open| Some(self.sources.file(open.cursor.file)?.name.clone()));
            let names: Vec<String> = names.chain([path.display().to_string()]).collect();
            error = error.note(format!("the files include each other: {}", names.join(" -> ")));
        }
        self.report_limit(error.help("put `#pragma once` at the top of a file that may be included again"));
    }
}

/// Returns the text of tokens, with one space for each place where white space was written.
fn spelling(tokens: &[Piece]) -> String {
    let mut text = String::new();
    for piece in tokens {
        if piece.spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&piece.text);
    }
    text
}
