//! Compiles OMG IDL to Rust from build scripts, for the zorb ORB.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), zorb_build::Error> {
//!     zorb_build::Config::new().include("idl").file("idl/bank.idl").compile()
//! }
//! ```
//!
//! ```text
//! // src/lib.rs
//! zorb::include_idl!("bank");
//! ```
//!
//! The output is what `zorb::idl!("idl/bank.idl", include = ["idl"])` gives; the options are those of the macro. A crate by
//! itself, since a build script compiles its dependencies for the host: it needs the compiler, not the ORB.

mod error;

pub use error::Error;
pub use idl_compiler::emit::IncludePolicy;

use std::path::{Path, PathBuf};

use idl_compiler::emit::{self, OptionProblem, Options};
use idl_compiler::{Compiler, Diagnostics, Disk, Model};

/// What to compile, and how. Paths are relative to the directory of `Cargo.toml`, which is where build scripts run.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is compiled before `compile` is called"]
pub struct Config {
    compiler: Compiler,
    options: Options,
    files: Vec<PathBuf>,
    folder: Option<PathBuf>,
    output: Option<String>,
    paths: Vec<(String, String)>,
    derive: Vec<(String, String)>,
    no_warnings: bool,
}

impl Config {
    /// No files, default options.
    pub fn new() -> Self {
        Config::default()
    }

    /// Adds a file. All files of a configuration are compiled together: what one defines, the next can use.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Adds files.
    pub fn files<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.files.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Adds a folder in which `#include` looks, after those added before.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compiler = self.compiler.include(folder);
        self
    }

    /// Defines a macro, as `-D` does: `NAME` (which is 1), `NAME=VALUE` or `NAME(PARAMETERS)=VALUE`.
    pub fn define(mut self, define: impl Into<String>) -> Self {
        self.compiler = self.compiler.define(define);
        self
    }

    /// Gives a definition, member, enumerator or parameter (`M::I::op::param`) a Rust name of its own.
    pub fn rename(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.options.rename.push((idl.into(), rust.into()));
        self
    }

    /// Says where references are never nil: a scoped name, or a beginning of such names followed by `*`.
    pub fn non_nil(mut self, pattern: impl Into<String>) -> Self {
        self.options.non_nil.push(pattern.into());
        self
    }

    /// Lets all structs, exceptions, unions and enums derive a trait: the path of its derive macro, `"serde::Serialize"`.
    /// What a type has anyway is not derived again.
    pub fn derive(self, path: impl Into<String>) -> Self {
        self.derive_for("*", path)
    }

    /// Lets some types derive a trait: a scoped name, or a beginning of such names followed by `*`.
    pub fn derive_for(mut self, pattern: impl Into<String>, path: impl Into<String>) -> Self {
        self.derive.push((pattern.into(), path.into()));
        self
    }

    /// Servants need not implement operations and attributes: what they leave out answers `NO_IMPLEMENT`, so that a new
    /// operation breaks no server.
    pub fn default_bodies(self) -> Self {
        self.default_bodies_of("*")
    }

    /// The same for some of them: the scoped name of an interface, operation or attribute, or a beginning of such names
    /// followed by `*`.
    pub fn default_bodies_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.default_bodies.push(pattern.into());
        self
    }

    /// Gives references `sendc_` methods, which send a call and return, and interfaces a trait for the handlers of the replies.
    pub fn ami(self) -> Self {
        self.ami_of("*")
    }

    /// The same for some interfaces: a scoped name, or a beginning of such names followed by `*`.
    pub fn ami_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.ami.push(pattern.into());
        self
    }

    /// Lets the interpreter marshal all types, in place of code of their own, and what calls send.
    pub fn interpretive(self) -> Self {
        self.interpretive_of("*")
    }

    /// The same for some types, or for what the calls of some interfaces send: a scoped name, or a beginning of such names
    /// followed by `*`.
    pub fn interpretive_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.interpretive.push(pattern.into());
        self
    }

    /// Lets the interpreter marshal some types so many times, from 1 on, and compiled code then: a scoped name, or a beginning
    /// of such names followed by `*`.
    pub fn adaptive_of(mut self, pattern: impl Into<String>, uses: u32) -> Self {
        self.options.adaptive.push((pattern.into(), uses));
        self
    }

    /// Names a function that gives the use counts of all adaptive types.
    pub fn uses(mut self, function: impl Into<String>) -> Self {
        self.options.uses = Some(function.into());
        self
    }

    /// Says where the Rust of an included module or definition is: `("::CosNaming", "::zorb::cos_naming")`. It is not
    /// generated again.
    pub fn external(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.paths.push((idl.into(), rust.into()));
        self
    }

    /// Says what becomes of other included definitions: by default they are compiled too.
    pub fn include_policy(mut self, policy: IncludePolicy) -> Self {
        self.options.include_policy = policy;
        self
    }

    /// Makes names that only the letter of the standard forbids errors; by default they are warnings.
    pub fn strict_names(mut self, strict: bool) -> Self {
        self.compiler = self.compiler.strict_names(strict);
        self
    }

    /// Shows no warnings of the IDL.
    pub fn no_warnings(mut self) -> Self {
        self.no_warnings = true;
        self
    }

    /// Where the crate `zorb` is, `::zorb` if not said.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.paths.push((String::new(), path.into()));
        self
    }

    /// Where the output goes, the folder that cargo names in `OUT_DIR` if not said.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Name of the output without `.rs`; that of the first file if not said.
    pub fn output(mut self, name: impl Into<String>) -> Self {
        self.output = Some(name.into());
        self
    }

    /// Compiles, writes the output, and tells cargo to run the script again when a file that was read changes. Warnings
    /// of the IDL become warnings of cargo.
    ///
    /// # Errors
    /// Everything that is wrong with the IDL and the options, drawn for people, also by `Debug`, which is what a build
    /// script's `main` prints; files that cannot be read or written.
    pub fn compile(self) -> Result<(), Error> {
        let folder = match (&self.folder, std::env::var_os("OUT_DIR")) {
            (Some(folder), _) => folder.clone(),
            (None, Some(folder)) => folder.into(),
            (None, None) => {
                return Err(Error::new("OUT_DIR is not set: this runs in build scripts, or needs `out_dir`"));
            }
        };
        let output = self.generate()?;
        for line in &output.cargo {
            println!("{line}");
        }
        let path = folder.join(format!("{}.rs", output.name));
        write(&path, &output.rust)
            .map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))
    }

    /// Compiles and gives what [`Config::compile`] would write and print.
    ///
    /// # Errors
    /// Those of [`Config::compile`], but for writing.
    pub fn generate(mut self) -> Result<Output, Error> {
        let name = self.name()?;
        for (idl, rust) in std::mem::take(&mut self.derive) {
            self.options.derive.push((idl, path(&rust)?));
        }
        for (idl, rust) in std::mem::take(&mut self.paths) {
            let path = path(&rust)?;
            match idl.is_empty() {
                true => self.options.runtime = path,
                false => self.options.external.push((idl, path)),
            }
        }
        let compiler = self.compiler.files(Disk::new());
        let result = compiler.compile_files(&self.files);
        let mut cargo = Vec::new();
        let sources = match &result {
            Ok(model) => model.sources(),
            Err(errors) => errors.sources(),
        };
        cargo.extend(sources.paths().into_iter().map(rerun));
        let model = result.map_err(|errors| {
            // Cargo runs a script that failed again whenever anything changes.
            Error::new(errors.render(false))
        })?;
        if !self.no_warnings {
            cargo.extend(warnings(&model, model.warnings()));
        }
        let problems: Vec<String> = self
            .options
            .check(&model)
            .into_iter()
            .map(|problem| self::problem(&self.options, problem))
            .collect();
        if !problems.is_empty() {
            return Err(Error::new(problems.join("\n")));
        }
        let emitted = emit::emit(&model, &self.options).map_err(|errors| Error::new(errors.render(false)))?;
        if !self.no_warnings {
            cargo.extend(warnings(&model, &emitted.warnings));
        }
        let mut file: syn::File = syn::parse2(emitted.tokens).map_err(|error| {
            Error::new(format!("the generated code is no Rust, which is a mistake of zorb: {error}"))
        })?;
        // Clippy leaves what macros make alone, and would lint the same code in a file.
        for item in &mut file.items {
            if let syn::Item::Mod(module) = item {
                module.attrs.push(syn::parse_quote!(
                    #[allow(clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction)]
                ));
            }
        }
        let rust =
            format!("// Made by zorb-build from IDL; changes are lost.\n{}", prettyplease::unparse(&file));
        Ok(Output { name, rust, cargo })
    }

    fn name(&self) -> Result<String, Error> {
        let first = self.files.first().ok_or_else(|| Error::new("no IDL file: add one with `file`"))?;
        let stem = || first.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.output
            .clone()
            .or_else(stem)
            .ok_or_else(|| Error::new(format!("`{}` is not the name of a file", first.display())))
    }
}

/// What a configuration gives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// Name of the file to write, without `.rs`.
    pub name: String,
    /// Its content.
    pub rust: String,
    /// Lines for cargo: files to watch, warnings.
    pub cargo: Vec<String>,
}

/// A path as tokens, without generic arguments.
fn path(text: &str) -> Result<proc_macro2::TokenStream, Error> {
    let tokens: Option<proc_macro2::TokenStream> = text.parse().ok();
    let is_path = |tokens: &proc_macro2::TokenStream| {
        syn::parse::Parser::parse2(syn::Path::parse_mod_style, tokens.clone()).is_ok()
    };
    tokens.filter(is_path).ok_or_else(|| Error::new(format!("`{text}` is not a Rust path")))
}

fn rerun(path: &Path) -> String {
    format!("cargo:rerun-if-changed={}", path.display())
}

/// Each warning in one line, since cargo takes one line each.
fn warnings(model: &Model, found: &Diagnostics) -> impl Iterator<Item = String> {
    found.iter().map(|warning| {
        let place = warning.span().map(|span| format!("{}: ", model.sources().position(span)));
        format!("cargo:warning={}{}", place.unwrap_or_default(), warning.message)
    })
}

fn problem(options: &Options, problem: OptionProblem) -> String {
    let name = |list: &[(String, String)], index: usize| list.get(index).cloned().unwrap_or_default();
    match problem {
        OptionProblem::UnknownName(index) => {
            format!(
                "`rename`: `{}` names nothing in this IDL that has a Rust name",
                name(&options.rename, index).0
            )
        }
        OptionProblem::NotAnIdentifier(index) => {
            format!("`rename`: `{}` is not an identifier", name(&options.rename, index).1)
        }
        OptionProblem::NothingExternal(index) => {
            let idl = options.external.get(index).map_or("", |(idl, _)| idl);
            format!("`external`: no included file defines `{idl}`")
        }
        OptionProblem::NothingDerives(index) => {
            let idl = options.derive.get(index).map_or("", |(idl, _)| idl);
            format!("`derive_for`: `{idl}` names no struct, exception, union or enum")
        }
        OptionProblem::NoBodies(index) => {
            let idl = options.default_bodies.get(index).map_or("", String::as_str);
            format!("`default_bodies_of`: `{idl}` names no interface, operation or attribute")
        }
        OptionProblem::NoHandler(index) => {
            let idl = options.ami.get(index).map_or("", String::as_str);
            format!("`ami_of`: `{idl}` names no interface whose objects can be elsewhere")
        }
        OptionProblem::NothingInterpreted(index) => {
            let idl = options.interpretive.get(index).map_or("", String::as_str);
            format!("`interpretive_of`: `{idl}` names no struct, exception, union, enum or interface")
        }
        OptionProblem::NothingAdapts(index) => {
            let idl = options.adaptive.get(index).map_or("", |(idl, _)| idl);
            format!("`adaptive_of`: `{idl}` names no struct, exception, union or enum")
        }
        OptionProblem::NoUses(_) => "`adaptive_of`: the number of uses is 1 or more".to_owned(),
        OptionProblem::UsesName => {
            format!("`uses`: `{}` is not an identifier", options.uses.as_deref().unwrap_or_default())
        }
        OptionProblem::RelativeRuntime => {
            "`runtime`: the path of the crate starts with `::` or `crate`".to_owned()
        }
    }
}

/// Writes a file, unless it has that content: what depends on it need not be built again then.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|before| before == text.as_bytes()) {
        return Ok(());
    }
    idl_compiler::write_whole(path, text)
}
