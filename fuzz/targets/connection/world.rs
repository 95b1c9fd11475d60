//! Everything that happens to one machine, or to two.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use giop_codec::cdr::{CdrDecode, Encoder};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::giop::{MessageHeader, MessageType, ReplyStatus, ResponseFlags};

use giop_proto::pool::WINDOW_SIZE;
use giop_proto::{
    BufferPool, CallId, CloseReason, Event, IncomingRequest, Limit, Limits, Reply, RequestBudget, Role,
    SentPart,
};

use crate::end::{Answer, End, STREAMED, Served, Setup};
use crate::messages::{Ask, Tag, bare, body, locate, locate_reply, pieces, reply, tag_of};
use crate::requests::Way;
use crate::streams::Payload;
use crate::tape::Tape;

/// The machines, the data in transit between them, and the expected state.
pub struct World {
    /// One machine connected to a stranger, or two connected to each other.
    pub ends: Vec<End>,
    pub now: Instant,
    /// The last tag that was assigned.
    pub next: Tag,
    /// Tags of requests that were delivered for execution.
    handed: BTreeSet<Tag>,
    /// Tags of requests whose callers were notified that they were not executed.
    pub refused: BTreeSet<Tag>,
    /// Tags of requests that were executed without an answer.
    pub unanswered: BTreeSet<Tag>,
    /// A request that expects an answer got none.
    pub silent: bool,
    /// The oneways of each side, and those that arrived, in order.
    pub oneways: [Vec<Tag>; 2],
    came: [Vec<Tag>; 2],
    /// Bytes arrived that no machine sent: their effect is unknown.
    tainted: bool,
    /// Something was aborted before its end.
    pub disturbed: bool,
    pub cancelled: bool,
    /// Why calls without a deadline failed.
    failures: Vec<String>,
    /// Requests are kept for a while.
    keeps: bool,
    /// Bytes of bodies that may still be created.
    budget: usize,
}

pub fn run(mut tape: Tape<'_>) {
    let start = Instant::now();
    let (mut world, setup) = World::new(&mut tape, start);
    while !tape.is_over() {
        world.step(&mut tape);
        for side in 0..world.ends.len() {
            world.poll(side);
            world.ends[side].check();
        }
        assert!(setup.budget.taken() <= setup.limits.max_total_requests, "more than all may have");
    }
    world.end();
    let stats = setup.pool.stats();
    assert_eq!((stats.outside, stats.held), (0, stats.free), "somebody keeps memory");
    assert_eq!(setup.budget.taken(), 0, "somebody keeps requests");
}

/// Returns limits that are small enough to be reached.
fn limits(small: u16) -> Limits {
    let mut limits = Limits::default();
    let choose = |many: u16, at: u16| usize::from((small >> at) % many);
    limits.max_requests = [256, 1, 2, 5][choose(4, 0)];
    limits.max_backlog = [1 << 20, 20_000, 3000, 1][choose(4, 2)];
    limits.max_message_size = [16 << 20, 100_000, 20_000, 2000][choose(4, 4)];
    limits.max_fragmented = [8, 2][choose(2, 6)];
    limits.max_fragment_memory = [16 << 20, 70_000, 30_000, 3000][choose(4, 7)];
    limits.max_control_rate = [10_000, 3][choose(2, 9)] as u32;
    limits.max_total_requests = [16 << 10, 0, 1, 20][choose(4, 10)];
    limits.max_stream_size = [u32::MAX as u64, 30_000][choose(2, 12)];
    limits
}

fn pool(small: u16) -> BufferPool {
    BufferPool::new([64 << 20, 2 << 20, 4 * WINDOW_SIZE, WINDOW_SIZE][usize::from(small >> 13) % 4])
}

impl World {
    fn new(tape: &mut Tape<'_>, now: Instant) -> (Self, Setup) {
        // A capture alone is given to the side that it is for.
        let (mode, small) = match tape.rest().first_chunk().map(MessageHeader::decode) {
            Some(Ok(header)) => match header.kind {
                MessageType::Reply | MessageType::LocateReply => (0, 0),
                _ => (1, 0),
            },
            _ => (tape.octet(), tape.word()),
        };
        let limits = Arc::new(limits(small));
        let setup = Setup {
            pool: Arc::new(pool(small)),
            budget: Arc::new(RequestBudget::new(limits.max_total_requests)),
            limits,
            both_serve: mode & 0x04 == 0,
            deposit: mode & 0x08 == 0,
            streams: mode & 0x10 == 0,
        };
        let mut cuts = |bit| (mode & bit != 0).then(|| 24 + 8 * tape.length());
        let (first, second) = (cuts(0x20), cuts(0x40));
        let ends = match mode % 4 {
            0 => vec![End::new(Role::Client, &setup, first, now)],
            1 => vec![End::new(Role::Server, &setup, first, now)],
            _ => {
                vec![End::new(Role::Client, &setup, first, now), End::new(Role::Server, &setup, second, now)]
            }
        };
        let world = Self {
            tainted: ends.len() == 1,
            ends,
            now,
            next: 0,
            handed: BTreeSet::new(),
            refused: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            silent: false,
            oneways: [Vec::new(), Vec::new()],
            came: [Vec::new(), Vec::new()],
            disturbed: false,
            cancelled: false,
            failures: Vec::new(),
            keeps: mode & 0x80 != 0,
            // Many small pieces take as long as few large ones.
            budget: first.into_iter().chain(second).map(|piece| piece * 1000).fold(1 << 20, usize::min),
        };
        (world, setup)
    }

    /// Returns the length of a body, reduced to the remaining budget.
    pub fn afford(&mut self, len: usize) -> usize {
        let len = len.min(self.budget);
        self.budget -= len;
        len
    }

    /// Returns whether the other side serves requests, or true if that is unknown.
    pub fn may_ask(&self, side: usize) -> bool {
        self.ends.get(1 - side).is_none_or(|peer| peer.conn.accepts_requests())
    }

    /// Returns the lowest bit of the request ids of a side.
    pub fn parity(&self, side: usize) -> u32 {
        u32::from(self.ends[side].role == Role::Server)
    }

    fn step(&mut self, tape: &mut Tape<'_>) {
        if tape.rest().first() == Some(&b'G') {
            self.feed(0, tape.message());
            return;
        }
        let op = tape.octet();
        let side = usize::from(op >> 7) % self.ends.len();
        let now = self.now;
        self.trace(
            side,
            &format_args!("operation {} {:02x?}", op & 0x1f, &tape.rest()[..tape.rest().len().min(8)]),
        );
        match op & 0x1f {
            0 | 1 => self.request(side, Way::Whole, false, tape),
            2 => self.request(side, Way::Whole, true, tape),
            3 => self.request(side, Way::Parts, op & 0x40 != 0, tape),
            4 => self.request(side, Way::Flow, op & 0x40 != 0, tape),
            5 => self.locate(side, tape),
            6 => self.cancel(side, tape),
            7 => self.part(side, tape),
            8 => self.flow(side, tape),
            9 | 10 => self.answer(side, 0, tape),
            11 => self.answer(side, 1, tape),
            12 => self.answer(side, 2, tape),
            13 | 14 => self.answer(side, 3, tape),
            15 => self.answer(side, 4, tape),
            16 => self.answer(side, 5, tape),
            17 => self.located(side, tape),
            18 | 19 => {
                self.write(side, tape.portion(), op & 0x40 != 0);
            }
            20 | 21 => {
                self.ends[side].read(tape.portion(), op & 0x40 != 0, now);
            }
            22 => self.disturbed |= !self.ends[side].read_early(tape.portion(), now),
            23 => self.wait(tape.octet()),
            24 => self.payload(side, tape),
            25 => self.message(side, tape),
            26 => self.next_piece(side, tape),
            27 => {
                let len = tape.octet();
                self.feed(side, tape.take(usize::from(len)));
            }
            28 => self.ends[side].conn.close(now),
            29 => self.break_off(side, tape.octet()),
            30 => self.ends[side].kept.clear(),
            _ => self.settle(),
        }
        if op & 0x1f == 28 {
            self.disturbed = true;
        }
    }

    /// Prints the operation, if requested: `ZORB_TRACE=1 fuzz/run connection FILE`.
    fn trace(&self, side: usize, what: &dyn fmt::Display) {
        static ASKED: OnceLock<bool> = OnceLock::new();
        if *ASKED.get_or_init(|| std::env::var_os("ZORB_TRACE").is_some()) {
            eprintln!("{side}: {what}");
        }
    }

    /// Feeds bytes of a stranger.
    fn feed(&mut self, side: usize, octets: &[u8]) {
        self.tainted = true;
        self.ends[side].doubt_payloads();
        self.ends[side].out.asked_twice = true;
        self.ends[side].wire.extend(octets);
    }

    /// Feeds a message of a stranger, with mistakes, whole or in pieces.
    fn message(&mut self, side: usize, tape: &mut Tape<'_>) {
        let (kind, version, order) = (tape.octet(), tape.version(), tape.order());
        let id = self.ends[side].some_id(tape);
        let body = body(u32::from(kind), self.afford(tape.length()));
        let key = if kind & 0x10 == 0 { STREAMED } else { b"key" };
        let flags = if kind & 0x20 == 0 { ResponseFlags::Target } else { ResponseFlags::None };
        let octets = |e: Encoder| e.into_bytes().to_vec();
        let mut message = match kind % 8 {
            0 => octets(reply(version, order, id, body, 0)),
            1 => octets(locate(version, id)),
            2 => octets(locate_reply(version, order, id)),
            3 => bare(version, order, MessageType::CancelRequest, Some(id.0)),
            4 => bare(version, order, MessageType::CloseConnection, None),
            5 => bare(version, order, MessageType::MessageError, None),
            _ => octets(Ask { version, order, id, response: flags, key, body, coming: 0 }.encoder()),
        };
        for _ in 0..tape.octet() % 4 {
            let (at, with) = (usize::from(tape.octet()) % message.len().min(200), tape.octet());
            message[at] ^= with;
        }
        if kind & 0x40 == 0 {
            self.feed(side, &message);
        } else {
            let (at, step) = (tape.length(), tape.length());
            let pieces = pieces(&message, at, step.max(message.len() / 64));
            self.ends[side].pieces.push(pieces.into());
        }
    }

    fn next_piece(&mut self, side: usize, tape: &mut Tape<'_>) {
        let end = &mut self.ends[side];
        let Some(which) = tape.pick(end.pieces.len()) else { return };
        match end.pieces[which].pop_front() {
            Some(piece) => self.feed(side, &piece),
            None => drop::<VecDeque<_>>(end.pieces.swap_remove(which)),
        }
    }

    fn break_off(&mut self, side: usize, how: u8) {
        self.disturbed = true;
        let (now, end) = (self.now, &mut self.ends[side]);
        match how % 6 {
            0 => {
                end.broken = true;
                end.conn.handle_write_error(&io::ErrorKind::BrokenPipe.into(), now);
            }
            1 => {
                end.ended = true;
                end.conn.handle_read_error(&io::ErrorKind::ConnectionReset.into(), now);
            }
            2 => end.eof = true,
            3 => end.conn.abort(CloseReason::Local),
            4 => end.conn.set_idle_timeout(Duration::from_millis(how.into())),
            _ => {
                for end in &mut self.ends {
                    end.wire.clear();
                    (end.ended, end.broken) = (true, true);
                    end.conn.handle_write_error(&io::ErrorKind::BrokenPipe.into(), now);
                    end.conn.handle_read_error(&io::ErrorKind::ConnectionReset.into(), now);
                }
            }
        }
    }

    fn wait(&mut self, time: u8) {
        self.pass(match time {
            0..0x80 => Duration::from_millis(time.into()),
            long => Duration::from_secs(u64::from(long - 0x7f) * 3),
        });
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for side in 0..self.ends.len() {
            // A call that ends in the middle of its request ends the connection.
            self.disturbed |= self.ends[side].is_blocked();
            self.ends[side].tick(self.now);
            self.poll(side);
        }
    }

    fn write(&mut self, side: usize, most: usize, hold: bool) -> bool {
        let octets = self.ends[side].write(most, hold, self.now);
        let shut = self.ends[side].shut;
        if let (Some(octets), Some(peer)) = (&octets, self.ends.get_mut(1 - side))
            && !peer.closed
            && !shut
        {
            peer.wire.extend(octets);
        }
        octets.is_some()
    }

    /// Takes all events of a side.
    fn poll(&mut self, side: usize) -> bool {
        let mut any = false;
        while let Some(event) = self.ends[side].conn.poll_event() {
            any = true;
            self.trace(side, &kind(&event));
            let end = &mut self.ends[side];
            assert!(!end.closed, "nothing comes behind `Closed`: {event:?}");
            match event {
                Event::Request(request) => self.serve(side, request),
                Event::Locate(locate) => {
                    end.locates.push((locate.id(), locate.version(), locate.order()));
                }
                Event::Cancelled(token) => {
                    let served = end.served.iter_mut().find(|served| served.token == token);
                    let served = served.expect("it is served");
                    assert!(!served.cancelled, "once");
                    assert!(!matches!(served.answer, Answer::Sent), "it has its answer");
                    served.cancelled = true;
                }
                Event::Reply(call) => self.outcome(side, call),
                Event::Closed => {
                    end.closed = true;
                    let reason = format!("since {:?}", end.conn.lifecycle().close_reason());
                    self.trace(side, &reason);
                }
            }
        }
        let end = &mut self.ends[side];
        if end.closed {
            end.wire.clear();
        }
        if (end.closed || end.conn.lifecycle().wants_shutdown()) && !end.shut {
            (end.shut, any) = (true, true);
            if let Some(peer) = self.ends.get_mut(1 - side) {
                peer.eof = true;
            }
        }
        any
    }

    fn serve(&mut self, side: usize, request: IncomingRequest) {
        let arguments = request.arguments().rest().to_vec();
        self.trace(side, &format_args!("request {:?}", arguments.first_chunk::<4>()));
        let first = arguments.first_chunk().map(|tag| Tag::from_ne_bytes(*tag));
        let tag = if request.stream_len() > 0 { first } else { tag_of(&arguments) };
        assert!(tag.is_some() || self.tainted, "not what was sent");
        if let Some(tag) = tag {
            assert!(self.handed.insert(tag) || self.tainted, "handed out twice");
            if !request.response().expects_reply() {
                self.came[side].push(tag);
            }
        }
        let end = &mut self.ends[side];
        assert!(end.served.iter().all(|served| served.token != request.token()), "a token of its own");
        if request.stream_len() > 0 {
            end.payloads.push(Payload::new(request.token(), &arguments, !self.tainted));
        }
        end.served.push(Served {
            token: request.token(),
            id: request.id(),
            version: request.version(),
            order: request.order(),
            response: request.response(),
            tag,
            cancelled: false,
            answer: Answer::Open,
        });
        if self.keeps {
            end.kept.push(request);
        }
    }

    fn outcome(&mut self, side: usize, id: CallId) {
        let end = &mut self.ends[side];
        let Some(at) = end.calls.iter().position(|call| call.id == id) else {
            assert!(end.given_up.contains(&id), "the end of no call");
            assert!(end.conn.call(id).take_outcome().is_none());
            return;
        };
        let call = end.calls.swap_remove(at);
        let outcome = end.conn.call(id).take_outcome().expect("what is announced is there");
        self.trace(side, &format_args!("call {} ends: {:?}", call.tag, outcome.as_ref().err()));
        let end = &mut self.ends[side];
        assert!(end.conn.call(id).take_outcome().is_none() && end.conn.call(id).has_ended(), "it ends once");
        let completed = match outcome {
            Ok(reply) => self.answered(call.tag, &reply),
            // The caller knows that the operation is streamed, and that it may therefore have begun.
            Err(error) if call.streamed && error.sent == SentPart::Partly => CompletionStatus::Maybe,
            Err(error) => {
                if !call.timed {
                    self.failures.push(error.to_string());
                }
                error.completed()
            }
        };
        if completed == CompletionStatus::No {
            self.refused.insert(call.tag);
        }
    }

    fn answered(&mut self, tag: Tag, reply: &Reply) -> CompletionStatus {
        if reply.locate_status().is_some() {
            return CompletionStatus::Yes;
        }
        if reply.status() == ReplyStatus::SystemException {
            self.failures.push("a system exception".into());
            return SystemException::decode(&mut reply.body())
                .map_or(CompletionStatus::Maybe, |e| e.completed);
        }
        let octets = reply.body().rest().to_vec();
        assert!(self.tainted || tag_of(&octets) == Some(tag), "the reply to another request");
        assert!(self.tainted || self.handed.contains(&tag));
        CompletionStatus::Yes
    }

    /// Answers and moves all data until nothing moves any more.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "they come to rest");
            let mut moved = false;
            for side in 0..self.ends.len() {
                moved |= self.move_on(side);
            }
            // A machine that waits for memory retries soon.
            let soon = self.ends.iter().filter_map(|end| end.conn.poll_timeout()).min();
            match soon {
                Some(at) if !moved && at <= self.now + Duration::from_millis(100) => {
                    self.pass(at.saturating_duration_since(self.now) + Duration::from_nanos(1));
                }
                _ if moved => {}
                _ => return,
            }
        }
    }

    fn move_on(&mut self, side: usize) -> bool {
        let now = self.now;
        let end = &mut self.ends[side];
        let mut moved = end.part.is_some() || end.flow.is_some();
        end.send_part(usize::MAX);
        end.send_flow(usize::MAX);
        end.kept.clear();
        for which in (0..end.served.len()).rev() {
            end.finish(which, 10);
            moved |= end.served.len() == which;
        }
        for which in (0..end.locates.len()).rev() {
            end.answer_locate(which);
            moved |= end.locates.len() == which;
        }
        moved |= end.take_all(now);
        while self.write(side, usize::MAX, false) {
            moved = true;
        }
        moved |= self.poll(side);
        self.ends[side].read(usize::MAX, false, now) | self.poll(side) | moved
    }

    /// Ends everything, and checks the final invariants.
    fn end(mut self) {
        self.settle();
        if self.ends.len() == 2 {
            self.check_pair();
        }
        let now = self.now;
        let alone = self.ends.len() == 1;
        for end in &mut self.ends {
            end.conn.close(now);
            end.eof |= alone;
        }
        self.settle();
        // A message with an announced size of 4 GiB has a deadline of 18 hours.
        for round in 0..1000 {
            if self.ends.iter().all(|end| end.closed) {
                break;
            }
            self.pass(Duration::from_millis(500 * round));
            self.settle();
        }
        if self.silent {
            // A call without a deadline would wait forever for an answer that never comes. In practice, the
            // driver closes the connection earlier.
            for end in &mut self.ends {
                end.conn.abort(CloseReason::Local);
            }
            self.settle();
        }
        for end in &mut self.ends {
            assert!(end.closed, "it comes to its end: {:?}", end.conn);
            end.check();
            assert!(end.calls.is_empty(), "each call was told its end");
            assert!(end.writer.is_none() && end.conn.output().backlog() == 0);
            drop(end.conn.input_mut().take_orphaned_loans());
            if let Some(buf) = end.reader.take() {
                end.conn.handle_read(buf, 0, now);
            }
        }
        if !self.tainted {
            let both = self.handed.intersection(&self.refused);
            let both: Vec<_> = both.filter(|tag| !self.unanswered.contains(tag)).collect();
            assert!(both.is_empty(), "executed, and said to be not: {both:?}");
        }
    }

    /// Checks that everything was delivered, if two machines were not disturbed and no limit was reached.
    fn check_pair(&self) {
        let limited = |end: &End| {
            let stats = end.conn.stats();
            let hit = |limit: &&Limit| !matches!(limit, Limit::Pool | Limit::CallTime);
            let hits = Limit::ALL.iter().filter(hit).any(|limit| stats.limit_hits.of(*limit) > 0);
            // Before GIOP 1.2 a locate may be refused without a notification.
            hits || stats.requests_refused > 0 || stats.requests_dropped > 0
        };
        if self.tainted || self.disturbed || self.ends.iter().any(limited) {
            return;
        }
        assert!(self.failures.is_empty(), "{:?}", self.failures);
        for (side, end) in self.ends.iter().enumerate() {
            assert!(!end.conn.lifecycle().is_closing(), "{:?}", end.conn.lifecycle().close_reason());
            assert!(end.calls.is_empty(), "calls wait for what never comes");
            assert!(
                end.wire.is_empty() && end.out.is_whole() && end.payloads.is_empty(),
                "something is left"
            );
            assert_eq!(self.oneways[side], self.came[1 - side], "oneways come once and in their order");
            let late = self.cancelled
                || self.ends.iter().any(|end| end.conn.stats().limit_hits.of(Limit::CallTime) > 0);
            assert!(late || end.conn.stats().stray_messages == 0, "a stray");
        }
    }
}

fn kind(event: &Event) -> &'static str {
    match event {
        Event::Request(_) => "a request",
        Event::Locate(_) => "a locate",
        Event::Cancelled(_) => "a cancel",
        Event::Reply(_) => "the end of a call",
        Event::Closed => "closed",
    }
}
