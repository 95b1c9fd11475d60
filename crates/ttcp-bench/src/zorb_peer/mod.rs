//! The peer that uses zorb: a server and a client of the bench contract, written like an application.

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
pub use wide::HAS_THOUSAND;

use std::future::Future;

use crate::cli::Runtime;

/// The code that `idl!` generates for the contract, and for additional interfaces of this peer.
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

const MAX_MESSAGE_SIZE: usize = (1 << 30) + (1 << 20);

fn limits() -> zorb::Limits {
    let mut limits = zorb::Limits::default();
    limits.max_message_size = MAX_MESSAGE_SIZE;
    limits.max_decoded = MAX_MESSAGE_SIZE;
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

/// Runs a future as a task of the runtime, because wake-ups of the multi-thread flavour's root task are
/// expensive.
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
