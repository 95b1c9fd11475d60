//! One connection: a sans-IO machine under one lock, and whoever is there reading and writing its socket.
//!
//! * **Write.** A caller queues under the lock, takes the `writing` flag, unlocks, writes what it was lent and
//!   locks again to commit. Others only queue. What the socket did not take is finished by the driver task, so a
//!   dropped future never leaves half a message.
//! * **Read.** The only pending call of a client connection reads for itself; in all other cases the driver
//!   reads. The role lasts one poll and is never held across `Pending`.
//! * **Spin.** Where it is wanted, whoever would go to sleep asks the socket for a while before, without the lock.
//! * **Low water.** Of a large message that comes in small pieces, the socket tells only when much of it is there.
//! * **Timers.** The driver has one timer; a call whose deadline lies behind the armed one costs nothing.

mod admission;
mod call;
mod driver;
mod flow;
mod growing;
mod headers;
#[cfg(feature = "csi")]
mod identity;
mod in_place;
mod payload;
mod ring;
pub(crate) mod stream;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::giop::ListenPoint;
use giop_codec::{ByteOrder, Version};
use giop_proto::calls::CallId;
use giop_proto::outbox::Transmit;
use giop_proto::{CloseReason, Config, Connection, Event, Role, Stats};

pub(crate) use call::{OnewayError, Pending, Started, poll_deadline};
pub(crate) use driver::{Driver, Service};
pub(crate) use flow::Flow;
use headers::Headers;
pub(crate) use headers::Plain;
pub(crate) use payload::Fed;

use crate::tls::TlsSession;
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Progress, Socket};

/// Octets that may wait for the socket before callers wait as well.
const BACKLOG: usize = 1 << 20;

/// A oneway that follows the last write by less than this is gathered with its successors.
const GATHER: Duration = Duration::from_micros(20);

/// Of so many gathered messages one looks at the clock; the others join what waits for the driver's next turn.
const CLOCKED: u32 = 8;

/// Writes of what others queued meanwhile, before the rest is left to the driver.
const ROUNDS: usize = 4;

/// How long a caller's place at the socket is kept for its next call, before the driver reads again.
const TAKEOVER: Duration = Duration::from_millis(100);

/// Of a message that comes in pieces smaller than this, more is waited for.
const TRICKLE: usize = 64 * 1024;

/// So much of a message is worth being waited for, if it comes in pieces smaller than [`SEGMENTS`].
const WORTH_IT: usize = 16 * 1024;

/// A few segments of a slow link.
const SEGMENTS: usize = 8 * 1024;

/// A read of so much says that more of a large message will be there at once.
const FAST: usize = 16 * 1024;

/// How much is waited for of one that comes slowly.
const LOW_WATER: usize = 512 * 1024;

/// For how long a large message is read before its reader looks at something else.
const LONGEST_READ: Duration = Duration::from_millis(1);

/// A spin of one read, whatever tokio thinks of the socket.
const AT_ONCE: Duration = Duration::from_nanos(1);

/// Encoders kept for the next calls.
const SPARE_ENCODERS: usize = 8;

/// A connection shared by its callers and its driver.
pub(crate) struct Link {
    socket: Socket,
    peer: Peer,
    /// Whether the peer only answers, and the socket is read and written in place: then a lone caller may read for itself.
    client_only: bool,
    /// How long whoever waits asks the socket before it sleeps.
    spin: Duration,
    /// Of a large message that comes slowly, much is waited for.
    trickles: bool,
    state: Mutex<State>,
    /// Whether a reply came: from then on the server knows the code sets.
    answered: AtomicBool,
    /// Set when the link is dropped and oneways may be lost.
    lost_oneways: Arc<AtomicBool>,
}

struct State {
    machine: Connection,
    /// By the index of a call's slot.
    callers: Vec<Option<Waker>>,
    driver: Option<Waker>,
    /// The driver was woken and has not looked yet, or it is at work.
    driver_awake: bool,
    reading: bool,
    writing: bool,
    /// The socket took less than it was given: only the driver writes, when there is room.
    blocked: bool,
    /// The driver, not a caller, has its waker with the socket.
    driver_reads: bool,
    /// A ring that waits for octets holds no window, though the machine would lend one.
    quiet: bool,
    /// Replies that callers took from a ring since the driver ran.
    spins: usize,
    /// When a ring began to receive, and whether large messages come slowly there.
    receiving: (Instant, bool),
    /// When the driver looks whether callers still read for themselves.
    takeover: Option<Instant>,
    last_write: Option<Instant>,
    /// Messages that were left to the driver since something was written.
    gathered: u32,
    last_use: Instant,
    /// Octets of the last read.
    last_read: usize,
    /// How many octets must be there before the socket is readable.
    low_water: usize,
    /// The time when somebody last looked at the clock: near enough for everything but deadlines.
    clock: Instant,
    /// Oneways that wait for room in the queue, and flushes.
    room: Vec<Waker>,
    #[expect(clippy::vec_box, reason = "they travel through futures: a pointer is cheaper to move")]
    encoders: Vec<Box<Encoder>>,
    headers: Headers,
    /// Bulk arguments are shared, not copied into their message.
    shares: bool,
    /// What waits for the next chunk of a payload.
    stream: Option<Waker>,
    /// The driver has requests that it serves when more of what is queued is written.
    stalled: bool,
    /// The write side of the socket is shut down.
    shut_down: bool,
    /// When the driver's timer fires.
    armed: Option<Instant>,
}

impl Link {
    /// Wraps a connected socket. Its driver must be polled for as long as the link is used.
    pub(crate) fn new(socket: Socket, peer: Peer, config: Config, orb: &crate::orb::Config) -> Arc<Self> {
        let now = now();
        let in_place = socket.ring().is_none();
        let (client_only, shares) =
            (config.role == Role::Client && in_place && !config.accept_requests, config.deposit);
        let state = State {
            machine: Connection::new(config, now),
            callers: Vec::new(),
            driver: None,
            driver_awake: true,
            reading: false,
            writing: false,
            blocked: false,
            driver_reads: true,
            quiet: false,
            spins: 0,
            receiving: (now, false),
            takeover: None,
            last_write: None,
            gathered: 0,
            last_use: now,
            last_read: 0,
            low_water: 1,
            clock: now,
            room: Vec::new(),
            encoders: Vec::new(),
            headers: Headers::default(),
            shares,
            stream: None,
            stalled: false,
            shut_down: false,
            armed: None,
        };
        Arc::new(Self {
            socket,
            peer,
            client_only,
            spin: orb.latency.spin(),
            trickles: orb.low_water,
            state: Mutex::new(state),
            answered: AtomicBool::new(false),
            lost_oneways: Arc::default(),
        })
    }

    /// What was agreed with the server for text.
    pub(crate) fn set_code_sets(&self, code_sets: CodeSets) {
        self.lock().machine.set_code_sets(code_sets);
    }

    /// Sends no larger messages of GIOP 1.2 in one piece.
    pub(crate) fn cut_at(&self, size: usize) {
        self.lock().machine.cut_at(size);
    }

    /// Whether the peer may call objects of this ORB over it.
    pub(crate) fn takes_calls(&self) -> bool {
        self.lock().machine.accepts_requests()
    }

    /// Whether the peer calls objects of this ORB over it, and is not the ORB itself.
    pub(crate) fn serves_others(&self) -> bool {
        self.serves_others_in(&self.lock())
    }

    fn serves_others_in(&self, state: &State) -> bool {
        state.machine.accepts_requests() && !matches!(self.peer, Peer::Local)
    }

    /// Has the driver look at what it has.
    pub(crate) fn rouse(&self) {
        self.lock().wake_driver();
    }

    /// Lets the connection be idle for so long.
    pub(crate) fn set_idle_timeout(&self, timeout: Duration) {
        self.lock().machine.set_idle_timeout(timeout);
    }

    /// The other end.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What TLS found out about the other end.
    pub(crate) fn session(&self) -> Option<&Arc<TlsSession>> {
        self.socket.session()
    }

    /// Why it is closed, if the peer broke the protocol.
    pub(crate) fn protocol_error(&self) -> Option<giop_proto::ProtocolError> {
        match self.lock().machine.close_reason() {
            Some(CloseReason::Protocol(error)) => Some(*error),
            _ => None,
        }
    }

    /// Whether the server answered a request at least once: then it has seen what the first requests say of code sets and more.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// What was agreed with the peer for text.
    pub(crate) fn code_sets(&self) -> CodeSets {
        self.lock().machine.code_sets_in_force()
    }

    /// Where the client would listen, as it says.
    pub(crate) fn peer_listen_points(&self) -> Vec<ListenPoint> {
        self.lock().machine.peer_listen_points().to_vec()
    }

    /// Whether the current task can call over a connection that is driven in that runtime: a ring of a runtime's own serves that alone.
    pub(crate) fn serves_callers_of(&self, runtime: Option<tokio::runtime::Id>) -> bool {
        self.socket.ring().is_none()
            || self.thread().is_some()
            || tokio::runtime::Handle::try_current().is_ok_and(|here| Some(here.id()) == runtime)
    }

    /// The thread on which its driver must run; `None`: any.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.socket.thread()
    }

    /// Whether oneways may be lost, for whatever outlives the link: set when it is dropped.
    pub(crate) fn loss(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.lost_oneways)
    }

    /// What the connection counted so far.
    pub(crate) fn stats(&self) -> Stats {
        self.lock().machine.stats()
    }

    /// Whether new calls can be made.
    pub(crate) fn is_usable(&self) -> bool {
        let state = self.lock();
        !state.machine.is_closed() && !state.machine.is_closing()
    }

    /// Whether calls can be made still, by what serves requests of this connection while it closes.
    pub(crate) fn lets_call(&self) -> bool {
        self.lock().machine.takes_calls()
    }

    /// Closes in good order: requests under way are finished, new ones refused. Oneways that have come are executed.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if self.serves_others_in(&state) {
            state.machine.close_after_oneways(now());
        } else {
            state.machine.close(now());
        }
        state.driver_reads = true;
        state.wake_driver();
    }

    /// Closes at once.
    pub(crate) fn abort(&self, reason: CloseReason) {
        let mut state = self.lock();
        state.machine.abort(reason);
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    /// The replies in the queue, if they are many, and how long the peer needs for them: see [`Connection::reply_queue`].
    pub(crate) fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        self.lock().machine.reply_queue(now)
    }

    /// Closes the connection, because the peer takes its replies too slowly.
    pub(crate) fn give_up_slow_reader(&self) {
        let mut state = self.lock();
        state.machine.give_up_slow_reader();
        self.drain_events(&mut state, None);
        state.wake_driver();
    }

    /// How many calls wait for replies.
    pub(crate) fn calls_waiting(&self) -> usize {
        self.lock().machine.calls_waiting()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The machine keeps its invariants between any two of its methods.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is queued, unless somebody writes already, who goes on with it, or the socket is full: then the driver
    /// does when there is room.
    #[inline]
    fn flush<'a>(&'a self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Progress) {
        self.flush_by(state, Socket::try_write)
    }

    /// The same by another way to write.
    fn flush_by<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        write: impl Fn(&Socket, &mut Transmit) -> io::Result<Progress>,
    ) -> (MutexGuard<'a, State>, Progress) {
        if state.writing || state.blocked {
            return (state, Progress::Blocked);
        }
        let Some(mut transmit) = state.machine.take_transmit() else { return (state, Progress::Done) };
        (state.writing, state.gathered) = (true, 0);
        if let Some(ring) = self.socket.ring() {
            // It comes back to the driver: see `settle`.
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
                    match if round < ROUNDS { state.machine.take_transmit() } else { None } {
                        Some(more) => {
                            (transmit, state.gathered) = (more, 0);
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
                    state.blocked = true;
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
            state.writing = false;
            if state.wrote() && state.stalled {
                state.wake_driver();
            }
            return (state, progress);
        }
    }

    /// Wakes callers whose outcome is there. Where requests may be among the events, that is left to the driver, until the connection is
    /// closed: then none come.
    ///
    /// `awake` is the call whose caller runs this: it needs no waking, and its waker is kept for its next call.
    fn drain_events(&self, state: &mut State, awake: Option<CallId>) {
        if state.machine.accepts_requests() && !state.machine.is_closed() {
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

impl Link {
    /// Wakes the caller whose outcome is there.
    fn replied(&self, state: &mut State, call: CallId) {
        if let Some(waker) = state.callers.get_mut(call.index()).and_then(Option::take) {
            waker.wake();
        }
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

    /// Leaves the reading to the driver, also where callers read for themselves.
    fn let_driver_read(&mut self) {
        self.driver_reads = true;
        self.wake_driver();
    }

    /// Wakes whatever takes the stream for which a chunk has come.
    fn wake_stream(&mut self) {
        if self.stream.is_some() && self.machine.has_chunk() {
            self.stream.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Something was written: wakes who waits for that. Says whether the queue has room for any message.
    #[inline]
    fn wrote(&mut self) -> bool {
        let room = self.machine.backlog() < BACKLOG;
        if room || self.machine.has_growing_replies() {
            self.wake_room();
        }
        room
    }

    fn wake_room(&mut self) {
        self.stream.take().into_iter().for_each(Waker::wake); // it may be the end
        for waker in self.room.drain(..) {
            waker.wake();
        }
    }

    /// An empty encoder of that version in native byte order.
    fn encoder(&mut self, version: Version) -> Box<Encoder> {
        let mut encoder =
            self.encoders.pop().unwrap_or_else(|| Box::new(Encoder::new(ByteOrder::NATIVE, version)));
        if !self.shares {
            encoder.set_chunk_threshold(usize::MAX);
        }
        encoder.reset(ByteOrder::NATIVE, version);
        encoder
    }

    /// Frees encoders that keep more memory than that.
    fn release(&mut self, most: usize) {
        self.encoders.retain(|encoder| encoder.capacity() <= most);
    }

    fn keep_encoder(&mut self, encoder: Box<Encoder>) {
        if self.encoders.len() < SPARE_ENCODERS {
            self.encoders.push(encoder);
        }
    }

    /// Makes sure that the timer fires by then.
    fn rearm(&mut self, at: Instant) {
        if self.armed.is_none_or(|armed| at < armed) {
            self.wake_driver();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.lost_oneways.store(state.machine.lost_oneways(), Ordering::Release);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Whether no message of the peer is whole yet. Then its octets are read as they come: who has been silent is told from who sends by them
/// (`orb::guests`).
fn is_first(state: &State) -> bool {
    state.machine.received().0 == 0
}

/// The time of tokio's clock, which tests may stop.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
