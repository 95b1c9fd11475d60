//! An OMG IDL compiler for Rust: lexer, parser, resolver, checks and code generation.
//!
//! [`compile`] takes IDL from a [`Source`] (the text of a file, a string literal in a macro, or Rust tokens) and gives a
//! resolved [`Model`], or [`Diagnostics`] with every error found. There is no other way to a model, so a model has no
//! errors.
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
//! The stages, each a module that knows only those before it: source and spans, lexers, tokens, parser, syntax tree,
//! resolver, model, emitter.

mod ast;
mod lex;
mod parse;
mod resolve;
mod suggest;
mod token;

pub mod diagnostic;
pub mod emit;
pub mod model;
pub mod source;

pub use diagnostic::{Diagnostic, Diagnostics, Label, Severity};
pub use model::Model;
pub use source::{Position, Source, Sources, Span};

use std::rc::Rc;

use diagnostic::Collector;

/// Compiles with default options.
///
/// # Errors
/// Everything that is wrong with the text, in the order of the places.
pub fn compile(source: Source) -> Result<Model, Diagnostics> {
    Compiler::default().compile(source)
}

/// Compiles with options.
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    strict_names: bool,
}

impl Compiler {
    /// Whether it is an error, as the OMG text has it, or only a warning, the default, that a parameter, member, operation
    /// or attribute has the name of a type used in the same scope (`attribute Color color;`), or but for case that of the
    /// scope around it (`struct Right { string right; };`). Much IDL in use does it, and it is not ambiguous.
    pub fn strict_names(mut self, strict: bool) -> Self {
        self.strict_names = strict;
        self
    }

    /// Compiles.
    ///
    /// # Errors
    /// Everything that is wrong with the text, in the order of the places.
    pub fn compile(&self, source: Source) -> Result<Model, Diagnostics> {
        let mut collector = Collector::default();
        let mut sources = Sources::default();
        let lexed = lex::lex(source, &mut sources, &mut collector);
        let sources = Rc::new(sources);
        let parsed = parse::parse(lexed.tokens, &mut collector);
        // After an error the parser leaves declarations out, so names may be missing for no fault of their users.
        let incomplete = lexed.incomplete || collector.errors() > 0;
        let conditions = resolve::Conditions { strict_names: self.strict_names, incomplete };
        let mut model = resolve::resolve(parsed, Rc::clone(&sources), conditions, &mut collector);
        model.warnings = collector.finish(sources)?;
        Ok(model)
    }
}
