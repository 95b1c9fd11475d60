//! The command line of `idlc`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use idl_compiler::emit::{IncludePolicy, Options};

use crate::breaking::BreakingArgs;
use crate::options::{Colour, Input, MessageFormat};

const EXAMPLES: &str = "\
Examples:
  idlc check -I idl bank.idl shop.idl        report all errors in these files
  idlc check - <bank.idl                     check standard input
  cpp -x c bank.idl | idlc check -           use another preprocessor
  idlc check --message-format json bank.idl  print each message as a JSON object in one line
  idlc rust -I idl -D LIMIT=5 bank.idl       print the Rust code that idl!(\"bank.idl\") generates
  idlc rust --extern ::CosNaming=::zorb::cos_naming -I idl naming_client.idl
  idlc skeleton bank.idl >>src/server.rs     print a servant for each interface, with the signatures of all methods
  idlc model bank.idl                        print all definitions
  idlc model --json bank.idl | jq '.definitions[].repository_id'
  idlc breaking old/bank.idl bank.idl        report changes that break old clients and servers; --help lists the rules
  idlc deps --make --target bank.rs bank.idl >bank.d
  idlc fmt *.idl                             format files; --check only lists files that are not formatted

Exit codes: 0 success, 1 errors in the IDL (fmt --check: not formatted; breaking: breaking changes), 2 wrong options, 3 input or output failed.";

/// Returns the examples for a program with these commands under another name, such as `zorb idl`.
pub fn examples(program: &str) -> String {
    EXAMPLES.replace("idlc ", &format!("{program} "))
}

/// An OMG IDL compiler: checks, formats and compares IDL, and generates Rust code
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Args {
    /// When to colour messages; `auto` does so on a terminal unless NO_COLOR is set
    #[arg(long = "color", alias = "colour", value_name = "WHEN", default_value = "auto", global = true)]
    pub colour: Colour,
    /// The form of messages on standard error
    #[arg(long, value_name = "FORM", default_value = "human", global = true)]
    pub message_format: MessageFormat,
    /// Makes `model` print JSON even without its option `--json`. `idlc` has no option for this; a program
    /// that includes its commands can set it.
    #[arg(skip)]
    pub json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Reports all errors in each file separately
    #[command(after_help = EXAMPLES)]
    Check {
        #[command(flatten)]
        input: Input,
    },
    /// Prints the Rust code for all files together
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
    /// Prints a servant for each interface, with the signatures of all methods
    #[command(after_help = EXAMPLES)]
    Skeleton {
        #[command(flatten)]
        input: Input,
        #[command(flatten)]
        mapping: Box<Mapping>,
        /// The Rust module that contains the output of `idl!`, such as `crate::idl` (default: the module of
        /// the skeleton)
        #[arg(long, value_name = "PATH")]
        module: Option<String>,
        /// Print only this interface: a scoped name, or a prefix followed by `*` (default: all interfaces in
        /// the given files, but not in included files)
        #[arg(long = "interface", value_name = "PATTERN")]
        interfaces: Vec<String>,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Prints the definitions in all files together
    #[command(after_help = EXAMPLES)]
    Model {
        #[command(flatten)]
        input: Input,
        /// Print JSON with ids, locations, comments and annotations, instead of a tree
        #[arg(long)]
        json: bool,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Reports the changes between two versions of an IDL file that break clients and servers
    #[command(after_help = EXAMPLES, after_long_help = crate::breaking::HELP)]
    Breaking(BreakingArgs),
    /// Formats IDL: changes only indentation, spaces and empty lines
    #[command(after_help = EXAMPLES)]
    Fmt {
        /// The IDL files to format; `-` formats standard input to standard output
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Only list the files that would change
        #[arg(long)]
        check: bool,
    },
    /// Prints the paths of all files that are read, one per line
    #[command(after_help = EXAMPLES)]
    Deps {
        #[command(flatten)]
        input: Input,
        /// Print a rule for make and ninja
        #[arg(long)]
        make: bool,
        /// The target of the rule (default: the first file with the extension `.rs`)
        #[arg(long, value_name = "FILE", requires = "make")]
        target: Option<String>,
        /// Write to this file
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Options for the mapping to Rust.
#[derive(Debug, clap::Args)]
pub(crate) struct Mapping {
    /// How definitions in included files are treated
    #[arg(long, value_name = "POLICY", default_value = "compile")]
    include_policy: Policy,
    /// The Rust path of an included module or definition
    #[arg(long = "extern", value_name = "::IDL=::PATH", value_parser = parse_pair)]
    external: Vec<(String, String)>,
    /// Another Rust name for a definition, member, enumerator or parameter
    #[arg(long, value_name = "IDL=NAME", value_parser = parse_pair)]
    rename: Vec<(String, String)>,
    /// References that are never nil: a scoped name, or a prefix followed by `*`
    #[arg(long, value_name = "PATTERN")]
    non_nil: Vec<String>,
    /// A trait that all structs, exceptions, unions, enums and other data types derive, or only those that
    /// match IDL: a scoped name, or a prefix followed by `*`
    #[arg(long, value_name = "[IDL=]PATH")]
    derive: Vec<String>,
    /// Operations that servants need not implement: a scoped name, or a prefix followed by `*` (without a
    /// value: all)
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    default_bodies: Vec<String>,
    /// Interfaces with asynchronous calls, whose replies go to a handler: a scoped name, or a prefix followed
    /// by `*` (without a value: all)
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    ami: Vec<String>,
    /// Types and interfaces that an interpreter marshals instead of generated code: a scoped name, or a
    /// prefix followed by `*` (without a value: all)
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    interpretive: Vec<String>,
    /// Types that an interpreter marshals for the first uses, and generated code afterwards
    #[arg(long, value_name = "PATTERN=USES", value_parser = parse_adaptive)]
    adaptive: Vec<(String, u32)>,
    /// Generate a function with this name, which returns the use counts of all adaptive types
    #[arg(long, value_name = "NAME")]
    uses: Option<String>,
    /// The path of the crate zorb
    #[arg(long = "crate", value_name = "PATH", default_value = "::zorb")]
    runtime: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Policy {
    /// They are compiled like definitions in the given files
    Compile,
    /// They are omitted; `--extern` is needed if other definitions use them
    Extern,
}

impl Mapping {
    /// Converts the arguments to options.
    ///
    /// # Errors
    /// An argument is not a Rust path.
    pub(crate) fn options(&self) -> Result<Options, String> {
        let external = self.external.iter().map(|(idl, rust)| Ok((idl.clone(), parse_path(rust)?)));
        let derive = self.derive.iter().map(|text| {
            let (pattern, rust) = text.split_once('=').unwrap_or(("*", text));
            Ok((pattern.trim().to_owned(), parse_path(rust.trim())?))
        });
        let include_policy = match self.include_policy {
            Policy::Compile => IncludePolicy::Compile,
            Policy::Extern => IncludePolicy::Extern,
        };
        Ok(Options {
            runtime: parse_path(&self.runtime)?,
            rename: self.rename.clone(),
            non_nil: self.non_nil.clone(),
            external: external.collect::<Result<_, String>>()?,
            include_policy,
            derive: derive.collect::<Result<_, String>>()?,
            default_bodies: self.default_bodies.clone(),
            ami: self.ami.clone(),
            interpretive: self.interpretive.clone(),
            adaptive: self.adaptive.clone(),
            use_counts_fn: self.uses.clone(),
        })
    }
}

pub(crate) fn parse_path(text: &str) -> Result<proc_macro2::TokenStream, String> {
    let tokens: Option<proc_macro2::TokenStream> = text.parse().ok();
    let is_path = |tokens: &proc_macro2::TokenStream| {
        syn::parse::Parser::parse2(syn::Path::parse_mod_style, tokens.clone()).is_ok()
    };
    tokens.filter(is_path).ok_or_else(|| format!("`{text}` is not a Rust path"))
}

fn parse_adaptive(text: &str) -> Result<(String, u32), String> {
    let (pattern, uses) = text.split_once('=').ok_or("expected `PATTERN=USES`")?;
    let uses = uses.trim().parse().map_err(|_| "the number of uses must be from 1 to 4294967295")?;
    Ok((pattern.trim().to_owned(), uses))
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (left, right) = text.split_once('=').ok_or("expected `IDL=RUST`")?;
    Ok((left.trim().to_owned(), right.trim().to_owned()))
}
