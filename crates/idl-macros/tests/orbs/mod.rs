//! A server and a client with a TCP connection between them, and the runtime of both.
#![allow(dead_code, reason = "helpers of several test programs; not every one needs all of them")]

use std::future::Future;
use std::sync::LazyLock;

use tokio::runtime::Runtime;
use zorb::{Orb, OrbBuilder, Reference, Serves};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The ORBs of tests without value types to register.
static ORBS: LazyLock<Orbs> = LazyLock::new(|| Orbs::new(|builder| builder));

/// Two ORBs of this process.
pub(crate) struct Orbs {
    server: Orb,
    client: Orb,
}

impl Orbs {
    /// Opens both with the same options.
    pub(crate) fn new(options: impl Fn(OrbBuilder) -> OrbBuilder) -> Self {
        let open = |builder: OrbBuilder| run(options(builder).build()).unwrap();
        Self { server: open(Orb::builder().listen("iiop://127.0.0.1:0")), client: open(Orb::builder()) }
    }

    /// Activates a servant, and returns a reference whose calls are marshalled.
    pub(crate) fn activate<R: Serves<S>, S>(&self, servant: S) -> R {
        let local: R = self.server.activate(servant).unwrap();
        run(self.client.resolve(&local.to_string())).unwrap()
    }

    /// Returns a reference to the same object whose calls go directly to the servant.
    pub(crate) fn collocated<R: Reference>(&self, reference: &R) -> R {
        run(self.server.resolve(&reference.to_string())).unwrap()
    }
}

/// Does what [`Orbs::activate`] does, for tests without value types to register.
pub(crate) fn activate<R: Serves<S>, S>(servant: S) -> R {
    ORBS.activate(servant)
}

/// Does what [`Orbs::collocated`] does, for references from [`activate`].
pub(crate) fn collocated<R: Reference>(reference: &R) -> R {
    ORBS.collocated(reference)
}

/// Runs a future to its end.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}
