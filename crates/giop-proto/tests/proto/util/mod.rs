//! Two machines joined in memory, with simulated time, and the messages that they exchange.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // used in part

pub mod cutting;
pub mod messages;
pub mod streamed;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use giop_proto::outbox::MAX_SLICES;
use giop_proto::{
    BufferPool, CallError, CallId, Config, Connection, Event, IncomingLocate, IncomingRequest, Limits, Reply,
    Role, ServeToken,
};

/// The portions in which the bytes of a stream arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As they were written.
    Whole,
    /// In two parts: no read goes beyond this byte of the stream.
    At(usize),
    /// One at a time, and written one at a time.
    Octets,
}

/// One end of the pair.
pub struct Side {
    pub conn: Connection,
    /// Bytes on their way to this side.
    pub wire: VecDeque<u8>,
    /// The number of bytes read so far.
    pub read: usize,
    /// The number of reads.
    pub reads: usize,
    /// The peer has closed its side.
    pub eof: bool,
    /// False if the input and output of this side are left alone.
    pub awake: bool,
    pub requests: VecDeque<IncomingRequest>,
    pub locates: VecDeque<IncomingLocate>,
    pub cancelled: Vec<ServeToken>,
    pub answered: Vec<CallId>,
    pub closed: bool,
    shut: bool,
}

/// A client and a server machine.
pub struct Pair {
    pub client: Side,
    pub server: Side,
    pub now: Instant,
    pub cut: Cut,
    pub pool: Arc<BufferPool>,
}

impl Side {
    fn new(config: Config, now: Instant) -> Self {
        Self {
            conn: Connection::new(config, now),
            wire: VecDeque::new(),
            read: 0,
            reads: 0,
            eof: false,
            awake: true,
            requests: VecDeque::new(),
            locates: VecDeque::new(),
            cancelled: Vec::new(),
            answered: Vec::new(),
            closed: false,
            shut: false,
        }
    }

    /// Returns the outcome of a call, which must be available.
    pub fn outcome(&mut self, call: CallId) -> Result<Reply, CallError> {
        assert!(self.answered.contains(&call), "the call was not announced");
        self.conn.call(call).take_outcome().expect("the call has an outcome")
    }

    /// Puts bytes on the wire to this side, as if sent by another implementation.
    pub fn inject(&mut self, octets: &[u8]) {
        self.wire.extend(octets);
    }

    /// Polls all events.
    pub fn poll(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.conn.poll_event() {
            any = true;
            assert!(!self.closed, "nothing comes after `Closed`");
            match event {
                Event::Request(request) => self.requests.push_back(request),
                Event::Locate(locate) => self.locates.push_back(locate),
                Event::Cancelled(token) => self.cancelled.push(token),
                Event::Reply(call) => self.answered.push(call),
                Event::Closed => self.closed = true,
            }
        }
        any
    }

    /// Performs one round of the driver's loop. Returns whether anything happened.
    fn step(&mut self, peer: &mut Self, cut: Cut, now: Instant) -> bool {
        if !self.awake {
            return false;
        }
        let mut moved = self.poll();
        if !self.closed {
            moved |= self.write(&mut peer.wire, cut, now);
        }
        if (self.closed || self.conn.lifecycle().wants_shutdown()) && !self.shut {
            self.shut = true;
            peer.eof = true;
            moved = true;
        }
        if self.closed {
            self.wire.clear();
            return moved;
        }
        moved | self.read_once(cut, now)
    }

    /// Reads once, if the machine wants to and there is anything.
    fn read_once(&mut self, cut: Cut, now: Instant) -> bool {
        if !self.conn.wants_read() {
            return false;
        }
        if self.wire.is_empty() {
            if self.eof && !self.closed {
                self.eof = false;
                self.conn.handle_eof(now);
                return true;
            }
            return false;
        }
        let most = match cut {
            Cut::Whole => usize::MAX,
            Cut::At(at) if self.read < at => at - self.read,
            Cut::At(_) => usize::MAX,
            Cut::Octets => 1,
        };
        let mut buf = self.conn.take_read_buf();
        assert!(buf.capacity() > 0, "a lent buffer takes something");
        let mut n = 0;
        for mut slice in buf.io_slices() {
            let len = slice.len().min(self.wire.len()).min(most - n);
            for (to, from) in slice.iter_mut().zip(self.wire.drain(..len)) {
                *to = from;
            }
            n += len;
        }
        self.read += n;
        self.reads += 1;
        self.conn.handle_read(buf, n, now);
        true
    }

    /// Writes what is queued to the other side's wire.
    fn write(&mut self, to: &mut VecDeque<u8>, cut: Cut, now: Instant) -> bool {
        let Some(mut transmit) = self.conn.take_transmit() else { return false };
        while !transmit.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let octets: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
            let n = if cut == Cut::Octets { 1 } else { octets.len() };
            to.extend(&octets[..n]);
            transmit.advance(n);
            if cut == Cut::Octets {
                break;
            }
        }
        self.conn.handle_written(transmit, now);
        true
    }
}

impl Pair {
    pub fn new(cut: Cut) -> Self {
        Self::with_limits(cut, Limits::default(), Limits::default())
    }

    pub fn with_limits(cut: Cut, client: Limits, server: Limits) -> Self {
        let pool = Arc::new(BufferPool::new(64 << 20));
        let config = |role, limits| Config::new(role, Arc::new(limits), Arc::clone(&pool));
        Self::with_configs(cut, config(Role::Client, client), config(Role::Server, server))
    }

    pub fn with_configs(cut: Cut, client: Config, server: Config) -> Self {
        let now = Instant::now();
        let pool = Arc::clone(&server.pool);
        Self { client: Side::new(client, now), server: Side::new(server, now), now, cut, pool }
    }

    /// Lets time pass for both sides.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        for side in [&mut self.client, &mut self.server] {
            if side.conn.poll_timeout().is_some_and(|at| at <= self.now) {
                side.conn.handle_timeout(self.now);
            }
        }
        self.drive();
    }

    /// Transfers bytes in both directions until nothing changes any more.
    pub fn drive(&mut self) {
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < 1_000_000, "the pair never comes to rest");
            let moved = self.client.step(&mut self.server, self.cut, self.now)
                | self.server.step(&mut self.client, self.cut, self.now);
            if !moved {
                return;
            }
        }
    }
}

/// Runs a scenario with its streams whole, cut at every byte, and byte by byte.
pub fn every_cut(scenario: impl Fn(&mut Pair)) {
    every_cut_with(Limits::default(), Limits::default(), scenario);
}

/// Runs [`every_cut`] with separate limits for client and server.
pub fn every_cut_with(client: Limits, server: Limits, scenario: impl Fn(&mut Pair)) {
    let run = |cut| {
        let mut pair = Pair::with_limits(cut, client.clone(), server.clone());
        scenario(&mut pair);
        pair.client.read.max(pair.server.read)
    };
    let octets = run(Cut::Whole);
    run(Cut::Octets);
    let step = (octets / 2048).max(1); // cuts long streams at intervals
    for at in (1..octets).step_by(step) {
        run(Cut::At(at));
    }
}
