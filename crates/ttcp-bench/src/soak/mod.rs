//! `ttcp soak`: a long test with calls of all kinds between processes that are killed, suspended and
//! restarted. It checks that no call is lost or hangs, and that no resource leaks.
//!
//! | module | contents |
//! |---|---|
//! | `rounds` | the rounds of a soak: traffic with faults, and checks |
//! | `faults` | misbehaving peers |
//! | `check` | the consistency check of calls and executions |
//! | `record_file` | the ids of calls, and the files in which clients and server record them |
//! | `report` | the results |
//! | `state` | the resources of a process |
//! | `contract` | the interfaces, and the contents of calls, which client and server both know |
//! | `server`, `servant` | the server process |
//! | `client`, `calls` | the client processes |
//!
//! Each call has an id. The server records the id before it does anything else for the call. The client
//! records the id before sending, and then the outcome. After a round, the records are compared: an answered
//! call must have been executed exactly once, a call with COMPLETED_NO must not have been executed, and any
//! other call must have been executed at most once.

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

/// An order to a child process, which is a line with one word on its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The client makes calls.
    Go,
    /// The client ends all calls and connections, and reports QUIET.
    Quiet,
    /// The server discards what killed clients and abandoned connections left.
    Sweep,
    /// The process reports its resources.
    State,
    /// The process exits.
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

fn receive_orders() -> std::io::Result<mpsc::UnboundedReceiver<Order>> {
    child::receive_orders(|line| {
        Order::ALL.into_iter().find(|(word, _)| *word == line).map(|(_, order)| order)
    })
}

/// Returns a tokio runtime that the transport supports. On others, the ORB would use another transport.
pub(crate) fn runtime(transport: Transport) -> std::io::Result<tokio::runtime::Runtime> {
    match transport {
        Transport::Uring => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        Transport::Epoll | Transport::UringThreads => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
    }
}
