//! [`Peer`]: the properties of a peer, most of which the service contexts of its requests announce.

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::code_set::CodeSetContext;
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::giop::{
    BiDirIiopServiceContext, BlockList, ContextId, ListenPoint, MAX_LISTEN_POINTS, MessageHeader,
    ServiceContexts,
};

use crate::limits::Limits;
use crate::message::{self, LastHead, MessageSettings};

/// The maximum length in bytes of the host of a listen point. Valid host names and addresses are shorter.
const MAX_HOST_BYTES: usize = 255;

/// The known properties of the peer.
#[derive(Debug)]
pub struct Peer {
    pub(super) opened_connection: bool,
    pub(super) code_sets: Option<CodeSets>,
    /// The code sets that are assumed until others are negotiated.
    pub(super) assumed_code_sets: CodeSets,
    pub(super) listen_points: Vec<ListenPoint>,
    /// True if the peer accepts lists of the blocks of bulk data in a message.
    pub(super) reads_blocks: bool,
    pub(super) last_head: LastHead,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RequestContexts {
    pub(super) has_new_listen_points: bool,
    pub(super) asks_for_reference: bool,
    pub(super) is_glassfish: bool,
}

impl Peer {
    /// Returns the addresses at which the peer listens, as its requests announce them. Requests for objects
    /// there may be sent over this connection. The list is empty on connections that this side opened.
    ///
    /// The peer may announce any address. Before sending requests because of this list, ensure that the peer
    /// may receive them. New entries are added before `Event::Request`, up to [`MAX_LISTEN_POINTS`].
    pub fn listen_points(&self) -> &[ListenPoint] {
        &self.listen_points
    }

    /// Returns the code sets that the client has negotiated; `None` if it has not negotiated any.
    pub fn code_sets(&self) -> Option<CodeSets> {
        self.code_sets
    }

    /// Returns the code sets of text at present: the negotiated ones, or those that are assumed until then.
    pub fn code_sets_in_force(&self) -> CodeSets {
        self.code_sets.unwrap_or(self.assumed_code_sets)
    }

    pub(super) fn message_settings(&self, limits: &Limits, deposits: bool) -> MessageSettings {
        MessageSettings::new(limits, self.code_sets_in_force(), deposits, self.reads_blocks)
    }

    /// Records the code sets, support for lists of blocks, and listen points in the contexts of a request.
    pub(super) fn apply_contexts(
        &mut self,
        header: &MessageHeader,
        bytes: &[u8],
    ) -> Result<RequestContexts, SystemException> {
        let contexts = message::contexts_at(bytes, header.order, header.version, header.kind);
        self.reads_blocks |= BlockList::is_read_by_sender(&contexts);
        if let Some(context) = contexts.find(ContextId::CODE_SETS) {
            let context: CodeSetContext =
                context.value().map_err(|error| error.to_system_exception(CompletionStatus::No))?;
            self.code_sets = Some(context.accept(self.code_sets)?);
        }
        Ok(RequestContexts {
            has_new_listen_points: self.add_listen_points(header, &contexts)?,
            asks_for_reference: contexts.find(ContextId::ZORB_REFERENCE).is_some(),
            is_glassfish: contexts.find(ContextId::SUN_ORB_VERSION).is_some(),
        })
    }

    /// Adds the listen points of the peer ("Bi-directional IIOP"), and returns whether any of them is new.
    /// They are ignored unless the peer opened the connection and the version is at least GIOP 1.2.
    #[cold]
    pub(super) fn add_listen_points(
        &mut self,
        header: &MessageHeader,
        contexts: &ServiceContexts<'_>,
    ) -> Result<bool, SystemException> {
        if !self.opened_connection || header.version < Version::V1_2 {
            return Ok(false);
        }
        let Some(context) = contexts.find(ContextId::BI_DIR_IIOP) else { return Ok(false) };
        let known = self.listen_points.len();
        let context: BiDirIiopServiceContext =
            context.value().map_err(|error| error.to_system_exception(CompletionStatus::No))?;
        for point in context.listen_points {
            let is_usable = !point.host.is_empty() && point.host.len() <= MAX_HOST_BYTES;
            if is_usable
                && self.listen_points.len() < MAX_LISTEN_POINTS
                && !self.listen_points.contains(&point)
            {
                self.listen_points.push(point);
            }
        }
        Ok(self.listen_points.len() > known)
    }
}
