//! Tests without sockets: [`local`] gives a reference to a servant, [`pair`] two ORBs with an in-memory pipe between
//! them, over which everything is marshalled as over TCP.
//!
//! Time is tokio's: under `#[tokio::test(start_paused = true)]` deadlines and timers pass at once and always in the same
//! order. Faults are set on the [`Pair`]'s network and befall the connections made afterwards.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use giop_proto::Role;

use crate::link::Link;
use crate::orb::{Endpoint, Orb, OrbBuilder, OrbCore};
use crate::serve::Serves;
use crate::transport::pipe::{PipeEnd, pipe};
use crate::transport::{Peer, Socket};

pub use crate::transport::pipe::PipeFaults;

/// The host name of the serving ORB of a [`Pair`].
const SERVER: &str = "server.memory";
const CLIENT: &str = "client.memory";

/// A reference to a servant in this process, of the same type as any other: calls go straight to it.
///
/// The object is there for as long as references to it are.
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
}

/// Two ORBs with default options: `let pair = zorb::testing::pair();`. Call it inside a tokio runtime.
#[must_use]
pub fn pair() -> Pair {
    pair_of(Orb::builder(), Orb::builder())
}

/// Two ORBs with these options, client first. Their listeners, if any, are not opened.
#[must_use]
pub fn pair_of(client: OrbBuilder, server: OrbBuilder) -> Pair {
    let network = Arc::new(Network::default());
    let open = |builder: OrbBuilder, host: &str| {
        let mut parts = builder.parts;
        parts.config.memory = Some(Arc::clone(&network));
        let core = parts.core(vec![Endpoint::Iiop { host: host.to_owned(), port: 1 }]);
        network.hosts().push((host.to_owned(), Arc::downgrade(&core)));
        core.open()
    };
    Pair { client: open(client, CLIENT), server: open(server, SERVER), network }
}

impl Pair {
    /// What befalls the connections made from now on: `requests` the octets that go to the server, `replies` those that
    /// come back.
    pub fn set_faults(&self, requests: PipeFaults, replies: PipeFaults) {
        *self.network.faults.lock().unwrap_or_else(PoisonError::into_inner) = (requests, replies);
    }

    /// Refuses further connections, or accepts them again.
    pub fn set_refusing(&self, refusing: bool) {
        *self.network.refusing.lock().unwrap_or_else(PoisonError::into_inner) = refusing;
    }
}

/// Which ORBs there are, and what befalls the octets between them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    hosts: Mutex<Vec<(String, Weak<OrbCore>)>>,
    faults: Mutex<(PipeFaults, PipeFaults)>,
    refusing: Mutex<bool>,
}

impl Network {
    /// Connects to the ORB of that name.
    pub(crate) fn connect(&self, host: &str) -> io::Result<PipeEnd> {
        if *self.refusing.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let core = self.hosts().iter().find(|(name, _)| name == host).and_then(|(_, core)| core.upgrade());
        let core = core.filter(|core| !core.is_closing());
        let core = core.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (requests, replies) = *self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let (near, far) = pipe(requests, replies);
        let link = Link::new(Socket::Pipe(far), Peer::Memory, core.link_config(Role::Server), &core.config);
        core.drive(&link, ());
        Ok(near)
    }

    fn hosts(&self) -> std::sync::MutexGuard<'_, Vec<(String, Weak<OrbCore>)>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
