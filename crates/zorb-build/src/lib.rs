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
//! The output and the options are the same as those of `zorb::idl!("idl/bank.idl", include = ["idl"])`. This
//! crate does not depend on the ORB, so that cargo need not build the ORB for build scripts.

pub use idl_compiler::emit::IncludePolicy;

use std::fmt;
use std::path::{Path, PathBuf};

use idl_compiler::emit::{self, OptionProblem, Options};
use idl_compiler::{Compiler, Diagnostics, Disk, Model};

/// The files to compile, and the options. Paths are relative to the directory of `Cargo.toml`.
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is compiled before `compile` is called"]
pub struct Config {
    compiler: Compiler,
    options: Options,
    files: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
    output_name: Option<String>,
    /// The Rust paths of IDL names. The path of the crate `zorb` has an empty IDL name.
    paths: Vec<(String, String)>,
    /// The patterns of types, and the traits that these types derive.
    derive: Vec<(String, String)>,
    no_warnings: bool,
}

impl Config {
    /// Creates a configuration without files and with default options.
    pub fn new() -> Self {
        Config::default()
    }

    /// Adds a file. All files are compiled together, and each can use definitions of earlier ones.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Adds files.
    pub fn files<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.files.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Adds a folder at the end of the search path of `#include`.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.compiler = self.compiler.include(folder);
        self
    }

    /// Defines a macro, like the option `-D` of compilers: `NAME` (with the value 1), `NAME=VALUE` or
    /// `NAME(PARAMETERS)=VALUE`.
    pub fn define(mut self, define: impl Into<String>) -> Self {
        self.compiler = self.compiler.define(define);
        self
    }

    /// Sets the Rust name of a definition, member, enumerator or parameter (`M::I::op::param`).
    pub fn rename(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.options.rename.push((idl.into(), rust.into()));
        self
    }

    /// Declares that references are never nil. `pattern` is a scoped name, or a prefix of such names followed
    /// by `*`.
    pub fn non_nil(mut self, pattern: impl Into<String>) -> Self {
        self.options.non_nil.push(pattern.into());
        self
    }

    /// Makes all structs, exceptions, unions, enums and other data types derive a trait. `path` is the path
    /// of the derive macro, such as `serde::Serialize`. Traits that zorb implements or derives itself are
    /// left out.
    pub fn derive(self, path: impl Into<String>) -> Self {
        self.derive_for("*", path)
    }

    /// Makes some of these types derive a trait, like [`derive`](Self::derive).
    /// `pattern` is a scoped name, or a prefix of such names followed by `*`.
    pub fn derive_for(mut self, pattern: impl Into<String>, path: impl Into<String>) -> Self {
        self.derive.push((pattern.into(), path.into()));
        self
    }

    /// Gives all operations and attributes a default body that raises `NO_IMPLEMENT`. Servants need not
    /// implement them, so servers still compile when an operation is added to the IDL.
    pub fn default_bodies(self) -> Self {
        self.default_bodies_of("*")
    }

    /// Gives some operations and attributes a default body that raises `NO_IMPLEMENT`. `pattern` is the
    /// scoped name of an interface, operation or attribute, or a prefix of such names followed by `*`.
    pub fn default_bodies_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.default_bodies.push(pattern.into());
        self
    }

    /// Generates asynchronous calls with reply handlers for all interfaces: `sendc_` methods of references,
    /// which return before the reply, and a trait for the reply handlers of each interface.
    pub fn ami(self) -> Self {
        self.ami_of("*")
    }

    /// Generates asynchronous calls with reply handlers for some interfaces, like [`ami`](Self::ami).
    /// `pattern` is a scoped name, or a prefix of such names followed by `*`.
    pub fn ami_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.ami.push(pattern.into());
        self
    }

    /// Lets an interpreter of the ORB marshal all types and all values in calls, instead of generated code.
    pub fn interpretive(self) -> Self {
        self.interpretive_of("*")
    }

    /// Lets an interpreter of the ORB marshal some types, or the values in the calls of some interfaces.
    /// `pattern` is a scoped name, or a prefix of such names followed by `*`.
    pub fn interpretive_of(mut self, pattern: impl Into<String>) -> Self {
        self.options.interpretive.push(pattern.into());
        self
    }

    /// Lets an interpreter of the ORB marshal some types for their first `uses` uses. Generated code marshals
    /// them afterwards. `uses` must not be 0. `pattern` is a scoped name, or a prefix of such names followed
    /// by `*`.
    pub fn adaptive_of(mut self, pattern: impl Into<String>, uses: u32) -> Self {
        self.options.adaptive.push((pattern.into(), uses));
        self
    }

    /// Generates a function that returns the use counts of all types of [`adaptive_of`](Self::adaptive_of).
    pub fn uses(mut self, function: impl Into<String>) -> Self {
        self.options.use_counts_fn = Some(function.into());
        self
    }

    /// Sets the Rust path of an included module or definition, such as `("::CosNaming",
    /// "::zorb::cos_naming")`. No code is generated for it.
    pub fn external(mut self, idl: impl Into<String>, rust: impl Into<String>) -> Self {
        self.paths.push((idl.into(), rust.into()));
        self
    }

    /// Sets how included definitions are treated if [`external`](Self::external) sets no path for them. By
    /// default, code is generated for them.
    pub fn include_policy(mut self, policy: IncludePolicy) -> Self {
        self.options.include_policy = policy;
        self
    }

    /// Sets whether unambiguous names that the standard forbids are errors, for example names that differ
    /// from a keyword only in case. By default they cause warnings.
    pub fn strict_names(mut self, strict: bool) -> Self {
        self.compiler = self.compiler.strict_names(strict);
        self
    }

    /// Suppresses warnings about the IDL.
    pub fn no_warnings(mut self) -> Self {
        self.no_warnings = true;
        self
    }

    /// Sets the path of the crate `zorb`, by default `::zorb`.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.paths.push((String::new(), path.into()));
        self
    }

    /// Sets the output folder, by default the value of the environment variable `OUT_DIR`, which cargo sets.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Sets the name of the output file without `.rs`, by default that of the first IDL file.
    pub fn output(mut self, name: impl Into<String>) -> Self {
        self.output_name = Some(name.into());
        self
    }

    /// Compiles the files and writes the output. Prints instructions for cargo: to run the build script again
    /// when a file that was read changes, and to show warnings about the IDL.
    ///
    /// # Errors
    /// The IDL or the options have errors, or a file cannot be read or written. The message contains all
    /// errors.
    pub fn compile(self) -> Result<(), Error> {
        let folder = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(folder), _) => folder.clone(),
            (None, Some(folder)) => folder.into(),
            (None, None) => {
                let message = "OUT_DIR is not set; outside of a build script, call `out_dir`";
                return Err(Error(message.to_owned()));
            }
        };
        let output = self.generate()?;
        for line in &output.cargo_lines {
            println!("{line}");
        }
        let path = folder.join(format!("{}.rs", output.name));
        write(&path, &output.rust).map_err(|error| Error(format!("cannot write {}: {error}", path.display())))
    }

    /// Compiles the files, and returns the output that [`Config::compile`] would write and print.
    ///
    /// # Errors
    /// The IDL or the options have errors, or a file cannot be read.
    pub fn generate(mut self) -> Result<Output, Error> {
        let name = self.output_name()?;
        for (idl, rust) in std::mem::take(&mut self.derive) {
            self.options.derive.push((idl, parse_path(&rust)?));
        }
        for (idl, rust) in std::mem::take(&mut self.paths) {
            let path = parse_path(&rust)?;
            match idl.is_empty() {
                true => self.options.runtime = path,
                false => self.options.external.push((idl, path)),
            }
        }
        let compiler = self.compiler.files(Disk::new());
        let result = compiler.compile_files(&self.files);
        let sources = match &result {
            Ok(model) => model.sources(),
            Err(errors) => errors.sources(),
        };
        let rerun = |path: &Path| format!("cargo:rerun-if-changed={}", path.display());
        let mut cargo_lines: Vec<String> = sources.paths().into_iter().map(rerun).collect();
        // After an error no lines for cargo are needed, because cargo runs a failed build script again.
        let model = result.map_err(|errors| Error(errors.render(false)))?;
        if !self.no_warnings {
            cargo_lines.extend(warning_lines(&model, model.warnings()));
        }
        let message = |problem: OptionProblem| {
            let (option, message) = problem.describe(&self.options);
            let method = match option {
                "derive" => "derive_for",
                "default_bodies" => "default_bodies_of",
                "ami" => "ami_of",
                "interpretive" => "interpretive_of",
                "adaptive" => "adaptive_of",
                other => other,
            };
            format!("`{method}`: {message}")
        };
        let problems: Vec<String> = self.options.check(&model).into_iter().map(message).collect();
        if !problems.is_empty() {
            return Err(Error(problems.join("\n")));
        }
        let emitted = emit::emit(&model, &self.options).map_err(|errors| Error(errors.render(false)))?;
        if !self.no_warnings {
            cargo_lines.extend(warning_lines(&model, &emitted.warnings));
        }
        let mut file: syn::File = syn::parse2(emitted.tokens).map_err(|error| {
            Error(format!("the generated code is not valid Rust; this is a bug in zorb: {error}"))
        })?;
        // Clippy ignores code from macros, but not the same code in a file.
        for item in &mut file.items {
            if let syn::Item::Mod(module) = item {
                module.attrs.push(syn::parse_quote!(
                    #[allow(clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction)]
                ));
            }
        }
        let rust =
            format!("// Made by zorb-build from IDL; changes are lost.\n{}", prettyplease::unparse(&file));
        Ok(Output { name, rust, cargo_lines })
    }

    fn output_name(&self) -> Result<String, Error> {
        let first = self
            .files
            .first()
            .ok_or_else(|| Error("there is no IDL file; add one with `file`".to_owned()))?;
        let stem = || first.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.output_name
            .clone()
            .or_else(stem)
            .ok_or_else(|| Error(format!("`{}` is not the name of a file", first.display())))
    }
}

/// The output of a configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// The name of the file to write, without `.rs`.
    pub name: String,
    /// The content of the file.
    pub rust: String,
    /// Lines to print for cargo, which name the files to watch and contain the warnings.
    pub cargo_lines: Vec<String>,
}

/// The reason why no code was generated. `Debug` prints the same text as `Display`, because Rust uses `Debug`
/// to print the error that `main` of a build script returns.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IDL:\n\n{self}\n")
    }
}

impl std::error::Error for Error {}

/// Parses a path without generic arguments into tokens.
fn parse_path(text: &str) -> Result<proc_macro2::TokenStream, Error> {
    let tokens: Option<proc_macro2::TokenStream> = text.parse().ok();
    let is_path = |tokens: &proc_macro2::TokenStream| {
        syn::parse::Parser::parse2(syn::Path::parse_mod_style, tokens.clone()).is_ok()
    };
    tokens.filter(is_path).ok_or_else(|| Error(format!("`{text}` is not a Rust path")))
}

fn warning_lines(model: &Model, warnings: &Diagnostics) -> impl Iterator<Item = String> {
    warnings.iter().map(|warning| {
        let location = warning.span().map(|span| format!("{}: ", model.sources().position(span)));
        format!("cargo:warning={}{}", location.unwrap_or_default(), warning.message)
    })
}

/// Writes a file, unless it already has this content, because cargo compiles the crate again after a write.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|content| content == text.as_bytes()) {
        return Ok(());
    }
    idl_compiler::write_atomically(path, text)
}
