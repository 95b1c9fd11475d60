//! The buffer in which a reply is encoded. Long replies are sent while they are encoded.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use giop_codec::cdr::{Encoder, Mark};
use giop_codec::giop::finish_message;
use giop_codec::{ByteOrder, EncodeError, Version};
use giop_proto::ServeToken;

use crate::connection::SharedConnection;
use crate::opaque::Opaque;

/// A reusable encoder for the replies of a connection.
#[derive(Debug)]
pub(crate) struct ReplyBuffer {
    encoder: Encoder,
    /// The connection over which long replies may be sent before they are complete.
    link: Option<Opaque<SharedConnection>>,
    /// Whether the next reply must be encoded completely before it is sent.
    send_whole: bool,
}

impl ReplyBuffer {
    pub(crate) fn new(link: Option<Arc<SharedConnection>>) -> Box<Self> {
        let link = link.map(Opaque::from);
        Box::new(Self { encoder: Encoder::new(ByteOrder::NATIVE, Version::V1_2), link, send_whole: false })
    }

    pub(crate) fn link(&self) -> Option<&Opaque<SharedConnection>> {
        self.link.as_ref()
    }

    /// Causes the next reply to be encoded completely before it is sent, regardless of its size.
    pub(crate) fn send_next_whole(&mut self) {
        self.send_whole = true;
    }

    /// Encodes the results after the header of a reply. If they contain a long sequence of structs, `results`
    /// runs twice: to measure them, and to send them while they are encoded. Then the returned value is
    /// `true`, and the encoder is empty.
    #[inline]
    pub(crate) fn put_results(
        &mut self,
        token: ServeToken,
        size_at: usize,
        results: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<bool, EncodeError> {
        let Self { encoder, link, send_whole } = self;
        let send_whole = std::mem::take(send_whole);
        let Some(link) = link.as_ref().filter(|link| !send_whole && link.flows()) else {
            return results(encoder).map(|()| false);
        };
        let begun = encoder.mark();
        encoder.measure_runs();
        results(encoder)?;
        if encoder.measured_runs() == 0 {
            return Ok(false);
        }
        if send_while_encoding(link, token, encoder, begun, size_at, &results)? {
            return Ok(true);
        }
        results(encoder).map(|()| false)
    }
}

/// Encodes measured results again from their start, `begun`, and sends them meanwhile. Returns `false` if
/// they must be encoded completely first.
#[cold]
fn send_while_encoding(
    link: &Opaque<SharedConnection>,
    token: ServeToken,
    encoder: &mut Encoder,
    begun: Mark,
    size_at: usize,
    results: &dyn Fn(&mut Encoder) -> Result<(), EncodeError>,
) -> Result<bool, EncodeError> {
    let end = encoder.position();
    // A value may refer to an earlier position of the message. Bulk data in separate memory is sent without a
    // copy.
    let can_send = encoder.chunk_count() == 0 && !encoder.has_values();
    if can_send {
        finish_message(encoder, size_at)?;
    }
    encoder.rewind(begun);
    let size = end.saturating_sub(encoder.position()) as u64;
    Ok(can_send && link.to_arc().send_reply_flow(token, encoder, size, results))
}

impl Deref for ReplyBuffer {
    type Target = Encoder;

    #[inline]
    fn deref(&self) -> &Encoder {
        &self.encoder
    }
}

impl DerefMut for ReplyBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut Encoder {
        &mut self.encoder
    }
}
