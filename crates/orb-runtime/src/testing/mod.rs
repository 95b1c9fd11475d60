//! Utilities for tests without sockets: [`local`] returns a reference to a servant, and [`pair`] returns two
//! ORBs that are connected by an in-memory pipe. Over the pipe, messages are the same as over TCP.
//!
//! Time is that of tokio: under `#[tokio::test(start_paused = true)]`, deadlines and timers expire at once
//! and in a deterministic order.
//!
//! [`Pair::set_faults`] and [`Pair::inject`] set the faults of connections that are opened afterwards: the
//! same for all, or those that a seed determines. [`Pair::cut`] breaks open connections.
//!
//! A test of the client's behaviour when its server is killed while it sends a reply:
//!
//! ```
//! # mod zorb { pub use orb_runtime::*; }
//! use zorb::testing::{Cut, PipeFaults, pair};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
//! # runtime.unwrap().block_on(async {
//! let orbs = pair();
//! let mut replies = PipeFaults::default();
//! (replies.cut_after, replies.cut) = (Some(30), Cut::Reset);
//! orbs.set_faults(PipeFaults::default(), replies);
//! // Now a call fails with COMM_FAILURE, COMPLETED_MAYBE. Later calls find a restarted server:
//! orbs.set_faults(PipeFaults::default(), PipeFaults::default());
//! # });
//! ```

#[cfg(feature = "tls")]
pub(crate) mod tls_end;

use std::io;
use std::sync::{Arc, Mutex, Weak};

use giop_proto::Role;

use crate::config::MemoryNetwork;
use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;
use crate::lock::lock;
use crate::orb::{Orb, OrbBuilder};
use crate::reference::Serves;
use crate::runtime::Shared;
pub use crate::transport::faults::{Faults, dropped_after, seeds};
use crate::transport::pipe::{Breaker, PipeEnd, pipe};
pub use crate::transport::pipe::{Cut, PipeFaults};
use crate::transport::{Peer, Socket};

const SERVER_HOST: &str = "server.memory";
const CLIENT_HOST: &str = "client.memory";
const MAX_REPORTED_CONNECTIONS: usize = 32;

/// Returns a reference to a servant in this process, which exists as long as a reference to it.
#[must_use]
pub fn local<R, S>(servant: S) -> R
where
    R: Serves<S>,
{
    let core = OrbBuilder::new().parts.core(Vec::new());
    let entry = core.adapter().activate(core.adapter().root(), crate::servant::Servant::of::<R, S>(servant));
    R::from_object(crate::reference::ObjectRef::local(&core, &entry, entry.key()))
}

/// Two ORBs that reach each other by in-memory pipes.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The ORB that makes the calls.
    pub client: Orb,
    /// The ORB of the servants.
    pub server: Orb,
    network: Arc<Network>,
    #[expect(dead_code, reason = "it reports when it is dropped")]
    reporter: Arc<FaultReporter>,
}

/// Returns two ORBs with default options. Must be called in a tokio runtime.
#[must_use]
pub fn pair() -> Pair {
    pair_of(Orb::builder(), Orb::builder())
}

/// Returns two ORBs with the options of these builders, except that they do not listen on sockets.
#[must_use]
pub fn pair_of(client: OrbBuilder, server: OrbBuilder) -> Pair {
    let network = Arc::new(Network::default());
    let open = |builder: OrbBuilder, host: &str| {
        let mut parts = builder.parts;
        parts.config.client.memory_network = Some(Arc::clone(&network) as Arc<dyn MemoryNetwork>);
        let core = parts.core(vec![Endpoint::Iiop { host: host.to_owned(), port: 1 }]);
        lock(&network.hosts).push((host.to_owned(), Arc::downgrade(&core)));
        core.open()
    };
    let reporter = Arc::new(FaultReporter(Arc::clone(&network)));
    Pair { client: open(client, CLIENT_HOST), server: open(server, SERVER_HOST), network, reporter }
}

impl Pair {
    /// Sets the faults of connections that are opened from now on, by the direction of their bytes.
    pub fn set_faults(&self, requests: PipeFaults, replies: PipeFaults) {
        lock(&self.network.state).faults = FaultScript::Same(requests, replies);
    }

    /// Sets random faults for connections that are opened from now on. The next connection has number 0.
    pub fn inject(&self, faults: Faults) {
        lock(&self.network.state).faults = FaultScript::Seeded { faults, next: 0 };
    }

    /// Breaks all open connections in both directions. Returns the number of these connections.
    pub fn cut(&self, how: Cut) -> usize {
        // Release the lock first, because a woken task may use the network.
        let open = std::mem::take(&mut lock(&self.network.state).open);
        open.iter().filter(|pipe| pipe.cut(how)).count()
    }

    /// Sets whether further connections are rejected.
    pub fn set_refusing(&self, is_refusing: bool) {
        lock(&self.network.state).is_refusing = is_refusing;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    hosts: Mutex<Vec<(String, Weak<Shared>)>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: FaultScript,
    is_refusing: bool,
    open: Vec<Breaker>,
    reports: Vec<String>,
}

#[derive(Debug)]
enum FaultScript {
    Same(PipeFaults, PipeFaults),
    Seeded { faults: Faults, next: u64 },
}

impl Default for FaultScript {
    fn default() -> Self {
        Self::Same(PipeFaults::default(), PipeFaults::default())
    }
}

/// Prints the faults on drop if a test has failed, so that they can be reproduced.
#[derive(Debug)]
struct FaultReporter(Arc<Network>);

impl Drop for FaultReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &lock(&self.0.state).reports {
                eprintln!("zorb::testing: {line}");
            }
        }
    }
}

impl MemoryNetwork for Network {
    fn connect(&self, host: &str) -> io::Result<PipeEnd> {
        if lock(&self.state).is_refusing {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let core =
            lock(&self.hosts).iter().find(|(name, _)| name == host).and_then(|(_, core)| core.upgrade());
        let core = core.filter(|core| !core.closing.has_begun());
        let core = core.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (near, far) = lock(&self.state).make_pipe();
        let link = SharedConnection::new(
            Socket::Pipe(far),
            Peer::Memory,
            core.link_config(Role::Server),
            &core.config.connection,
        );
        core.drive(&link, ());
        Ok(near)
    }
}

impl State {
    fn make_pipe(&mut self) -> (PipeEnd, PipeEnd) {
        let (requests, replies) = match &mut self.faults {
            FaultScript::Same(requests, replies) => (*requests, *replies),
            FaultScript::Seeded { faults, next } => {
                let (requests, replies) = faults.of_connection(*next);
                if self.reports.len() < MAX_REPORTED_CONNECTIONS {
                    self.reports.push(format!(
                        "{faults}: connection {next}: requests {requests:?}, replies {replies:?}"
                    ));
                }
                *next += 1;
                (requests, replies)
            }
        };
        let (near, far) = pipe(requests, replies);
        self.open.retain(Breaker::is_open);
        self.open.push(near.breaker());
        (near, far)
    }
}
