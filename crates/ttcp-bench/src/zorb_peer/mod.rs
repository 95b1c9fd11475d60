//! The zorb peer: the bench contract's server and client, written as a user of zorb would.

mod client;
mod dii;
mod dsi;
mod integrity;
mod many;
mod published;
mod series;
mod server;
mod wide;

pub use client::client;
pub use server::{Ttcp, server};
pub use wide::HAS_THOUSAND;

use std::future::Future;

use crate::cli::Runtime;

/// What `idl!` makes of the contract, and of what this peer has beside it.
#[allow(missing_docs)]
pub mod idl {
    zorb::idl!("idl/bench.idl");
    zorb::idl!("idl/zero_copy.idl");

    /// Interfaces of very many operations.
    pub mod demux {
        zorb::idl!("idl/demux.idl", include = ["idl"]);
        zorb::idl!("idl/lookups.idl");
    }

    /// The interfaces of the published experiments.
    pub mod published {
        zorb::idl!("idl/published.idl");
    }
}

/// The name of this peer in reports.
const NAME: &str = "zorb";

/// Octets of the largest message that a bench server takes.
const MAX_MESSAGE: usize = (1 << 30) + (1 << 20);

/// Limits for bulk data.
fn limits() -> zorb::Limits {
    let mut limits = zorb::Limits::default();
    limits.max_message_size = MAX_MESSAGE;
    limits.max_decoded = MAX_MESSAGE;
    limits
}

/// Tells a person that asked for io_uring when it was not to be had.
fn say_fallback(orb: &zorb::Orb) {
    if orb.transport_stats().fallbacks > 0 {
        eprintln!(
            "ttcp: no io_uring (feature `uring`, Linux; --transport uring needs --runtime current): epoll was used"
        );
    }
}

/// Runs a future as a task of the runtime: the root task of the multi-thread flavour would pay for each wake-up.
fn block_on<T: Send + 'static>(
    runtime: Runtime,
    future: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    let runtime = match runtime {
        Runtime::Blocking => return zorb::blocking::wait(future),
        Runtime::Current => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        Runtime::Multi => tokio::runtime::Builder::new_multi_thread().enable_all().build()?,
    };
    runtime.block_on(async { tokio::spawn(future).await? })
}
