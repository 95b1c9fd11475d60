//! The buffer in which a reply is encoded. Long replies are sent while they are encoded.
//!
//! This module also accounts for the memory of decoded arguments, which counts against the receive memory of
//! the ORB during their request.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use giop_codec::cdr::{Encoder, Mark};
use giop_codec::giop::finish_message;
use giop_codec::{ByteOrder, EncodeError, Version};
use giop_proto::ServeToken;
use giop_proto::pool::BufferPool;

use crate::connection::SharedConnection;
use crate::opaque::Opaque;

#[derive(Debug)]
pub(crate) struct ReplyBuffer {
    encoder: Encoder,
    /// The connection over which long replies may be sent before they are complete.
    link: Option<Opaque<SharedConnection>>,
    must_send_whole: bool,
}

impl ReplyBuffer {
    pub(crate) fn new(link: Option<Arc<SharedConnection>>) -> Box<Self> {
        let link = link.map(Opaque::from);
        let encoder = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
        Box::new(Self { encoder, link, must_send_whole: false })
    }

    pub(crate) fn link(&self) -> Option<&Opaque<SharedConnection>> {
        self.link.as_ref()
    }

    /// Causes the next reply to be encoded completely before it is sent, regardless of its size.
    pub(crate) fn send_next_whole(&mut self) {
        self.must_send_whole = true;
    }

    /// Encodes the results after the header of a reply. If they contain a long sequence of structs, `results`
    /// runs twice: to measure them, and to encode them. Returns `true` if the reply was sent while it was
    /// encoded. The encoder is then empty.
    #[inline]
    pub(crate) fn put_results(
        &mut self,
        token: ServeToken,
        size_at: usize,
        results: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<bool, EncodeError> {
        let Self { encoder, link, must_send_whole } = self;
        let must_send_whole = std::mem::take(must_send_whole);
        let Some(link) = link.as_ref().filter(|link| !must_send_whole && link.supports_flows()) else {
            return results(encoder).map(|()| false);
        };
        let begun = encoder.mark();
        encoder.begin_measuring_runs();
        results(encoder)?;
        if encoder.end_measuring_runs() == 0 {
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
    // Values of value types may refer to earlier positions of the message, which must not have been sent.
    // Bulk data in separate memory is sent without a copy anyway.
    let can_send = encoder.chunk_count() == 0 && !encoder.has_value_types();
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

/// The minimum size of arguments that are counted, in bytes. The smaller arguments of all requests together
/// take at most the default capacity of the receive pool.
const MIN_CHARGED_BYTES: usize = 16 * 1024;

/// A number of bytes that count against the pool until the value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge(Option<(Arc<BufferPool>, usize)>);

impl Charge {
    #[inline]
    pub(crate) fn is_required(size: usize) -> bool {
        size >= MIN_CHARGED_BYTES
    }

    #[cold]
    pub(crate) fn new(pool: &Arc<BufferPool>, size: usize) -> Self {
        pool.charge_outside(size);
        Self(Some((Arc::clone(pool), size)))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((pool, size)) = self.0.take() {
            pool.discharge_outside(size);
        }
    }
}
