//! The peer that uses zorb: a server and a client of the interfaces in `idl/`, written like applications.

mod call_counts;
mod client;
mod dii;
mod dsi;
mod integrity;
mod many;
mod published;
mod series;
mod server;
#[cfg(all(feature = "thousand", not(debug_assertions)))]
mod thousand;
mod wide;

pub use client::client;
pub use server::{Ttcp, server};
pub use wide::HAS_THOUSAND_OPERATIONS;

use std::future::Future;

use crate::cli::Runtime;

/// The code that `idl!` generates for the test interfaces, and for additional interfaces of this peer.
#[allow(missing_docs, reason = "generated code")]
pub mod idl {
    zorb::idl!("idl/bench.idl");
    zorb::idl!("idl/zero_copy.idl");

    /// Interfaces with very many operations.
    pub mod demux {
        zorb::idl!("idl/demux.idl", include = ["idl"]);
        zorb::idl!("idl/lookups.idl");
    }

    /// The interfaces of the published experiments.
    pub mod published {
        zorb::idl!("idl/published.idl");
    }
}

const NAME: &str = "zorb";

/// Size of the largest message: a buffer of 1 GiB with some space for headers.
const MAX_MESSAGE_BYTES: usize = (1 << 30) + (1 << 20);

fn limits() -> zorb::Limits {
    let mut limits = zorb::Limits::default();
    limits.max_message_size = MAX_MESSAGE_BYTES;
    limits.max_decoded = MAX_MESSAGE_BYTES;
    limits
}

fn report_fallback(orb: &zorb::Orb) {
    if orb.transport_stats().fallbacks > 0 {
        eprintln!(
            "ttcp: epoll was used, because io_uring is not available (it needs the feature `uring` and Linux; \
             --transport uring also needs --runtime current)"
        );
    }
}

/// Runs a future to completion. On a tokio runtime it is spawned as a task, because waking the root task of
/// the multi-thread flavour is expensive.
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
