//! Two machines that call each other over one connection. Whatever both do in whatever order, each call ends
//! once, and a request reported as not executed was not executed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::util::messages::{Ask, locate, locate_reply, reply};
use giop_codec::Version;
use giop_codec::cdr::CdrDecode as _;
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::giop::{LocateStatus, ReplyStatus, RequestId, ResponseFlags};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, CallId, Config, Connection, Event, Limits, Role, ServeToken, Transmit};
use proptest::prelude::*;

/// The next step. `side` performs it; `which` selects one of the existing items.
#[derive(Debug, Clone)]
enum Step {
    Call {
        side: usize,
        len: usize,
        version: Version,
        within: Option<u64>,
    },
    Oneway {
        side: usize,
        len: usize,
    },
    Locate {
        side: usize,
        version: Version,
    },
    Cancel {
        side: usize,
        which: usize,
    },
    Reply {
        side: usize,
        which: usize,
        len: usize,
    },
    Located {
        side: usize,
        which: usize,
    },
    /// Ends a write after this many bytes, or takes what is queued. With `hold` it is written later.
    Write {
        side: usize,
        octets: usize,
        hold: bool,
    },
    Read {
        side: usize,
        octets: usize,
    },
    Close {
        side: usize,
    },
    /// The connection breaks.
    Reset,
    /// Input that is not GIOP is received.
    Garbage {
        side: usize,
    },
    Wait {
        milliseconds: u64,
    },
}

/// A number that identifies a request on both sides.
type Tag = u32;

struct End {
    conn: Connection,
    /// Bytes on their way here.
    wire: VecDeque<u8>,
    lent: Option<Transmit>,
    calls: BTreeMap<(usize, u32), (CallId, Tag, bool)>,
    served: Vec<(ServeToken, RequestId, Version, Tag)>,
    locates: Vec<(RequestId, Version)>,
    closed: bool,
    eof: bool,
    shut: bool,
}

struct World {
    ends: [End; 2],
    now: Instant,
    next: Tag,
    /// Requests that were handed out to be executed.
    handed: BTreeSet<Tag>,
    /// Requests that were reported to a caller as not executed.
    refused: BTreeSet<Tag>,
    /// True if bytes were received that were never sent, so that their meaning is undefined.
    tainted: bool,
}

fn body(tag: Tag, len: usize) -> Vec<u8> {
    let mut body = tag.to_ne_bytes().to_vec();
    body.extend((0..len).map(|i| (i * 31) as u8));
    body
}

fn tag_of(octets: &[u8]) -> Tag {
    Tag::from_ne_bytes(*octets.first_chunk().unwrap())
}

impl World {
    fn new(fragments: [Option<usize>; 2]) -> Self {
        let now = Instant::now();
        let pool = Arc::new(BufferPool::new(64 << 20));
        let end = |role, fragment_size| {
            let mut limits = Limits::default();
            (limits.max_requests, limits.max_backlog) = (4, 20_000);
            let mut config = Config::new(role, Arc::new(limits), Arc::clone(&pool));
            (config.accepts_requests, config.fragment_size) = (true, fragment_size);
            End {
                conn: Connection::new(config, now),
                wire: VecDeque::new(),
                lent: None,
                calls: BTreeMap::new(),
                served: Vec::new(),
                locates: Vec::new(),
                closed: false,
                eof: false,
                shut: false,
            }
        };
        Self {
            ends: [end(Role::Client, fragments[0]), end(Role::Server, fragments[1])],
            now,
            next: 0,
            handed: BTreeSet::new(),
            refused: BTreeSet::new(),
            tainted: false,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Call { side, len, version, within } => self.call(side, len, version, within),
            Step::Oneway { side, len } => self.oneway(side, len),
            Step::Locate { side, version } => self.locate(side, version),
            Step::Cancel { side, which } => self.cancel(side, which),
            Step::Reply { side, which, len } => self.reply(side, which, len),
            Step::Located { side, which } => self.located(side, which),
            Step::Write { side, octets, hold } => self.write(side, octets, hold),
            Step::Read { side, octets } => drop(self.read(side, octets)),
            Step::Close { side } => self.ends[side].conn.close(self.now),
            Step::Reset => self.reset(),
            Step::Garbage { side } => {
                self.tainted = true;
                self.ends[side].wire.extend([0xff; 20]);
            }
            Step::Wait { milliseconds } => self.wait(Duration::from_millis(milliseconds)),
        }
        for side in [0, 1] {
            self.poll(side);
        }
    }

    fn start(&mut self, side: usize, within: Option<u64>) -> Option<(CallId, RequestId, Tag)> {
        let deadline = within.map(|within| self.now + Duration::from_millis(within));
        let end = &mut self.ends[side];
        let call = end.conn.start_call(deadline, self.now).ok()?;
        let id = end.conn.call(call).request_id();
        assert_eq!(id.0 & 1, side as u32, "who opened the connection has even ids");
        self.next += 1;
        let before = end.calls.insert((call.index(), id.0), (call, self.next, false));
        assert!(before.is_none(), "no two calls that wait have one id");
        Some((call, id, self.next))
    }

    fn call(&mut self, side: usize, len: usize, version: Version, within: Option<u64>) {
        let Some((call, id, tag)) = self.start(side, within) else { return };
        let ask = Ask { version, id: id.0, body: body(tag, len), ..Ask::default() };
        self.ends[side].conn.call(call).send_request(&mut ask.encoder());
    }

    fn oneway(&mut self, side: usize, len: usize) {
        self.next += 1;
        let tag = self.next;
        let conn = &mut self.ends[side].conn;
        let id = conn.next_oneway_id().0;
        let ask = Ask { id, response: ResponseFlags::None, body: body(tag, len), ..Ask::default() };
        if conn.send_oneway(&mut ask.encoder()).is_err() {
            self.refused.insert(tag);
        }
    }

    fn locate(&mut self, side: usize, version: Version) {
        let Some((call, id, _)) = self.start(side, None) else { return };
        self.ends[side].conn.call(call).send_locate(&mut locate(version, id, b"key"));
    }

    fn cancel(&mut self, side: usize, which: usize) {
        let end = &mut self.ends[side];
        let Some(key) = end.calls.keys().nth(which % end.calls.len().max(1)).copied() else { return };
        let (call, _, _) = end.calls.remove(&key).unwrap();
        end.conn.call(call).cancel();
    }

    fn reply(&mut self, side: usize, which: usize, len: usize) {
        let end = &mut self.ends[side];
        if end.served.is_empty() {
            return;
        }
        let (token, id, version, tag) = end.served.swap_remove(which % end.served.len());
        end.conn.request(token).send_reply(&mut reply(
            version,
            id,
            ReplyStatus::NoException,
            &body(tag, len),
        ));
    }

    fn located(&mut self, side: usize, which: usize) {
        let end = &mut self.ends[side];
        if !end.locates.is_empty() {
            let (id, version) = end.locates.swap_remove(which % end.locates.len());
            end.conn.send_locate_reply(&mut locate_reply(version, id, LocateStatus::ObjectHere));
        }
    }

    fn write(&mut self, side: usize, octets: usize, hold: bool) {
        let [client, server] = &mut self.ends;
        let (end, peer) = if side == 0 { (client, server) } else { (server, client) };
        let taken = end.lent.take();
        let fresh = taken.is_none();
        let Some(mut transmit) = taken.or_else(|| end.conn.take_transmit()) else { return };
        if fresh && hold {
            end.lent = Some(transmit);
            return;
        }
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        let written: Vec<u8> =
            slices[..used].iter().flat_map(|slice| slice.iter().copied()).take(octets).collect();
        if !peer.closed && !end.shut {
            peer.wire.extend(&written);
        }
        transmit.advance(written.len());
        end.conn.handle_written(transmit, self.now);
    }

    /// Reads once. Returns whether anything was received.
    fn read(&mut self, side: usize, octets: usize) -> bool {
        let end = &mut self.ends[side];
        if !end.conn.wants_read() || octets == 0 {
            return false;
        }
        if end.wire.is_empty() {
            if !std::mem::take(&mut end.eof) {
                return false;
            }
            end.conn.handle_eof(self.now);
            return true;
        }
        let mut buf = end.conn.take_read_buf();
        let mut n = 0;
        for mut slice in buf.io_slices() {
            let len = slice.len().min(end.wire.len()).min(octets - n);
            for (to, from) in slice.iter_mut().zip(end.wire.drain(..len)) {
                *to = from;
            }
            n += len;
        }
        end.conn.handle_read(buf, n, self.now);
        true
    }

    fn reset(&mut self) {
        for end in &mut self.ends {
            end.wire.clear();
            end.conn.handle_write_error(&io::ErrorKind::BrokenPipe.into(), self.now);
            end.conn.handle_read_error(&io::ErrorKind::ConnectionReset.into(), self.now);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for end in &mut self.ends {
            if end.conn.poll_timeout().is_some_and(|at| at <= self.now) {
                end.conn.handle_timeout(self.now);
            }
        }
    }

    /// Takes all events of a side.
    fn poll(&mut self, side: usize) -> bool {
        let mut any = false;
        while let Some(event) = self.ends[side].conn.poll_event() {
            any = true;
            assert!(!self.ends[side].closed, "nothing comes behind `Closed`");
            match event {
                Event::Request(request) => {
                    let octets = request.arguments().rest().to_vec();
                    if octets.len() >= 4 {
                        let tag = tag_of(&octets);
                        assert!(self.handed.insert(tag) || self.tainted, "handed out twice");
                        let sent = body(tag, octets.len() - 4);
                        assert!(octets == sent || self.tainted, "not what was sent");
                        let served = (request.token(), request.id(), request.version(), tag);
                        self.ends[side].served.push(served);
                    } else {
                        assert!(self.tainted);
                        self.ends[side].conn.request(request.token()).finish();
                    }
                }
                Event::Locate(locate) => self.ends[side].locates.push((locate.id(), locate.version())),
                Event::Cancelled(token) => {
                    assert!(self.ends[side].served.iter().any(|served| served.0 == token), "it is served");
                }
                Event::Reply(call) => self.outcome(side, call),
                Event::Closed => self.ends[side].closed = true,
            }
        }
        let [client, server] = &mut self.ends;
        let (end, peer) = if side == 0 { (client, server) } else { (server, client) };
        if (end.closed || end.conn.lifecycle().wants_shutdown()) && !end.shut {
            (end.shut, peer.eof, any) = (true, true, true);
        }
        if end.closed {
            end.wire.clear();
        }
        any
    }

    fn outcome(&mut self, side: usize, call: CallId) {
        let end = &mut self.ends[side];
        let key = end.calls.iter().find(|(_, known)| known.0 == call).map(|(key, _)| *key);
        let Some((_, tag, told)) = key.and_then(|key| end.calls.remove(&key)) else {
            // It was given up after its end was announced.
            assert!(end.conn.call(call).take_outcome().is_none());
            return;
        };
        assert!(!told);
        let completed = match end.conn.call(call).take_outcome().expect("what is announced is there") {
            Err(error) => error.completed(),
            Ok(reply) if reply.locate_status().is_some() => return,
            Ok(reply) if reply.status() == ReplyStatus::SystemException => {
                SystemException::decode(&mut reply.body()).map_or(CompletionStatus::Maybe, |e| e.completed)
            }
            Ok(reply) => {
                let octets = reply.body().rest().to_vec();
                assert!(
                    self.tainted || octets == body(tag, octets.len() - 4),
                    "the reply to another request"
                );
                assert!(self.tainted || self.handed.contains(&tag));
                return;
            }
        };
        if completed == CompletionStatus::No {
            self.refused.insert(tag);
        }
    }

    /// Answers and transfers everything until nothing changes any more.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "the pair comes to rest");
            let mut moved = false;
            for side in [0, 1] {
                while !self.ends[side].served.is_empty() {
                    self.reply(side, 0, 10);
                    moved = true;
                }
                while !self.ends[side].locates.is_empty() {
                    self.located(side, 0);
                    moved = true;
                }
                while self.ends[side].lent.is_some() || self.ends[side].conn.has_output() {
                    self.write(side, usize::MAX, false);
                    moved = true;
                }
                moved |= self.read(side, usize::MAX);
                moved |= self.poll(side);
            }
            if !moved {
                return;
            }
        }
    }

    /// Ends everything, and checks the invariants.
    fn end(mut self) {
        self.settle();
        for side in [0, 1] {
            let end = &self.ends[side];
            assert!(
                end.conn.pending_call_count() == 0 || self.tainted,
                "{side}: {} calls wait for what never comes",
                end.conn.pending_call_count()
            );
            assert!(self.tainted || end.calls.is_empty(), "{side}: each call was told its end");
        }
        let now = self.now;
        self.ends.iter_mut().for_each(|end| end.conn.close(now));
        self.settle();
        // A message with an announced size of 4 GiB has a timeout of 18 hours.
        for round in 0..1000 {
            if self.ends.iter().all(|end| end.closed) {
                break;
            }
            self.wait(Duration::from_millis(500 * round));
            self.settle();
        }
        for (side, end) in self.ends.iter().enumerate() {
            assert!(end.closed, "{side} comes to its end");
            assert!(end.calls.is_empty(), "{side}: each call was told its end");
            assert_eq!((end.conn.pending_call_count(), end.conn.output().backlog()), (0, 0), "{side}");
        }
        if !self.tainted {
            let both: Vec<_> = self.handed.intersection(&self.refused).collect();
            assert!(both.is_empty(), "executed, and said to be not: {both:?}");
        }
    }
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![8 => Just(Version::V1_2), 1 => Just(Version::V1_1), 1 => Just(Version::V1_0)]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0usize..100, 3 => 0usize..4000, 1 => 0usize..400_000]
}

fn octets() -> impl Strategy<Value = usize> {
    prop_oneof![1 => 1usize..40, 2 => 40usize..3000, 2 => Just(usize::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    let side = 0usize..2;
    let which = 0usize..16;
    prop_oneof![
        8 => (side.clone(), length(), version(), prop::option::weighted(0.2, 1u64..50)).prop_map(
            |(side, len, version, within)| Step::Call { side, len, version, within }
        ),
        2 => (side.clone(), length()).prop_map(|(side, len)| Step::Oneway { side, len }),
        1 => (side.clone(), version()).prop_map(|(side, version)| Step::Locate { side, version }),
        3 => (side.clone(), which.clone()).prop_map(|(side, which)| Step::Cancel { side, which }),
        6 => (side.clone(), which.clone(), length())
            .prop_map(|(side, which, len)| Step::Reply { side, which, len }),
        1 => (side.clone(), which).prop_map(|(side, which)| Step::Located { side, which }),
        10 => (side.clone(), octets(), any::<bool>())
            .prop_map(|(side, octets, hold)| Step::Write { side, octets, hold }),
        10 => (side.clone(), octets()).prop_map(|(side, octets)| Step::Read { side, octets }),
        1 => side.prop_map(|side| Step::Close { side }),
        2 => (0u64..30).prop_map(|milliseconds| Step::Wait { milliseconds }),
    ]
}

/// Steps that include broken connections.
fn harsh_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => step(),
        1 => Just(Step::Reset),
        1 => (0usize..2).prop_map(|side| Step::Garbage { side }),
        1 => (1000u64..200_000).prop_map(|milliseconds| Step::Wait { milliseconds }),
    ]
}

fn fragments() -> impl Strategy<Value = [Option<usize>; 2]> {
    prop::array::uniform2(prop::option::of(prop_oneof![24usize..600, 600usize..70_000]))
}

fn run(fragments: [Option<usize>; 2], steps: &[Step]) {
    let mut world = World::new(fragments);
    steps.iter().for_each(|step| world.step(step));
    world.end();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // clause: giop.bidir.requests, giop.bidir.parity
    #[test]
    fn calls_in_both_directions_end_once_and_as_they_are_said_to(
        fragments in fragments(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        run(fragments, &steps);
    }

    #[test]
    fn they_do_where_connections_break(
        fragments in fragments(),
        steps in prop::collection::vec(harsh_step(), 0..120),
    ) {
        run(fragments, &steps);
    }
}

/// Both sides close, each with a request in flight that the other has not read.
// clause: giop.bidir.requests
#[test]
fn two_sides_that_close_at_the_same_time_do_not_wait_for_each_other() {
    let call = |side| Step::Call { side, len: 500, version: Version::V1_2, within: None };
    for fragments in [None, Some(64)] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let locate = |side| Step::Locate { side, version };
            let [closes, other_closes] = [0, 1].map(|side| Step::Close { side });
            run([fragments; 2], &[call(0), call(1), locate(0), closes.clone(), other_closes.clone()]);
            run([fragments; 2], &[locate(0), locate(1), closes, other_closes]);
        }
    }
}

#[test]
fn what_waited_is_cut_before_more_is_read() {
    let call = |len| Step::Call { side: 1, len, version: Version::V1_2, within: None };
    let oneway = Step::Oneway { side: 1, len: 0 };
    // The start of the last one is in a window with requests that had to wait.
    run([None, None], &[call(70_358), call(0), call(0), call(0), oneway, call(0), call(70_111)]);
}
