//! Utilities for tests without sockets. [`local`] returns a reference to a servant, and [`pair`] returns two
//! ORBs that are connected by in-memory pipes. A pipe carries the same messages as TCP.
//!
//! Deadlines and timers use tokio's clock. If `start_paused` is set, they expire without waiting.
//!
//! [`Pair::set_faults`] sets the same faults for all connections that are opened afterwards.
//! [`Pair::set_random_faults`] sets faults that a seed determines. [`Pair::cut`] breaks open connections.
//!
//! This is how to test a client whose server is killed while the server sends a reply:
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
pub use crate::transport::faults::{RandomFaults, drop_after_polls, seeds};
use crate::transport::pipe::{Breaker, PipeEnd, pipe};
pub use crate::transport::pipe::{Cut, PipeFaults};
use crate::transport::{Peer, Socket};

const SERVER_HOST: &str = "server.memory";
const CLIENT_HOST: &str = "client.memory";
const MAX_REPORTED_CONNECTIONS: usize = 32;

/// Returns a reference to a servant in this process. The servant exists as long as references to it.
#[must_use]
pub fn local<R, S>(servant: S) -> R
where
    R: Serves<S>,
{
    let orb = OrbBuilder::new().core.build_core(Vec::new());
    let entry = orb.adapter().activate(orb.adapter().root(), crate::servant::Servant::of::<R, S>(servant));
    R::from_object(crate::reference::ObjectRef::own_with_entry(&orb, &entry, entry.key()))
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
        let mut core = builder.core;
        core.config.client.memory_network = Some(Arc::clone(&network) as Arc<dyn MemoryNetwork>);
        let orb = core.build_core(vec![Endpoint::Iiop { host: host.to_owned(), port: 1 }]);
        lock(&network.hosts).push((host.to_owned(), Arc::downgrade(&orb)));
        orb.into_orb()
    };
    let reporter = Arc::new(FaultReporter(Arc::clone(&network)));
    Pair { client: open(client, CLIENT_HOST), server: open(server, SERVER_HOST), network, reporter }
}

impl Pair {
    /// Sets the faults of connections that are opened from now on. `requests` affects the bytes that the
    /// client sends, and `replies` the bytes that the server sends.
    pub fn set_faults(&self, requests: PipeFaults, replies: PipeFaults) {
        lock(&self.network.state).faults = FaultScript::Same(requests, replies);
    }

    /// Sets random faults for connections that are opened from now on. These are numbered from 0.
    pub fn set_random_faults(&self, faults: RandomFaults) {
        lock(&self.network.state).faults = FaultScript::Random { faults, next_connection: 0 };
    }

    /// Breaks all open connections in both directions. Returns how many connections were open.
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
    /// The ORBs of the pair, by their host names.
    hosts: Mutex<Vec<(String, Weak<Shared>)>>,
    state: Mutex<NetworkState>,
}

#[derive(Debug, Default)]
struct NetworkState {
    faults: FaultScript,
    is_refusing: bool,
    open: Vec<Breaker>,
    reports: Vec<String>,
}

#[derive(Debug)]
enum FaultScript {
    /// The same faults for all connections: of requests, and of replies.
    Same(PipeFaults, PipeFaults),
    Random {
        faults: RandomFaults,
        next_connection: u64,
    },
}

impl Default for FaultScript {
    fn default() -> Self {
        Self::Same(PipeFaults::default(), PipeFaults::default())
    }
}

/// On drop, prints the random faults if the test has panicked, so that they can be reproduced.
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
        let orb = lock(&self.hosts).iter().find(|(name, _)| name == host).and_then(|(_, orb)| orb.upgrade());
        let orb = orb.filter(|orb| !orb.closing.has_begun());
        let orb = orb.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (near, far) = lock(&self.state).make_pipe();
        let link = SharedConnection::new(
            Socket::Pipe(far),
            Peer::Memory,
            orb.link_config(Role::Server),
            &orb.config.connection,
        );
        orb.drive(&link, ());
        Ok(near)
    }
}

impl NetworkState {
    fn make_pipe(&mut self) -> (PipeEnd, PipeEnd) {
        let (requests, replies) = match &mut self.faults {
            FaultScript::Same(requests, replies) => (*requests, *replies),
            FaultScript::Random { faults, next_connection } => {
                let (requests, replies) = faults.of_connection(*next_connection);
                if self.reports.len() < MAX_REPORTED_CONNECTIONS {
                    self.reports.push(format!(
                        "{faults}: connection {next_connection}: requests {requests:?}, replies {replies:?}"
                    ));
                }
                *next_connection += 1;
                (requests, replies)
            }
        };
        let (near, far) = pipe(requests, replies);
        self.open.retain(Breaker::is_open);
        self.open.push(near.breaker());
        (near, far)
    }
}
