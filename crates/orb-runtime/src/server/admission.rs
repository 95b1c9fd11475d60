//! Admission of requests: whether a request starts now, is held, or is rejected.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

use bytes::Bytes;
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::{ContextId, ObjectKey, ResponseFlags, ServiceContext};
use giop_proto::{IncomingRequest, Limit, ServeToken};

use crate::connection::SharedConnection;
use crate::poa::lookup::no_such_object;
use crate::poa::manager::HeldRequest;
use crate::poa::object_adapter::Located;
use crate::reference::ObjectRef;
use crate::servant::poa_core::{Gate, PoaCore};
use crate::servant::request::ReplyTo;
use crate::servant::{ForwardRequest, Outcome, Refusal};
use crate::server::active_requests::{ActiveRequests, EnterError};
use crate::server::driver::Driver;
use crate::server::pending_requests::WaitCondition;
use crate::trace::{self, Direction};

enum Pause {
    /// The request waits for `Orb::resume`, or for an earlier request that holds all later ones.
    UntilResume,
    /// The request waits for memory for its reply.
    Memory,
}

impl Driver {
    #[inline]
    pub(crate) fn log_message(&self, incoming: &IncomingRequest) {
        if trace::is_wire_log_enabled() {
            let message = incoming.message();
            let operation = incoming.operation();
            #[cfg(feature = "experiments")]
            let operation = crate::servant::experiments::logged_name(&self.orb, incoming.key(), operation);
            trace::log_message(Direction::In, self.link.peer(), operation, message, message.len());
        }
    }

    /// Starts, holds or rejects a request. The caller must not hold the connection's lock, because the
    /// servant's code runs here.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        if incoming.has_new_listen_points() {
            self.orb.accept_listen_points(&self.link);
        }
        if self.orb.pauses.may_hold() || self.pending.as_ref().is_some_and(|pending| pending.blocks_all()) {
            match self.reason_to_pause(cx, &incoming) {
                None => {}
                Some(Pause::UntilResume) => {
                    self.defer(incoming, WaitCondition::Resume);
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
        self.find_object(&incoming);
        #[cfg(feature = "csi")]
        if let Some(refused) = self.check_access_to_last(&incoming) {
            return Some(refused);
        }
        if incoming.asks_for_reference()
            && let Some(outcome) = self.forward_to_reference(&incoming)
        {
            return Some(outcome);
        }
        let Some(entry) = &self.last_object else { return self.handle_missing_object(cx, incoming) };
        if let Some(pending) = &self.pending {
            let poa = Arc::clone(&entry.poa);
            if pending.blocks_manager_of(&poa) {
                return self.handle_closed_gate(cx, &poa, incoming);
            }
            if pending.blocks_object(&poa, incoming.key()) {
                return self.wait_for(cx, &poa, WaitCondition::EarlierRequests, incoming);
            }
        }
        let error = match self.active.enter(entry) {
            Ok(entered) => {
                if incoming.response() == ResponseFlags::Server {
                    confirm_oneway(&self.link, &mut self.active, &incoming);
                }
                return self.active.start(cx, entry, entered, incoming, sets);
            }
            Err(error) => error,
        };
        let poa = Arc::clone(&entry.poa);
        match error {
            EnterError::Deactivated => self.handle_missing_object(cx, incoming),
            EnterError::GateClosed => self.handle_closed_gate(cx, &poa, incoming),
        }
    }

    /// Replies with the complete reference of the object, as a forward, to a client that knows only a URL.
    /// Returns `None` if no reference can be returned.
    #[cold]
    fn forward_to_reference(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        let entry = self.last_object.as_ref();
        let is_elsewhere = entry.is_some_and(|entry| entry.skeleton.forward_location().is_some());
        if !incoming.response().expects_reply() || is_elsewhere || !self.orb.may_be_here(incoming.key()) {
            return None;
        }
        let type_id = entry.map_or("", |entry| entry.skeleton.repository_id());
        let key = ObjectKey::from(incoming.key());
        let to = ObjectRef::own_with_ior(&self.orb, self.orb.ior(type_id, incoming.key())?, key);
        let to = ForwardRequest::to(&to);
        let marker = ServiceContext { id: ContextId::ZORB_REFERENCE, data: Bytes::from_static(&[0]) };
        Some(ReplyTo::new(incoming).forward_with(self.active.encoder(), &to, &[marker]))
    }

    #[cold]
    fn reason_to_pause(&mut self, cx: &mut Context<'_>, incoming: &IncomingRequest) -> Option<Pause> {
        if self.orb.pauses.poll_hold(cx, self.connection_number)
            || self.pending.as_ref().is_some_and(|pending| pending.blocks_all())
        {
            return Some(Pause::UntilResume);
        }
        // A request waits for memory only once. A side that awaits replies itself must continue to read.
        // Otherwise both sides could deadlock.
        let may_wait = !std::mem::take(&mut self.has_waited_for_memory)
            && incoming.response().expects_reply()
            && self.link.pending_call_count() == 0;
        if may_wait {
            self.memory_ticket = self.orb.queue_for_memory(incoming.operation_name_bytes(), &self.link);
        }
        self.memory_ticket.as_ref().map(|_| Pause::Memory)
    }

    #[inline]
    pub(crate) fn waits_for_login(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.has_login_check())
    }

    /// Returns whether the next request waits for memory for its reply, and if so registers the task.
    #[inline]
    pub(crate) fn waits_for_memory(&mut self, cx: &Context<'_>) -> bool {
        let Some(memory_ticket) = &self.memory_ticket else { return false };
        let waits = !memory_ticket.is_granted(cx);
        if !waits {
            (self.memory_ticket, self.has_waited_for_memory) = (None, true);
        }
        waits
    }

    #[cold]
    fn handle_missing_object(&mut self, cx: &mut Context<'_>, incoming: IncomingRequest) -> Option<Outcome> {
        let key = incoming.key();
        let (poa, step) = match self.orb.adapter().locate_with_missing_poa(key) {
            Located::Object(entry) if !entry.is_deactivated() => {
                self.last_object = Some(entry);
                return self.serve(cx, incoming);
            }
            // The object is being etherealized. It can be incarnated again afterwards.
            Located::Object(entry) => {
                let step = entry.poa.incarnate(&self.orb, entry.id());
                (Arc::clone(&entry.poa), step.and_then(|step| step.ok_or_else(|| no_such_object(key))))
            }
            Located::MissingObject(poa, id) => {
                #[cfg(feature = "csi")]
                if let Some(refused) = self.check_access(&incoming, poa.node().path.as_path(), id, None) {
                    return Some(refused);
                }
                if !poa.is_open()
                    || self.pending.as_ref().is_some_and(|pending| pending.blocks_manager_of(&poa))
                {
                    return self.handle_closed_gate(cx, &poa, incoming);
                }
                let no_step = || poa.inactive_object_exception(|| no_such_object(key));
                let step = poa.incarnate(&self.orb, id).and_then(|step| step.ok_or_else(no_step));
                (poa, step)
            }
            Located::MissingPoa(parent, name) => {
                #[cfg(feature = "csi")]
                if let Some(refused) = self.check_access_by_key(&incoming) {
                    return Some(refused);
                }
                if !parent.is_open()
                    || self.pending.as_ref().is_some_and(|pending| pending.blocks_manager_of(&parent))
                {
                    return self.handle_closed_gate(cx, &parent, incoming);
                }
                let no_step = || self.orb.adapter().no_such_adapter(key);
                let step = parent.activate_child(&self.orb, name).and_then(|step| step.ok_or_else(no_step));
                (parent, step)
            }
            Located::NotFound => {
                let exception = self.orb.adapter().no_such_adapter(key);
                return Some(self.reject(&incoming, exception));
            }
        };
        match step {
            Ok(step) => self.wait_for(cx, &poa, |held| WaitCondition::StepCompleted(held, step), incoming),
            Err(exception) => Some(self.reject(&incoming, exception)),
        }
    }

    /// Holds a request until the condition is fulfilled: a step of an activator has completed, or earlier
    /// requests for the object have started. Rejects the request if a limit is reached.
    fn wait_for(
        &mut self,
        cx: &mut Context<'_>,
        poa: &Arc<PoaCore>,
        until: impl FnOnce(HeldRequest) -> WaitCondition,
        incoming: IncomingRequest,
    ) -> Option<Outcome> {
        match self.hold(poa, &incoming) {
            Some(held) => {
                // The next poll registers this task's waker with the condition.
                cx.waker().wake_by_ref();
                self.defer(incoming, until(held));
                None
            }
            None => Some(self.reject(&incoming, Gate::Holding.refusal())),
        }
    }

    /// Counts a held request. Returns `None` if a limit is reached.
    fn hold(&self, poa: &Arc<PoaCore>, incoming: &IncomingRequest) -> Option<HeldRequest> {
        let limits = &self.orb.config.limits;
        let pending = self.pending.as_ref().map_or(0, |pending| pending.len());
        // Held requests may be at most half of the connection's requests. Otherwise the held requests of one
        // manager could prevent all other requests.
        let held = HeldRequest::new(poa, incoming.message().len(), limits)
            .filter(|_| pending < limits.max_requests / 2);
        if held.is_none() {
            self.orb.counters.hit(Limit::HeldRequests);
        }
        held
    }

    /// Replies with an exception to a request that does not reach a servant. If the object does not exist,
    /// the reply to `_non_existent` is TRUE instead.
    fn reject(&mut self, incoming: &IncomingRequest, exception: SystemException) -> Outcome {
        let mut to = ReplyTo::new(incoming);
        // A client with SYNC_WITH_SERVER gets a reply because the server has not accepted the request.
        to.wants_reply |= incoming.response() == ResponseFlags::Server;
        let asks_for_existence =
            matches!(incoming.operation_name_bytes(), b"_non_existent" | b"_not_existent");
        if asks_for_existence && exception.kind == SystemExceptionKind::ObjectNotExist && to.wants_reply {
            return to.non_existent(self.active.encoder());
        }
        to.system_exception(self.active.encoder(), exception)
    }

    /// Handles a request that must wait for the gate of its POA, or for an earlier held request.
    #[cold]
    fn handle_closed_gate(
        &mut self,
        cx: &mut Context<'_>,
        poa: &Arc<PoaCore>,
        incoming: IncomingRequest,
    ) -> Option<Outcome> {
        let held = self.hold(poa, &incoming);
        let gate = held.as_ref().map_or_else(|| poa.gate(), |held| held.poll_gate(cx));
        match (gate, held) {
            (Gate::Active | Gate::Holding, Some(held)) => {
                if gate == Gate::Active {
                    // The gate was opened concurrently. Queue this request anyway, because earlier requests
                    // may still be held.
                    cx.waker().wake_by_ref();
                }
                self.defer(incoming, WaitCondition::GateOpen(held));
                None
            }
            (gate, _) => Some(self.reject(&incoming, gate.refusal())),
        }
    }

    #[cold]
    pub(crate) fn defer(&mut self, incoming: IncomingRequest, condition: WaitCondition) {
        self.pending.get_or_insert_default().push(incoming, condition);
    }

    /// Moves held requests that need not wait any more to the front of the batch, or replies with a refusal.
    #[cold]
    pub(crate) fn resume_ready(&mut self, cx: &mut Context<'_>) {
        let Some(pending) = &mut self.pending else { return };
        let ready = pending.poll(&self.orb, self.connection_number, cx);
        if pending.len() == 0 {
            self.pending = None;
        }
        let mut first = Vec::new();
        for (incoming, refusal) in ready {
            let outcome = match refusal {
                None => {
                    first.push(incoming);
                    continue;
                }
                Some(Refusal::System(exception)) => self.reject(&incoming, exception),
                Some(Refusal::Forward(forward)) => {
                    ReplyTo::new(&incoming).forward(self.active.encoder(), &forward)
                }
            };
            self.outcomes.push(outcome);
        }
        self.push_front(first.into_iter());
    }

    /// Rejects requests that are still held when the ORB closes. With `sends_close`, CloseConnection tells
    /// the client that they were not executed. Otherwise each request gets an exception.
    #[cold]
    pub(crate) fn reject_held(&mut self, sends_close: bool) {
        let held = self.pending.as_mut().map(|pending| pending.take_unbounded_waits()).unwrap_or_default();
        for incoming in held {
            if !incoming.response().expects_reply() {
                self.orb.counters.discarded_oneways.fetch_add(1, Ordering::Relaxed);
            }
            if sends_close {
                self.finished_without_reply.push(incoming.token());
            } else {
                let outcome = self.reject(&incoming, crate::errors::orb_shut_down());
                self.outcomes.push(outcome);
            }
        }
    }

    pub(crate) fn push_front(&mut self, requests: impl DoubleEndedIterator<Item = IncomingRequest>) {
        requests.rev().for_each(|incoming| self.batch.push_front(incoming));
    }

    /// Sets `last_object` to the object of the request, which is usually the object of the previous request.
    #[inline]
    fn find_object(&mut self, incoming: &IncomingRequest) {
        #[cfg(feature = "experiments")]
        if self.orb.config.server.demux.path == crate::experiments::PathDemux::DeLayered {
            return self.find_delayered(incoming);
        }
        let key = incoming.key();
        let is_same =
            self.last_object.as_ref().is_some_and(|last| last.has_key(key) && !last.is_deactivated());
        if !is_same {
            self.last_object = self.orb.adapter().find(key);
        }
    }

    #[cfg(feature = "experiments")]
    #[cold]
    fn find_delayered(&mut self, incoming: &IncomingRequest) {
        let adapter = self.orb.adapter();
        let found = adapter.strategies.find_combined(incoming.key(), incoming.operation_name_bytes());
        (self.last_object, self.active.operation_number) = match found {
            Some((entry, number)) => (Some(entry), Some(number)),
            None => (adapter.find(incoming.key()), None),
        };
    }

    /// Cancels a request. Returns `true` if it had not started, and was removed.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        if let Some(at) = self.batch.iter().position(|incoming| incoming.token() == token) {
            return self.batch.remove(at).is_some();
        }
        self.pending.as_mut().is_some_and(|pending| pending.cancel(token)) || self.active.cancel(token)
    }
}

#[cold]
fn confirm_oneway(link: &SharedConnection, active: &mut ActiveRequests, incoming: &IncomingRequest) {
    let mut encoder = active.encoder();
    ReplyTo::new(incoming).put_confirmation(&mut encoder);
    link.lock().machine.request(incoming.token()).acknowledge(&mut encoder);
    active.recycle_encoder(encoder);
}
