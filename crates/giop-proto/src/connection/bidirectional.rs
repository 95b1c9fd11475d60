//! Requests in both directions of one connection ("Bidirectional GIOP").
//!
//! Both sides have the tables of calls and of requests being served, and the parity of request ids
//! distinguishes the directions. This module handles what is special: the objects that the peer offers to
//! serve, and two sides that close at the same time.

use giop_codec::Version;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, MAX_LISTEN_POINTS, MessageHeader, RequestId,
    ResponseFlags, ServiceContexts,
};

use super::Connection;
use crate::limits::Role;

/// Longer than any valid host name or address.
const MAX_HOST: usize = 255;

impl Connection {
    /// Returns the addresses at which the peer would listen, as announced by its requests. Requests for
    /// objects at these addresses may be sent over this connection. Empty on connections that this side
    /// opened.
    ///
    /// The peer may claim any address. Before requests are sent because of this list, it must be certain that
    /// the peer may receive them. The list is updated when `Event::Request` is handed out. It only grows, up
    /// to [`MAX_LISTEN_POINTS`].
    #[must_use]
    pub fn peer_listen_points(&self) -> &[ListenPoint] {
        &self.peer.listen_points
    }

    /// Records the listen points of the peer ("Bi-directional IIOP"), and returns whether any is new. Only
    /// the side that opened the connection announces them, in GIOP 1.2.
    #[cold]
    pub(super) fn learn_listen_points(
        &mut self,
        header: &MessageHeader,
        contexts: &ServiceContexts<'_>,
    ) -> Result<bool, SystemException> {
        if self.role != Role::Server || header.version < Version::V1_2 {
            return Ok(false);
        }
        let Some(context) = contexts.find(ContextId::BI_DIR_IIOP) else { return Ok(false) };
        let known = self.peer.listen_points.len();
        let context: BiDirIiopServiceContext =
            context.value().map_err(|error| error.system(CompletionStatus::No))?;
        for point in context.listen_points {
            let usable = !point.host.is_empty() && point.host.len() <= MAX_HOST;
            if usable
                && self.peer.listen_points.len() < MAX_LISTEN_POINTS
                && !self.peer.listen_points.contains(&point)
            {
                self.peer.listen_points.push(point);
            }
        }
        Ok(self.peer.listen_points.len() > known)
    }

    /// Drops a request that was received while this side closes. CloseConnection tells the peer that it was
    /// not executed, but is sent only after this side has its own replies. If both sides waited for that,
    /// neither would end, so in this case the request is refused immediately.
    #[cold]
    pub(super) fn turn_away(&mut self, id: RequestId, response: ResponseFlags, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && response.expects_reply() {
            self.refuse(id, version, &closing());
            self.bound_refusals();
        }
    }

    /// Drops a LocateRequest that was received while this side closes. It is refused only since GIOP 1.2:
    /// earlier versions have no suitable answer.
    #[cold]
    pub(super) fn turn_locate_away(&mut self, id: RequestId, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && version >= Version::V1_2 {
            self.refuse_locate(id, version, &closing());
            self.bound_refusals();
        }
    }

    /// Returns whether this side closes and still awaits replies.
    pub(super) fn awaits_replies(&self) -> bool {
        self.is_serving_phase() && self.calls.waiting() > 0
    }
}

fn closing() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, minor::TRANSIENT_DISCARDED, CompletionStatus::No)
        .because("the connection is being closed")
}
