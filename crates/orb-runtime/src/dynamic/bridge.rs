//! [`Bridge`]: a servant that forwards requests as bytes.

use std::any::Any as StdAny;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use giop_codec::cdr::{CodeSets, Encoder};
use giop_codec::dynamic::Interface;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_codec::giop::{ContextId, ReplyStatus, ResponseFlags, ServiceContext, ServiceContexts};
use giop_codec::{EncodeError, Version};
use giop_proto::{RawBody, Reply};

use crate::client::{self, is_incompatible_encoding};
use crate::dynamic::error::DynamicException;
use crate::dynamic::request::Request;
use crate::dynamic::servant::{DynServant, DynamicSkeleton};
use crate::dynamic::server_request::ServerRequest;
use crate::lock::lock;
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, Reference, ReplyInfo};
use crate::servant::active_object::RunMode;
use crate::servant::request::OBJECT_REPOSITORY_ID;
use crate::servant::{
    DispatchSlot, Outcome, Request as Current, Servant, ServerRequest as Incoming, Skeleton,
};

/// The maximum number of cached references, one for each combination of GIOP version and code sets.
const MAX_CACHED_TARGETS: usize = 16;

/// A servant that forwards every request to another object, and returns its reply, for any interface.
///
/// Messages are not decoded, and bodies of 4 KiB or more are not copied. These bytes are copied once
/// nevertheless:
///
/// * a message in small fragments;
/// * the bytes that are received together with the header of the first message in which a peer announces that
///   it supports block lists;
/// * for an object of a servant locator, the bytes of the request that are received together with its header.
///
/// A message is forwarded in its original byte order, GIOP version and code sets. Each combination of version
/// and code sets has a connection of its own. A request that cannot be forwarded in this form is rejected
/// with COMPLETED_NO, unless the [interface is known](Self::with_interface):
///
/// * CODESET_INCOMPATIBLE for code sets that the target does not offer;
/// * INV_OBJREF for a GIOP version that the target does not support;
/// * IMP_LIMIT for arguments in GIOP 1.1 fragments, because each fragment may be aligned separately;
/// * IMP_LIMIT for arguments after a principal (in GIOP 1.0 and 1.1) whose length is not a multiple of four.
///
/// References in arguments and results are not changed, so calls through them bypass the bridge. Service
/// contexts are forwarded, except those that concern the connection or identify the caller. The bridge calls
/// the target with the credentials of the reference to the target. It follows LOCATION_FORWARD. If the caller
/// cancels the request, the bridge cancels its call of the target.
///
/// ```no_run
/// # use orb_runtime::{ObjectRef, Orb};
/// use orb_runtime::dynamic::Bridge;
/// # fn open(gateway: &Orb, target: &ObjectRef) -> Result<(), Box<dyn std::error::Error>> {
/// let bridge = gateway.activation().named("Account").activate_erased(Bridge::to(target).servant())?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a bridge does nothing before it is activated"]
pub struct Bridge {
    target: ObjectRef,
    interface: Option<Arc<Interface>>,
    cached_targets: Mutex<Vec<CachedTarget>>,
}

#[derive(Debug, Clone)]
struct CachedTarget {
    version: Version,
    code_sets: CodeSets,
    target: ObjectRef,
}

impl Bridge {
    /// Creates a bridge to this object.
    pub fn to(target: &impl Reference) -> Self {
        Self { target: target.as_object().clone(), interface: None, cached_targets: Mutex::default() }
    }

    /// Sets the interface of the target, so that requests that cannot be forwarded unchanged are decoded and
    /// encoded again. Arguments of 64 KiB or more are decoded on another thread, as for [`DynServant`]s.
    pub fn with_interface(mut self, interface: Arc<Interface>) -> Self {
        self.interface = Some(interface);
        self
    }

    /// Returns the bridge as a servant for one object, for all objects of a POA, or for a servant locator.
    #[must_use]
    pub fn servant(self) -> Servant {
        Servant { skeleton: Arc::new(self), mode: RunMode::default() }
    }

    fn target_for(&self, body: &RawBody) -> ObjectRef {
        let (version, code_sets) = (body.version(), body.code_sets());
        let mut targets = lock(&self.cached_targets);
        let matches = |cached: &&CachedTarget| cached.version == version && cached.code_sets == code_sets;
        if let Some(cached) = targets.iter().find(matches) {
            return cached.target.clone();
        }
        let target = self.target.clone_with_required_encoding(version, code_sets);
        if targets.len() >= MAX_CACHED_TARGETS {
            targets.remove(0);
        }
        targets.push(CachedTarget { version, code_sets, target: target.clone() });
        target
    }

    async fn serve(&self, incoming: Incoming) -> Outcome {
        let Some(body) = incoming.raw_body() else {
            let exception = SystemException::internal().with_reason("the request is not marshalled");
            return incoming.system_exception(exception);
        };
        let current = incoming.current.clone();
        let outcome = {
            let call = pin!(self.call(&current, &body, incoming.to.wants_reply));
            let cancelled = pin!(current.cancelled());
            match select(call, cancelled).await {
                Either::Left((outcome, _)) => outcome,
                // The caller no longer expects a reply. Dropping the call cancels it at the target.
                Either::Right(_) => Err(SystemException::transient()
                    .completed(CompletionStatus::Maybe)
                    .with_reason("the caller cancelled the request")),
            }
        };
        match (outcome, &self.interface) {
            (Ok(Some(reply)), _) => {
                if reply.status() == ReplyStatus::UserException {
                    current.span().record_user_exception(reply.body().read_unconverted_str().unwrap_or("?"));
                }
                let contexts = forwarded_contexts(reply.contexts().to_vec());
                incoming.reply_raw(reply.status(), contexts, &reply.raw_body())
            }
            (Ok(None), _) => incoming.reply(|_| Ok(())),
            (Err(exception), Some(interface)) if is_incompatible_encoding(&exception) => {
                let servant = ReencodingServant(self.target.clone());
                DynamicSkeleton { interface: Arc::clone(interface), servant }.serve(incoming).await
            }
            (Err(exception), _) => incoming.system_exception(exception),
        }
    }

    async fn call(
        &self,
        current: &Current,
        body: &RawBody,
        wants_reply: bool,
    ) -> Result<Option<Reply>, SystemException> {
        if body.is_fragmented() || !body.start_modulo_8().is_multiple_of(4) {
            return Err(client::incompatible_encoding(
                SystemExceptionKind::ImpLimit,
                "arguments in GIOP 1.1 fragments, or after an unaligned principal, cannot be forwarded unchanged",
            ));
        }
        let target = with_contexts(&self.target_for(body), &current.contexts());
        let operation = CallOperation::temporary(current.operation(), !wants_reply)
            .with_raw_arguments(body.order(), body.start_modulo_8());
        let encode = |e: &mut Encoder| -> Result<(), EncodeError> {
            body.put(e);
            Ok(())
        };
        match wants_reply {
            true => client::transact(&target, &operation, ResponseFlags::Target, &encode).await.map(Some),
            false => client::send_without_reply(&target, &operation, encode).await.map(|()| None),
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

    /// Returns true for `Object` and the bridge's own interface. Only the target knows others.
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

    /// Does nothing, so that collocated calls are forwarded like remote calls.
    fn downcast_into(self: Arc<Self>, _: &mut dyn StdAny) {}
}

/// Forwards requests by decoding them and encoding them again for this target.
struct ReencodingServant(ObjectRef);

impl DynServant for ReencodingServant {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let current = crate::servant::request();
        let info = ReplyInfo::new();
        let target = with_contexts(&self.0, &current.contexts()).with_reply_info(&info);
        let reply = Request::repeat(&target, &request).invoke().await;
        forwarded_contexts(info.contexts())
            .into_iter()
            .for_each(|context| current.set_reply_context(context));
        Ok(request.with_reply(reply?))
    }
}

/// Returns the target with its own service contexts, and in addition those of `contexts` that are forwarded.
fn with_contexts(target: &ObjectRef, contexts: &ServiceContexts<'_>) -> ObjectRef {
    let contexts = forwarded_contexts(contexts.to_vec());
    match contexts.is_empty() {
        true => target.clone(),
        false => target.with_options(|options| {
            options.contexts = options.contexts.iter().cloned().chain(contexts).collect()
        }),
    }
}

/// Removes the contexts that concern the connection on which they were received, or identify the caller.
fn forwarded_contexts(mut contexts: Vec<ServiceContext>) -> Vec<ServiceContext> {
    const NOT_FORWARDED: [ContextId; 5] = [
        ContextId::CODE_SETS,
        ContextId::BI_DIR_IIOP,
        ContextId::ZORB_BLOCKS,
        ContextId::ZORB_PADDING,
        // A password is intended only for its recipient, and the number of a security context is valid only
        // on its connection.
        ContextId::SECURITY_ATTRIBUTE_SERVICE,
    ];
    contexts.retain(|context| !NOT_FORWARDED.contains(&context.id));
    contexts
}
