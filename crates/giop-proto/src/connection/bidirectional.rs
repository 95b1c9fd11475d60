//! Requests in both directions of one connection ("Bidirectional GIOP").
//!
//! The tables of calls and of requests being served are there on both sides, and the parity of request ids keeps the directions apart. What
//! is special is here: which objects the peer offers to serve, and what two sides that close at the same time tell each other.

use giop_codec::Version;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, MAX_LISTEN_POINTS, MessageHeader, RequestId,
    ResponseFlags, ServiceContexts,
};

use super::Connection;
use crate::limits::Role;

/// Longer than any host name or address that there is.
const MAX_HOST: usize = 255;

impl Connection {
    /// The addresses at which the peer would listen, as its requests announced them: requests for objects there may be sent over this
    /// connection. Empty on connections that this side opened.
    ///
    /// The peer may claim any address. Whoever sends requests because of this must know that the peer may have them. What the peer says is
    /// learned when `Event::Request` is handed out; the list only grows, up to [`MAX_LISTEN_POINTS`].
    #[must_use]
    pub fn peer_listen_points(&self) -> &[ListenPoint] {
        &self.listen_points
    }

    /// Learns where the peer would listen ("Bi-directional IIOP"), and says whether that is new. Only who opened the connection says so, in
    /// GIOP 1.2.
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
        let known = self.listen_points.len();
        let context: BiDirIiopServiceContext =
            context.value().map_err(|error| error.system(CompletionStatus::No))?;
        for point in context.listen_points {
            let usable = !point.host.is_empty() && point.host.len() <= MAX_HOST;
            if usable && self.listen_points.len() < MAX_LISTEN_POINTS && !self.listen_points.contains(&point)
            {
                self.listen_points.push(point);
            }
        }
        Ok(self.listen_points.len() > known)
    }

    /// A request that came while this side closes: it is not executed. CloseConnection tells the peer so, but not before this side has
    /// its own replies. If both sides waited for that, none would end; so the peer is told at once.
    #[cold]
    pub(super) fn turn_away(&mut self, id: RequestId, response: ResponseFlags, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && response.expects_reply() {
            self.refuse(id, version, &closing());
            self.bound_refusals();
        }
    }

    /// The same of a LocateRequest, since GIOP 1.2: before, no answer to it would say so.
    #[cold]
    pub(super) fn turn_locate_away(&mut self, id: RequestId, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && version >= Version::V1_2 {
            self.refuse_locate(id, version, &closing());
            self.bound_refusals();
        }
    }

    /// Whether this side closes and still waits for replies.
    pub(super) fn awaits_replies(&self) -> bool {
        self.is_serving_phase() && self.calls.waiting() > 0
    }
}

fn closing() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, minor::TRANSIENT_DISCARDED, CompletionStatus::No)
        .because("the connection is being closed")
}
