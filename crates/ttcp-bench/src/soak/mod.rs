//! `ttcp soak`: traffic of every kind between processes that are killed, suspended and restarted, and the
//! proof that nothing was lost, hung or leaked.
//!
//! | module | contents |
//! |---|---|
//! | `rounds` | the rounds of a soak: traffic, faults, quiet, checks |
//! | `faults` | misbehaving peers |
//! | `check` | the consistency check of calls and executions |
//! | `records` | the ids of calls, and the files in which both sides record them |
//! | `report` | the results |
//! | `state` | the resources of a process |
//! | `server`, `servant` | the process that is called |
//! | `client`, `calls` | the process that calls |
//!
//! Each call has an id. The server records it before it does anything else for the call. The client records
//! it before sending, and records the outcome. After a round both records are compared: an answered call was
//! executed exactly once, a call with COMPLETED_NO was not executed, and any other call at most once.

mod calls;
mod check;
mod client;
mod contract;
mod faults;
mod record_file;
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
use crate::harness::child::{self, send_report};

/// An order to a child, one word per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Make calls.
    Go,
    /// End all calls and connections, and print QUIET.
    Quiet,
    /// Discard what killed clients left.
    Sweep,
    /// Print STATE.
    State,
    /// Shut down.
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

/// Returns the orders from stdin.
///
/// # Errors
/// The thread cannot be started.
fn receive_orders() -> std::io::Result<mpsc::UnboundedReceiver<Order>> {
    child::receive_orders(|line| {
        Order::ALL.into_iter().find(|(word, _)| *word == line).map(|(_, order)| order)
    })
}

/// Returns a runtime in which the requested transport is used without falling back.
///
/// # Errors
/// Its threads cannot be started.
pub(crate) fn runtime(transport: Transport) -> std::io::Result<tokio::runtime::Runtime> {
    match transport {
        Transport::Uring => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        Transport::Epoll | Transport::UringThreads => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
    }
}
