//! The command line.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use idlc::Colour;

use crate::call::CallArgs;
use crate::ior::IorCommand;
use crate::limits::MaxMessage;
use crate::load::LoadArgs;
use crate::names::NamesArgs;
use crate::new::NewArgs;
use crate::options::Later;
use crate::ping::PingArgs;
use crate::serve::ServeArgs;
use crate::sniff::SniffArgs;
use crate::top::TopArgs;

/// Tools for CORBA: looks at object references, asks objects whether they are there, calls them.
#[derive(Debug, Parser)]
#[command(name = "zorb", version, about, max_term_width = 110)]
pub(crate) struct Args {
    /// Write JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When text is coloured; `auto` respects NO_COLOR and asks whether a terminal reads it
    #[arg(long = "color", alias = "colour", value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) colour: Colour,
    #[command(flatten)]
    size: MaxMessage,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads, makes and tests object references
    Ior {
        #[command(subcommand)]
        command: IorCommand,
    },
    /// Asks an object whether it is there and what it is, and measures how long it takes to answer
    Ping(Later<PingArgs>),
    /// Calls an operation of any object, with arguments and results as JSON
    Call(Later<CallArgs>),
    /// Calls an operation again and again, and says how many calls a second that gives and how long they take
    Load(Later<LoadArgs>),
    /// Is a server of any IDL, whose objects answer as a script says
    Serve(Later<ServeArgs>),
    /// Tells the calls between clients and servers: those in a capture, or as a proxy
    Sniff(Later<SniffArgs>),
    /// Shows what an ORB is doing, through its admin endpoint
    Top(Later<TopArgs>),
    /// Lists and changes the names of a naming service, or is one
    Names(NamesArgs),
    /// Makes a cargo project with a server and a client of an IDL
    New(Later<NewArgs>),
    /// Checks IDL, lays it out, and shows what becomes of it
    Idl(idlc::Args),
    /// Prints what a shell needs to complete this program's words
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes a manual page for each command
    Man {
        /// Where to: a folder that is there
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// Sets whether further output is coloured.
pub(crate) fn colour(when: Colour) {
    match when {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Returns the completion script of a shell.
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
                // These commands use no naming service, so the global option does not apply.
                "serve" | "repair" => {
                    command.arg(clap::Arg::new("service").long("service").hide(true).value_parser(no_service))
                }
                _ => command,
            })
        })
}

fn no_service(_: &str) -> Result<String, String> {
    Err("this command asks no naming service".to_owned())
}

/// Writes the manual pages.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn manual(folder: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
    }
}
