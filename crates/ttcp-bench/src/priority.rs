//! Different scheduling priorities for client and server, and an additional load on the processor.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use rustix::process::{getpriority_process, setpriority_process};

use crate::parent_watch::ParentWatchArgs;

/// Difference between the nice values of the server and the client.
pub(crate) const NICE_STEP: i32 = 5;
const MAX_NICE: i32 = 19;
/// The real-time priorities of client and server.
pub(crate) const REAL_TIME_PRIORITIES: [u8; 2] = [20, 10];
const MAX_LOAD_DURATION: Duration = Duration::from_secs(3600);

/// How the client gets a higher priority than the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    /// By nice values
    Nice,
    /// By real-time priorities (SCHED_FIFO), which require privileges and the program `chrt`
    Fifo,
    /// No difference
    None,
}

impl Priority {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Priority::Nice => "nice",
            Priority::Fifo => "fifo",
            Priority::None => "none",
        }
    }

    /// Returns this priority if this program may set it. If not, prints the reason on stderr, and returns the
    /// next best priority that this program may set.
    pub(crate) fn or_next_best(self) -> Priority {
        match self.refusal_reason() {
            None => self,
            Some(reason) => {
                let other = if self == Priority::Fifo { Priority::Nice } else { Priority::None };
                eprintln!("ttcp: --priority {} is replaced by {}: {reason}", self.name(), other.name());
                other.or_next_best()
            }
        }
    }

    fn refusal_reason(self) -> Option<String> {
        match self {
            Priority::None => None,
            Priority::Nice => match getpriority_process(None) {
                Ok(own) if own + NICE_STEP <= MAX_NICE => None,
                Ok(own) => Some(format!(
                    "the nice value {own} cannot be raised by {NICE_STEP}: the maximum is {MAX_NICE}"
                )),
                Err(e) => Some(format!("the nice value cannot be read: {e}")),
            },
            Priority::Fifo => match Command::new("chrt").args(["--fifo", "1", "true"]).output() {
                Ok(output) if output.status.success() => None,
                Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(e) => Some(format!("chrt of util-linux cannot be started: {e}")),
            },
        }
    }
}

/// Sets the lowest priority for this thread, and for the threads that it starts from now on.
pub(crate) fn set_lowest() -> std::io::Result<()> {
    Ok(setpriority_process(None, MAX_NICE)?)
}

/// Options of `ttcp prioritise`.
#[derive(Debug, Clone, Args)]
pub struct PrioritiseArgs {
    /// Add this number to the nice value of the program
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=19))]
    pub nice: i32,
    /// Run the program with this real-time priority (SCHED_FIFO)
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// Also occupy a core at the lowest priority until stdin is closed
    #[arg(long)]
    pub load: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

impl PrioritiseArgs {
    /// Returns `command` prefixed with `PROGRAM prioritise OPTIONS --`, or unchanged if there are no options.
    pub(crate) fn wrap(program: &str, options: &[String], command: Vec<String>) -> Vec<String> {
        if options.is_empty() {
            return command;
        }
        let begin = [program, "prioritise"].map(str::to_owned).into_iter();
        begin.chain(options.iter().cloned()).chain(["--".to_owned()]).chain(command).collect()
    }
}

/// Replaces this process with the program, and gives it the priority of the options.
pub fn prioritise(args: &PrioritiseArgs) -> anyhow::Result<()> {
    if args.load {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        // The load shares the process group and the stdin of this process, and therefore ends with it.
        let load = Command::new(program).arg("load").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        load.context("cannot start the process that occupies a core")?;
    }
    // The program inherits the nice value from this thread.
    add_to_nice(args.nice)?;
    let Some((program, arguments)) = args.command.split_first() else { bail!("no program is given") };
    let mut command = match args.fifo {
        None => Command::new(program),
        Some(priority) => {
            let mut chrt = Command::new("chrt");
            chrt.args(["--fifo", &priority.to_string(), program]);
            chrt
        }
    };
    let error = command.args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {program}"))
}

fn add_to_nice(increment: i32) -> anyhow::Result<()> {
    if increment > 0 {
        let own = getpriority_process(None).context("cannot read the nice value")?;
        setpriority_process(None, (own + increment).min(MAX_NICE)).context("cannot set the nice value")?;
    }
    Ok(())
}

/// Occupies a core at the lowest priority until stdin is closed, but at most for an hour.
pub fn load() -> anyhow::Result<()> {
    ParentWatchArgs { exits_with_parent: true }.start()?;
    add_to_nice(MAX_NICE)?;
    let begun = Instant::now();
    while begun.elapsed() < MAX_LOAD_DURATION {
        for iteration in 0..100_000u32 {
            std::hint::black_box(iteration);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_wrapped_only_if_there_are_options() {
        let command = || vec!["server".to_owned(), "{dir}/x".to_owned()];
        assert_eq!(PrioritiseArgs::wrap("ttcp", &[], command()), command());
        let options = ["--nice".to_owned(), "5".to_owned()];
        let wrapped = PrioritiseArgs::wrap("ttcp", &options, command());
        assert_eq!(wrapped.join(" "), "ttcp prioritise --nice 5 -- server {dir}/x");
    }

    #[test]
    fn a_priority_that_the_system_refuses_is_replaced_by_the_next_best() {
        assert_eq!(Priority::None.or_next_best(), Priority::None);
        let nice = Priority::Nice.or_next_best();
        let own = getpriority_process(None).unwrap();
        assert_eq!(nice, if own + NICE_STEP <= MAX_NICE { Priority::Nice } else { Priority::None });
        assert!([Priority::Fifo, nice].contains(&Priority::Fifo.or_next_best()));
    }
}
