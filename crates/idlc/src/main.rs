//! The program. See the library.
//!
//! The exit code is 0 on success, 1 if the IDL has errors or is not formatted, 2 if the command line has
//! errors, and 3 if input or output failed.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    idlc::run(&idlc::Args::parse())
}
