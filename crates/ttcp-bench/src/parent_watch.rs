//! Servers that end with the program that started them.

use std::io::Read;

use clap::Args;

/// The option by which a server ends with the process that started it.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ParentWatchArgs {
    /// Exit when stdin is closed: `ttcp run` holds the other end, and the kernel closes it if `ttcp run` is
    /// killed
    #[arg(long, hide = true)]
    pub lifeline: bool,
}

impl ParentWatchArgs {
    /// Starts the watching thread, if the option is set.
    pub fn start(self) -> std::io::Result<()> {
        if self.lifeline {
            std::thread::Builder::new().name("parent watch".into()).spawn(|| {
                let mut byte = [0];
                while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
                std::process::exit(0);
            })?;
        }
        Ok(())
    }
}
