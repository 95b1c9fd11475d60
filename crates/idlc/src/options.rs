//! Options that several commands have.

use std::path::PathBuf;

use clap::ValueEnum;

/// When messages or other output are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// If the output is a terminal and `NO_COLOR` is not set.
    #[value(help = None::<&str>)]
    Auto,
    /// Always.
    #[value(help = None::<&str>)]
    Always,
    /// Never.
    #[value(help = None::<&str>)]
    Never,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// With excerpts of the source
    Human,
    /// One line for each message: file, line, column, severity, text
    Short,
    /// One JSON object per line, for editors and build tools
    Json,
}

/// The IDL to compile, and options for the compilation.
#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// The IDL files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A folder that `#include` searches; may be repeated
    #[arg(short = 'I', long, value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// Define a macro, with the value 1 by default; may be repeated
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]")]
    pub(crate) define: Vec<String>,
    /// Undefine a macro, after all -D; may be repeated
    #[arg(short = 'U', long, value_name = "NAME")]
    pub(crate) undefine: Vec<String>,
    /// Report names that the standard forbids as errors, even if they are unambiguous
    #[arg(long)]
    pub(crate) strict_names: bool,
    /// Print no warnings
    #[arg(long)]
    pub(crate) no_warnings: bool,
}
