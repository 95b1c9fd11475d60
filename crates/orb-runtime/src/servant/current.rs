//! The description of the request that a servant serves, which [`request`] returns.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

use bytes::BytesMut;
use futures_util::task::AtomicWaker;
use giop_codec::cdr::Decoder;
use giop_codec::giop::{ObjectKey, ServiceContext, ServiceContexts};
use giop_codec::{ByteOrder, Version};
use giop_proto::{Arguments, IncomingRequest, RawBody};
use tokio::sync::Notify;

use crate::opaque::Opaque;
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::forward::ForwardRequest;
use crate::servant::skeleton::Servant;
use crate::servant::thread_model::{CallStack, Turn};
use crate::telemetry;
use crate::telemetry::RequestSpan;
use crate::tls::TlsSession;
use crate::transport::Peer;

thread_local! {
    static CURRENT: RefCell<Option<Request>> = const { RefCell::new(None) };
}

/// Returns the request that the running servant serves. This works in the servant's future, but not in tasks
/// that the servant spawns: pass a clone of the request to them.
///
/// # Panics
/// Panics outside of a servant. [`try_request`] returns `None` instead.
#[must_use]
#[expect(
    clippy::panic,
    reason = "an error of the program, like tokio's Handle::current outside of a runtime"
)]
pub fn request() -> Request {
    try_request().unwrap_or_else(|| {
        panic!("zorb::request() was called outside a servant; clone the Request into the tasks that need it")
    })
}

/// Returns the request that the running servant serves, or `None` outside of a servant.
#[must_use]
pub fn try_request() -> Option<Request> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns the deadline that a call inherits from the current request, and records that the servant makes a
/// call. After its first call, the servant of a oneway request does not delay later requests for its object,
/// because the call may lead back to the object.
#[inline]
pub(crate) fn deadline_for_call() -> Option<Instant> {
    CURRENT.with_borrow(|current| {
        let request = current.as_ref()?;
        request.record_call();
        request.deadline()
    })
}

#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn current_trace() -> Option<telemetry::TraceContext> {
    CURRENT.with_borrow(|current| current.as_ref().and_then(|request| request.trace().cloned()))
}

/// Returns whether the current request or one of its callers holds this turn.
pub(crate) fn holds_turn(turn: &Turn) -> bool {
    let has = |entry: &ActiveObject| entry.poa.turn.as_ref().is_some_and(|own| Arc::ptr_eq(own, turn));
    CURRENT
        .with_borrow(|current| current.as_ref().is_some_and(|request| request.find_in_callers(has).is_some()))
}

/// Returns the object with this key if its etherealization waits for the current request or a caller of it.
#[cold]
pub(crate) fn find_object_etherealized_after_callers(
    orb: &Arc<Shared>,
    key: &[u8],
) -> Option<Arc<ActiveObject>> {
    let is = |own: &ActiveObject| own.has_key(key) && own.is_deactivated() && own.poa.uses_servant_activator;
    CURRENT.with_borrow(|current| {
        let request = current.as_ref().filter(|request| Arc::ptr_eq(request.core(), orb))?;
        request.find_in_callers(is).map(Arc::clone)
    })
}

impl Shared {
    /// Returns whether calls from this task are rejected because the ORB closes. Servants that are still
    /// running may make calls.
    #[inline]
    pub(crate) fn refuses_calls(&self) -> bool {
        self.closing.has_begun() && !self.is_called_by_servant()
    }

    #[cold]
    fn is_called_by_servant(&self) -> bool {
        !self.closing.has_ended_serving()
            && try_request().is_some_and(|request| std::ptr::eq(&**request.core(), self))
    }
}

/// The description of a request that is being served: its target, caller and operation. Its methods include
/// the operations of `PortableServer::Current`.
#[doc(alias = "PortableServer::Current")]
#[derive(Clone)]
pub struct Request {
    state: Opaque<State>,
}

struct State {
    orb: Arc<Shared>,
    target: Option<Target>,
    peer: Peer,
    session: Option<Arc<TlsSession>>,
    #[cfg(feature = "csi")]
    caller: crate::csi::Caller,
    deadline: Option<Instant>,
    callers: Option<Arc<CallStack>>,
    is_cancelled: AtomicBool,
    cancel_notify: Notify,
    has_made_call: AtomicBool,
    /// The waker of the connection's driver, set only if the servant runs in another task or thread.
    driver_waker: AtomicWaker,
    extras: Mutex<Extras>,
    /// Whether extras are set. If not, the lock is not taken.
    has_extras: AtomicBool,
    headers: BytesMut,
    /// The number of the operation, if it was found together with the object.
    #[cfg(feature = "experiments")]
    operation_number: Option<u16>,
    span: RequestSpan,
}

/// Data that only few requests have.
#[derive(Default)]
pub(crate) struct Extras {
    /// The service contexts of the reply.
    pub(crate) contexts: Vec<ServiceContext>,
    pub(crate) forward: Option<ForwardRequest>,
    /// The servant that a servant locator returned.
    servant: Option<Servant>,
}

struct Target {
    entry: Arc<ActiveObject>,
    source: Source,
}

enum Source {
    Wire(IncomingRequest),
    /// A collocated call. It has a key if the entry is shared.
    Collocated {
        operation: &'static str,
        key: Option<ObjectKey>,
    },
}

impl Request {
    /// Creates the description of a connection's next request, which has no target yet.
    pub(crate) fn without_target(orb: Arc<Shared>, peer: Peer, session: Option<Arc<TlsSession>>) -> Self {
        let state = State {
            orb,
            target: None,
            peer,
            session,
            #[cfg(feature = "csi")]
            caller: Default::default(),
            deadline: None,
            callers: None,
            is_cancelled: AtomicBool::new(false),
            cancel_notify: Notify::new(),
            has_made_call: AtomicBool::new(false),
            driver_waker: AtomicWaker::new(),
            extras: Mutex::default(),
            has_extras: AtomicBool::new(false),
            headers: BytesMut::new(),
            #[cfg(feature = "experiments")]
            operation_number: None,
            span: Default::default(),
        };
        Self { state: Arc::new(state).into() }
    }

    pub(crate) fn new_without_target(&self) -> Self {
        let State { orb, peer, session, .. } = &*self.state;
        Self::without_target(Arc::clone(orb), peer.clone(), session.clone())
    }

    /// Makes this the description of another request. Reuses the memory unless the servant has kept a clone.
    /// `caller` is the authenticated caller of the request.
    ///
    /// Returns the arguments of a large request separately, so that a servant that keeps the description does
    /// not keep the message.
    pub(crate) fn reuse_for(
        &mut self,
        entry: &Arc<ActiveObject>,
        mut incoming: IncomingRequest,
        #[cfg(feature = "experiments")] operation_number: Option<u16>,
        #[cfg(feature = "csi")] caller: crate::csi::Caller,
    ) -> Option<Arguments> {
        if !self.state.is_unique() {
            *self = self.new_without_target();
        }
        let state = self.state.get_mut()?;
        // Dropping the headers of the previous request makes their buffer available.
        let target = state.target.take().filter(|target| Arc::ptr_eq(&target.entry, entry));
        let entry = target.map_or_else(|| Arc::clone(entry), |target| target.entry);
        let arguments = incoming.take_arguments(&mut state.headers);
        state.target = Some(Target { entry, source: Source::Wire(incoming) });
        #[cfg(feature = "experiments")]
        {
            state.operation_number = operation_number;
        }
        *state.is_cancelled.get_mut() = false;
        *state.has_made_call.get_mut() = false;
        if std::mem::take(state.has_extras.get_mut()) {
            // The previous request had no reply, which would have taken its extras.
            *state.extras.get_mut().unwrap_or_else(PoisonError::into_inner) = Extras::default();
        }
        #[cfg(feature = "csi")]
        {
            if let Some(confirmation) = caller.confirmation() {
                let extras = state.extras.get_mut().unwrap_or_else(PoisonError::into_inner);
                extras.contexts.push(confirmation.clone());
                *state.has_extras.get_mut() = true;
            }
            state.caller = caller;
        }
        arguments
    }

    /// Starts the telemetry of the request. Must be called before the description is cloned.
    #[cfg(feature = "tracing")]
    #[inline]
    pub(crate) fn start_span(&mut self) {
        let state = &*self.state;
        let interface = || self.entry().map_or("", |entry| entry.skeleton.repository_id());
        let span =
            RequestSpan::begin(&state.orb, &self.contexts(), &state.peer, interface, || self.operation());
        #[cfg(feature = "admin")]
        let span = span.with_counted_call(&state.orb, interface(), self.operation());
        if let Some(state) = self.state.get_mut() {
            state.span = span;
        }
    }

    #[inline]
    pub(crate) fn span(&self) -> &RequestSpan {
        &self.state.span
    }

    /// Ends the telemetry of the request, even if a clone of the description exists.
    #[inline]
    pub(crate) fn end_span(&mut self) {
        self.state.span.count_call();
        if let Some(state) = self.state.get_mut() {
            state.span.end();
        }
    }

    /// Returns the trace context of the request, whose span is the parent of the servant's calls. Returns
    /// `None` if the request has no trace. With another tracing system ([`telemetry::Propagate`]), a request
    /// has no trace if its client sent none.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn trace(&self) -> Option<&telemetry::TraceContext> {
        self.state.span.trace()
    }

    /// Drops the target and the message of the request. Does nothing if a clone exists.
    pub(crate) fn release_target(&mut self) {
        if self.state.target.is_some()
            && let Some(state) = self.state.get_mut()
        {
            state.target = None;
        }
    }

    pub(crate) fn collocated(
        orb: Arc<Shared>,
        entry: Arc<ActiveObject>,
        key: Option<ObjectKey>,
        operation: &'static str,
        deadline: Option<Instant>,
        span: RequestSpan,
    ) -> Self {
        let mut request = Self::without_target(orb, Peer::Local, None);
        if let Some(state) = request.state.get_mut() {
            state.target = Some(Target { entry, source: Source::Collocated { operation, key } });
            state.deadline = deadline;
            state.span = span;
            state.callers = CURRENT.with_borrow(|caller| caller.as_ref().and_then(Self::callers));
        }
        request
    }

    /// Returns the call stack for callees of this request. It contains only objects whose POA runs requests
    /// one at a time or has a servant activator.
    fn callers(&self) -> Option<Arc<CallStack>> {
        let outer = self.state.callers.clone();
        match self.entry() {
            Some(entry) if entry.poa.turn.is_some() || entry.poa.uses_servant_activator => {
                Some(Arc::new(CallStack { entry: Arc::clone(entry), outer }))
            }
            _ => outer,
        }
    }

    /// Searches the object of this request, and then the objects of its callers, the innermost caller first.
    fn find_in_callers(&self, is: impl Fn(&ActiveObject) -> bool) -> Option<&Arc<ActiveObject>> {
        let own = self.entry().filter(|entry| is(entry));
        own.or_else(|| self.state.callers.as_ref()?.find(is))
    }

    fn record_call(&self) {
        if !self.state.has_made_call.load(Ordering::Relaxed) {
            self.state.has_made_call.store(true, Ordering::Release);
            self.state.driver_waker.wake();
        }
    }

    pub(crate) fn has_made_call(&self) -> bool {
        self.state.has_made_call.load(Ordering::Acquire)
    }

    /// Registers the driver to be woken when the servant makes its first call.
    pub(crate) fn wake_at_call(&self, driver: &Waker) {
        self.state.driver_waker.register(driver);
    }

    /// Runs `f` with this as the current request.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(Option<Request>);
        impl Drop for Restore {
            fn drop(&mut self) {
                let before = self.0.take();
                CURRENT.with_borrow_mut(|current| *current = before);
            }
        }
        let _restore = Restore(CURRENT.with_borrow_mut(|current| current.replace(self.clone())));
        telemetry::in_span(self.state.span.servant_span(), f)
    }

    /// Runs `f` with `current` as the current request, which is moved instead of cloned. `f` must not unwind.
    pub(crate) fn enter_moved<R>(current: &mut Option<Self>, f: impl FnOnce() -> R) -> R {
        let Some(servant_span) = current.as_ref().map(|current| current.state.span.servant_span()) else {
            return f();
        };
        CURRENT.with_borrow_mut(|running| std::mem::swap(running, current));
        let result = telemetry::in_span(servant_span, f);
        CURRENT.with_borrow_mut(|running| std::mem::swap(running, current));
        result
    }

    /// Returns the received request, or `None` for a collocated call.
    #[inline]
    fn incoming(&self) -> Option<&IncomingRequest> {
        match &self.state.target.as_ref()?.source {
            Source::Wire(incoming) => Some(incoming),
            Source::Collocated { .. } => None,
        }
    }

    /// Returns the number of bytes of the request that are not received yet. They belong to a stream.
    pub(crate) fn bytes_to_come(&self) -> usize {
        self.incoming().map_or(0, IncomingRequest::stream_len)
    }

    /// Returns a decoder of the arguments, unless [`reuse_for`](Self::reuse_for) returned them separately.
    #[inline]
    pub(crate) fn arguments(&self) -> Decoder<'_> {
        match self.incoming() {
            Some(incoming) => incoming.arguments(),
            None => Decoder::new(&[], ByteOrder::NATIVE, Version::V1_2),
        }
    }

    pub(crate) fn raw_body(&self) -> Option<RawBody> {
        self.incoming().map(IncomingRequest::raw_body)
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Shared> {
        &self.state.orb
    }

    #[inline]
    pub(crate) fn take_extras(&self) -> Extras {
        if !self.state.has_extras.swap(false, Ordering::Relaxed) {
            return Extras::default();
        }
        std::mem::take(&mut *self.extras())
    }

    pub(crate) fn set_servant(&self, servant: Servant) {
        self.extras().servant = Some(servant);
        self.state.has_extras.store(true, Ordering::Relaxed);
    }

    /// Replies with another location of the object instead of results or a user exception. The caller repeats
    /// the call there, and sends later calls there while that location answers. A oneway request is lost,
    /// unless its client waits for a reply ([`SyncScope::Target`](crate::SyncScope::Target)). Has no effect
    /// in a collocated call.
    ///
    /// Source clause: "GIOP Message Formats / Reply Message" (`LOCATION_FORWARD`).
    pub fn forward(&self, forward: ForwardRequest) {
        self.extras().forward = Some(forward);
        self.state.has_extras.store(true, Ordering::Relaxed);
    }

    pub(crate) fn cancel(&self) {
        self.state.is_cancelled.store(true, Ordering::Release);
        self.state.cancel_notify.notify_waiters();
    }

    /// Returns the object key, which references to the object contain.
    #[must_use]
    pub fn object_key(&self) -> &[u8] {
        match &self.state.target {
            Some(Target { source: Source::Wire(incoming), .. }) => incoming.key(),
            Some(Target { source: Source::Collocated { key: Some(key), .. }, .. }) => key.as_slice(),
            Some(target) => target.entry.key(),
            None => &[],
        }
    }

    /// Returns the id of the object in its POA. The id of an object with a plain key is the key.
    #[must_use]
    #[doc(alias = "get_object_id")]
    pub fn object_id(&self) -> &[u8] {
        self.state.target.as_ref().map_or(&[], |target| target.entry.id_in(self.object_key()))
    }

    /// Returns the servant of the request, or `None` if the description has no target.
    #[must_use]
    #[doc(alias = "get_servant")]
    pub fn servant(&self) -> Option<Servant> {
        if self.state.has_extras.load(Ordering::Relaxed)
            && let Some(servant) = &self.extras().servant
        {
            return Some(servant.clone());
        }
        let entry = &self.state.target.as_ref()?.entry;
        Some(Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode })
    }

    pub(crate) fn entry(&self) -> Option<&Arc<ActiveObject>> {
        self.state.target.as_ref().map(|target| &target.entry)
    }

    /// Returns the operation's name in GIOP messages, even if the request contained a number instead.
    #[must_use]
    pub fn operation(&self) -> &str {
        let state = &*self.state;
        match &state.target {
            #[cfg(feature = "experiments")]
            Some(Target { source: Source::Wire(incoming), entry }) => {
                crate::servant::experiments::operation_name(&state.orb, entry, incoming.operation())
            }
            #[cfg(not(feature = "experiments"))]
            Some(Target { source: Source::Wire(incoming), .. }) => incoming.operation(),
            Some(Target { source: Source::Collocated { operation, .. }, .. }) => operation,
            None => "",
        }
    }

    #[cfg(feature = "experiments")]
    pub(crate) fn operation_number(&self) -> Option<u16> {
        self.state.operation_number
    }

    #[inline]
    pub(crate) fn operation_bytes(&self) -> &[u8] {
        self.incoming().map_or_else(|| self.operation().as_bytes(), IncomingRequest::operation_name_bytes)
    }

    /// Returns the address of the caller.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.state.peer
    }

    /// Returns the TLS session of the connection, which contains the verified identity of the caller. Returns
    /// `None` if the connection does not use TLS, or if the caller is in this process.
    #[cfg(feature = "tls")]
    #[must_use]
    #[doc(alias = "SSLIOP::Current")]
    pub fn tls(&self) -> Option<&Arc<TlsSession>> {
        self.state.session.as_ref()
    }

    /// Returns the identity of the caller, which is the first of these: the identity that a trusted caller
    /// asserted, the login, the TLS certificate. Returns `None` if the caller is not authenticated, or is in
    /// this process.
    #[cfg(feature = "csi")]
    #[must_use]
    pub fn principal(&self) -> Option<Arc<crate::csi::Principal>> {
        if let Some(principal) = self.state.caller.principal() {
            return Some(Arc::clone(principal));
        }
        crate::csi::certified_principal(self.state.session.as_deref())
    }

    /// Returns the deadline of the caller. It is known only if the caller is in this process.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.state.deadline
    }

    /// Returns the service contexts of the request.
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.incoming().map_or(ServiceContexts::EMPTY, IncomingRequest::contexts)
    }

    /// Adds a service context to the reply. It replaces a context with the same id.
    pub fn set_reply_context(&self, context: ServiceContext) {
        let mut extras = self.extras();
        extras.contexts.retain(|other| other.id != context.id);
        extras.contexts.push(context);
        self.state.has_extras.store(true, Ordering::Relaxed);
    }

    /// Returns whether the caller has cancelled the request, or its connection has ended.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until the caller cancels the request, or its connection ends.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn cancelled(&self) {
        let notified = self.state.cancel_notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    fn extras(&self) -> std::sync::MutexGuard<'_, Extras> {
        self.state.extras.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("operation", &self.operation())
            .field("peer", self.peer())
            .finish_non_exhaustive()
    }
}
