//! [`SharedConnection`]: a state machine for the protocol (the *machine*), which does no I/O and is protected
//! by one lock, and the I/O on its socket. Callers and the connection's task (the *driver*) do the I/O.
//!
//! * **Write.** A caller queues a message under the lock, sets the `writing` flag, unlocks, writes the
//!   buffers that the machine lends, and locks again to report the result. While the flag is set, other
//!   callers only queue their messages. The driver writes the bytes that the socket did not accept.
//!   Therefore, a message is sent completely even if the future of its caller is dropped.
//! * **Read.** The caller of the only pending call of a client connection reads the socket, unless the server
//!   may send requests or an io_uring is used. In all other cases, the driver reads. A caller reads only
//!   while its future is being polled.
//! * **Spin.** A reader may poll the socket, without the lock, for a limited time before it sleeps.
//! * **Low water.** While the rest of a large message arrives in small pieces, the low-water mark of the
//!   socket is raised. The socket then becomes readable only when a large part has arrived.
//! * **Timers.** The driver has one timer. A call changes it only if the deadline of the call is earlier.

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
pub(crate) use call::{OnewayError, PendingCall, StartedRequest, poll_deadline};
pub(crate) use flow::Flow;
pub(crate) use headers::HeaderKey;
pub(crate) use streamed_request::PayloadOutcome;

use crate::config::ConnectionConfig;
use crate::connection::headers::HeaderCache;
use crate::tls::TlsSession;
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Progress, Socket};

/// If at least this number of bytes are queued, senders of oneways wait.
const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// The maximum number of writes in one `flush`. The driver writes messages that are queued during these.
const MAX_WRITE_ROUNDS: usize = 4;
/// If no call is made for this time, the driver reads the socket again instead of the caller.
pub(crate) const READ_ROLE_IDLE: Duration = Duration::from_millis(100);
/// If a read of a large message returns fewer bytes than this, `SO_RCVLOWAT` is raised.
const SLOW_READ_BYTES: usize = 64 * 1024;
const MAX_LOW_WATER_BYTES: usize = 512 * 1024;
/// A spin time that results in exactly one read attempt, regardless of tokio's cached readiness.
const SINGLE_READ: Duration = Duration::from_nanos(1);
const MAX_SPARE_ENCODERS: usize = 8;

pub(crate) struct SharedConnection {
    pub(crate) socket: Socket,
    peer: Peer,
    /// True if a caller may read the socket: the peer sends no requests, and no io_uring is used.
    pub(crate) callers_may_read: bool,
    spin_time: Duration,
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
    /// The wakers of callers, by the index of the call.
    pub(crate) callers: Vec<Option<Waker>>,
    pub(crate) last_use: Instant,
    /// The time at which the clock was last read. For deadlines, it must be read again.
    pub(crate) clock: Instant,
    /// The wakers of tasks that wait until fewer bytes are queued.
    pub(crate) capacity_waiters: Vec<Waker>,
    #[expect(clippy::vec_box, reason = "encoders are moved through futures, where a pointer is cheaper")]
    pub(crate) encoders: Vec<Box<Encoder>>,
    pub(crate) headers: HeaderCache,
    #[cfg(feature = "experiments")]
    pub(crate) shares_bulk_data: bool,
    pub(crate) stream_reader: Option<Waker>,
    /// True if the driver dispatches no requests until more of the queue has been written.
    pub(crate) holds_requests: bool,
    pub(crate) is_socket_shut_down: bool,
}

/// Which task reads the socket, and when the driver runs.
#[derive(Default)]
pub(crate) struct Roles {
    pub(crate) driver: Option<Waker>,
    /// True if the driver is running or has been woken.
    pub(crate) driver_awake: bool,
    pub(crate) reading: bool,
    /// True if the driver reads the socket. If false, a caller reads it.
    pub(crate) driver_reads: bool,
    /// The time at which the driver takes the reading over, if no caller reads the socket any more.
    pub(crate) takeover_time: Option<Instant>,
    /// The time for which the driver's timer is set.
    pub(crate) timer_deadline: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct WriteState {
    pub(crate) writing: bool,
    /// True if the socket's buffer is full. Only the driver writes then, when the socket becomes writable.
    pub(crate) blocked: bool,
    pub(crate) last_write: Option<Instant>,
    /// The number of messages that have been queued for the driver since the last write.
    pub(crate) gathered: u32,
}

pub(crate) struct RingState {
    /// True if the ring must not use a read buffer of the machine, even if the machine would lend one.
    pub(crate) is_buffer_withheld: bool,
    /// The number of replies that callers have received by polling the io_uring since the driver last ran.
    pub(crate) inline_replies: usize,
    pub(crate) receive_started: Instant,
    pub(crate) receives_slowly: bool,
}

/// The sizes that determine the socket's low-water mark.
pub(crate) struct ReadSizes {
    pub(crate) last_read_bytes: usize,
    /// The number of bytes that must be available before the socket is readable (`SO_RCVLOWAT`).
    pub(crate) low_water: usize,
}

impl SharedConnection {
    /// Wraps a connected socket. A driver must be polled while the connection is used.
    pub(crate) fn new(socket: Socket, peer: Peer, config: Config, orb: &ConnectionConfig) -> Arc<Self> {
        let now = now();
        let callers_may_read =
            config.role == Role::Client && socket.ring().is_none() && !config.accepts_requests;
        #[cfg(feature = "experiments")]
        let shares_bulk_data = config.deposits_enabled;
        let state = State {
            machine: Connection::new(config, now),
            roles: Roles { driver_awake: true, driver_reads: true, ..Roles::default() },
            write: WriteState::default(),
            ring: RingState {
                is_buffer_withheld: false,
                inline_replies: 0,
                receive_started: now,
                receives_slowly: false,
            },
            reads: ReadSizes { last_read_bytes: 0, low_water: 1 },
            callers: Vec::new(),
            last_use: now,
            clock: now,
            capacity_waiters: Vec::new(),
            encoders: Vec::new(),
            headers: HeaderCache::default(),
            #[cfg(feature = "experiments")]
            shares_bulk_data,
            stream_reader: None,
            holds_requests: false,
            is_socket_shut_down: false,
        };
        Arc::new(Self {
            socket,
            peer,
            callers_may_read,
            spin_time: orb.wait_strategy.max_spin_time(),
            #[cfg(feature = "experiments")]
            adapts_low_water: orb.adapts_low_water,
            state: Mutex::new(state),
            has_reply: AtomicBool::new(false),
            lost_oneways: Arc::default(),
        })
    }

    pub(crate) fn set_code_sets(&self, code_sets: CodeSets) {
        self.lock().machine.set_code_sets(code_sets);
    }

    /// Sends all following GIOP 1.2 messages of more than `size` bytes in fragments.
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

    pub(crate) fn tls_session(&self) -> Option<&Arc<TlsSession>> {
        self.socket.tls_session()
    }

    pub(crate) fn protocol_error(&self) -> Option<giop_proto::ProtocolError> {
        match self.lock().machine.lifecycle().close_reason() {
            Some(CloseReason::Protocol(error)) => Some(*error),
            _ => None,
        }
    }

    /// Returns whether a reply was received, so that the server has the first service contexts.
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

    /// Returns whether the current task can make calls over this connection. An io_uring without its own
    /// thread can be used only by callers in its runtime, which is `runtime`.
    pub(crate) fn serves_callers_of(&self, runtime: Option<tokio::runtime::Id>) -> bool {
        self.socket.ring().is_none()
            || self.thread().is_some()
            || tokio::runtime::Handle::try_current().is_ok_and(|here| Some(here.id()) == runtime)
    }

    /// Returns the I/O thread on which the driver must run, or `None` if it can run on any thread.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.socket.thread()
    }

    /// Returns the flag that is set when the connection is dropped, if oneways may be lost.
    pub(crate) fn oneway_loss_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lost_oneways)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lock().machine.stats()
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.lock().machine.lifecycle().is_closing()
    }

    /// Returns whether callbacks can be made. This is possible even while the connection is closing.
    pub(crate) fn allows_callbacks(&self) -> bool {
        self.lock().machine.accepts_calls()
    }

    /// Closes the connection after active requests and received oneways have finished. Rejects new requests.
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

    /// Returns the size of a long queue of replies, and the time that the peer needs to receive it: see
    /// [`Connection::reply_queue`].
    pub(crate) fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        self.lock().machine.reply_queue(now)
    }

    pub(crate) fn close_slow_reader(&self) {
        let mut state = self.lock();
        state.machine.close_slow_reader();
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    pub(crate) fn pending_call_count(&self) -> usize {
        self.lock().machine.pending_call_count()
    }

    pub(crate) fn lock(&self) -> LockedState<'_> {
        // A poisoned lock is usable, because the machine is consistent after each of its methods.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the queue, unless another task is writing it or the socket accepts no more bytes.
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
            // `complete_ring_io` takes the buffers back.
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
                    if self.callers_may_read {
                        self.drain_events(&mut state, None);
                    }
                    state.wake_driver();
                    Progress::Done
                }
            };
            state.write.writing = false;
            if state.wake_after_write() && state.holds_requests {
                state.wake_driver();
            }
            return (state, progress);
        }
    }

    /// Wakes the callers of calls that have an outcome, except the call `awake`, whose caller is running. If
    /// there may be requests among the events of an open connection, lets the driver handle them.
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

    /// Wakes the tasks that wait for capacity, if there is some or a reply is sent in parts. Returns whether
    /// there is capacity.
    #[inline]
    fn wake_after_write(&mut self) -> bool {
        let has_capacity = self.machine.output().backlog() < MAX_BACKLOG_BYTES;
        if has_capacity || self.machine.output().has_growing_replies() {
            self.wake_waiters();
        }
        has_capacity
    }

    /// Wakes the tasks that wait for capacity, and the reader of the stream, which may have ended.
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

    /// Ensures that the driver's timer fires at the time `at` or earlier.
    fn rearm(&mut self, at: Instant) {
        if self.roles.timer_deadline.is_none_or(|armed| at < armed) {
            self.wake_driver();
        }
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.lost_oneways.store(state.machine.may_have_lost_oneways(), Ordering::Release);
    }
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Returns whether no message has been received completely. Until then, bytes are read as soon as they
/// arrive, so that `server::connection_limiter` can distinguish a slow sender from an idle one.
fn is_before_first_message(state: &State) -> bool {
    state.machine.received_counts().0 == 0
}

/// Returns a service context that shifts the following bytes by 4 bytes, half of the maximum alignment.
pub(crate) fn padding_context() -> ServiceContext {
    ServiceContext { id: ContextId::ZORB_PADDING, data: Bytes::from_static(&[0; 4]) }
}

/// Returns the time of tokio's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
