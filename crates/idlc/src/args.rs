//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use idl_compiler::emit::{IncludePolicy, Options};

use crate::breaking::BreakingArgs;
use crate::options::{Colour, Input, MessageFormat};

const EXAMPLES: &str = "\
Examples:
  idlc check -I idl bank.idl shop.idl        is anything wrong with these files?
  idlc check - <bank.idl                     with this text?
  cpp -x c bank.idl | idlc check -           with what another preprocessor put out?
  idlc check --message-format json bank.idl  the same for a program, one JSON object a line
  idlc rust -I idl -D LIMIT=5 bank.idl       the Rust that idl!(\"bank.idl\") makes
  idlc rust --extern ::CosNaming=::zorb::cos_naming -I idl naming_client.idl
  idlc skeleton bank.idl >>src/server.rs     a servant of each interface, with the signature of every method
  idlc model bank.idl                        what do they define?
  idlc model --json bank.idl | jq '.definitions[].repository_id'
  idlc breaking old/bank.idl bank.idl        which changes break old clients and servers; --help lists the rules
  idlc deps --make --target bank.rs bank.idl >bank.d
  idlc fmt *.idl                             indents and spaces them; --check only says which are not so

Exit codes: 0 all is well, 1 the IDL has errors (fmt --check: is not laid out; breaking: something breaks), 2 the options have, 3 input or output failed.";

/// Returns the examples of the help, for a program that has these commands under another name, such as
/// `zorb idl`.
pub fn examples(program: &str) -> String {
    EXAMPLES.replace("idlc ", &format!("{program} "))
}

/// An OMG IDL compiler: checks IDL, shows its Rust, its model and what it includes.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Args {
    /// When messages are coloured; `auto` respects NO_COLOR and asks whether a terminal reads them.
    #[arg(long = "color", alias = "colour", value_name = "WHEN", default_value = "auto", global = true)]
    pub colour: Colour,
    /// How messages are written to standard error
    #[arg(long, value_name = "FORM", default_value = "human", global = true)]
    pub message_format: MessageFormat,
    /// Prints results as JSON, as the `--json` of `model` does. For programs with one such option for all
    /// commands.
    #[arg(skip)]
    pub json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Reports everything that is wrong with each file, by itself
    #[command(after_help = EXAMPLES)]
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Prints the Rust of the files together
    #[command(after_help = EXAMPLES)]
    Rust {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        mapping: Box<Mapping>,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Prints a servant of each interface, with the signature of every method
    #[command(after_help = EXAMPLES)]
    Skeleton {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        mapping: Box<Mapping>,
        /// The Rust module with the output of `idl!` (`crate::idl`); by default the module of the skeleton
        #[arg(long, value_name = "PATH")]
        module: Option<String>,
        /// Print this interface only: a scoped name, or a prefix of names and `*`; by default all interfaces
        /// of the given files, without those of included files
        #[arg(long = "interface", value_name = "PATTERN")]
        interfaces: Vec<String>,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Prints what the files together define
    #[command(after_help = EXAMPLES)]
    Model {
        #[command(flatten)]
        input: Input,
        /// As JSON, with ids, places, comments and annotations, in place of a tree for people
        #[arg(long)]
        json: bool,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Says which changes between two versions of an IDL break clients and servers
    #[command(after_help = EXAMPLES, after_long_help = crate::breaking::HELP)]
    Breaking(BreakingArgs),
    /// Indents and spaces IDL, which keeps its lines, comments and directives
    #[command(after_help = EXAMPLES)]
    Fmt {
        /// IDL files, which are written anew; `-` is standard input, which goes to standard output
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Write nothing, and name the files that would change
        #[arg(long)]
        check: bool,
    },
    /// Prints every file that is read, one a line
    #[command(after_help = EXAMPLES)]
    Deps {
        #[command(flatten)]
        input: Input,
        /// As a rule for make and ninja
        #[arg(long)]
        make: bool,
        /// What the rule makes; the first file with `.rs` if not said
        #[arg(long, value_name = "FILE", requires = "make")]
        target: Option<String>,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Mapping {
    /// What becomes of definitions of included files
    #[arg(long, value_name = "POLICY", default_value = "compile")]
    include_policy: Policy,
    /// Where the Rust of an included module or definition is
    #[arg(long = "extern", value_name = "::IDL=::PATH", value_parser = pair)]
    external: Vec<(String, String)>,
    /// Another Rust name for a definition, member, enumerator or parameter
    #[arg(long, value_name = "IDL=NAME", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Where references are never nil: scoped names, or beginnings of names and `*`
    #[arg(long, value_name = "PATTERN")]
    non_nil: Vec<String>,
    /// A trait that structs, exceptions, unions and enums derive: all, or those of a scoped name, or of a
    /// prefix and `*`
    #[arg(long, value_name = "[IDL=]PATH")]
    derive: Vec<String>,
    /// Servants need not implement this: a scoped name, or a prefix of names and `*`; by default all
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    default_bodies: Vec<String>,
    /// Calls of this interface can be sent with a handler for the reply: a scoped name, or a prefix of names
    /// and `*`; by default all
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    ami: Vec<String>,
    /// Marshal this with the interpreter: a scoped name of a type or interface, or a prefix of names and `*`;
    /// by default all
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    interpretive: Vec<String>,
    /// Marshal this type by the interpreter so many times and by compiled code then
    #[arg(long, value_name = "PATTERN=USES", value_parser = adaptive)]
    adaptive: Vec<(String, u32)>,
    /// A function that gives the use counts of all adaptive types
    #[arg(long, value_name = "NAME")]
    uses: Option<String>,
    /// Where the crate zorb is
    #[arg(long = "crate", value_name = "PATH", default_value = "::zorb")]
    runtime: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// They are compiled like all others
    Compile,
    /// They are left out, and those that others use need `--extern`
    Extern,
}

impl Mapping {
    /// Converts the arguments to options.
    ///
    /// # Errors
    /// An argument is not a Rust path.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let mut external = Vec::new();
        for (idl, rust) in &self.external {
            external.push((idl.clone(), path(rust)?));
        }
        let mut derive = Vec::new();
        for text in &self.derive {
            let (pattern, rust) = text.split_once('=').unwrap_or(("*", text));
            derive.push((pattern.trim().to_owned(), path(rust.trim())?));
        }
        let include_policy = match self.include_policy {
            Policy::Compile => IncludePolicy::Compile,
            Policy::Extern => IncludePolicy::Extern,
        };
        Ok(Options {
            runtime: path(&self.runtime)?,
            rename: self.rename.clone(),
            non_nil: self.non_nil.clone(),
            external,
            include_policy,
            derive,
            default_bodies: self.default_bodies.clone(),
            ami: self.ami.clone(),
            interpretive: self.interpretive.clone(),
            adaptive: self.adaptive.clone(),
            uses: self.uses.clone(),
        })
    }
}

/// Parses a Rust path into tokens.
///
/// # Errors
/// The text is not a path.
pub(crate) fn path(text: &str) -> Result<proc_macro2::TokenStream, String> {
    let tokens: Option<proc_macro2::TokenStream> = text.parse().ok();
    let is_path = |tokens: &proc_macro2::TokenStream| {
        syn::parse::Parser::parse2(syn::Path::parse_mod_style, tokens.clone()).is_ok()
    };
    tokens.filter(is_path).ok_or_else(|| format!("`{text}` is not a Rust path"))
}

/// Parses `pattern=9`.
fn adaptive(text: &str) -> Result<(String, u32), String> {
    let (pattern, uses) = text.split_once('=').ok_or("expected `PATTERN=USES`")?;
    let uses = uses.trim().parse().map_err(|_| "the uses are a number from 1 to 4294967295".to_owned())?;
    Ok((pattern.trim().to_owned(), uses))
}

/// Parses `a=b`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("expected `IDL=RUST`")?;
    Ok((left.trim().to_owned(), right.trim().to_owned()))
}
