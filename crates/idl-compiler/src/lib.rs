//! An OMG IDL compiler for Rust: lexer, parser, resolver, checks and code generation.
//!
//! [`compile`] takes IDL from a [`Source`] (the text of a file, a string literal in a macro, or Rust tokens)
//! and returns a resolved [`Model`] or, if there are errors, [`Diagnostics`].
//!
//! ```
//! use idl_compiler::{Source, compile};
//!
//! let idl = "module Bank { interface Account { readonly attribute double balance; }; };";
//! let model = compile(Source::text("bank.idl", idl)).map_err(|errors| errors.render(false))?;
//! let account = model.find("Bank::Account").ok_or("not found")?;
//! assert_eq!(model.def(account).repository_id, "IDL:Bank/Account:1.0");
//! # Ok::<(), String>(())
//! ```
//!
//! A text passes through these stages: preprocessor (`preprocess`), lexers (`lex`), parser (`parse`),
//! resolver (`resolve`) and code generator (`emit`). No stage depends on a later one.

mod ast;
mod components;
mod decimal;
mod lex;
mod limits;
mod output;
mod parse;
mod preprocess;
mod resolve;
mod standard;
mod suggest;
mod token;
mod work;

pub mod diagnostic;
pub mod emit;
pub mod model;
pub mod source;

pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity, printable};
pub use limits::MAX_DEPTH;
pub use model::Model;
pub use output::write_atomically;
pub use preprocess::{Disk, Files, Memory, NoFiles};
pub use source::{Position, Source, Sources, Span};
pub use standard::{is_standard_file, standard_files};
pub use work::Work;

use std::path::PathBuf;
use std::rc::Rc;

use diagnostic::Collector;
use lex::Lexed;
use preprocess::{Define, Settings};

/// Compiles with default options.
///
/// # Errors
/// The errors and warnings of the text, by location: at most 200 of each, and the number of other errors.
pub fn compile(source: Source) -> Result<Model, Diagnostics> {
    Compiler::default().compile(source)
}

/// Compiles with options.
///
/// ```
/// use idl_compiler::{Compiler, Memory};
///
/// let files = Memory::from_iter([
///     ("idl/base.idl", "struct Money { long long cents; };"),
///     ("bank.idl", "#include <base.idl>\n#ifdef FAST\ntypedef sequence<Money, MOST> Sums;\n#endif"),
/// ]);
/// let compiler = Compiler::default().files(files).include("idl").define("FAST").define("MOST=5");
/// let model = compiler.compile_files(["bank.idl"]).map_err(|errors| errors.render(false))?;
/// assert!(model.find("Sums").is_some_and(|sums| !model.is_included(sums)));
/// assert!(model.find("Money").is_some_and(|money| model.is_included(money)));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    strict_names: bool,
    settings: Settings,
}

impl Compiler {
    /// Selects whether these are errors, as the OMG specification requires, or (by default) warnings:
    ///
    /// * a parameter, member, operation or attribute with the name of a type that is used in the same scope
    ///   (`attribute Color color;`)
    /// * a member, operation or attribute whose name differs only in case from the enclosing scope's name
    ///   (`struct Right { string right; };`)
    /// * a name that differs only in case from a keyword (`interface Factory { };`)
    /// * an interface that is declared and never defined
    ///
    /// Existing IDL often breaks these rules although its meaning is clear.
    pub fn strict_names(mut self, strict: bool) -> Self {
        self.strict_names = strict;
        self
    }

    /// Sets where files are read from, usually [`Disk`]. By default, no file can be read ([`NoFiles`]).
    pub fn files(mut self, files: impl Files + 'static) -> Self {
        self.settings.files = Rc::new(files);
        self
    }

    /// Appends a folder to the search path of `#include`, which for `"..."` begins with the file's own
    /// folder.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.folders.push(folder.into());
        self
    }

    /// Defines a macro like `cc -D`: `NAME` (with the value 1), `NAME=VALUE` or `NAME(PARAMETERS)=VALUE`.
    pub fn define(mut self, define: impl Into<String>) -> Self {
        self.settings.defines.push(Define::Define(define.into()));
        self
    }

    /// Removes a macro that an earlier call of [`define`](Self::define) defined, like `cc -U`.
    pub fn undefine(mut self, name: impl Into<String>) -> Self {
        self.settings.defines.push(Define::Undefine(name.into()));
        self
    }

    /// Compiles a source.
    ///
    /// # Errors
    /// The errors and warnings of the text, by location: at most 200 of each, and the number of other errors.
    pub fn compile(&self, source: Source) -> Result<Model, Diagnostics> {
        self.run(|sources, collector| lex::lex(source, &self.settings, sources, collector))
    }

    /// Compiles several files in the given order, as one text: definitions and macros of one file are visible
    /// in the next files. An `#include` of an input file that was already read has no effect.
    ///
    /// # Errors
    /// The errors of the files and of reading them, and warnings, as for [`compile`](Self::compile).
    pub fn compile_files<P: Into<PathBuf>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Model, Diagnostics> {
        let paths: Vec<PathBuf> = paths.into_iter().map(Into::into).collect();
        self.run(|sources, collector| lex::lex_files(&paths, &self.settings, sources, collector))
    }

    fn run(&self, lex: impl FnOnce(&mut Sources, &mut Collector) -> Lexed) -> Result<Model, Diagnostics> {
        let mut collector = Collector::default();
        let mut sources = Sources::default();
        let lexed = lex(&mut sources, &mut collector);
        work::count_tokens(lexed.tokens.len());
        let mut parsed = parse::parse(lexed.tokens, self.strict_names, &mut collector);
        components::add(&mut parsed, &mut sources, &mut collector);
        let sources = Rc::new(sources);
        // After an error, the parser skips declarations. Uses of the skipped names must not be reported.
        let skipped = lexed.incomplete || collector.error_count() > lexed.missing_files.len();
        let conditions = resolve::Conditions {
            strict_names: self.strict_names,
            incomplete: skipped || !lexed.missing_files.is_empty(),
            only_files_missing: !skipped && !lexed.missing_files.is_empty(),
        };
        let mut model = resolve::resolve(parsed, Rc::clone(&sources), conditions, &mut collector);
        model.pragmas = lexed.pragmas;
        model.warnings = collector.finish(sources)?;
        Ok(model)
    }
}
