//! Large requests that are handed out before their payload is there, which then comes in chunks.
//!
//! The start of such a request, 16 to 64 KiB, is handed out like a message; what follows is read into chunk buffers, of which
//! a few are kept until they are taken. Then the peer waits: a streamed request has the connection for itself.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use giop_codec::giop::{MessageHeader, MessageType};

use super::lent::{Deposit, Lent, Next, ReadBuf};
use super::memory::STARVED_WINDOW;
use super::{DEPOSIT_MIN, Receiver, State};
use crate::message::RequestHead;
use crate::pool::WINDOW;

/// So much of a request must be there before it is handed out: its header and all arguments but the streamed one fit it.
pub const STREAM_START: usize = DEPOSIT_MIN;

/// The most octets of one chunk.
pub const CHUNK: usize = 256 * 1024;

/// Chunks that wait to be taken before the peer has to wait.
const WAITING: usize = 4;

/// Says which requests are handed out before their payload is there.
pub trait Streams: fmt::Debug + Send + Sync {
    /// Whether there may be any: else no request is looked at early.
    fn any(&self) -> bool;

    /// Whether the operation of the object with that key takes its last argument as a stream.
    fn streams(&self, key: &[u8], operation: &[u8]) -> bool;
}

/// What [`Receiver::take_chunk`] gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The next octets.
    Octets(Bytes),
    /// They are not there yet.
    Pending,
    /// There are no more: all have been taken.
    End,
    /// The connection ended before the payload did, or the stream was given up.
    Lost,
}

/// The payload under way.
#[derive(Debug)]
pub(super) struct Stream {
    /// Octets still to come from the socket.
    left: usize,
    chunks: VecDeque<Bytes>,
    /// Nobody takes them any more.
    abandoned: bool,
}

/// What becomes of a large request of which a part is there.
pub(super) enum Decision {
    /// More of it is needed to tell.
    Wait,
    Stream,
    Whole,
}

impl Receiver {
    /// What becomes of the message, of which `octets` are there.
    #[inline]
    pub(super) fn decide(&self, header: &MessageHeader, total: usize, octets: &[u8]) -> Decision {
        match &self.streams {
            Some(streams) if self.may_stream(header, total) && streams.any() => {
                if octets.len() < STREAM_START {
                    return Decision::Wait;
                }
                match RequestHead::decode(header, octets) {
                    Ok(head) if streams.streams(head.key(octets), head.operation(octets)) => Decision::Stream,
                    _ => Decision::Whole,
                }
            }
            _ => Decision::Whole,
        }
    }

    fn may_stream(&self, header: &MessageHeader, total: usize) -> bool {
        header.kind == MessageType::Request
            && !header.more_fragments
            && total > WINDOW
            && self.deposits
            && self.stream.is_none()
    }

    /// How many octets of the message in front come as a stream.
    #[inline]
    pub(crate) fn coming(&self) -> usize {
        if self.front_streams { self.skip } else { 0 }
    }

    /// The start of a streamed message was taken.
    #[cold]
    pub(super) fn begin_stream(&mut self) {
        self.front_streams = false;
        let left = std::mem::take(&mut self.skip);
        self.stream = Some(Box::new(Stream { left, chunks: VecDeque::new(), abandoned: false }));
        (self.expect, self.room) = (0, 0);
        self.emptied();
    }

    /// Whether a stream is not at its end, or not all taken.
    #[inline]
    pub(crate) fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Octets of the stream that are still to come from the socket.
    pub(super) fn stream_left(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.left)
    }

    /// Whether reading has to wait until chunks are taken.
    #[inline]
    #[must_use]
    pub fn awaits_taker(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.left == 0 || stream.chunks.len() >= WAITING)
    }

    /// Whether [`take_chunk`](Self::take_chunk) gives something else than `Pending`.
    #[must_use]
    pub fn has_chunk(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.left == 0 || !stream.chunks.is_empty())
    }

    /// The next chunk of the stream.
    pub fn take_chunk(&mut self) -> Chunk {
        let Some(stream) = &mut self.stream else { return Chunk::Lost };
        match stream.chunks.pop_front() {
            Some(octets) => Chunk::Octets(octets),
            None if stream.left > 0 => Chunk::Pending,
            None => {
                self.stream = None;
                Chunk::End
            }
        }
    }

    /// Throws what is still to come of the stream away as it comes.
    pub fn abandon_stream(&mut self) {
        match &mut self.stream {
            Some(stream) if matches!(self.state, State::Lent) => {
                stream.abandoned = true;
                stream.chunks.clear();
            }
            Some(stream) => {
                self.skip = stream.left;
                self.stream = None;
            }
            None => {}
        }
    }

    /// The connection is at its end: a stream that is not whole is lost.
    pub(super) fn end_stream(&mut self) {
        if self.stream_left() > 0 {
            self.stream = None;
        }
    }

    /// A buffer for the next chunk.
    #[cold]
    pub(super) fn chunk_buffer(&mut self) -> ReadBuf {
        let left = self.stream_left();
        let buffer = (self.pool.try_take(left.min(CHUNK)))
            .or_else(|| self.pool.try_take(left.min(WINDOW)))
            .unwrap_or_else(|| self.pool.take_unpooled(STARVED_WINDOW));
        let to = buffer.capacity().min(left).min(CHUNK);
        let header = MessageHeader::new(
            giop_codec::Version::V1_0,
            giop_codec::ByteOrder::NATIVE,
            MessageType::Request,
        );
        self.lend(buffer, 0, to, Some(Deposit { header, total: left }))
    }

    /// A chunk came, or nothing.
    #[cold]
    pub(super) fn read_chunk(&mut self, mut buf: Box<Lent>, n: usize) {
        self.state = State::Window;
        let Some(stream) = &mut self.stream else { return self.give_back(buf) };
        let here = n.min(buf.to);
        stream.left -= here.min(stream.left);
        if stream.left == 0 {
            buf.next.len = n - here;
            let next = Next::new(buf.next.octets());
            self.state = State::Early { next, of_piece: false };
        }
        if stream.abandoned {
            self.skip = stream.left;
            self.skipped += here as u64;
            self.stream = None;
            self.give_back(buf);
        } else if here == 0 {
            self.give_back(buf);
        } else {
            let octets = self.pool.share(std::mem::take(&mut buf.buffer));
            stream.chunks.push_back(octets.slice(..here));
            self.keep_box(buf);
        }
    }
}
