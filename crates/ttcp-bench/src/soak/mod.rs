//! `ttcp soak`: traffic of every kind between processes that are killed, stopped and restarted, and the proof that nothing was lost,
//! hung or leaked.
//!
//! | module | what it holds |
//! |---|---|
//! | `rounds` | the rounds of a soak: traffic, faults, quiet, checks |
//! | `faults` | what is done to the processes, and by peers that are no ORBs |
//! | `children` | the processes |
//! | `check` | what calls and executions must have in common |
//! | `records` | the numbers of calls, and the files in which both sides note them |
//! | `report` | what was found |
//! | `state` | what a process holds |
//! | `server`, `servant` | the process that is called |
//! | `client`, `calls` | the process that calls |
//!
//! Each call has a number. The server notes it before it does anything for the call, the client before it sends it and when it is told
//! how it ended. When a round is over both are set beside each other: what was answered was executed exactly once, what was told
//! COMPLETED_NO was not, everything else once or not at all.

mod calls;
mod check;
mod children;
mod client;
mod contract;
mod faults;
mod records;
mod report;
mod rounds;
mod servant;
mod server;
mod state;

use std::io::{BufRead, Write};

use serde::Serialize;
use tokio::sync::mpsc;

pub use client::{SoakClientArgs, soak_client};
pub use rounds::{SoakArgs, soak};
pub use server::{SoakServerArgs, soak_server};

use crate::cli::Transport;

/// What a child is told, a word a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Call.
    Go,
    /// End all calls and connections, and say QUIET.
    Quiet,
    /// Forget what clients left that were killed.
    Sweep,
    /// Say STATE.
    State,
    /// End in order.
    End,
}

impl Order {
    const ALL: [(&'static str, Order); 5] = [
        ("go", Order::Go),
        ("quiet", Order::Quiet),
        ("sweep", Order::Sweep),
        ("state", Order::State),
        ("end", Order::End),
    ];
}

/// The orders that come on stdin. When that ends, so does the process: the kernel closes it even when who gives them is killed.
/// One that is stopped at that time hears of no end; where the kernel can, it kills it then.
///
/// # Errors
/// The thread can not be started.
fn orders() -> std::io::Result<mpsc::UnboundedReceiver<Order>> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if let Some((_, order)) = Order::ALL.into_iter().find(|(word, _)| *word == line) {
                let _ = sender.send(order);
            }
        }
        std::process::exit(0);
    })?;
    Ok(orders)
}

/// Says a word and what belongs to it, in a line.
///
/// # Errors
/// Nobody listens any more.
fn say(word: &str, what: &impl Serialize) -> anyhow::Result<()> {
    let line = format!("{word} {}\n", serde_json::to_string(what)?);
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}

/// The runtime in which a transport is what it was asked for.
///
/// # Errors
/// Its threads can not be started.
fn runtime(transport: Transport) -> std::io::Result<tokio::runtime::Runtime> {
    match transport {
        Transport::Uring => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        Transport::Epoll | Transport::UringThreads => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
    }
}
