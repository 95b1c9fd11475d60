//! `zorb ior`: prints, creates and tests object references.

mod check;
mod component;
mod dump;
mod key;
mod make;
mod names;

use std::time::Duration;

use clap::{Args, Subcommand};

pub(crate) use component::address_text;
pub(crate) use make::{MakeArgs, parse_host_and_port};

use crate::failure::Verdict;
use crate::options;
use crate::output::Output;
use crate::target;

#[derive(Debug, Subcommand)]
pub(crate) enum IorCommand {
    /// Prints the complete content of a reference of any ORB
    Dump {
        /// The object: IOR:, corbaloc: or file:, a file that contains a reference, or - for standard input
        #[arg(value_name = "REFERENCE")]
        target: String,
    },
    /// Tests from this machine which addresses of a reference lead to the object, and why others fail
    Check(CheckArgs),
    /// Creates a reference to an object at an address
    Make(MakeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The object: IOR:, corbaloc: or file:, a file that contains a reference, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// The timeout for each address
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = options::duration)]
    timeout: Duration,
}

pub(crate) fn run(command: &IorCommand, output: &Output) -> anyhow::Result<Verdict> {
    match command {
        IorCommand::Dump { target } => {
            let dump = dump::Dump::new(&target::read(target)?)?;
            output.show(&dump, dump::Dump::tree)?;
            Ok(Verdict::Good)
        }
        IorCommand::Check(args) => check::run(&target::read(&args.target)?, args.timeout, output),
        IorCommand::Make(args) => make::run(args, output),
    }
}
