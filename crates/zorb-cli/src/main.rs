//! `zorb`: inspects object references, tests and calls objects.
//!
//! Exit codes:
//!
//! * 0: success.
//! * 1: the answer is negative (an exception, no such object or name, no reachable address).
//! * 2: the command line is wrong.
//! * 3: the result is unknown (no answer, input or output failed).

mod call;
mod cli;
mod client;
mod failure;
mod ior;
mod limits;
mod load;
mod log;
mod login;
mod names;
mod new;
mod options;
mod output;
mod ping;
mod pretty;
mod serve;
mod sniff;
mod start;
mod target;
mod top;

use std::process::ExitCode;

use cli::Command;
use options::Later;
use output::Output;

fn main() -> ExitCode {
    let mut args = cli::parse();
    start::end_on_panic(args.json);
    cli::colour(args.colour);
    let output = Output::new(args.json);
    let done = match &mut args.command {
        Command::Idl(idl) => {
            if args.json {
                idl.message_format = idlc::MessageFormat::Json;
            }
            idl.json |= args.json;
            return idlc::run(idl);
        }
        Command::Ior { command } => ior::run(command, &output),
        Command::Names(args) => names::run(args, &output),
        Command::Ping(Later(args)) => ping::run(args, &output),
        Command::Serve(Later(args)) => serve::run(args, &output),
        Command::Sniff(Later(args)) => sniff::run(args, &output),
        Command::Top(Later(args)) => top::run(args, &output),
        Command::Call(Later(args)) => call::run(args, &output),
        Command::Load(Later(args)) => load::run(args, &output),
        Command::New(Later(args)) => new::run(args),
        Command::Completions { shell } => output.write(&cli::completions(*shell)).map(|_| Verdict::Good),
        Command::Man { folder } => cli::manual(folder).map(|()| Verdict::Good),
    };
    let verdict = done.unwrap_or_else(|error| {
        output.failure(&error);
        failure::verdict(&error)
    });
    Output::finish();
    verdict.code()
}

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Success.
    Good,
    /// The answer is negative, or the object in question does not exist.
    Bad,
    /// The options contradict each other.
    Usage,
    /// The result is unknown.
    Unknown,
}

impl Verdict {
    fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
        })
    }
}
