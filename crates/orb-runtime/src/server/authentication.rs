//! Authentication and authorization of requests before they are dispatched.

use std::sync::Arc;
use std::task::Context;

use giop_codec::ByteOrder;
use giop_codec::giop::{LocateReplyHeader, LocateStatus, MessageType, finish_message, put_message_header};
use giop_proto::{IncomingLocate, IncomingRequest};

use crate::csi::{Access, AuthOutcome, Refusal};
use crate::object_key::{Key, PoaPath};
use crate::servant::Outcome;
use crate::servant::request::ReplyTo;
use crate::server::driver::Driver;
use crate::server::pending_requests::WaitCondition;

impl Driver {
    /// Identifies the caller, if access control is configured. The error is the reply to a rejected request,
    /// or `None` if the request is held.
    #[inline]
    pub(crate) fn identify(
        &mut self,
        cx: &mut Context<'_>,
        incoming: IncomingRequest,
    ) -> Result<IncomingRequest, Option<Outcome>> {
        if self.access_guard.is_none() { Ok(incoming) } else { self.identify_caller(cx, incoming) }
    }

    #[cold]
    fn identify_caller(
        &mut self,
        cx: &mut Context<'_>,
        incoming: IncomingRequest,
    ) -> Result<IncomingRequest, Option<Outcome>> {
        let Some(guard) = &mut self.access_guard else { return Ok(incoming) };
        match guard.identify(&self.orb, &incoming) {
            AuthOutcome::Accepted(caller) => {
                self.active.caller = caller;
                Ok(incoming)
            }
            AuthOutcome::Pending(check) => {
                // The next poll registers this task's waker with the check.
                cx.waker().wake_by_ref();
                self.defer(incoming, WaitCondition::Login(check));
                Err(None)
            }
            AuthOutcome::Refused(refused) => Err(Some(self.reject_caller(&incoming, *refused))),
        }
    }

    /// Checks access to the object that was found last. Returns a reply if the caller has no access.
    #[inline]
    pub(crate) fn check_access_to_last(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        self.access_guard.as_ref()?;
        let entry = Arc::clone(self.last_object.as_ref()?);
        let id = entry.id_in(incoming.key());
        self.check_access(incoming, entry.poa.node().path.as_path(), id, Some(entry.skeleton.repository_id()))
    }

    /// Checks access to an object whose POA does not exist, by the names in the object key. This precedes the
    /// adapter activator, so that a caller without access cannot cause the creation of POAs.
    #[cold]
    pub(crate) fn check_access_by_key(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        let Ok(Key::Persistent { path, id }) = Key::parse(incoming.key()) else { return None };
        self.check_access(incoming, path, id, None)
    }

    /// Checks access to an object of a POA. Returns a reply if the caller has no access. `interface` is the
    /// repository id of the servant's interface, if there is a servant.
    #[cold]
    pub(crate) fn check_access(
        &mut self,
        incoming: &IncomingRequest,
        path: PoaPath<'_>,
        object_id: &[u8],
        interface: Option<&str>,
    ) -> Option<Outcome> {
        let guard = self.access_guard.as_mut()?;
        let operation = incoming.operation();
        #[cfg(feature = "experiments")]
        let operation = match &self.last_object {
            Some(entry) => crate::servant::experiments::operation_name(&self.orb, entry, operation),
            None => operation,
        };
        let session = self.link.tls_session().map(|session| &**session);
        let access = Access {
            principal: self.active.caller.principal().map(|principal| &**principal),
            path,
            object_id,
            interface,
            operation,
            session,
            peer: self.link.peer(),
        };
        let exception = guard.authorize(&access).err()?;
        Some(self.reject_caller(incoming, Refusal { exception, context: None }))
    }

    fn reject_caller(&mut self, incoming: &IncomingRequest, refused: Refusal) -> Outcome {
        let mut to = ReplyTo::new(incoming);
        // A client with SYNC_WITH_SERVER gets a reply because the server has not accepted the request.
        to.wants_reply |= incoming.response() == giop_codec::giop::ResponseFlags::Server;
        to.system_exception_with(self.active.encoder(), refused.exception, refused.context.as_slice())
    }

    /// Replies to a LocateRequest with OBJECT_HERE in every case. A LocateRequest has no credentials, so the
    /// reply must not tell whether the object exists.
    #[cold]
    pub(crate) fn locate_without_check(&mut self, locate: &IncomingLocate) {
        let mut encoder = self.active.encoder();
        encoder.reset(ByteOrder::NATIVE, locate.version());
        let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
        let header = LocateReplyHeader { request_id: locate.id(), status: LocateStatus::ObjectHere };
        if header.encode(&mut encoder).and_then(|()| finish_message(&mut encoder, size_at)).is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.active.recycle_encoder(encoder);
    }
}
