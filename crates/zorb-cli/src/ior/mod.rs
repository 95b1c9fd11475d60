//! `zorb ior`: reads, makes and tests object references.

mod check;
mod component;
mod dump;
mod key;
mod make;
pub(crate) use make::host_and_port;
mod names;

use std::time::Duration;

use clap::{Args, Subcommand};

pub(crate) use make::MakeArgs;

use crate::options;
use crate::output::Output;
use crate::{Verdict, target};

#[derive(Debug, Subcommand)]
pub(crate) enum IorCommand {
    /// Prints everything that a reference says, whatever ORB made it
    Dump {
        /// IOR:, corbaloc:, file:, a file that holds one, or - for standard input
        #[arg(value_name = "REFERENCE")]
        target: String,
    },
    /// Tries each address of a reference from this machine; reports which lead to the object, and why others
    /// do not
    Check(CheckArgs),
    /// Prints a reference to an object at an address
    Make(MakeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// IOR:, corbaloc:, file:, a file that holds one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// How long each address may take to answer
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = options::duration)]
    timeout: Duration,
}

/// Runs the command.
///
/// # Errors
/// The reference cannot be read, or the result cannot be written.
pub(crate) fn run(command: &IorCommand, output: &Output) -> anyhow::Result<Verdict> {
    match command {
        IorCommand::Dump { target } => {
            let dump = dump::Dump::of(&target::read(target)?)?;
            output.show(&dump, dump::Dump::tree)?;
            Ok(Verdict::Good)
        }
        IorCommand::Check(args) => check::run(&target::read(&args.target)?, args.timeout, output),
        IorCommand::Make(args) => make::run(args, output),
    }
}
