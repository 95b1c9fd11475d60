//! The buffer of a reply, and replies that are sent while they are encoded.

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
    /// The next reply must be sent whole.
    whole: bool,
}

impl ReplyBuffer {
    pub(crate) fn new(link: Option<Arc<SharedConnection>>) -> Box<Self> {
        let link = link.map(Opaque::from);
        Box::new(Self { encoder: Encoder::new(ByteOrder::NATIVE, Version::V1_2), link, whole: false })
    }

    /// Returns the connection over which replies are sent.
    pub(crate) fn link(&self) -> Option<&Opaque<SharedConnection>> {
        self.link.as_ref()
    }

    /// Causes the next reply to be sent whole, regardless of its size.
    pub(crate) fn stay_whole(&mut self) {
        self.whole = true;
    }

    /// Encodes the results after the header of a reply. Results with a long sequence of structs are measured
    /// first, then sent while they are encoded. In that case the returned value is true, and the encoder is
    /// empty.
    #[inline]
    pub(crate) fn put_results(
        &mut self,
        token: ServeToken,
        size_at: usize,
        results: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<bool, EncodeError> {
        let Self { encoder, link, whole } = self;
        let whole = std::mem::take(whole);
        let Some(link) = link.as_ref().filter(|link| !whole && link.flows()) else {
            return results(encoder).map(|()| false);
        };
        let begun = encoder.mark();
        encoder.measure_runs();
        results(encoder)?;
        if encoder.measured_runs() == 0 {
            return Ok(false);
        }
        if flow(link, token, encoder, begun, size_at, &results)? {
            return Ok(true);
        }
        results(encoder).map(|()| false)
    }
}

/// Returns to the start of the measured results and sends them from there. `false`: they must be encoded
/// whole.
#[cold]
fn flow(
    link: &Opaque<SharedConnection>,
    token: ServeToken,
    encoder: &mut Encoder,
    begun: Mark,
    size_at: usize,
    results: &dyn Fn(&mut Encoder) -> Result<(), EncodeError>,
) -> Result<bool, EncodeError> {
    let octets = encoder.position();
    // Value types refer to each other. Bulk data in separate memory may be announced in blocks.
    let flows = encoder.chunk_count() == 0 && !encoder.has_values();
    if flows {
        finish_message(encoder, size_at)?;
    }
    encoder.rewind(begun);
    let coming = octets.saturating_sub(encoder.position()) as u64;
    Ok(flows && link.to_arc().send_reply_flow(token, encoder, coming, results))
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
