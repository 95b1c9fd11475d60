//! Requests that are judged before they are served: who calls, and whether he may.

use std::sync::Arc;
use std::task::Context;

use giop_codec::ByteOrder;
use giop_codec::giop::{LocateReplyHeader, LocateStatus, MessageType, finish_message, put_message_header};
use giop_proto::{IncomingLocate, IncomingRequest};

use super::driver::Driver;
use crate::csi::{Access, Judged, Refused};
use crate::poa::key::{Key, Path};
use crate::serve::demux;
use crate::serve::request::{Outcome, ReplyTo};
use crate::serve::waiting::Until;

impl Driver {
    /// Finds out who calls, where anybody wants to know. Gives the request back if it may go on.
    ///
    /// # Errors
    /// What became of it: it waits, or it is refused.
    #[inline]
    pub(super) fn identify(
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
            Judged::As(caller) => {
                self.running.caller = caller;
                Ok(incoming)
            }
            Judged::Wait(check) => {
                // So that the check is looked at, which wakes this task when it is done.
                cx.waker().wake_by_ref();
                self.put_off(incoming, Until::Login(check));
                Err(None)
            }
            Judged::Refused(refused) => Err(Some(self.turn_away(&incoming, *refused))),
        }
    }

    /// What a caller is told who may not call the object that was found last; `None`: he may, or there is none.
    #[inline]
    pub(super) fn forbids_last(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        self.guard.as_ref()?;
        let entry = Arc::clone(self.last.as_ref()?);
        let id = entry.id_in(incoming.key());
        self.forbids(incoming, entry.poa.path.as_path(), id, Some(entry.skeleton.repository_id()))
    }

    /// The same of an object of which not even the POA is there: it is asked by the names in its key, before an adapter activator makes
    /// anything for who may not call it.
    #[cold]
    pub(super) fn forbids_what_may_come(&mut self, incoming: &IncomingRequest) -> Option<Outcome> {
        match Key::parse(incoming.key()) {
            Ok(Key::Persistent { path, id }) => self.forbids(incoming, path, id, None),
            _ => None,
        }
    }

    /// The same of an object of that POA; `interface`: of its servant, if there is one.
    #[cold]
    pub(super) fn forbids(
        &mut self,
        incoming: &IncomingRequest,
        path: Path<'_>,
        object_id: &[u8],
        interface: Option<&str>,
    ) -> Option<Outcome> {
        let guard = self.guard.as_mut()?;
        let operation = match &self.last {
            Some(entry) => demux::name_of(&self.orb, entry, incoming.operation()),
            None => incoming.operation(),
        };
        let session = self.link.session().map(|session| &**session);
        let access = Access {
            principal: self.running.caller.principal().map(|principal| &**principal),
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
        // As for all that does not get to a servant.
        to.wanted |= incoming.response() == giop_codec::giop::ResponseFlags::Server;
        let contexts: Vec<_> = refused.context.into_iter().collect();
        to.system_exception_with(self.running.encoder(), refused.exception, &contexts)
    }

    /// Answers a LocateRequest, which can not say who calls: that the object is here, whatever it is. The request tells more.
    #[cold]
    pub(super) fn locate_blindly(&mut self, locate: &IncomingLocate) {
        let mut encoder = self.running.encoder();
        encoder.reset(ByteOrder::NATIVE, locate.version());
        let size_at = put_message_header(&mut encoder, MessageType::LocateReply);
        let header = LocateReplyHeader { request_id: locate.id(), status: LocateStatus::ObjectHere };
        if header.encode(&mut encoder).and_then(|()| finish_message(&mut encoder, size_at)).is_ok() {
            self.link.lock().machine.send_locate_reply(&mut encoder);
        }
        self.running.keep_encoder(encoder);
    }
}
