//! The option that makes a process exit when its parent process exits.

use std::io::Read;

use clap::Args;

/// The option that makes a process exit when its parent process exits.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ParentWatchArgs {
    /// Exit when stdin reaches its end: the parent process holds the other end of this pipe, and the kernel
    /// closes it even if the parent is killed
    #[arg(long = "lifeline", hide = true)]
    pub exits_with_parent: bool,
}

impl ParentWatchArgs {
    /// Starts the thread that watches stdin, if the option is set.
    pub fn start(self) -> std::io::Result<()> {
        if self.exits_with_parent {
            std::thread::Builder::new().name("parent watch".into()).spawn(|| {
                let mut byte = [0];
                while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
                std::process::exit(0);
            })?;
        }
        Ok(())
    }
}
