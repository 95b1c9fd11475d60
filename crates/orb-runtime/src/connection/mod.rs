//! One connection: a sans-IO protocol machine protected by one lock, and the socket I/O of its callers and
//! its driver.
//!
//! * **Write.** A caller queues under the lock, takes the `writing` flag, unlocks, writes the lent buffers
//!   and locks again to commit. While the flag is set, other callers only queue. The driver task finishes
//!   what the socket did not accept, so a dropped future never leaves half a message.
//! * **Read.** The only pending call of a client connection reads the socket itself. In all other cases the
//!   driver reads. The read role lasts one poll and is never held across `Pending`.
//! * **Spin.** If enabled, a reader polls the socket for a configured time before it sleeps, without the
//!   lock.
//! * **Low water.** During a large message that arrives in small pieces, the socket reports readiness only
//!   after much of it has arrived.
//! * **Timers.** The driver has one timer. A call whose deadline is later than the armed one costs nothing.

mod binding;
pub mod blocking;
mod blocking_wait;
mod call;
pub(crate) mod exclusive;
mod flow;
mod headers;
pub(crate) mod incoming_stream;
pub(crate) mod padding;
mod ring;
mod streamed_reply;
mod streamed_request;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{fmt, io};

use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::giop::ListenPoint;
use giop_codec::{ByteOrder, Version};
use giop_proto::calls::CallId;
use giop_proto::outbox::Transmit;
use giop_proto::{CloseReason, Config, Connection, Event, Role, Stats};

pub(crate) use binding::{AddressingMode, Binding};
pub(crate) use call::{OnewayError, Pending, Started, poll_deadline};
pub(crate) use flow::Flow;
pub(crate) use headers::Plain;
pub(crate) use padding::padding;
pub(crate) use streamed_request::Fed;

use crate::config::ConnectionConfig;
use crate::connection::headers::Headers;
use crate::tls::TlsSession;
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Progress, Socket};

/// The number of queued bytes from which oneway senders wait.
const BACKLOG: usize = 1 << 20;

/// Maximum time since the last write for which a oneway is gathered with its successors.
const GATHER: Duration = Duration::from_micros(20);

/// Interval of clock readings, in gathered messages. The messages between wait for the driver's next poll.
const CLOCK_EVERY: u32 = 8;

/// Maximum number of writes of one `flush`, including what others queued meanwhile. The driver writes the
/// rest.
const MAX_WRITE_ROUNDS: usize = 4;

/// Time for which a caller keeps the read role between its calls. Then the driver reads again.
pub(crate) const READ_ROLE_IDLE: Duration = Duration::from_millis(100);

/// Size of a read, in bytes, below which a large message counts as arriving slowly: `SO_RCVLOWAT` is raised
/// for it.
const SLOW_READ_BYTES: usize = 64 * 1024;

/// Number of missing bytes for which `SO_RCVLOWAT` is raised, if the last read was smaller than
/// [`SEGMENT_READ_BYTES`].
const LOW_WATER_MIN_REST: usize = 16 * 1024;

/// A few TCP segments of a slow network, in bytes.
const SEGMENT_READ_BYTES: usize = 8 * 1024;

/// Size of a read, in bytes, from which the next part of a large message is expected to be available at once.
const BULK_READ_BYTES: usize = 16 * 1024;

/// Upper bound of the receive low-water mark for a message that arrives slowly, in bytes.
const LOW_WATER: usize = 512 * 1024;

/// Maximum time for which a large message is read before its reader does other work.
const LONGEST_READ: Duration = Duration::from_millis(1);

/// Spin duration that results in exactly one read attempt, regardless of tokio's cached readiness.
const SINGLE_READ: Duration = Duration::from_nanos(1);

/// Maximum number of encoders kept for reuse.
const SPARE_ENCODERS: usize = 8;

/// A connection shared by its callers and its driver.
pub(crate) struct SharedConnection {
    pub(crate) socket: Socket,
    peer: Peer,
    /// Whether the peer only answers, and the socket is read and written in place. Then the caller of the
    /// only pending call may read.
    pub(crate) client_only: bool,
    /// How long a reader polls the socket before it sleeps.
    spin: Duration,
    /// Whether the low-water mark is raised during large messages that arrive slowly.
    #[cfg(feature = "experiments")]
    trickles: bool,
    state: Mutex<State>,
    /// Whether a reply was received. From then on the server knows the code sets.
    answered: AtomicBool,
    /// Set when the link is dropped and oneways may be lost.
    lost_oneways: Arc<AtomicBool>,
}

/// The state of a connection, protected by its lock.
pub(crate) struct State {
    pub(crate) machine: Connection,
    pub(crate) roles: Roles,
    pub(crate) write: WriteState,
    pub(crate) ring: RingState,
    pub(crate) reads: ReadSizes,
    /// Wakers of the callers, by slot index of the call.
    pub(crate) callers: Vec<Option<Waker>>,
    pub(crate) last_use: Instant,
    /// The most recent clock reading. Precise enough for everything but deadlines.
    pub(crate) clock: Instant,
    /// Wakers of oneways that wait for capacity in the queue, and of flushes.
    pub(crate) capacity_waiters: Vec<Waker>,
    #[expect(clippy::vec_box, reason = "they travel through futures: a pointer is cheaper to move")]
    pub(crate) encoders: Vec<Box<Encoder>>,
    pub(crate) headers: Headers,
    /// Whether bulk arguments are shared instead of copied into their message.
    #[cfg(feature = "experiments")]
    pub(crate) shares: bool,
    /// Waker of the reader that waits for the next chunk of a payload.
    pub(crate) stream_reader: Option<Waker>,
    /// The driver holds requests that it serves after more of the queue is written.
    pub(crate) stalled: bool,
    /// Whether the write side of the socket is shut down.
    pub(crate) shut_down: bool,
}

/// Which task reads the socket, and when the driver runs.
pub(crate) struct Roles {
    /// The waker of the driver.
    pub(crate) driver: Option<Waker>,
    /// Whether the driver was woken and has not run yet, or is running.
    pub(crate) driver_awake: bool,
    /// Whether a caller or the driver is reading now.
    pub(crate) reading: bool,
    /// Whether the driver's waker, not that of a caller, is registered with the socket.
    pub(crate) driver_reads: bool,
    /// Time at which the driver checks whether callers still read for themselves.
    pub(crate) takeover: Option<Instant>,
    /// Time at which the driver's timer fires.
    pub(crate) armed: Option<Instant>,
}

/// The progress of writes.
#[derive(Default)]
pub(crate) struct WriteState {
    /// Whether a task is writing now.
    pub(crate) writing: bool,
    /// The socket accepted less than it was given. Only the driver writes, after the socket becomes writable.
    pub(crate) blocked: bool,
    pub(crate) last: Option<Instant>,
    /// Number of messages left to the driver since the last write.
    pub(crate) gathered: u32,
}

/// The state of an io_uring.
pub(crate) struct RingState {
    /// A pending receive of a ring holds no window, though the machine would lend one.
    pub(crate) parked: bool,
    /// Number of replies that callers took from a ring since the driver ran.
    pub(crate) inline_replies: usize,
    /// Start of the current receive.
    pub(crate) receive_started: Instant,
    /// Whether large messages arrive slowly.
    pub(crate) slow: bool,
}

/// The sizes of reads, to which the socket's low-water mark is adapted.
pub(crate) struct ReadSizes {
    /// Size of the last read, in bytes.
    pub(crate) last: usize,
    /// Number of bytes that must be available before the socket is readable (`SO_RCVLOWAT`).
    pub(crate) low_water: usize,
}

impl SharedConnection {
    /// Wraps a connected socket. Its driver must be polled for as long as the link is used.
    pub(crate) fn new(socket: Socket, peer: Peer, config: Config, orb: &ConnectionConfig) -> Arc<Self> {
        let now = now();
        let in_place = socket.ring().is_none();
        let client_only = config.role == Role::Client && in_place && !config.accept_requests;
        #[cfg(feature = "experiments")]
        let shares = config.deposit;
        let state = State {
            machine: Connection::new(config, now),
            roles: Roles {
                driver: None,
                driver_awake: true,
                reading: false,
                driver_reads: true,
                takeover: None,
                armed: None,
            },
            write: WriteState::default(),
            ring: RingState { parked: false, inline_replies: 0, receive_started: now, slow: false },
            reads: ReadSizes { last: 0, low_water: 1 },
            callers: Vec::new(),
            last_use: now,
            clock: now,
            capacity_waiters: Vec::new(),
            encoders: Vec::new(),
            headers: Headers::default(),
            #[cfg(feature = "experiments")]
            shares,
            stream_reader: None,
            stalled: false,
            shut_down: false,
        };
        Arc::new(Self {
            socket,
            peer,
            client_only,
            spin: orb.wait_strategy.spin(),
            #[cfg(feature = "experiments")]
            trickles: orb.low_water,
            state: Mutex::new(state),
            answered: AtomicBool::new(false),
            lost_oneways: Arc::default(),
        })
    }

    /// Sets the code sets that were negotiated with the server.
    pub(crate) fn set_code_sets(&self, code_sets: CodeSets) {
        self.lock().machine.set_code_sets(code_sets);
    }

    /// Sends all GIOP 1.2 messages larger than `size` in fragments from now on.
    pub(crate) fn cut_at(&self, size: usize) {
        self.lock().machine.cut_at(size);
    }

    /// Returns whether the peer may call objects of this ORB over this connection.
    pub(crate) fn takes_calls(&self) -> bool {
        self.lock().machine.accepts_requests()
    }

    /// Returns whether a peer other than the ORB itself may call objects of this ORB over this connection.
    pub(crate) fn serves_others(&self) -> bool {
        self.serves_others_in(&self.lock())
    }

    fn serves_others_in(&self, state: &State) -> bool {
        state.machine.accepts_requests() && !matches!(self.peer, Peer::Local)
    }

    /// Wakes the driver.
    pub(crate) fn wake_driver_now(&self) {
        self.lock().wake_driver();
    }

    /// Sets how long the connection may be idle.
    pub(crate) fn set_idle_timeout(&self, timeout: Duration) {
        self.lock().machine.set_idle_timeout(timeout);
    }

    /// Returns the address of the peer.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the TLS session. `None`: the connection does not use TLS.
    pub(crate) fn session(&self) -> Option<&Arc<TlsSession>> {
        self.socket.session()
    }

    /// Returns the reason for the closure, if the peer violated the protocol.
    pub(crate) fn protocol_error(&self) -> Option<giop_proto::ProtocolError> {
        match self.lock().machine.lifecycle().close_reason() {
            Some(CloseReason::Protocol(error)) => Some(*error),
            _ => None,
        }
    }

    /// Returns whether the server has answered a request. Then it has received the service contexts of the
    /// first requests, such as code sets.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns the code sets that are in force with the peer.
    pub(crate) fn code_sets(&self) -> CodeSets {
        self.lock().machine.peer().code_sets_in_force()
    }

    /// Returns the listen points that the client announced.
    pub(crate) fn peer_listen_points(&self) -> Vec<ListenPoint> {
        self.lock().machine.peer().listen_points().to_vec()
    }

    /// Returns whether the current task can call over a connection that is driven in `runtime`. A ring that
    /// belongs to one runtime serves only callers in that runtime.
    pub(crate) fn serves_callers_of(&self, runtime: Option<tokio::runtime::Id>) -> bool {
        self.socket.ring().is_none()
            || self.thread().is_some()
            || tokio::runtime::Handle::try_current().is_ok_and(|here| Some(here.id()) == runtime)
    }

    /// Returns the thread on which the driver must run. `None`: any.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.socket.thread()
    }

    /// Returns the flag that is set when the link is dropped and oneways may be lost. It outlives the link.
    pub(crate) fn loss(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lost_oneways)
    }

    /// Returns the counters of the connection.
    pub(crate) fn stats(&self) -> Stats {
        self.lock().machine.stats()
    }

    /// Returns whether new calls can be made.
    pub(crate) fn is_usable(&self) -> bool {
        let state = self.lock();
        !state.machine.lifecycle().is_closing()
    }

    /// Returns whether servants of this connection can still make calls over it while it closes.
    pub(crate) fn lets_call(&self) -> bool {
        self.lock().machine.takes_calls()
    }

    /// Closes in good order: finishes active requests and rejects new ones. Oneways that were received are
    /// executed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if self.serves_others_in(&state) {
            state.machine.close_after_oneways(now());
        } else {
            state.machine.close(now());
        }
        state.roles.driver_reads = true;
        state.wake_driver();
    }

    /// Closes immediately.
    pub(crate) fn abort(&self, reason: CloseReason) {
        let mut state = self.lock();
        state.machine.abort(reason);
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    /// Returns the size of a long reply queue and how long the peer needs for it: see
    /// [`Connection::reply_queue`].
    pub(crate) fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        self.lock().machine.reply_queue(now)
    }

    /// Closes the connection because the peer takes its replies too slowly.
    pub(crate) fn give_up_slow_reader(&self) {
        let mut state = self.lock();
        state.machine.give_up_slow_reader();
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    /// Returns the number of calls that wait for replies.
    pub(crate) fn calls_waiting(&self) -> usize {
        self.lock().machine.calls_waiting()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is usable: the machine keeps its invariants between any two of its methods.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the queue. Does nothing if another task is writing, which then also writes this, or if the
    /// socket is full. In the latter case the driver writes when the socket becomes writable.
    #[inline]
    pub(crate) fn flush<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Progress) {
        self.flush_by(state, Socket::try_write)
    }

    /// Writes the queue with `write`, under the conditions of [`flush`](Self::flush).
    fn flush_by<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        write: impl Fn(&Socket, &mut Transmit) -> io::Result<Progress>,
    ) -> (MutexGuard<'a, State>, Progress) {
        if state.write.writing || state.write.blocked {
            return (state, Progress::Blocked);
        }
        let Some(mut transmit) = state.machine.take_transmit() else { return (state, Progress::Done) };
        (state.write.writing, state.write.gathered) = (true, 0);
        if let Some(ring) = self.socket.ring() {
            // The driver takes the buffers back: see `complete_ring_io`.
            ring.start_write(transmit);
            return (state, Progress::Blocked);
        }
        let mut round = 0;
        loop {
            drop(state);
            let outcome = write(&self.socket, &mut transmit);
            state = self.lock();
            let now = state.clock;
            state.machine.handle_written(transmit, now);
            let progress = match outcome {
                Ok(Progress::Done) => {
                    round += 1;
                    match if round < MAX_WRITE_ROUNDS { state.machine.take_transmit() } else { None } {
                        Some(more) => {
                            (transmit, state.write.gathered) = (more, 0);
                            continue;
                        }
                        None if state.machine.has_output() => {
                            state.wake_driver();
                            Progress::Done
                        }
                        None => Progress::Done,
                    }
                }
                Ok(Progress::Blocked) => {
                    state.write.blocked = true;
                    state.wake_driver();
                    Progress::Blocked
                }
                Err(error) => {
                    state.machine.handle_write_error(&error, now);
                    if self.client_only {
                        self.drain_events(&mut state, None);
                    }
                    state.wake_driver();
                    Progress::Done
                }
            };
            state.write.writing = false;
            if state.wrote() && state.stalled {
                state.wake_driver();
            }
            return (state, progress);
        }
    }

    /// Wakes callers whose outcome is available. If the events may contain requests, leaves them to the
    /// driver, unless the connection is closed: then it has none.
    ///
    /// `awake` is the call whose caller runs this. It is not woken, and its waker is kept for its next call.
    fn drain_events(&self, state: &mut State, awake: Option<CallId>) {
        if state.machine.accepts_requests() && !state.machine.lifecycle().is_closed() {
            return state.wake_driver();
        }
        while let Some(event) = state.machine.poll_event() {
            match event {
                Event::Reply(call) if Some(call) == awake => {}
                Event::Reply(call) => self.replied(state, call),
                Event::Closed => {
                    state.wake_room();
                    state.wake_driver();
                }
                Event::Request(_) | Event::Locate(_) | Event::Cancelled(_) => {}
            }
        }
    }
}

impl SharedConnection {
    /// Wakes the caller of `call`.
    pub(crate) fn replied(&self, state: &mut State, call: CallId) {
        if let Some(waker) = state.callers.get_mut(call.index()).and_then(Option::take) {
            waker.wake();
        }
    }
}

impl State {
    fn wake_driver(&mut self) {
        if !self.roles.driver_awake {
            self.roles.driver_awake = true;
            if let Some(driver) = &self.roles.driver {
                driver.wake_by_ref();
            }
        }
    }

    /// Gives the read role to the driver, also on connections whose callers read for themselves.
    fn let_driver_read(&mut self) {
        self.roles.driver_reads = true;
        self.wake_driver();
    }

    /// Wakes the reader of the stream if a chunk is available.
    pub(crate) fn wake_stream(&mut self) {
        if self.stream_reader.is_some() && self.machine.input().has_chunk() {
            self.stream_reader.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Wakes the tasks that wait for a write. Returns whether the queue has capacity for any message.
    #[inline]
    fn wrote(&mut self) -> bool {
        let room = self.machine.output().backlog() < BACKLOG;
        if room || self.machine.output().has_growing_replies() {
            self.wake_room();
        }
        room
    }

    pub(crate) fn wake_room(&mut self) {
        self.stream_reader.take().into_iter().for_each(Waker::wake); // its end may have been reached
        for waker in self.capacity_waiters.drain(..) {
            waker.wake();
        }
    }

    /// Returns an empty encoder of that version in native byte order.
    fn encoder(&mut self, version: Version) -> Box<Encoder> {
        let mut encoder =
            self.encoders.pop().unwrap_or_else(|| Box::new(Encoder::new(ByteOrder::NATIVE, version)));
        #[cfg(feature = "experiments")]
        if !self.shares {
            encoder.set_chunk_threshold(usize::MAX);
        }
        encoder.reset(ByteOrder::NATIVE, version);
        encoder
    }

    /// Frees encoders that hold more than `most` bytes.
    pub(crate) fn release(&mut self, most: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= most);
    }

    fn keep_encoder(&mut self, encoder: Box<Encoder>) {
        if self.encoders.len() < SPARE_ENCODERS {
            self.encoders.push(encoder);
        }
    }

    /// Ensures that the timer fires at `at` or earlier.
    fn rearm(&mut self, at: Instant) {
        if self.roles.armed.is_none_or(|armed| at < armed) {
            self.wake_driver();
        }
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.lost_oneways.store(state.machine.lost_oneways(), Ordering::Release);
    }
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Returns whether no complete message was received yet. Then bytes are read as they arrive, so that the
/// limiter (`server::connection_limiter`) can distinguish a slow sender from an idle one.
fn before_first_message(state: &State) -> bool {
    state.machine.received().0 == 0
}

/// Returns the time of tokio's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
