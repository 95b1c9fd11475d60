//! The program `zorb`: inspects object references, tests and calls objects, and more.
//!
//! Exit codes:
//!
//! * 0: success.
//! * 1: the answer is negative (an exception, a missing object or name, no reachable address).
//! * 2: the command line is wrong.
//! * 3: the result is unknown (there is no answer, an argument is invalid, or input or output failed).

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
use failure::Verdict;
use options::LazyArgs;
use output::Output;

fn main() -> ExitCode {
    let mut args = cli::parse();
    start::exit_on_panic(args.json);
    cli::set_colour(args.colour);
    let output = Output { is_json: args.json };
    let result = match &mut args.command {
        Command::Idl(idl) => {
            if args.json {
                idl.message_format = idlc::MessageFormat::Json;
            }
            idl.json |= args.json;
            return idlc::run(idl);
        }
        Command::Ior { command } => ior::run(command, &output),
        Command::Names(args) => names::run(args, &output),
        Command::Ping(LazyArgs(args)) => ping::run(args, &output),
        Command::Serve(LazyArgs(args)) => serve::run(args, &output),
        Command::Sniff(LazyArgs(args)) => sniff::run(args, &output),
        Command::Top(LazyArgs(args)) => top::run(args, &output),
        Command::Call(LazyArgs(args)) => call::run(args, &output),
        Command::Load(LazyArgs(args)) => load::run(args, &output),
        Command::New(LazyArgs(args)) => new::run(args),
        Command::Completions { shell } => output.write(&cli::completions(*shell)).map(|_| Verdict::Good),
        Command::Man { folder } => cli::manual(folder).map(|()| Verdict::Good),
    };
    let verdict = result.unwrap_or_else(|error| {
        output.print_failure(&error);
        failure::verdict(&error)
    });
    Output::finish();
    ExitCode::from(verdict as u8)
}
