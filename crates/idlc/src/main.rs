//! The program `idlc`. [`idlc::run`] describes the exit codes.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    idlc::run(&idlc::Args::parse())
}
