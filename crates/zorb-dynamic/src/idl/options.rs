//! The options for reading IDL, and the errors that are found in IDL.

use std::fmt;
use std::path::{Path, PathBuf};

use idl_compiler::model::{DefId, Model};
use idl_compiler::{Compiler, Diagnostics, Disk, Severity, Source};
use orb_runtime::types::CreateError;

use super::Idl;

/// The options for reading IDL: see [`Idl::options`].
///
/// ```no_run
/// use zorb::dynamic::{Idl, IdlError};
///
/// let idl = Idl::options().include("idl").define("FAST").files(["bank.idl", "audit.idl"])?;
/// # Ok::<(), IdlError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is read before `text` or `files` is called"]
pub struct IdlOptions {
    include_dirs: Vec<PathBuf>,
    /// The macros in the order of the calls. `true` defines a macro, and `false` undefines it.
    macros: Vec<(String, bool)>,
    strict_names: bool,
}

impl IdlOptions {
    /// Adds a directory that `#include` searches. Directories are searched in the order of these calls.
    pub fn include(mut self, directory: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(directory.into());
        self
    }

    /// Defines a macro, like `-D`: `NAME` (with the value 1), `NAME=VALUE` or `NAME(PARAMETERS)=VALUE`.
    pub fn define(mut self, define: impl Into<String>) -> Self {
        self.macros.push((define.into(), true));
        self
    }

    /// Removes a macro that was defined before, like `-U`.
    pub fn undefine(mut self, name: impl Into<String>) -> Self {
        self.macros.push((name.into(), false));
        self
    }

    /// Sets whether some forbidden names are errors. By default, they are warnings. The IDL standard forbids
    /// these names although their meaning is clear, such as names that differ from a keyword only in case.
    pub fn strict_names(mut self, strict: bool) -> Self {
        self.strict_names = strict;
        self
    }

    /// Parses a text, which is called `name` in messages. It can include files only if
    /// [`include`](IdlOptions::include) was called. It can then also include files of the current directory.
    ///
    /// # Errors
    /// The text or an included file has errors. The result contains all of them, each with its position.
    pub fn text(&self, name: &str, text: &str) -> Result<Idl, IdlError> {
        let compiler = self.compiler();
        let compiler = if self.include_dirs.is_empty() { compiler } else { compiler.files(Disk::default()) };
        Idl::of_model(&compiler.compile(Source::text(name, text))?)
    }

    /// Parses files in the given order, as one text. Blocks while the files are read.
    ///
    /// # Errors
    /// A file has errors or cannot be read. The result contains all errors, with their positions.
    pub fn files<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) -> Result<Idl, IdlError> {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned());
        Idl::of_model(&self.compiler().files(Disk::default()).compile_files(paths)?)
    }

    fn compiler(&self) -> Compiler {
        let mut compiler = Compiler::default().strict_names(self.strict_names);
        for directory in &self.include_dirs {
            compiler = compiler.include(directory);
        }
        for (define, defined) in &self.macros {
            compiler = match defined {
                true => compiler.define(define),
                false => compiler.undefine(define),
            };
        }
        compiler
    }
}

/// The errors in rejected IDL. `Display` shows each finding with the lines of the text that it refers to.
#[derive(Clone, PartialEq, Eq)]
pub struct IdlError {
    text: Box<str>,
    findings: Box<[IdlFinding]>,
}

/// One error in IDL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdlFinding {
    /// The error, in one line.
    pub message: Box<str>,
    /// The file. Empty if the error refers to no file.
    pub file: Box<str>,
    /// The number of the line. The first line is 1. If the error refers to no line, this is 0.
    pub line: usize,
    /// The column in characters. The first column is 1. If the error refers to no line, this is 0.
    pub column: usize,
}

impl IdlError {
    /// Returns the findings in the order of their positions.
    pub fn findings(&self) -> &[IdlFinding] {
        &self.findings
    }

    /// Creates the error for a valid definition that has no type code.
    pub(super) fn without_type_code(model: &Model, id: DefId, error: CreateError) -> IdlError {
        let position = model.sources().position(model.def(id).span);
        let message = format!("{} has no type code: {error}", model.scoped_name(id));
        let text = format!("{}:{}:{}: {message}", position.file, position.line, position.column);
        let (file, line, column) = (position.file.into(), position.line, position.column);
        let finding = IdlFinding { message: message.into(), file, line, column };
        IdlError { text: text.into(), findings: [finding].into() }
    }
}

impl From<Diagnostics> for IdlError {
    fn from(found: Diagnostics) -> IdlError {
        let errors = found.without_warnings();
        let finding = |one: &idl_compiler::Diagnostic| {
            let place = one.span().map(|span| errors.sources().position(span));
            let (line, column) = place.as_ref().map_or((0, 0), |place| (place.line, place.column));
            let file = place.map_or_else(Box::default, |place| place.file.into());
            IdlFinding { message: (&*one.message).into(), file, line, column }
        };
        let findings = errors.iter().filter(|one| one.severity == Severity::Error).map(finding).collect();
        IdlError { text: errors.to_string().into(), findings }
    }
}

impl fmt::Display for IdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for IdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdlError:\n{self}")
    }
}

impl std::error::Error for IdlError {}
