//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use idlc::Colour;

use crate::call::CallArgs;
use crate::ior::IorCommand;
use crate::limits::MaxMessage;
use crate::load::LoadArgs;
use crate::names::NamesArgs;
use crate::new::NewArgs;
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

/// The options of a command, defined when the command is given or its help is asked for: no other command waits for that.
#[derive(Debug)]
pub(crate) struct Later<T>(pub(crate) T);

impl<T: clap::Args> clap::Args for Later<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        // What the command is for stays, whatever its options say of themselves.
        command.defer(|command| {
            let about = command.get_about().cloned().unwrap_or_default();
            T::augment_args(command).about(about).long_about(None)
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Colours all that is written from here on, or nothing.
pub(crate) fn colour(when: Colour) {
    match when {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// What a shell needs to complete this program's words.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "zorb", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command line, or the process ends: with what is wrong, or with the help that was asked for.
pub(crate) fn parse() -> Args {
    let mut matches = command().get_matches();
    Args::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.format(&mut command()).exit())
}

/// The definition of the command line, where one command has the examples of another program.
fn command() -> clap::Command {
    let examples = idlc::examples("zorb idl");
    Args::command()
        .mut_subcommand("idl", |idl| {
            idl.after_help(&examples).mut_subcommands(|command| command.after_help(&examples))
        })
        .mut_subcommand("names", |names| {
            names.mut_subcommands(|command| match command.get_name() {
                // They ask no service: the global option is none of theirs.
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
/// The folder does not take them.
pub(crate) fn manual(folder: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(command(), folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
}

/// A time such as `500ms`, `2s`, `1.5` (seconds).
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (digits, scale) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = digits.trim().parse::<f64>().ok().map(|number| number * scale);
    seconds
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "not a time above zero, such as 500ms, 2s or 1.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
    }

    #[test]
    fn times_are_seconds_or_milliseconds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0", "-1", "1h", "NaN", "inf", "1e300"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
