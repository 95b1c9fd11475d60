//! [`Bridge`]: forwards requests as bytes.

use std::any::Any as StdAny;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{Either, select};
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::dynamic::Interface;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_codec::giop::{ContextId, ReplyStatus, ResponseFlags, ServiceContext, ServiceContexts};
use giop_codec::{EncodeError, Version};
use giop_proto::{RawBody, Reply};

use crate::client as invoke;
use crate::client::is_incompatible_form;
use crate::dynamic::error::DynamicException;
use crate::dynamic::request::Request;
use crate::dynamic::servant::{DynServant, Dynamic};
use crate::dynamic::server_request::ServerRequest;
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, Reference, ReplyInfo};
use crate::servant::active_object::RunMode;
use crate::servant::request::OBJECT_REPOSITORY_ID;
use crate::servant::{
    DispatchSlot, Outcome, Request as Current, Servant, ServerRequest as Incoming, Skeleton,
};

/// The maximum number of cached references to the target, by required connection form.
const WAYS: usize = 16;

/// A servant that forwards every request to another object, and the reply back, for any interface. Nothing is
/// decoded, and bodies of 4 KiB or more are not copied. The part of a large message that arrives with its
/// header stays where it was read. The rest is read into a buffer of its own. Both are written from there.
///
/// The following bytes are copied once nevertheless:
///
/// * bodies of less than 4 KiB, into the batch that is written;
/// * a message in fragments, into one buffer, unless its fragments are large;
/// * the bytes that arrive with the header of the first message in which a peer announces its block lists;
/// * for an object of a servant locator, the part of the request that arrives with its header.
///
/// A message is forwarded in its original byte order, GIOP version and code sets, over a separate connection
/// of that form if the target accepts one. What the target does not accept is rejected with COMPLETED_NO,
/// unless the [interface is known](Self::with_interface):
///
/// * text in code sets that the target does not offer: CODESET_INCOMPATIBLE;
/// * a version that it does not support: INV_OBJREF;
/// * arguments in GIOP 1.1 fragments, each of which may be aligned separately: IMP_LIMIT.
///
/// References in arguments and results are not changed: calls through them bypass the bridge. Service
/// contexts are forwarded, except those that concern the connection or identify the caller. The bridge calls
/// the target with the credentials of its reference. It follows LOCATION_FORWARD. If the caller cancels the
/// request, the bridge cancels its call of the target.
///
/// Timeouts and retries are those of the reference to the target.
///
/// ```no_run
/// # use orb_runtime::{ObjectRef, Orb};
/// use orb_runtime::dynamic::Bridge;
/// # fn open(gateway: &Orb, behind: &ObjectRef) -> Result<(), Box<dyn std::error::Error>> {
/// let before = gateway.activation().named("Account").activate_erased(Bridge::to(behind).servant())?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "it does nothing before it is activated"]
pub struct Bridge {
    target: ObjectRef,
    interface: Option<Arc<Interface>>,
    /// References to the target for requests of other forms.
    ways: Mutex<Vec<Way>>,
}

#[derive(Debug, Clone)]
struct Way {
    version: Version,
    code_sets: CodeSets,
    target: ObjectRef,
}

impl Bridge {
    /// Creates a bridge to that object.
    pub fn to(target: &impl Reference) -> Self {
        Self { target: target.as_object().clone(), interface: None, ways: Mutex::default() }
    }

    /// Sets the interface of the target. Messages that cannot be forwarded unchanged are then decoded and
    /// encoded again. Arguments of 64 KiB or more are decoded on another thread, as for [`DynServant`]s. The
    /// task that serves the request encodes them for the target.
    pub fn with_interface(mut self, interface: Arc<Interface>) -> Self {
        self.interface = Some(interface);
        self
    }

    /// Returns the bridge as a servant: for one object, for all objects of a POA, or for a servant locator.
    #[must_use]
    pub fn servant(self) -> Servant {
        Servant { skeleton: Arc::new(self), mode: RunMode::default() }
    }

    /// Returns the target for calls in the form of that body.
    fn way(&self, body: &RawBody) -> ObjectRef {
        let (version, code_sets) = (body.version(), body.code_sets());
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = ways.iter().find(|way| way.version == version && way.code_sets == code_sets) {
            return way.target.clone();
        }
        let target = self.target.clone_with_required_form(version, code_sets);
        if ways.len() >= WAYS {
            ways.remove(0);
        }
        ways.push(Way { version, code_sets, target: target.clone() });
        target
    }

    async fn serve(&self, incoming: Incoming) -> Outcome {
        let Some(body) = incoming.raw_body() else { return incoming.system_exception(not_marshalled()) };
        let current = incoming.current.clone();
        let passed = {
            let called = pin!(self.call(&current, &body, incoming.to.wants_reply));
            let given_up = pin!(current.cancelled());
            match select(called, given_up).await {
                Either::Left((passed, _)) => passed,
                // The caller no longer reads the reply. Dropping the call cancels it at the target.
                Either::Right(_) => Err(given_up_by_caller()),
            }
        };
        match (passed, &self.interface) {
            (Ok(Some(reply)), _) => {
                if reply.status() == ReplyStatus::UserException {
                    current.span().user_exception(reply.body().read_str_ascii().unwrap_or("?"));
                }
                let contexts = passed_on(&reply.contexts());
                incoming.reply_raw(reply.status(), contexts, &reply.raw_body())
            }
            (Ok(None), _) => incoming.reply(|_| Ok(())),
            (Err(exception), Some(interface)) if is_incompatible_form(&exception) => {
                let anew = Dynamic { interface: Arc::clone(interface), servant: Anew(self.target.clone()) };
                anew.serve(incoming).await
            }
            (Err(exception), _) => incoming.system_exception(exception),
        }
    }

    /// Forwards the request, and waits for the reply if `waits` is set.
    async fn call(
        &self,
        current: &Current,
        body: &RawBody,
        waits: bool,
    ) -> Result<Option<Reply>, SystemException> {
        if body.is_fragmented() || !body.phase().is_multiple_of(4) {
            return Err(invoke::incompatible_form(
                SystemExceptionKind::ImpLimit,
                "arguments in GIOP 1.1 fragments, or behind a principal, are not passed on as they came",
            ));
        }
        let target = with_contexts(&self.way(body), &current.contexts());
        let called = CallOperation::temporary(current.operation(), !waits)
            .with_raw_arguments(body.order(), body.phase());
        let encode = |e: &mut Encoder| -> Result<(), EncodeError> {
            body.put(e);
            Ok(())
        };
        match waits {
            true => invoke::transact(&target, &called, ResponseFlags::Target, &encode).await.map(Some),
            false => invoke::send_without_reply(&target, &called, encode).await.map(|()| None),
        }
    }
}

impl Skeleton for Bridge {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn repository_id(&self) -> &str {
        match (&self.interface, &*self.target.ior().type_id) {
            (Some(interface), _) => interface.id(),
            (None, "") => OBJECT_REPOSITORY_ID,
            (None, id) => id,
        }
    }

    /// Answers only for the known interface. The target knows its other interfaces.
    fn is_a(&self, repository_id: &str) -> Option<bool> {
        (repository_id == self.repository_id() || repository_id == OBJECT_REPOSITORY_ID).then_some(true)
    }

    fn slot_kind(&self) -> usize {
        std::any::type_name::<Self>().as_ptr().addr()
    }

    fn takes_raw_arguments(&self) -> bool {
        true
    }

    fn dispatch(self: Arc<Self>, request: Incoming, slot: &mut DispatchSlot) {
        slot.set(async move { self.serve(request).await });
    }

    /// Sets nothing: collocated calls are forwarded like remote calls.
    fn local(self: Arc<Self>, _: &mut dyn StdAny) {}
}

/// Forwards requests that are decoded and encoded again.
struct Anew(ObjectRef);

impl DynServant for Anew {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let current = crate::servant::request();
        let info = ReplyInfo::new();
        let target = with_contexts(&self.0, &current.contexts()).with_reply_info(&info);
        let answered = Request::again(&target, &request).invoke().await;
        passed_on_list(info.contexts()).into_iter().for_each(|context| current.set_reply_context(context));
        Ok(request.answered(answered?))
    }
}

/// Returns the reference with these service contexts in addition to its own.
fn with_contexts(target: &ObjectRef, contexts: &ServiceContexts<'_>) -> ObjectRef {
    if contexts.is_empty() {
        return target.clone();
    }
    let contexts = passed_on(contexts);
    match contexts.is_empty() {
        true => target.clone(),
        false => target.with_options(|options| {
            options.contexts = options.contexts.iter().cloned().chain(contexts).collect()
        }),
    }
}

/// Returns the contexts that do not concern the connection on which they were received.
fn passed_on(contexts: &ServiceContexts<'_>) -> Vec<ServiceContext> {
    passed_on_list(contexts.to_vec())
}

fn passed_on_list(mut contexts: Vec<ServiceContext>) -> Vec<ServiceContext> {
    const OF_CONNECTION: [ContextId; 5] = [
        ContextId::CODE_SETS,
        ContextId::BI_DIR_IIOP,
        ContextId::ZORB_BLOCKS,
        ContextId::ZORB_PADDING,
        // A password is intended for its recipient only, and a security context's number is valid only on its
        // connection.
        ContextId::SECURITY_ATTRIBUTE_SERVICE,
    ];
    contexts.retain(|context| !OF_CONNECTION.contains(&context.id));
    contexts
}

#[cold]
fn given_up_by_caller() -> SystemException {
    SystemException::transient().completed(CompletionStatus::Maybe).with_reason("the caller gave up")
}

#[cold]
fn not_marshalled() -> SystemException {
    SystemException::internal().with_reason("a request without octets")
}
