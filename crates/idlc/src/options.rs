//! Options that several commands have.

use std::path::PathBuf;

use clap::ValueEnum;

/// When something is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// Where a terminal reads it and `NO_COLOR` is not set.
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
    /// One line each: file, line, column, kind, what is wrong
    Short,
    /// One JSON object a line, for editors and build tools
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// IDL files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A folder in which `#include` looks
    #[arg(short = 'I', long, value_name = "FOLDER")]
    pub(crate) include: Vec<PathBuf>,
    /// Define a macro; without a value it is 1
    #[arg(short = 'D', long, value_name = "NAME[=VALUE]")]
    pub(crate) define: Vec<String>,
    /// Take a macro away, after all -D
    #[arg(short = 'U', long, value_name = "NAME")]
    pub(crate) undefine: Vec<String>,
    /// Names that only the letter of the standard forbids are errors, not warnings
    #[arg(long)]
    pub(crate) strict_names: bool,
    /// Print no warnings
    #[arg(long)]
    pub(crate) no_warnings: bool,
}
