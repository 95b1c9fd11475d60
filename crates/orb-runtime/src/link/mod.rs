//! One connection: a sans-IO machine under one lock, and whoever is there reading and writing its socket.
//!
//! * **Write.** A caller queues under the lock, takes the `writing` flag, unlocks, writes what it was lent and
//!   locks again to commit. Others only queue. What the socket did not take is finished by the driver task, so a
//!   dropped future never leaves half a message.
//! * **Read.** The only pending call of a client connection reads for itself; in all other cases the driver
//!   reads. The role lasts one poll and is never held across `Pending`.

mod call;
mod driver;
mod socket;

use std::io;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};


use giop_proto::calls::Calls;
use giop_proto::outbox::Outbox;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{Frame, Receiver};
use tokio::net::TcpStream;

pub use driver::{Dispatch, Driver, Outcome, Slot};

/// Octets that may wait for the socket before callers wait as well.
const BACKLOG: usize = 1 << 20;

/// A oneway that follows the last write by less than this is gathered with its successors.
const GATHER: Duration = Duration::from_micros(20);

/// A connection shared by its callers and its driver.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    /// Whether the peer only answers: then a lone caller may read for itself.
    client_only: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rx: Receiver,
    tx: Outbox,
    calls: Calls<Frame>,
    /// By the index of a call's slot.
    callers: Vec<Option<Waker>>,
    driver: Option<Waker>,
    driver_awake: bool,
    reading: bool,
    writing: bool,
    /// The driver, not a caller, has its waker with the socket.
    driver_reads: bool,
    last_write: Option<Instant>,
    room: Vec<Waker>,
    closed: Option<Arc<io::Error>>,
}

impl Link {
    /// Wraps a connected socket. The driver must be polled for as long as the link is used.
    pub fn new(stream: TcpStream, originator: bool, pool: Arc<BufferPool>, max_message: usize) -> Arc<Self> {
        let state = State {
            rx: Receiver::new(pool, max_message),
            tx: Outbox::default(),
            calls: Calls::new(originator),
            callers: Vec::new(),
            driver: None,
            driver_awake: false,
            reading: false,
            writing: false,
            driver_reads: true,
            last_write: None,
            room: Vec::new(),
            closed: None,
        };
        Arc::new(Self { stream, client_only: originator, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_driver(&mut self) {
        if !self.driver_awake {
            self.driver_awake = true;
            if let Some(driver) = &self.driver {
                driver.wake_by_ref();
            }
        }
    }

    fn fail(&mut self, error: io::Error) {
        if self.closed.is_none() {
            self.closed = Some(Arc::new(error));
        }
        for waker in self.callers.iter_mut().filter_map(Option::take).chain(self.room.drain(..)) {
            waker.wake();
        }
        self.wake_driver();
    }
}

use socket::Progress;
