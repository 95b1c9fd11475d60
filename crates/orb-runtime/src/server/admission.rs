//! Admission of requests: which ones start now, are held, or are rejected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

use bytes::Bytes;
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::{ContextId, ObjectKey, ResponseFlags, ServiceContext};
use giop_proto::{IncomingRequest, Limit, ServeToken};

use crate::connection::SharedConnection;
#[cfg(feature = "experiments")]
use crate::experiments::PathDemux;
use crate::poa::lookup::no_such_object;
use crate::poa::manager::Held;
use crate::poa::object_adapter::Located;
use crate::reference::ObjectRef;
#[cfg(feature = "experiments")]
use crate::servant::experiments;
use crate::servant::poa_gate::{Gate, PoaGate};
use crate::servant::request::ReplyTo;
use crate::servant::{ForwardRequest, Outcome, Refusal};
use crate::server::active_requests::{ActiveRequests, EnterError};
use crate::server::driver::Driver;
use crate::server::pending_requests::WaitCondition;
use crate::trace::{self, Way};

/// The reason why a request waits before its object is looked up.
enum Pause {
    /// Waits for `Orb::resume`, or for earlier requests that hold all others.
    Accepting,
    /// Waits for reply memory.
    Memory,
}

impl Driver {
    /// Writes a received request into the wire log, regardless of when it starts.
    #[inline]
    pub(crate) fn note(&self, incoming: &IncomingRequest) {
        if trace::wire_enabled() {
            let octets = incoming.message();
            let operation = incoming.operation();
            #[cfg(feature = "experiments")]
            let operation = experiments::shown(&self.orb, incoming.key(), operation);
            trace::wire(Way::In, self.link.peer(), operation, octets, octets.len());
        }
    }

    /// Starts a request. Called without the lock, because a servant's code runs here.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        if incoming.announces() {
            self.orb.accept_listen_points(&self.link);
        }
        if self.orb.pauses.any() || self.pending.as_ref().is_some_and(|pending| pending.is_for_all()) {
            match self.pause(cx, &incoming) {
                None => {}
                Some(Pause::Accepting) => {
                    self.defer(incoming, WaitCondition::Accepting);
                    return None;
                }
                Some(Pause::Memory) => {
                    self.batch.push_front(incoming);
                    return None;
                }
            }
        }
        #[cfg(feature = "csi")]
        let incoming = match self.identify(cx, incoming) {
            Ok(incoming) => incoming,
            Err(outcome) => return outcome,
        };
        let sets = Some(incoming.code_sets());
        self.find(&incoming);
        #[cfg(feature = "csi")]
        if let Some(refused) = self.forbids_last(&incoming) {
            return Some(refused);
        }
        if incoming.asks_for_reference()
            && let Some(outcome) = self.forward_to_reference(&incoming)
        {
            return Some(outcome);
        }
        let Some(entry) = &self.last else { return self.object_not_found(cx, incoming) };
        if let Some(pending) = &self.pending {
            let poa = Arc::clone(&entry.poa);
            if pending.is_for(&poa) {
                return self.gate_closed(cx, &poa, incoming);
            }
            if pending.is_for_object(&poa, incoming.key()) {
                return self.wait_for(cx, &poa, WaitCondition::Turn, incoming);
            }
        }
        let shut = match self.active.enter(entry) {
            Ok(entered) => {
                if incoming.response() == ResponseFlags::Server {
                    acknowledge(&self.link, &mut self.active, &incoming);
                }
                return self.active.start(cx, entry, entered, incoming, sets);
            }
            Err(shut) => shut,
        };
        let poa = Arc::clone(&entry.poa);
        match shut {
            EnterError::Deactivated => self.object_not_found(cx, incoming),
            EnterError::GateClosed => self.gate_closed(cx, &poa, incoming),
        }
    }

    /// Forwards a request that asks for the reference of its object to that reference. `None`: no reference
    /// can be returned.
    #[cold]
    fn forward_to_reference(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        let entry = self.last.as_ref();
        let is_elsewhere = entry.is_some_and(|entry| entry.skeleton.elsewhere().is_some());
        if !incoming.response().expects_reply() || is_elsewhere || !self.orb.may_be_here(incoming.key()) {
            return None;
        }
        let type_id = entry.map_or("", |entry| entry.skeleton.repository_id());
        let key = ObjectKey::from(incoming.key());
        let to = ObjectRef::of_own(&self.orb, self.orb.ior(type_id, incoming.key())?, key);
        let to = ForwardRequest::to(&to);
        let told = ServiceContext { id: ContextId::ZORB_REFERENCE, data: Bytes::from_static(&[0]) };
        Some(ReplyTo::new(incoming).forward_with(self.active.encoder(), &to, &[told]))
    }

    /// Returns the reason why a request must wait before its object is looked up.
    #[cold]
    fn pause(&mut self, cx: &mut Context<'_>, incoming: &IncomingRequest) -> Option<Pause> {
        if self.orb.pauses.is_holding(cx, self.number)
            || self.pending.as_ref().is_some_and(|pending| pending.is_for_all())
        {
            return Some(Pause::Accepting);
        }
        // A request waits for memory once only. A side that awaits replies itself must keep reading, or both
        // sides could deadlock.
        let waits = !std::mem::take(&mut self.admitted)
            && incoming.response().expects_reply()
            && self.link.calls_waiting() == 0;
        if waits {
            self.ticket = self.orb.wait_for_memory(incoming.operation_octets(), &self.link);
        }
        self.ticket.as_ref().map(|_| Pause::Memory)
    }

    /// Returns whether a login is being checked.
    #[inline]
    pub(crate) fn waits_for_login(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_for_login())
    }

    /// Returns whether the next request waits for memory. If so, the ORB wakes the task when the request may
    /// continue.
    #[inline]
    pub(crate) fn waits_for_memory(&mut self, cx: &Context<'_>) -> bool {
        match &self.ticket {
            None => false,
            Some(ticket) => {
                let waits = !ticket.is_granted(cx);
                if !waits {
                    (self.ticket, self.admitted) = (None, true);
                }
                waits
            }
        }
    }

    /// Handles a request whose object was not found.
    #[cold]
    fn object_not_found(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        let key = incoming.key();
        let exception = match self.orb.adapter().locate_or_level(key) {
            Located::Object(entry) if !entry.is_gone() => {
                self.last = Some(entry);
                return self.serve(cx, incoming);
            }
            Located::Missing(poa, id) => {
                #[cfg(feature = "csi")]
                if let Some(refused) = self.forbids(&incoming, poa.node().path.as_path(), id, None) {
                    return Some(refused);
                }
                if !poa.is_open() || self.pending.as_ref().is_some_and(|pending| pending.is_for(&poa)) {
                    return self.gate_closed(cx, &poa, incoming);
                }
                match poa.make(&self.orb, id) {
                    Ok(Some(making)) => {
                        return self.wait_for(cx, &poa, |held| WaitCondition::Made(held, making), incoming);
                    }
                    Ok(None) => poa.nothing(|| no_such_object(key)),
                    Err(exception) => exception,
                }
            }
            // The object is being etherealized. A new incarnation may follow.
            Located::Object(entry) => match entry.poa.make(&self.orb, entry.id()) {
                Ok(Some(making)) => {
                    return self.wait_for(cx, &entry.poa, |held| WaitCondition::Made(held, making), incoming);
                }
                Ok(None) => no_such_object(key),
                Err(exception) => exception,
            },
            Located::Level(parent, name) => {
                #[cfg(feature = "csi")]
                if let Some(refused) = self.forbids_what_may_come(&incoming) {
                    return Some(refused);
                }
                if !parent.is_open() || self.pending.as_ref().is_some_and(|pending| pending.is_for(&parent)) {
                    return self.gate_closed(cx, &parent, incoming);
                }
                match parent.activate_child(&self.orb, name) {
                    Ok(Some(making)) => {
                        return self.wait_for(
                            cx,
                            &parent,
                            |held| WaitCondition::Made(held, making),
                            incoming,
                        );
                    }
                    Ok(None) => self.orb.adapter().no_such_adapter(key),
                    Err(exception) => exception,
                }
            }
            Located::Nowhere => self.orb.adapter().no_such_adapter(key),
        };
        Some(self.refuse(&incoming, exception))
    }

    /// Holds a request until a step of a servant activator or adapter activator has completed, or until
    /// earlier requests for the object have started.
    fn wait_for(
        &mut self,
        cx: &mut Context<'_>,
        poa: &Arc<PoaGate>,
        until: impl FnOnce(Held) -> WaitCondition,
        incoming: IncomingRequest,
    ) -> Option<Outcome> {
        match self.hold(poa, &incoming) {
            Some(held) => {
                // The next poll registers this task's waker with the awaited step.
                cx.waker().wake_by_ref();
                self.defer(incoming, until(held));
                None
            }
            None => Some(self.refuse(&incoming, Gate::Holding.refusal())),
        }
    }

    /// Reserves a slot for a held request. `None`: a limit was reached.
    fn hold(&self, poa: &Arc<PoaGate>, incoming: &IncomingRequest) -> Option<Held> {
        let limits = &self.orb.config.limits;
        let pending = self.pending.as_ref().map_or(0, |pending| pending.len());
        // Held requests occupy at most half of the connection's requests. Otherwise those for one manager
        // could use up all of them.
        let held =
            Held::new(poa, incoming.message().len(), limits).filter(|_| pending < limits.max_requests / 2);
        if held.is_none() {
            self.orb.counters.hit(Limit::HeldRequests);
        }
        held
    }

    /// Answers a request that does not reach a servant.
    fn refuse(&mut self, incoming: &IncomingRequest, exception: SystemException) -> Outcome {
        let mut to = ReplyTo::new(incoming);
        // The server did not accept the request, so the sender is answered.
        to.wanted |= incoming.response() == ResponseFlags::Server;
        let asks = matches!(incoming.operation_octets(), b"_non_existent" | b"_not_existent");
        if asks && exception.kind == SystemExceptionKind::ObjectNotExist && to.wanted {
            return to.non_existent(self.active.encoder());
        }
        to.system_exception(self.active.encoder(), exception)
    }

    /// Handles a request whose POA is not open, or whose POA's manager holds an earlier request.
    #[cold]
    fn gate_closed(
        &mut self,
        cx: &mut Context<'_>,
        poa: &Arc<PoaGate>,
        incoming: IncomingRequest,
    ) -> Option<Outcome> {
        let held = self.hold(poa, &incoming);
        let gate = held.as_ref().map_or_else(|| poa.gate(), |held| held.poll_gate(cx));
        match (gate, held) {
            (Gate::Active | Gate::Holding, Some(held)) => {
                if gate == Gate::Active {
                    // The gate opened concurrently. Queue this request anyway, to keep the order of arrival.
                    cx.waker().wake_by_ref();
                }
                self.defer(incoming, WaitCondition::Open(held));
                None
            }
            (gate, _) => Some(self.refuse(&incoming, gate.refusal())),
        }
    }

    #[cold]
    pub(crate) fn defer(&mut self, incoming: IncomingRequest, until: WaitCondition) {
        self.pending.get_or_insert_default().push(incoming, until);
    }

    /// Starts the held requests that need not wait any more, ahead of later ones.
    #[cold]
    pub(crate) fn resume_ready(&mut self, cx: &mut Context<'_>) {
        let Some(pending) = &mut self.pending else { return };
        let ready = pending.poll(&self.orb, self.number, cx);
        if pending.len() == 0 {
            self.pending = None;
        }
        let mut first = Vec::new();
        for (incoming, refusal) in ready {
            match refusal {
                None => first.push(incoming),
                Some(Refusal::System(exception)) => {
                    let outcome = self.refuse(&incoming, exception);
                    self.outcomes.push(outcome);
                }
                Some(Refusal::Forward(forward)) => {
                    let outcome = ReplyTo::new(&incoming).forward(self.active.encoder(), &forward);
                    self.outcomes.push(outcome);
                }
            }
        }
        self.serve_first(first.into_iter());
    }

    /// Discards requests that are still held when the ORB closes. If `told`, CloseConnection notifies their
    /// callers. Otherwise each one is answered with an exception.
    #[cold]
    pub(crate) fn reject_held(&mut self, told: bool) {
        let kept = self.pending.as_mut().map(|pending| pending.give_up()).unwrap_or_default();
        for incoming in kept {
            if !incoming.response().expects_reply() {
                self.orb.counters.discarded_oneways.fetch_add(1, Ordering::Relaxed);
            }
            if told {
                self.finished.push(incoming.token());
            } else {
                let outcome = self.refuse(&incoming, crate::errors::closed());
                self.outcomes.push(outcome);
            }
        }
    }

    pub(crate) fn serve_first(&mut self, requests: impl DoubleEndedIterator<Item = IncomingRequest>) {
        requests.rev().for_each(|incoming| self.batch.push_front(incoming));
    }

    /// Sets `last` to the object of the request. Most requests are for the same object as the one before.
    #[inline]
    fn find(&mut self, incoming: &IncomingRequest) {
        #[cfg(feature = "experiments")]
        if self.orb.config.server.demux.path == PathDemux::DeLayered {
            return self.find_delayered(incoming);
        }
        let key = incoming.key();
        let again = self.last.as_ref().is_some_and(|last| last.is_at(key) && !last.is_gone());
        if !again {
            self.last = self.orb.adapter().find(key);
        }
    }

    /// Finds object and operation by one look-up.
    #[cfg(feature = "experiments")]
    #[cold]
    fn find_delayered(&mut self, incoming: &IncomingRequest) {
        let adapter = self.orb.adapter();
        let found = adapter.strategies.find_together(incoming.key(), incoming.operation_octets());
        (self.last, self.active.number) = match found {
            Some((entry, number)) => (Some(entry), Some(number)),
            None => (adapter.find(incoming.key()), None),
        };
    }

    /// Cancels a request. Returns whether it was dropped because it had not started.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        if let Some(at) = self.batch.iter().position(|incoming| incoming.token() == token) {
            return self.batch.remove(at).is_some();
        }
        self.pending.as_mut().is_some_and(|pending| pending.cancel(token)) || self.active.cancel(token)
    }
}

/// Answers a oneway whose sender waits for the server, not for the servant.
#[cold]
fn acknowledge(link: &SharedConnection, active: &mut ActiveRequests, incoming: &IncomingRequest) {
    let mut encoder = active.encoder();
    ReplyTo::new(incoming).received(&mut encoder);
    link.lock().machine.request(incoming.token()).acknowledge(&mut encoder);
    active.keep_encoder(encoder);
}
