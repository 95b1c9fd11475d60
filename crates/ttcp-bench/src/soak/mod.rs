//! `ttcp soak`: traffic of every kind between processes that are killed, stopped and restarted, and the proof that nothing was lost,
//! hung or leaked.
//!
//! | module | what it holds |
//! |---|---|
//! | `rounds` | the rounds of a soak: traffic, faults, quiet, checks |
//! | `faults` | what is done to the processes, and by peers that are no ORBs |
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
mod client;
mod contract;
mod faults;
mod records;
mod report;
mod rounds;
mod servant;
mod server;
mod state;

use tokio::sync::mpsc;

pub use client::{SoakClientArgs, soak_client};
pub use rounds::{SoakArgs, soak};
pub use server::{SoakServerArgs, soak_server};

use crate::cli::Transport;
use crate::run::child::{self, say};

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

/// The orders that come on stdin.
///
/// # Errors
/// The thread can not be started.
fn orders() -> std::io::Result<mpsc::UnboundedReceiver<Order>> {
    child::orders(|line| Order::ALL.into_iter().find(|(word, _)| *word == line).map(|(_, order)| order))
}

/// The runtime in which a transport is what it was asked for.
///
/// # Errors
/// Its threads can not be started.
pub(crate) fn runtime(transport: Transport) -> std::io::Result<tokio::runtime::Runtime> {
    match transport {
        Transport::Uring => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        Transport::Epoll | Transport::UringThreads => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
    }
}
