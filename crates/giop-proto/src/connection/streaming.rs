//! The payload of a request that was handed out before it was there.

use super::Connection;
use crate::receive::Chunk;
use crate::serving::ServeToken;

/// The request whose payload is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streamed {
    token: ServeToken,
    /// Somebody takes the chunks: until then the payload goes with the request.
    opened: bool,
}

impl Streamed {
    pub(super) fn new(token: ServeToken) -> Self {
        Self { token, opened: false }
    }
}

impl Connection {
    /// Says that the payload of that request will be [taken](Self::take_chunk), also after its reply, or
    /// [given up](Self::abandon_stream). Without this it is thrown away when the request ends.
    pub fn open_stream(&mut self, token: ServeToken) {
        if let Some(streamed) = self.streamed.as_mut().filter(|streamed| streamed.token == token) {
            streamed.opened = true;
        }
    }

    /// The next octets of the request's payload: up to 256 KiB. When some were taken or the end was, look whether the
    /// connection [wants to be read](Self::wants_read).
    pub fn take_chunk(&mut self, token: ServeToken) -> Chunk {
        if self.streamed.is_none_or(|streamed| streamed.token != token) {
            return Chunk::Lost;
        }
        let chunk = self.rx.take_chunk();
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            self.streamed = None;
        }
        chunk
    }

    /// Gives the rest of the payload up: it is skipped, and the connection goes on.
    pub fn abandon_stream(&mut self, token: ServeToken) {
        if self.streamed.is_some_and(|streamed| streamed.token == token) {
            self.streamed = None;
            self.rx.abandon_stream();
        }
    }

    /// Whether whoever takes chunks has something to take, an end included.
    #[must_use]
    pub fn has_chunk(&self) -> bool {
        self.streamed.is_some() && self.rx.has_chunk()
    }

    #[cold]
    pub(super) fn drop_untaken(&mut self, token: ServeToken) {
        if self.streamed.is_some_and(|streamed| !streamed.opened) {
            self.abandon_stream(token);
        }
    }
}
