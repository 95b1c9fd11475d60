//! Authentication and authorization of requests before they are dispatched.

use std::sync::Arc;
use std::task::Context;

use giop_codec::ByteOrder;
use giop_codec::giop::{LocateReplyHeader, LocateStatus, MessageType, finish_message, put_message_header};
use giop_proto::{IncomingLocate, IncomingRequest};

use crate::csi::{Access, AuthOutcome, Refused};
use crate::object_key::{Key, Path};
use crate::servant::Outcome;
#[cfg(feature = "experiments")]
use crate::servant::experiments;
use crate::servant::request::ReplyTo;
use crate::server::driver::Driver;
use crate::server::pending_requests::WaitCondition;

impl Driver {
    /// Determines the caller, if access control is configured. Returns the request if it may continue.
    ///
    /// # Errors
    /// The request is held (`None`) or rejected, with this answer.
    #[inline]
    pub(crate) fn identify(
        &mut self,
        cx: &mut Context<'_>,
        incoming: IncomingRequest,
    ) -> Result<IncomingRequest, Option<Outcome>> {
        if self.guard.is_none() { Ok(incoming) } else { self.ask(cx, incoming) }
    }

    #[cold]
    fn ask(
        &mut self,
        cx: &mut Context<'_>,
        incoming: IncomingRequest,
    ) -> Result<IncomingRequest, Option<Outcome>> {
        let Some(guard) = &mut self.guard else { return Ok(incoming) };
        match guard.identify(&self.orb, &incoming) {
            AuthOutcome::As(caller) => {
                self.active.caller = caller;
                Ok(incoming)
            }
            AuthOutcome::Wait(check) => {
                // The next poll registers this task's waker with the check.
                cx.waker().wake_by_ref();
                self.defer(incoming, WaitCondition::Login(check));
                Err(None)
            }
            AuthOutcome::Refused(refused) => Err(Some(self.turn_away(&incoming, *refused))),
        }
    }

    /// Returns the rejection if the caller may not call the object found last. `None`: it may, or there is no
    /// object.
    #[inline]
    pub(crate) fn forbids_last(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        self.guard.as_ref()?;
        let entry = Arc::clone(self.last.as_ref()?);
        let id = entry.id_in(incoming.key());
        self.forbids(incoming, entry.poa.node().path.as_path(), id, Some(entry.skeleton.repository_id()))
    }

    /// Checks access to an object whose POA does not exist, by the names in its key. Runs before an adapter
    /// activator creates anything for a caller without access.
    #[cold]
    pub(crate) fn forbids_what_may_come(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        match Key::parse(incoming.key()) {
            Ok(Key::Persistent { path, id }) => self.forbids(incoming, path, id, None),
            _ => None,
        }
    }

    /// Checks access to an object of a POA. `interface`: the repository id of its servant, if there is one.
    #[cold]
    pub(crate) fn forbids(
        &mut self,
        incoming: &IncomingRequest,
        path: Path<'_>,
        object_id: &[u8],
        interface: Option<&str>,
    ) -> Option<Outcome> {
        let guard = self.guard.as_mut()?;
        let operation = incoming.operation();
        #[cfg(feature = "experiments")]
        let operation = match &self.last {
            Some(entry) => experiments::name_of(&self.orb, entry, operation),
            None => operation,
        };
        let session = self.link.session().map(|session| &**session);
        let access = Access {
            principal: self.active.caller.principal().map(|principal| &**principal),
            path,
            object_id,
            interface,
            operation,
            session,
            peer: self.link.peer(),
        };
        let exception = guard.permit(&access).err()?;
        Some(self.turn_away(incoming, Refused { exception, context: None }))
    }

    fn turn_away(&mut self, incoming: &IncomingRequest, refused: Refused) -> Outcome {
        let mut to = ReplyTo::new(incoming);
        // A request that does not reach a servant is answered for SYNC_WITH_SERVER too.
        to.wanted |= incoming.response() == giop_codec::giop::ResponseFlags::Server;
        let contexts: Vec<_> = refused.context.into_iter().collect();
        to.system_exception_with(self.active.encoder(), refused.exception, &contexts)
    }

    /// Answers a LocateRequest, which cannot carry credentials, with OBJECT_HERE in every case. Only a
    /// following request reveals more.
    #[cold]
    pub(crate) fn locate_blindly(&mut self, locate: &IncomingLocate) {
        let mut encoder = self.active.encoder();
        encoder.reset(ByteOrder::NATIVE, locate.version());
        let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
        let header = LocateReplyHeader { request_id: locate.id(), status: LocateStatus::ObjectHere };
        if header.encode(&mut encoder).and_then(|()| finish_message(&mut encoder, size_at)).is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.active.keep_encoder(encoder);
    }
}
