//! The program: see the library.
//!
//! Exit codes: 0 all is well, 1 the IDL has errors or is not laid out, 2 the command line has errors, 3 input or output failed.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    idlc::run(&idlc::Args::parse())
}
