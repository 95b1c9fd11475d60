//! The task of a connection: it reads where no caller does, serves requests in place, finishes writes and keeps time.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use giop_codec::ByteOrder;
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateReplyHeader, LocateStatus, MessageType, ResponseFlags, finish_message, put_message_header,
};
use giop_proto::{CloseReason, Event, IncomingLocate, IncomingRequest, ServeToken};
use tokio::time::Sleep;

use super::{Link, State, TAKEOVER, now};
use crate::orb::OrbCore;
use crate::poa::core::{Gate, PoaCore};
use crate::poa::manager::Held;
use crate::serve::Request;
use crate::serve::adapter::Located;
use crate::serve::entry::Entry;
use crate::serve::request::{Outcome, ReplyTo};
use crate::serve::running::{Running, SPARE_SLOTS, Shut};
use crate::serve::waiting::{Until, Waiting};
use crate::trace::{self, Way};

/// Requests served, or time spent, before other tasks get their turn.
const BURST: usize = 64;
const SLICE: Duration = Duration::from_micros(200);

/// What serves the requests that come in on a connection.
pub(crate) struct Service {
    pub(crate) orb: Arc<OrbCore>,
}

/// Requests that are taken from the machine, served and answered together: the lock is taken once for all of them.
const TOGETHER: usize = SPARE_SLOTS;

/// Octets of replies that are queued before more requests are served.
const REPLIES: usize = 64 * 1024;

/// The driver of one link: a future that ends when the connection does.
pub(crate) struct Driver {
    link: Arc<Link>,
    orb: Arc<OrbCore>,
    /// Among those that wait for `Orb::accept`.
    number: u64,
    running: Running,
    /// The object of the last request.
    last: Option<Arc<Entry>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The task has another waker than the timer knows.
    moved: bool,
    /// Requests that may not start yet.
    waiting: Option<Box<Waiting>>,
    /// Requests that are to be served together, and what came of them. Empty but for their memory.
    together: VecDeque<IncomingRequest>,
    outcomes: Vec<Outcome>,
    finished: Vec<ServeToken>,
}

impl Driver {
    pub(crate) fn new(link: Arc<Link>, service: Service, number: u64) -> Self {
        let template = Request::idle(Arc::clone(&service.orb), link.peer().clone());
        let home = link.thread().and_then(|_| service.orb.home().cloned());
        let running = Running::new(template, service.orb.config.deposit, Arc::clone(&link), home);
        Self {
            link,
            orb: service.orb,
            number,
            running,
            last: None,
            timer: None,
            moved: false,
            waiting: None,
            together: VecDeque::new(),
            outcomes: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Starts a request. Called without the lock: a servant's code runs here.
    fn serve(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        if incoming.announces() {
            self.orb.learn_ways_back(&self.link);
        }
        if self.orb.is_holding(cx, self.number)
            || self.waiting.as_ref().is_some_and(|waiting| waiting.is_for_all())
        {
            self.put_off(incoming, Until::Accepting);
            return None;
        }
        if trace::wire_enabled() {
            let octets = incoming.message();
            trace::wire(Way::In, self.link.peer(), incoming.operation(), octets, octets.len());
        }
        let sets = Some(incoming.code_sets());
        self.find(incoming.key());
        let Some(entry) = &self.last else { return self.absent(cx, incoming) };
        if self.waiting.as_ref().is_some_and(|waiting| waiting.is_for(&entry.poa)) {
            let poa = Arc::clone(&entry.poa);
            return self.closed(cx, &poa, incoming);
        }
        let shut = match self.running.enter(entry) {
            Ok(entered) => {
                if incoming.response() == ResponseFlags::Server {
                    acknowledge(&self.link, &mut self.running, &incoming);
                }
                return self.running.start(cx, entry, entered, incoming, sets);
            }
            Err(shut) => shut,
        };
        let poa = Arc::clone(&entry.poa);
        match shut {
            Shut::Gone => self.absent(cx, incoming),
            Shut::Closed => self.closed(cx, &poa, incoming),
        }
    }

    /// There was no object of the key.
    #[cold]
    fn absent(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        let key = incoming.key();
        let exception = match self.orb.adapter().locate(key) {
            Located::Object(entry) if !entry.is_gone() => {
                self.last = Some(entry);
                return self.serve(cx, incoming);
            }
            Located::Missing(poa) => {
                if !poa.is_open() || self.waiting.as_ref().is_some_and(|waiting| waiting.is_for(&poa)) {
                    return self.closed(cx, &poa, incoming);
                }
                poa.nothing(|| self.orb.no_such_object(key))
            }
            Located::Object(_) => self.orb.no_such_object(key),
            Located::Nowhere => self.orb.no_such_adapter(key),
        };
        Some(self.refuse(&incoming, exception))
    }

    /// Answers a request that does not get to a servant.
    fn refuse(&mut self, incoming: &IncomingRequest, exception: SystemException) -> Outcome {
        let mut to = ReplyTo::new(incoming);
        // The server does not have it then.
        to.wanted |= incoming.response() == ResponseFlags::Server;
        to.system_exception(self.running.encoder(), exception)
    }

    /// The object's POA does not let requests start, or one of its manager's waits before this one.
    #[cold]
    fn closed(
        &mut self,
        cx: &mut Context<'_>,
        poa: &Arc<PoaCore>,
        incoming: IncomingRequest,
    ) -> Option<Outcome> {
        let limits = &self.orb.config.limits;
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.len());
        let held = Held::new(poa, incoming.message().len(), limits);
        // One manager does not take all requests of a connection.
        let held = held.filter(|_| waiting < limits.max_requests / 2);
        let gate = held.as_ref().map_or_else(|| poa.gate(), |held| held.poll_gate(cx));
        match (gate, held) {
            (Gate::Active | Gate::Holding, Some(held)) => {
                if gate == Gate::Active {
                    // It opened meanwhile, but who waits before goes before.
                    cx.waker().wake_by_ref();
                }
                self.put_off(incoming, Until::Open(held));
                None
            }
            (gate, _) => Some(self.refuse(&incoming, gate.refusal())),
        }
    }

    #[cold]
    fn put_off(&mut self, incoming: IncomingRequest, until: Until) {
        self.waiting.get_or_insert_default().push(incoming, until);
    }

    /// Has the requests served that need not wait any more, before what came after them.
    #[cold]
    fn take_up(&mut self, cx: &mut Context<'_>) {
        let Some(waiting) = &mut self.waiting else { return };
        let ready = waiting.poll(&self.orb, self.number, cx);
        if waiting.len() == 0 {
            self.waiting = None;
        }
        self.serve_first(ready.into_iter());
    }

    fn serve_first(&mut self, requests: impl DoubleEndedIterator<Item = IncomingRequest>) {
        requests.rev().for_each(|incoming| self.together.push_front(incoming));
    }

    /// Makes the object of that key the last one. Most requests are for the object of the one before.
    #[inline]
    fn find(&mut self, key: &[u8]) {
        let again = self.last.as_ref().is_some_and(|last| last.is_at(key) && !last.is_gone());
        if !again {
            self.last = self.orb.adapter().find(key);
        }
    }

    /// Queues a reply. It leaves at the end of the read that caused it, or with a full batch.
    fn answer<'a>(
        &mut self,
        link: &'a Link,
        mut state: MutexGuard<'a, State>,
        outcome: Outcome,
    ) -> MutexGuard<'a, State> {
        let Outcome { token, mut encoder, failed } = outcome;
        if let Some(exception) = failed {
            self.orb.note_failed_oneway(&exception);
        }
        if encoder.is_empty() {
            state.machine.finish_request(token);
        } else {
            if trace::wire_enabled() {
                trace::wire(Way::Out, link.peer(), "", encoder.head(), encoder.len());
            }
            state.machine.send_reply(token, &mut encoder);
            if state.machine.is_worth_a_write() {
                (state, _) = link.flush(state);
            }
        }
        self.running.keep_encoder(encoder);
        state
    }

    fn locate(&mut self, locate: &IncomingLocate) {
        let here = self.orb.may_be_here(locate.key());
        let status = if here { LocateStatus::ObjectHere } else { LocateStatus::UnknownObject };
        let mut encoder = self.running.encoder();
        encoder.reset(ByteOrder::NATIVE, locate.version());
        let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
        let header = LocateReplyHeader { request_id: locate.id(), status };
        if header.encode(&mut encoder).and_then(|()| finish_message(&mut encoder, size_at)).is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.running.keep_encoder(encoder);
    }

    /// Takes the events of the last read. The lock is not held while servants run.
    fn events<'a>(
        &mut self,
        link: &'a Link,
        mut state: MutexGuard<'a, State>,
        cx: &mut Context<'_>,
    ) -> (MutexGuard<'a, State>, usize) {
        let mut served = 0;
        loop {
            let left = self.together.len();
            if left > 0 {
                // Their replies would be too much before; who waits for replies never stops reading.
                if !state.machine.has_room() && state.machine.calls_waiting() == 0 {
                    state.stalled = true;
                    break;
                }
                drop(state);
                state = self.serve_together(link, cx);
                served += left - self.together.len();
                continue;
            }
            state.stalled = false;
            let mut event = state.machine.poll_event();
            if let Some(Event::Request(incoming)) = event {
                if !state.machine.has_more_input() {
                    served += 1;
                    drop(state);
                    let outcome = self.serve(cx, incoming);
                    state = link.lock();
                    if let Some(outcome) = outcome {
                        state = self.answer(link, state, outcome);
                    }
                    continue;
                }
                self.together.push_back(incoming);
                event = loop {
                    if self.together.len() >= TOGETHER || !state.machine.may_hand_out() {
                        break None;
                    }
                    match state.machine.poll_event() {
                        Some(Event::Request(incoming)) => self.together.push_back(incoming),
                        Some(Event::Cancelled(token)) => {
                            if self.cancel(token) {
                                state.machine.finish_request(token);
                            }
                        }
                        other => break other,
                    }
                };
                let together = self.together.len();
                drop(state);
                state = self.serve_together(link, cx);
                served += together - self.together.len();
                if event.is_none() {
                    continue;
                }
            }
            match event {
                None => break,
                // The loop above takes them all.
                Some(Event::Request(incoming)) => self.together.push_back(incoming),
                Some(Event::Locate(locate)) => {
                    drop(state);
                    self.locate(&locate);
                    state = link.lock();
                }
                Some(Event::Cancelled(token)) => {
                    if self.cancel(token) {
                        state.machine.finish_request(token);
                    }
                }
                Some(Event::Reply(call)) => link.replied(&mut state, call),
                Some(Event::Closed) => state.wake_room(),
            }
        }
        (state, served)
    }

    /// The caller gave up. Says whether the request is dropped, because it had not started.
    fn cancel(&mut self, token: ServeToken) -> bool {
        if let Some(at) = self.together.iter().position(|incoming| incoming.token() == token) {
            return self.together.remove(at).is_some();
        }
        self.waiting.as_mut().is_some_and(|waiting| waiting.cancel(token)) || self.running.cancel(token)
    }

    /// Serves the requests taken together, and queues their replies. Those whose replies would be too much for the socket stay.
    fn serve_together<'a>(&mut self, link: &'a Link, cx: &mut Context<'_>) -> MutexGuard<'a, State> {
        self.running.gather();
        let mut octets = 0;
        while let Some(incoming) = self.together.pop_front() {
            match self.serve(cx, incoming) {
                None => {}
                // The next request takes the same encoder.
                Some(Outcome { token, encoder, failed: None }) if encoder.is_empty() => {
                    self.finished.push(token);
                    self.running.keep_encoder(encoder);
                }
                Some(outcome) => {
                    octets += outcome.encoder.len();
                    self.outcomes.push(outcome);
                    if octets >= REPLIES {
                        octets = 0;
                        if !self.answer_all(link, link.lock()).machine.has_room() {
                            break;
                        }
                    }
                }
            }
        }
        self.running.rest();
        self.answer_all(link, link.lock())
    }

    /// Queues the replies of what was served together.
    fn answer_all<'a>(&mut self, link: &'a Link, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        for token in self.finished.drain(..) {
            state.machine.finish_request(token);
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for outcome in outcomes.drain(..) {
            state = self.answer(link, state, outcome);
        }
        self.outcomes = outcomes;
        state
    }

    /// Fires the timer where it is due, and arms it for what comes next. Says whether it fired.
    fn keep_time(&mut self, state: &mut State, cx: &mut Context<'_>) -> bool {
        let mut fired = false;
        loop {
            let next = [state.machine.poll_timeout(), state.takeover].into_iter().flatten().min();
            let Some(at) = next else {
                state.armed = None;
                return fired;
            };
            // A timer that fires early is cheap; moving it for every call is not.
            let rearmed = state.armed.is_none_or(|armed| at < armed);
            if rearmed {
                state.armed = Some(at);
                match &mut self.timer {
                    Some(timer) => timer.as_mut().reset(at.into()),
                    None => self.timer = Some(Box::pin(tokio::time::sleep_until(at.into()))),
                }
            }
            let Some(timer) = &mut self.timer else { return fired };
            // Polling it costs more than looking at the time. It was polled when it was armed.
            let early = !rearmed && !self.moved && state.armed.is_some_and(|armed| state.clock < armed);
            self.moved = false;
            if early || timer.as_mut().poll(cx).is_pending() {
                return fired;
            }
            fired = true;
            state.armed = None;
            let now = now();
            state.clock = now;
            if state.takeover.is_some_and(|at| at <= now) {
                let quiet = state.machine.calls_waiting() == 0 && state.last_use + TAKEOVER <= now;
                state.takeover = if quiet { None } else { Some(now + TAKEOVER) };
                if quiet {
                    state.driver_reads = true;
                    state.callers.fill(None);
                }
            }
            state.machine.handle_timeout(now);
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let link = Arc::clone(&self.link);
        let mut state = link.lock();
        state.driver_awake = true;
        state.spins = 0;
        state.clock = now();
        if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
            self.moved = true;
        }
        let started = state.clock;
        let mut served = 0;
        // A driver is mostly woken because something came: then nothing is looked at before it is read.
        let idle = self.running.is_idle() && self.together.is_empty();
        if state.driver_reads && !state.reading && idle && state.machine.wants_read() {
            match link.socket.poll_read_ready(cx) {
                Poll::Ready(Ok(())) => (state, _) = link.read(state, Duration::ZERO),
                // Said again below, with all that belongs to it.
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        if self.waiting.is_some() {
            self.take_up(cx);
        }
        loop {
            state = link.settle(state, cx);
            state.wake_stream();
            state = link.bury(state);
            if !self.running.is_idle() {
                drop(state);
                while let Some(outcome) = self.running.poll_done(cx) {
                    drop(self.answer(&link, link.lock(), outcome));
                }
                let released: Vec<_> = self.running.released().collect();
                self.serve_first(released.into_iter());
                state = link.lock();
            }
            let count;
            (state, count) = self.events(&link, state, cx);
            served += count;
            // Replies of one read leave in one write, and what callers could not write is finished here.
            while state.machine.has_output() && !state.writing {
                if state.blocked {
                    match link.socket.poll_write_ready(cx) {
                        Poll::Ready(Ok(())) => state.blocked = false,
                        Poll::Ready(Err(error)) => {
                            let now = state.clock;
                            state.machine.handle_write_error(&error, now);
                            break;
                        }
                        Poll::Pending => break,
                    }
                }
                (state, _) = link.flush(state);
            }
            let more;
            (state, more) = self.events(&link, state, cx);
            if more > 0 {
                // Served now that there is room for their replies, which leave at once.
                served += more;
                continue;
            }
            // Pieces of a stream are cut with the messages around them.
            state.wake_stream();
            if state.machine.is_closed() {
                let settled;
                (state, settled) = link.recall(state, cx);
                drop(state);
                self.running.cancel_all();
                let drained = self.running.is_idle() || self.drain(cx).is_ready();
                return if drained && settled { Poll::Ready(()) } else { Poll::Pending };
            }
            if state.machine.wants_shutdown() && !state.shut_down {
                state.shut_down = true;
                link.socket.shut_down_write();
            }
            if self.keep_time(&mut state, cx) {
                continue;
            }
            state.driver_awake = false;
            let caller_reads = link.client_only && !state.driver_reads && state.machine.calls_waiting() <= 1;
            let stalled = !self.together.is_empty();
            if state.reading || caller_reads || stalled || !state.machine.wants_read() {
                return Poll::Pending;
            }
            if served >= BURST && state.clock.saturating_duration_since(started) > SLICE {
                drop(state);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            state.driver_reads = true;
            match link.socket.poll_read_ready(cx) {
                Poll::Pending => {
                    // Only behind a request is the next one expected at once. A caller can not spin on another thread's ring.
                    let called = state.machine.calls_waiting() == 1 && link.thread().is_some();
                    let came = if served > 0 || called {
                        let came;
                        (state, came) = link.spin(state);
                        came
                    } else {
                        false
                    };
                    if !came {
                        link.set_low_water(&mut state);
                        return Poll::Pending;
                    }
                    state.driver_awake = true;
                }
                Poll::Ready(Ok(())) => {
                    state.driver_awake = true;
                    (state, _) = link.read(state, Duration::ZERO);
                }
                Poll::Ready(Err(error)) => {
                    state.driver_awake = true;
                    let now = state.clock;
                    state.machine.handle_read_error(&error, now);
                }
            }
        }
    }

    /// Lets the servants of a lost connection run to their end; their outcomes go nowhere.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while self.running.poll_done(cx).is_some() {}
            let released: Vec<_> = self.running.released().collect();
            if released.is_empty() {
                break;
            }
            for incoming in released {
                self.serve(cx, incoming);
            }
        }
        if self.running.is_idle() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Answers a oneway whose sender waits for the server, not for the servant.
#[cold]
fn acknowledge(link: &Link, running: &mut Running, incoming: &IncomingRequest) {
    let mut encoder = running.encoder();
    ReplyTo::new(incoming).received(&mut encoder);
    link.lock().machine.acknowledge(incoming.token(), &mut encoder);
    running.keep_encoder(encoder);
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().run(cx)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The runtime is going away, or the driver is done.
        self.link.abort(CloseReason::Local);
        self.orb.waits_no_more(self.number);
        self.link.end_streams();
        if let Some(ring) = self.link.socket.ring() {
            ring.close();
        }
    }
}
