//! Servers that end with the program that started them.

use std::io::Read;

use clap::Args;

/// The option by which a server ends with the process that started it.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ParentWatchArgs {
    /// End when stdin ends: `ttcp run` holds the other end, and the kernel closes it even when that is killed
    #[arg(long, hide = true)]
    pub lifeline: bool,
}

impl ParentWatchArgs {
    /// Starts the watching thread, if the option is set.
    ///
    /// # Errors
    /// The watching thread cannot be started.
    pub fn watch(self) -> std::io::Result<()> {
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
