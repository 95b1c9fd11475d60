//! The request that the current servant serves: [`request`].

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
#[cfg(feature = "experiments")]
use crate::servant::experiments;
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

/// Returns the request that the running servant serves. It is set around each poll of the servant's future.
/// Clone it for tasks that the servant spawns.
///
/// # Panics
/// Panics outside a servant. [`try_request`] does not.
#[must_use]
#[expect(clippy::panic, reason = "a mistake of the program, like tokio's Handle::current outside a runtime")]
pub fn request() -> Request {
    try_request().unwrap_or_else(|| {
        panic!("zorb::request() was called outside a servant; clone the Request into the tasks that need it")
    })
}

/// Returns the request that the running servant serves, or `None` outside a servant.
#[must_use]
pub fn try_request() -> Option<Request> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns the deadline that a call made here inherits. From its first call on, a servant does not delay
/// later requests for its object, because the call may lead back to that object.
#[inline]
pub(crate) fn deadline_for_call() -> Option<Instant> {
    CURRENT.with_borrow(|current| {
        let request = current.as_ref()?;
        request.begin_call();
        request.deadline()
    })
}

/// Returns the trace that calls made here continue.
#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn current_trace() -> Option<telemetry::TraceContext> {
    CURRENT.with_borrow(|current| current.as_ref().and_then(|request| request.trace().cloned()))
}

/// Returns whether the current request, or one of its callers, holds that turn.
pub(crate) fn holds_thread_permit(turn: &Turn) -> bool {
    let has = |entry: &ActiveObject| entry.poa.turn.as_ref().is_some_and(|own| Arc::ptr_eq(own, turn));
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|request| request.within(has).is_some()))
}

/// Returns the object with that key if the current request delays its etherealization: the object is
/// deactivated, and its servant activator runs after this request.
#[cold]
pub(crate) fn etherealizing_in_caller(orb: &Arc<Shared>, key: &[u8]) -> Option<Arc<ActiveObject>> {
    let is = |entry: &ActiveObject| entry.is_at(key) && entry.is_gone() && entry.poa.has_activator;
    CURRENT.with_borrow(|current| {
        let request = current.as_ref().filter(|request| Arc::ptr_eq(request.core(), orb))?;
        request.within(is).map(Arc::clone)
    })
}

impl Shared {
    /// Returns whether calls from this task are refused now. Servants that run when the ORB closes may
    /// continue to call.
    #[inline]
    pub(crate) fn refuses_calls(&self) -> bool {
        self.closing.has_begun() && !self.lets_servants_call()
    }

    #[cold]
    fn lets_servants_call(&self) -> bool {
        !self.closing.has_ended_serving()
            && try_request().is_some_and(|request| std::ptr::eq(&**request.core(), self))
    }
}

/// A request that is being served (`PortableServer::Current`, and more).
#[doc(alias = "PortableServer::Current")]
#[derive(Clone)]
pub struct Request {
    info: Opaque<Info>,
}

struct Info {
    orb: Arc<Shared>,
    target: Option<Target>,
    peer: Peer,
    session: Option<Arc<TlsSession>>,
    #[cfg(feature = "csi")]
    caller: crate::csi::Caller,
    deadline: Option<Instant>,
    /// The chain of callers of a collocated call.
    callers: Option<Arc<CallStack>>,
    cancelled: AtomicBool,
    cancel: Notify,
    /// Whether the servant has made a call.
    calls: AtomicBool,
    /// Waker of the connection's driver, if the servant runs in another task or thread.
    driver: AtomicWaker,
    extras: Mutex<Extras>,
    /// Saves taking the lock while no extras are set.
    has_extras: AtomicBool,
    /// Buffer for the headers of large requests, reused.
    headers: BytesMut,
    /// Number of the operation, if it was found together with the object.
    #[cfg(feature = "experiments")]
    number: Option<u16>,
    /// The telemetry of the request.
    seen: RequestSpan,
}

/// Data that few requests have.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) contexts: Vec<ServiceContext>,
    pub(crate) forward: Option<ForwardRequest>,
    servant: Option<Servant>,
}

struct Target {
    entry: Arc<ActiveObject>,
    source: Source,
}

enum Source {
    Wire(IncomingRequest),
    /// Name of the operation; the key if the entry is shared by many objects.
    Local(&'static str, Option<ObjectKey>),
}

impl Request {
    pub(crate) fn idle(orb: Arc<Shared>, peer: Peer, session: Option<Arc<TlsSession>>) -> Self {
        let info = Info {
            orb,
            target: None,
            peer,
            session,
            #[cfg(feature = "csi")]
            caller: Default::default(),
            deadline: None,
            callers: None,
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
            calls: AtomicBool::new(false),
            driver: AtomicWaker::new(),
            extras: Mutex::default(),
            has_extras: AtomicBool::new(false),
            headers: BytesMut::new(),
            #[cfg(feature = "experiments")]
            number: None,
            seen: Default::default(),
        };
        Self { info: Arc::new(info).into() }
    }

    /// Returns an idle description for the same connection.
    pub(crate) fn fresh(&self) -> Self {
        let Info { orb, peer, session, .. } = &*self.info;
        Self::idle(Arc::clone(orb), peer.clone(), session.clone())
    }

    /// Makes this the description of another request, in place unless a clone exists.
    ///
    /// Returns the arguments of a large request. A servant may keep the description, which must not keep the
    /// message. `caller`: the login of the request, and what the reply says about it.
    pub(crate) fn renew(
        &mut self,
        entry: &Arc<ActiveObject>,
        incoming: IncomingRequest,
        #[cfg(feature = "experiments")] number: Option<u16>,
        #[cfg(feature = "csi")] caller: crate::csi::Caller,
    ) -> Option<Arguments> {
        if !self.info.is_unique() {
            *self = self.fresh();
        }
        let mut incoming = incoming;
        let info = self.info.get_mut()?;
        // Dropping the headers of the last request frees their buffer.
        let target = info.target.take().filter(|target| Arc::ptr_eq(&target.entry, entry));
        let entry = target.map_or_else(|| Arc::clone(entry), |target| target.entry);
        let arguments = incoming.take_arguments(&mut info.headers);
        info.target = Some(Target { entry, source: Source::Wire(incoming) });
        #[cfg(feature = "experiments")]
        {
            info.number = number;
        }
        *info.cancelled.get_mut() = false;
        *info.calls.get_mut() = false;
        if std::mem::take(info.has_extras.get_mut()) {
            // Extras left by a request without a reply.
            *info.extras.get_mut().unwrap_or_else(PoisonError::into_inner) = Extras::default();
        }
        #[cfg(feature = "csi")]
        {
            if let Some(complete) = caller.complete() {
                let extras = info.extras.get_mut().unwrap_or_else(PoisonError::into_inner);
                extras.contexts.push(complete.clone());
                *info.has_extras.get_mut() = true;
            }
            info.caller = caller;
        }
        arguments
    }

    /// Starts the telemetry of the request. The description has no clones yet.
    #[cfg(feature = "tracing")]
    #[inline]
    pub(crate) fn start_span(&mut self) {
        let info = &*self.info;
        let interface = || self.entry().map_or("", |entry| entry.skeleton.repository_id());
        let seen =
            RequestSpan::begin(&info.orb, &self.contexts(), &info.peer, interface, || self.operation());
        #[cfg(feature = "admin")]
        let seen = seen.counted(&info.orb, interface(), self.operation());
        if let Some(info) = self.info.get_mut() {
            info.seen = seen;
        }
    }

    /// Returns the telemetry of the request.
    #[inline]
    pub(crate) fn seen(&self) -> &RequestSpan {
        &self.info.seen
    }

    /// Ends the telemetry of the request, even if a clone of the description is still held.
    #[inline]
    pub(crate) fn end_span(&mut self) {
        self.info.seen.count();
        if let Some(info) = self.info.get_mut() {
            info.seen.end();
        }
    }

    /// Returns the trace of the request, with the span that is the parent of the servant's calls. `None`: the
    /// request has no trace. Also `None` if another tracing system provides the ids
    /// ([`telemetry::Propagate`]) and the request carried no trace.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn trace(&self) -> Option<&telemetry::TraceContext> {
        self.info.seen.trace()
    }

    /// Drops the request, which frees the buffer of its message.
    pub(crate) fn retire(&mut self) {
        if self.info.target.is_some()
            && let Some(info) = self.info.get_mut()
        {
            info.target = None;
        }
    }

    pub(crate) fn local(
        orb: Arc<Shared>,
        entry: Arc<ActiveObject>,
        key: Option<ObjectKey>,
        operation: &'static str,
        deadline: Option<Instant>,
        seen: RequestSpan,
    ) -> Self {
        let mut request = Self::idle(orb, Peer::Local, None);
        if let Some(info) = request.info.get_mut() {
            info.target = Some(Target { entry, source: Source::Local(operation, key) });
            info.deadline = deadline;
            info.seen = seen;
            info.callers = CURRENT.with_borrow(|caller| caller.as_ref().and_then(Self::callers));
        }
        request
    }

    /// Returns the chain of callers, and this request if it is relevant to its callees.
    fn callers(&self) -> Option<Arc<CallStack>> {
        let outer = self.info.callers.clone();
        match self.entry() {
            Some(entry) if entry.poa.turn.is_some() || entry.poa.has_activator => {
                Some(Arc::new(CallStack { entry: Arc::clone(entry), outer }))
            }
            _ => outer,
        }
    }

    /// Returns the innermost object for which `is` holds, among this request's object and those of its
    /// callers.
    fn within(&self, is: impl Fn(&ActiveObject) -> bool) -> Option<&Arc<ActiveObject>> {
        let own = self.entry().filter(|entry| is(entry));
        own.or_else(|| self.info.callers.as_ref()?.find(is))
    }

    fn begin_call(&self) {
        if !self.info.calls.load(Ordering::Relaxed) {
            self.info.calls.store(true, Ordering::Release);
            self.info.driver.wake();
        }
    }

    /// Returns whether the servant has made a call.
    pub(crate) fn calls(&self) -> bool {
        self.info.calls.load(Ordering::Acquire)
    }

    /// Wakes the driver when the servant makes its first call.
    pub(crate) fn wake_at_call(&self, driver: &Waker) {
        self.info.driver.register(driver);
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
        telemetry::within(self.info.seen.kept(), f)
    }

    /// Runs `f` with `current` as the current request, moved instead of cloned. `f` must not unwind.
    pub(crate) fn lend<R>(current: &mut Option<Self>, f: impl FnOnce() -> R) -> R {
        let Some(kept) = current.as_ref().map(|current| current.info.seen.kept()) else { return f() };
        CURRENT.with_borrow_mut(|running| std::mem::swap(running, current));
        let result = telemetry::within(kept, f);
        CURRENT.with_borrow_mut(|running| std::mem::swap(running, current));
        result
    }

    /// Returns the number of bytes of the request that are received as a stream.
    pub(crate) fn coming(&self) -> usize {
        match self.info.target.as_ref().map(|target| &target.source) {
            Some(Source::Wire(incoming)) => incoming.coming(),
            _ => 0,
        }
    }

    /// Returns a decoder of the arguments, if the request is not a large one.
    #[inline]
    pub(crate) fn arguments(&self) -> Decoder<'_> {
        match self.info.target.as_ref().map(|target| &target.source) {
            Some(Source::Wire(incoming)) => incoming.arguments(),
            _ => Decoder::new(&[], ByteOrder::NATIVE, Version::V1_2),
        }
    }

    /// Returns the arguments as received, if the request is not a large one.
    pub(crate) fn raw_body(&self) -> Option<RawBody> {
        match &self.info.target.as_ref()?.source {
            Source::Wire(incoming) => Some(incoming.raw_body()),
            Source::Local(..) => None,
        }
    }

    /// Returns the ORB, with which references are created.
    #[inline]
    pub(crate) fn core(&self) -> &Arc<Shared> {
        &self.info.orb
    }

    /// Takes what the servant set for the reply.
    #[inline]
    pub(crate) fn take_extras(&self) -> Extras {
        if !self.info.has_extras.swap(false, Ordering::Relaxed) {
            return Extras::default();
        }
        std::mem::take(&mut *self.extras())
    }

    /// Sets the servant that a servant locator returned for this request.
    pub(crate) fn set_servant(&self, servant: Servant) {
        self.extras().servant = Some(servant);
        self.info.has_extras.store(true, Ordering::Relaxed);
    }

    /// Replies with the location of the object, regardless of the result of the operation. The caller repeats
    /// the call there, and sends later calls there as long as that location answers. A oneway whose sender
    /// does not wait for it is lost.
    ///
    /// Source clause: "GIOP Message Formats / Reply Message" (`LOCATION_FORWARD`).
    pub fn forward(&self, forward: ForwardRequest) {
        self.extras().forward = Some(forward);
        self.info.has_extras.store(true, Ordering::Relaxed);
    }

    pub(crate) fn cancel(&self) {
        self.info.cancelled.store(true, Ordering::Release);
        self.info.cancel.notify_waiters();
    }

    /// Returns the object key as references to the object contain it.
    #[must_use]
    pub fn object_key(&self) -> &[u8] {
        match &self.info.target {
            Some(Target { source: Source::Wire(incoming), .. }) => incoming.key(),
            Some(Target { source: Source::Local(_, Some(key)), .. }) => key.as_slice(),
            Some(target) => target.entry.key(),
            None => &[],
        }
    }

    /// Returns the id of the object within its POA. For an object with a plain key, that is the key.
    #[must_use]
    #[doc(alias = "get_object_id")]
    pub fn object_id(&self) -> &[u8] {
        self.info.target.as_ref().map_or(&[], |target| target.entry.id_in(self.object_key()))
    }

    /// Returns the servant of the request. `None` if no request is being served.
    #[must_use]
    #[doc(alias = "get_servant")]
    pub fn servant(&self) -> Option<Servant> {
        if self.info.has_extras.load(Ordering::Relaxed)
            && let Some(servant) = &self.extras().servant
        {
            return Some(servant.clone());
        }
        let entry = &self.info.target.as_ref()?.entry;
        Some(Servant { skeleton: Arc::clone(&entry.skeleton), mode: entry.mode })
    }

    /// Returns the entry of the object.
    pub(crate) fn entry(&self) -> Option<&Arc<ActiveObject>> {
        self.info.target.as_ref().map(|target| &target.entry)
    }

    /// Returns the operation's name as in GIOP messages, even if the request contained its number.
    #[must_use]
    pub fn operation(&self) -> &str {
        let info = &*self.info;
        match &info.target {
            #[cfg(feature = "experiments")]
            Some(Target { source: Source::Wire(incoming), entry }) => {
                experiments::name_of(&info.orb, entry, incoming.operation())
            }
            #[cfg(not(feature = "experiments"))]
            Some(Target { source: Source::Wire(incoming), .. }) => incoming.operation(),
            Some(Target { source: Source::Local(operation, _), .. }) => operation,
            None => "",
        }
    }

    /// Returns the operation's number in its skeleton, if it was found together with the object.
    #[cfg(feature = "experiments")]
    pub(crate) fn number(&self) -> Option<u16> {
        self.info.number
    }

    #[inline]
    pub(crate) fn operation_octets(&self) -> &[u8] {
        match self.info.target.as_ref().map(|target| &target.source) {
            Some(Source::Wire(incoming)) => incoming.operation_octets(),
            _ => self.operation().as_bytes(),
        }
    }

    /// Returns the address of the caller.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.info.peer
    }

    /// Returns the TLS session of the connection, with the verified identity of the caller. `None`: the call
    /// came without TLS, or from this process.
    #[cfg(feature = "tls")]
    #[must_use]
    #[doc(alias = "SSLIOP::Current")]
    pub fn tls(&self) -> Option<&Arc<TlsSession>> {
        self.info.session.as_ref()
    }

    /// Returns the identity of the caller: the one asserted by a trusted caller, else that of the login, else
    /// that of the TLS certificate. `None`: the caller is not authenticated, or the call came from this
    /// process.
    #[cfg(feature = "csi")]
    #[must_use]
    pub fn principal(&self) -> Option<Arc<crate::csi::Principal>> {
        if let Some(principal) = self.info.caller.principal() {
            return Some(Arc::clone(principal));
        }
        crate::csi::by_certificate(self.info.session.as_deref())
    }

    /// Returns the deadline of the caller. It is known only for collocated calls.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.info.deadline
    }

    /// Returns the service contexts of the request.
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        match self.info.target.as_ref().map(|target| &target.source) {
            Some(Source::Wire(incoming)) => incoming.contexts(),
            _ => ServiceContexts::EMPTY,
        }
    }

    /// Adds a service context to the reply. Replaces one with the same id.
    pub fn set_reply_context(&self, context: ServiceContext) {
        let mut extras = self.extras();
        extras.contexts.retain(|other| other.id != context.id);
        extras.contexts.push(context);
        self.info.has_extras.store(true, Ordering::Relaxed);
    }

    /// Returns whether the caller cancelled the request or its connection is gone.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.info.cancelled.load(Ordering::Acquire)
    }

    /// Waits until the caller cancels the request or its connection is gone.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when the future is dropped.
    pub async fn cancelled(&self) {
        let notified = self.info.cancel.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    fn extras(&self) -> std::sync::MutexGuard<'_, Extras> {
        self.info.extras.lock().unwrap_or_else(PoisonError::into_inner)
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
