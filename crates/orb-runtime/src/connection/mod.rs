//! A connection: a protocol state machine (*machine*) that does no I/O itself and is protected by one lock,
//! and the socket I/O by the tasks of callers and by the task of the connection (the *driver*).
//!
//! * **Write.** A caller queues a message under the lock, sets the `writing` flag, unlocks, writes the
//!   buffers that the machine lends, and locks again to commit. While the flag is set, other callers only
//!   queue. The driver writes what the socket did not accept, so a dropped future never leaves half a
//!   message.
//! * **Read.** If a client connection has one pending call, its caller reads the socket, else the driver.
//!   A caller never holds the read role across `Pending`.
//! * **Spin.** A reader may poll the socket for a limited time before it sleeps, without the lock.
//! * **Low water.** While the rest of a large message arrives in small pieces, the low-water mark of the
//!   socket is raised: the socket becomes readable only when a large part has arrived.
//! * **Timers.** The driver has one timer. A call only changes it if the deadline of the call is earlier.

mod binding;
pub mod blocking;
mod blocking_wait;
mod call;
pub(crate) mod exclusive;
mod flow;
mod headers;
pub(crate) mod incoming_stream;
mod ring;
mod streamed_reply;
mod streamed_request;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{fmt, io};

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::giop::{ContextId, ListenPoint, ServiceContext};
use giop_codec::{ByteOrder, Version};
use giop_proto::calls::CallId;
use giop_proto::outbox::Transmit;
use giop_proto::{CloseReason, Config, Connection, Event, Role, Stats};

pub(crate) use binding::{AddressingMode, Binding};
pub(crate) use call::{OnewayError, Pending, StartedRequest, poll_deadline};
pub(crate) use flow::Flow;
pub(crate) use headers::HeaderKey;
pub(crate) use streamed_request::PayloadOutcome;

use crate::config::ConnectionConfig;
use crate::connection::headers::Headers;
use crate::tls::TlsSession;
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Progress, Socket};

/// The number of queued bytes at which senders of oneways wait.
const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// The maximum number of writes of one `flush`. The driver writes messages that others queue meanwhile.
const MAX_WRITE_ROUNDS: usize = 4;
/// After this time without a call, the driver reads again in place of the caller.
pub(crate) const READ_ROLE_IDLE: Duration = Duration::from_millis(100);
/// If a read of a large message returns fewer bytes, `SO_RCVLOWAT` is raised.
const SLOW_READ_BYTES: usize = 64 * 1024;
const MAX_LOW_WATER_BYTES: usize = 512 * 1024;
/// A spin time that results in exactly one read attempt, regardless of tokio's cached readiness.
const SINGLE_READ: Duration = Duration::from_nanos(1);
const MAX_SPARE_ENCODERS: usize = 8;

pub(crate) struct SharedConnection {
    pub(crate) socket: Socket,
    peer: Peer,
    /// Whether the peer sends no requests and no io_uring is used, so that the only caller may read.
    pub(crate) client_only: bool,
    spin: Duration,
    #[cfg(feature = "experiments")]
    adapts_low_water: bool,
    state: Mutex<State>,
    has_reply: AtomicBool,
    lost_oneways: Arc<AtomicBool>,
}

/// The state of a connection while its lock is held.
pub(crate) type LockedState<'a> = MutexGuard<'a, State>;

pub(crate) struct State {
    pub(crate) machine: Connection,
    pub(crate) roles: Roles,
    pub(crate) write: WriteState,
    pub(crate) ring: RingState,
    pub(crate) reads: ReadSizes,
    /// Wakers of the callers, by slot index of the call.
    pub(crate) callers: Vec<Option<Waker>>,
    pub(crate) last_use: Instant,
    /// The most recent clock reading. Deadlines need a new one.
    pub(crate) clock: Instant,
    pub(crate) capacity_waiters: Vec<Waker>,
    #[expect(clippy::vec_box, reason = "encoders are moved through futures, where a pointer is cheaper")]
    pub(crate) encoders: Vec<Box<Encoder>>,
    pub(crate) headers: Headers,
    #[cfg(feature = "experiments")]
    pub(crate) shares_bulk_data: bool,
    pub(crate) stream_reader: Option<Waker>,
    /// Whether the driver holds requests back until more of the queue is written.
    pub(crate) stalled: bool,
    pub(crate) shut_down: bool,
}

/// Which task reads the socket, and when the driver runs.
#[derive(Default)]
pub(crate) struct Roles {
    pub(crate) driver: Option<Waker>,
    /// Whether the driver is running, or was woken to run.
    pub(crate) driver_awake: bool,
    pub(crate) reading: bool,
    /// Whether the driver reads the socket, and not a caller.
    pub(crate) driver_reads: bool,
    /// The time at which the driver checks whether a caller still reads the socket.
    pub(crate) takeover: Option<Instant>,
    pub(crate) armed: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct WriteState {
    pub(crate) writing: bool,
    /// Whether the socket's buffer is full. Then only the driver writes, when the socket becomes writable.
    pub(crate) blocked: bool,
    pub(crate) last: Option<Instant>,
    /// The number of messages since the last write that were queued for the driver.
    pub(crate) gathered: u32,
}

pub(crate) struct RingState {
    /// Whether the pending receive uses no read buffer of the machine, although the machine would lend one.
    pub(crate) parked: bool,
    /// The number of replies that callers took from the io_uring themselves since the driver ran.
    pub(crate) inline_replies: usize,
    pub(crate) receive_started: Instant,
    pub(crate) receives_slowly: bool,
}

/// The sizes by which the socket's low-water mark is adapted.
pub(crate) struct ReadSizes {
    pub(crate) last_bytes: usize,
    /// The number of bytes that must be available before the socket is readable (`SO_RCVLOWAT`).
    pub(crate) low_water: usize,
}

impl SharedConnection {
    /// Wraps a connected socket. The driver must be polled for as long as the connection is used.
    pub(crate) fn new(socket: Socket, peer: Peer, config: Config, orb: &ConnectionConfig) -> Arc<Self> {
        let now = now();
        let client_only = config.role == Role::Client && socket.ring().is_none() && !config.accept_requests;
        #[cfg(feature = "experiments")]
        let shares_bulk_data = config.deposit;
        let state = State {
            machine: Connection::new(config, now),
            roles: Roles { driver_awake: true, driver_reads: true, ..Roles::default() },
            write: WriteState::default(),
            ring: RingState {
                parked: false,
                inline_replies: 0,
                receive_started: now,
                receives_slowly: false,
            },
            reads: ReadSizes { last_bytes: 0, low_water: 1 },
            callers: Vec::new(),
            last_use: now,
            clock: now,
            capacity_waiters: Vec::new(),
            encoders: Vec::new(),
            headers: Headers::default(),
            #[cfg(feature = "experiments")]
            shares_bulk_data,
            stream_reader: None,
            stalled: false,
            shut_down: false,
        };
        Arc::new(Self {
            socket,
            peer,
            client_only,
            spin: orb.wait_strategy.max_spin_time(),
            #[cfg(feature = "experiments")]
            adapts_low_water: orb.low_water,
            state: Mutex::new(state),
            has_reply: AtomicBool::new(false),
            lost_oneways: Arc::default(),
        })
    }

    pub(crate) fn set_code_sets(&self, code_sets: CodeSets) {
        self.lock().machine.set_code_sets(code_sets);
    }

    /// From now on, sends GIOP 1.2 messages of more than `size` bytes in fragments.
    pub(crate) fn set_fragment_size(&self, size: usize) {
        self.lock().machine.limit_fragment_size(size);
    }

    pub(crate) fn accepts_requests(&self) -> bool {
        self.lock().machine.accepts_requests()
    }

    /// Returns whether a peer other than the ORB itself may call objects of this ORB over this connection.
    pub(crate) fn serves_peer(&self) -> bool {
        self.serves_peer_in(&self.lock())
    }

    fn serves_peer_in(&self, state: &State) -> bool {
        state.machine.accepts_requests() && !matches!(self.peer, Peer::Local)
    }

    pub(crate) fn set_idle_timeout(&self, timeout: Duration) {
        self.lock().machine.set_idle_timeout(timeout);
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(crate) fn session(&self) -> Option<&Arc<TlsSession>> {
        self.socket.session()
    }

    pub(crate) fn protocol_error(&self) -> Option<giop_proto::ProtocolError> {
        match self.lock().machine.lifecycle().close_reason() {
            Some(CloseReason::Protocol(error)) => Some(*error),
            _ => None,
        }
    }

    /// Returns whether a reply was received, so that the server knows the first service contexts.
    #[inline]
    pub(crate) fn has_reply(&self) -> bool {
        self.has_reply.load(Ordering::Relaxed)
    }

    pub(crate) fn code_sets(&self) -> CodeSets {
        self.lock().machine.peer().code_sets_in_force()
    }

    pub(crate) fn peer_listen_points(&self) -> Vec<ListenPoint> {
        self.lock().machine.peer().listen_points().to_vec()
    }

    /// Returns whether the current task can make calls over this connection. An io_uring without a thread of
    /// its own serves only callers in its `runtime`.
    pub(crate) fn serves_callers_of(&self, runtime: Option<tokio::runtime::Id>) -> bool {
        self.socket.ring().is_none()
            || self.thread().is_some()
            || tokio::runtime::Handle::try_current().is_ok_and(|here| Some(here.id()) == runtime)
    }

    /// Returns the I/O thread on which the driver must run, or `None` if it can run on any thread.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.socket.thread()
    }

    /// Returns the flag that is set when the connection is dropped and oneways may be lost.
    pub(crate) fn oneway_loss_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lost_oneways)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lock().machine.stats()
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.lock().machine.lifecycle().is_closing()
    }

    /// Returns whether callbacks can be made. Servants can make them even while the connection closes.
    pub(crate) fn allows_callbacks(&self) -> bool {
        self.lock().machine.accepts_calls()
    }

    /// Finishes active requests and oneways that were already received, and rejects new requests.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if self.serves_peer_in(&state) {
            state.machine.close_after_oneways(now());
        } else {
            state.machine.close(now());
        }
        state.roles.driver_reads = true;
        state.wake_driver();
    }

    pub(crate) fn abort(&self, reason: CloseReason) {
        let mut state = self.lock();
        state.machine.abort(reason);
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    /// Returns the size of a long reply queue and its duration: see [`Connection::reply_queue`].
    pub(crate) fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        self.lock().machine.reply_queue(now)
    }

    pub(crate) fn close_slow_reader(&self) {
        let mut state = self.lock();
        state.machine.give_up_slow_reader();
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    pub(crate) fn calls_waiting(&self) -> usize {
        self.lock().machine.calls_waiting()
    }

    pub(crate) fn lock(&self) -> LockedState<'_> {
        // A poisoned lock is usable, because the machine is consistent after each of its methods.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the queue, unless another task is writing it, or the driver waits for the socket.
    #[inline]
    pub(crate) fn flush<'a>(&'a self, state: LockedState<'a>) -> (LockedState<'a>, Progress) {
        self.flush_by(state, Socket::try_write)
    }

    fn flush_by<'a>(
        &'a self,
        mut state: LockedState<'a>,
        write: impl Fn(&Socket, &mut Transmit) -> io::Result<Progress>,
    ) -> (LockedState<'a>, Progress) {
        if state.write.writing || state.write.blocked {
            return (state, Progress::Blocked);
        }
        let Some(mut transmit) = state.machine.take_transmit() else { return (state, Progress::Done) };
        (state.write.writing, state.write.gathered) = (true, 0);
        if let Some(ring) = self.socket.ring() {
            // The driver takes the buffers back in `complete_ring_io`.
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
            if state.wake_after_write() && state.stalled {
                state.wake_driver();
            }
            return (state, progress);
        }
    }

    /// Wakes the callers of calls that have an outcome, except `awake`, whose caller runs this. If the events
    /// may contain requests, the driver handles them, unless the connection is closed.
    fn drain_events(&self, state: &mut State, awake: Option<CallId>) {
        if state.machine.accepts_requests() && !state.machine.lifecycle().is_closed() {
            return state.wake_driver();
        }
        while let Some(event) = state.machine.poll_event() {
            match event {
                Event::Reply(call) if Some(call) == awake => {}
                Event::Reply(call) => self.wake_caller(state, call),
                Event::Closed => {
                    state.wake_waiters();
                    state.wake_driver();
                }
                Event::Request(_) | Event::Locate(_) | Event::Cancelled(_) => {}
            }
        }
    }

    pub(crate) fn wake_caller(&self, state: &mut State, call: CallId) {
        if let Some(waker) = state.callers.get_mut(call.index()).and_then(Option::take) {
            waker.wake();
        }
    }
}

impl State {
    pub(crate) fn wake_driver(&mut self) {
        if !self.roles.driver_awake {
            self.roles.driver_awake = true;
            if let Some(driver) = &self.roles.driver {
                driver.wake_by_ref();
            }
        }
    }

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

    /// Wakes the tasks that wait for capacity, if there is any. Returns whether any message can be queued.
    #[inline]
    fn wake_after_write(&mut self) -> bool {
        let has_capacity = self.machine.output().backlog() < MAX_BACKLOG_BYTES;
        if has_capacity || self.machine.output().has_growing_replies() {
            self.wake_waiters();
        }
        has_capacity
    }

    /// Wakes the tasks that wait for capacity, and the reader of the stream, whose end may have been reached.
    pub(crate) fn wake_waiters(&mut self) {
        self.stream_reader.take().into_iter().for_each(Waker::wake);
        for waker in self.capacity_waiters.drain(..) {
            waker.wake();
        }
    }

    /// Returns an empty encoder of this GIOP version in native byte order.
    fn encoder(&mut self, version: Version) -> Box<Encoder> {
        let mut encoder =
            self.encoders.pop().unwrap_or_else(|| Box::new(Encoder::new(ByteOrder::NATIVE, version)));
        #[cfg(feature = "experiments")]
        if !self.shares_bulk_data {
            encoder.set_chunk_threshold(usize::MAX);
        }
        encoder.reset(ByteOrder::NATIVE, version);
        encoder
    }

    /// Frees the spare encoders with a capacity of more than `max_size` bytes.
    pub(crate) fn release_encoders(&mut self, max_size: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= max_size);
    }

    fn keep_encoder(&mut self, encoder: Box<Encoder>) {
        if self.encoders.len() < MAX_SPARE_ENCODERS {
            self.encoders.push(encoder);
        }
    }

    /// Ensures that the driver's timer fires at `at` or earlier.
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
        f.debug_struct("SharedConnection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Until the first message is complete, bytes are read as soon as they arrive, so that
/// `server::connection_limiter` can distinguish a slow sender from an idle one.
fn before_first_message(state: &State) -> bool {
    state.machine.received().0 == 0
}

/// Returns a service context that shifts the following bytes by 4, half of the maximum alignment.
pub(crate) fn padding() -> ServiceContext {
    ServiceContext { id: ContextId::ZORB_PADDING, data: Bytes::from_static(&[0; 4]) }
}

/// Returns the time of tokio's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
