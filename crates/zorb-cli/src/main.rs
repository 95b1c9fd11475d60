//! `zorb`: looks at object references, asks objects, calls them.
//!
//! Exit codes: 0 all is well, 1 the answer is bad (no address is reachable, no such object, an exception), 2 the command line is
//! wrong, 3 input or output failed.

mod call;
mod cli;
mod client;
mod ior;
mod names;
mod new;
mod output;
mod ping;
mod serve;
mod sniff;
mod target;
mod top;

use std::process::ExitCode;

use clap::Parser;

use cli::{Args, Command};
use output::Output;

fn main() -> ExitCode {
    let mut args = Args::parse();
    cli::colour(args.colour);
    let output = Output::new(args.json);
    let done = match &mut args.command {
        Command::Idl(idl) => {
            if args.json {
                idl.message_format = idlc::MessageFormat::Json;
            }
            return idlc::run(idl);
        }
        Command::Ior { command } => ior::run(command, &output),
        Command::Names(args) => names::run(args, &output),
        Command::Ping(args) => ping::run(args, &output),
        Command::Serve(args) => serve::run(args, &output),
        Command::Sniff(args) => sniff::run(args, &output),
        Command::Top(args) => top::run(args, &output),
        Command::Call(args) => call::run(args, &output),
        Command::New(args) => new::run(args),
        Command::Completions { shell } => {
            cli::complete(*shell);
            Ok(Verdict::Good)
        }
        Command::Man { folder } => cli::manual(folder).map(|()| Verdict::Good),
    };
    match done {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(error) => {
            output.failure(&error);
            ExitCode::from(3)
        }
    }
}

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// All is well.
    Good,
    /// What was asked about is not.
    Bad,
}
