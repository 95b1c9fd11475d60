//! Tests without sockets: [`local`] returns a reference to a servant, [`pair`] two ORBs with an in-memory
//! pipe between them. Over the pipe everything is marshalled as over TCP.
//!
//! Time is tokio's: under `#[tokio::test(start_paused = true)]` deadlines and timers expire at once and
//! always in the same order. Faults are configured on the [`Pair`]'s network and apply to connections that
//! are opened afterwards: the same faults for each ([`Pair::set_faults`]), or faults that a seed determines
//! ([`Pair::inject`]). [`Pair::cut`] breaks open connections.
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
//! // A call fails now with COMM_FAILURE, completed: MAYBE. The next calls find a restarted server:
//! orbs.set_faults(PipeFaults::default(), PipeFaults::default());
//! # });
//! ```

#[cfg(feature = "tls")]
pub(crate) mod tls_end;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use giop_proto::Role;

use crate::config::MemoryNetwork;
use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;
use crate::orb::{Orb, OrbBuilder};
use crate::reference::Serves;
use crate::runtime::Shared;
pub use crate::transport::faults::{Faults, dropped_after, seeds};
use crate::transport::pipe::{Breaker, PipeEnd, pipe};
pub use crate::transport::pipe::{Cut, PipeFaults};
use crate::transport::{Peer, Socket};

/// The host name of the serving ORB of a [`Pair`].
const SERVER: &str = "server.memory";
const CLIENT: &str = "client.memory";

/// Maximum number of connections that a failed test reports.
const TOLD: usize = 32;

/// Returns a reference to a servant in this process, of the same type as any other reference. Calls go
/// straight to the servant.
///
/// The object exists as long as references to it exist.
///
/// # Panics
/// Never.
#[must_use]
pub fn local<R, S>(servant: S) -> R
where
    R: Serves<S>,
{
    let core = OrbBuilder::new().parts.core(Vec::new());
    let entry = core.adapter().activate(core.adapter().root(), R::skeleton(servant), Default::default());
    R::from_object(crate::reference::ObjectRef::local(&core, &entry, entry.key()))
}

/// Two ORBs that reach each other by pipes in memory.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Makes the calls.
    pub client: Orb,
    /// Has the servants.
    pub server: Orb,
    network: Arc<Network>,
    #[expect(dead_code, reason = "it speaks when it is dropped")]
    witness: Arc<Witness>,
}

/// Returns two ORBs with default options: `let pair = zorb::testing::pair();`. Must be called inside a tokio
/// runtime.
#[must_use]
pub fn pair() -> Pair {
    pair_of(Orb::builder(), Orb::builder())
}

/// Returns two ORBs with these options, client first. Their listeners, if any, are not opened.
#[must_use]
pub fn pair_of(client: OrbBuilder, server: OrbBuilder) -> Pair {
    let network = Arc::new(Network::default());
    let open = |builder: OrbBuilder, host: &str| {
        let mut parts = builder.parts;
        parts.config.client.memory = Some(Arc::clone(&network) as Arc<dyn MemoryNetwork>);
        let core = parts.core(vec![Endpoint::Iiop { host: host.to_owned(), port: 1 }]);
        network.hosts().push((host.to_owned(), Arc::downgrade(&core)));
        core.open()
    };
    let witness = Arc::new(Witness(Arc::clone(&network)));
    Pair { client: open(client, CLIENT), server: open(server, SERVER), network, witness }
}

impl Pair {
    /// Sets the faults of connections that are opened from now on: `requests` for the bytes to the server,
    /// `replies` for those to the client.
    pub fn set_faults(&self, requests: PipeFaults, replies: PipeFaults) {
        self.network.state().faults = Script::Same(requests, replies);
    }

    /// Sets a script of faults for connections that are opened from now on. They are counted from 0.
    pub fn inject(&self, faults: Faults) {
        self.network.state().faults = Script::Seeded { faults, next: 0 };
    }

    /// Breaks all open connections, in both directions. Returns their number.
    pub fn cut(&self, how: Cut) -> usize {
        // The lock must be released first, because a woken task may use the network.
        let open = std::mem::take(&mut self.network.state().open);
        open.iter().filter(|pipe| pipe.cut(how)).count()
    }

    /// Refuses further connections, or accepts them again.
    pub fn set_refusing(&self, refusing: bool) {
        self.network.state().refusing = refusing;
    }
}

/// The ORBs, and the faults of the connections between them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    hosts: Mutex<Vec<(String, Weak<Shared>)>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: Script,
    refusing: bool,
    /// The pipes that may be in use.
    open: Vec<Breaker>,
    /// Descriptions of the faults of scripted connections.
    told: Vec<String>,
}

#[derive(Debug)]
enum Script {
    Same(PipeFaults, PipeFaults),
    Seeded { faults: Faults, next: u64 },
}

impl Default for Script {
    fn default() -> Self {
        Self::Same(PipeFaults::default(), PipeFaults::default())
    }
}

/// Prints how to reproduce the faults if a test has failed.
#[derive(Debug)]
struct Witness(Arc<Network>);

impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.0.state().told {
                eprintln!("zorb::testing: {line}");
            }
        }
    }
}

impl MemoryNetwork for Network {
    fn connect(&self, host: &str) -> io::Result<PipeEnd> {
        if self.state().refusing {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let core = self.hosts().iter().find(|(name, _)| name == host).and_then(|(_, core)| core.upgrade());
        let core = core.filter(|core| !core.closing.has_begun());
        let core = core.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (near, far) = self.state().make_pipe();
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

impl Network {
    fn hosts(&self) -> MutexGuard<'_, Vec<(String, Weak<Shared>)>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes the pipe of the next connection.
    fn make_pipe(&mut self) -> (PipeEnd, PipeEnd) {
        let (requests, replies) = match &mut self.faults {
            Script::Same(requests, replies) => (*requests, *replies),
            Script::Seeded { faults, next } => {
                let (requests, replies) = faults.of(*next);
                if self.told.len() < TOLD {
                    self.told.push(format!(
                        "{faults}: connection {next}: to the server {requests:?}, back {replies:?}"
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
