//! What a connection knows of its peer, from the contexts of its requests.

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

/// Longer than any valid host name or address.
const MAX_HOST: usize = 255;

/// What is known of the peer.
#[derive(Debug)]
pub struct Peer {
    /// True if it opened the connection.
    pub(super) opened: bool,
    pub(super) code_sets: Option<CodeSets>,
    /// The code sets that are assumed until it announces its own.
    pub(super) unannounced: CodeSets,
    /// The addresses at which the peer would listen.
    pub(super) listen_points: Vec<ListenPoint>,
    /// True if a request of the peer announced that it reads lists of blocks.
    pub(super) reads_blocks: bool,
    pub(super) last_head: LastHead,
}

/// The contents of a request's contexts that its server needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestContexts {
    /// True if it carries listen points that were not known.
    pub(super) announces: bool,
    /// True if it asks for the reference of its object.
    pub(super) asks: bool,
    /// True if the peer is GlassFish.
    pub(super) is_glassfish: bool,
}

impl Peer {
    /// Returns the addresses at which the peer would listen, as announced by its requests. Requests for
    /// objects at these addresses may be sent over this connection. Empty on connections that this side
    /// opened.
    ///
    /// The peer may claim any address. Before requests are sent because of this list, it must be certain that
    /// the peer may receive them. The list is updated when `Event::Request` is handed out. It only grows, up
    /// to [`MAX_LISTEN_POINTS`].
    #[must_use]
    pub fn listen_points(&self) -> &[ListenPoint] {
        &self.listen_points
    }

    /// Returns the negotiated code sets, if any: what the client set, or what its requests announced to the
    /// server.
    #[must_use]
    pub fn code_sets(&self) -> Option<CodeSets> {
        self.code_sets
    }

    /// Returns the code sets of text on this connection at present.
    #[must_use]
    pub fn code_sets_in_force(&self) -> CodeSets {
        self.code_sets.unwrap_or(self.unannounced)
    }

    /// Returns the settings of all messages that are handed out at present.
    pub(super) fn terms(&self, limits: &Limits, deposits: bool) -> MessageSettings {
        MessageSettings::new(limits, self.code_sets_in_force(), deposits, self.reads_blocks)
    }

    /// Applies what a request announces: code sets, whether the peer reads lists of blocks, and its listen
    /// points.
    pub(super) fn learn(
        &mut self,
        header: &MessageHeader,
        octets: &[u8],
    ) -> Result<RequestContexts, SystemException> {
        let contexts = message::contexts_of(header, octets);
        self.reads_blocks |= BlockList::is_read_by_sender(&contexts);
        if let Some(context) = contexts.find(ContextId::CODE_SETS) {
            let context: CodeSetContext =
                context.value().map_err(|error| error.system(CompletionStatus::No))?;
            self.code_sets = Some(context.accept(self.code_sets)?);
        }
        Ok(RequestContexts {
            announces: self.learn_listen_points(header, &contexts)?,
            asks: contexts.find(ContextId::ZORB_REFERENCE).is_some(),
            is_glassfish: contexts.find(ContextId::SUN_ORB_VERSION).is_some(),
        })
    }

    /// Records the listen points of the peer ("Bi-directional IIOP"), and returns whether any is new. Only
    /// the side that opened the connection announces them, in GIOP 1.2.
    #[cold]
    pub(super) fn learn_listen_points(
        &mut self,
        header: &MessageHeader,
        contexts: &ServiceContexts<'_>,
    ) -> Result<bool, SystemException> {
        if !self.opened || header.version < Version::V1_2 {
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
}
