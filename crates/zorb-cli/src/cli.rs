//! The command line.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use idlc::Colour;

use crate::call::CallArgs;
use crate::ior::IorCommand;
use crate::limits::MaxMessageOption;
use crate::load::LoadArgs;
use crate::names::NamesArgs;
use crate::new::NewArgs;
use crate::options::LazyArgs;
use crate::ping::PingArgs;
use crate::serve::ServeArgs;
use crate::sniff::SniffArgs;
use crate::top::TopArgs;

/// Tools for CORBA: inspects object references, tests and calls objects, serves names
#[derive(Debug, Parser)]
#[command(name = "zorb", version, about, max_term_width = 110)]
pub(crate) struct Args {
    /// Write JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colours; `auto` uses them on a terminal unless NO_COLOR is set
    #[arg(long = "color", alias = "colour", value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) colour: Colour,
    #[command(flatten)]
    max_message: MaxMessageOption,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Prints, creates and tests object references
    Ior {
        #[command(subcommand)]
        command: IorCommand,
    },
    /// Tests whether an object exists and which interface it has, and measures its response times
    Ping(LazyArgs<PingArgs>),
    /// Calls an operation of any object, with arguments and results as JSON
    Call(LazyArgs<CallArgs>),
    /// Calls an operation repeatedly, and measures throughput and latencies
    Load(LazyArgs<LoadArgs>),
    /// Runs a server for any IDL; its objects answer according to a script
    Serve(LazyArgs<ServeArgs>),
    /// Prints the calls between clients and servers, from a packet capture or as a proxy
    Sniff(LazyArgs<SniffArgs>),
    /// Shows the activity of an ORB, from its admin endpoint
    Top(LazyArgs<TopArgs>),
    /// Lists and changes the names of a naming service, or runs one
    Names(NamesArgs),
    /// Creates a cargo project with a server and a client for an IDL file
    New(LazyArgs<NewArgs>),
    /// Checks, formats and compares IDL, and generates Rust code
    Idl(idlc::Args),
    /// Prints the completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes a manual page for each command
    Man {
        /// An existing folder for the pages
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

pub(crate) fn set_colour(when: Colour) {
    match when {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "zorb", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Parses the command line. On errors or requests for help, prints the message and exits.
pub(crate) fn parse() -> Args {
    let mut matches = command().get_matches();
    Args::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command()).exit())
}

/// Returns the definition of the command line, with the examples of `idlc` adapted to this program.
fn command() -> clap::Command {
    let examples = idlc::examples("zorb idl");
    Args::command()
        .mut_subcommand("idl", |idl| {
            idl.after_help(&examples).mut_subcommands(|command| command.after_help(&examples))
        })
        .mut_subcommand("names", |names| {
            names.mut_subcommands(|command| match command.get_name() {
                // These commands do not call a naming service. The option has no meaning for them.
                "serve" | "repair" => command
                    .arg(clap::Arg::new("service").long("service").hide(true).value_parser(reject_service)),
                _ => command,
            })
        })
}

fn reject_service(_: &str) -> Result<String, String> {
    Err("this command does not call a naming service".to_owned())
}

pub(crate) fn manual(folder: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        command().debug_assert();
    }
}
