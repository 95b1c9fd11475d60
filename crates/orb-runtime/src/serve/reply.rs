//! The buffer of a reply, and replies that leave while they are encoded.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use giop_codec::cdr::{Encoder, Mark};
use giop_codec::giop::finish_message;
use giop_codec::{ByteOrder, EncodeError, Version};
use giop_proto::ServeToken;

use crate::link::Link;
use crate::opaque::Opaque;

/// An encoder that is used again for the replies of a connection.
#[derive(Debug)]
pub(crate) struct ReplyBuffer {
    encoder: Encoder,
    /// Where long replies may go before they are whole.
    link: Option<Opaque<Link>>,
    /// Not this one.
    whole: bool,
}

impl ReplyBuffer {
    pub(crate) fn new(link: Option<Arc<Link>>) -> Box<Self> {
        let link = link.map(Opaque::from);
        Box::new(Self { encoder: Encoder::new(ByteOrder::NATIVE, Version::V1_2), link, whole: false })
    }

    /// Where replies go.
    pub(crate) fn link(&self) -> Option<&Opaque<Link>> {
        self.link.as_ref()
    }

    /// The next reply is sent as a whole, however long it is.
    pub(crate) fn stay_whole(&mut self) {
        self.whole = true;
    }

    /// Encodes the results behind the header of a reply. Where they have a long run of structs, they are measured first, and then
    /// leave while they are encoded: then the encoder is empty afterwards, and the second value is true.
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

/// Goes back to where the results begin, which are measured, and sends them from there. `false`: they are to be encoded whole.
#[cold]
fn flow(
    link: &Opaque<Link>,
    token: ServeToken,
    encoder: &mut Encoder,
    begun: Mark,
    size_at: usize,
    results: &dyn Fn(&mut Encoder) -> Result<(), EncodeError>,
) -> Result<bool, EncodeError> {
    let octets = encoder.position();
    // Values refer to each other. What has bulk elsewhere may be announced block by block.
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
