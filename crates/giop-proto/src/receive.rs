//! From octets to whole messages: the read window, and direct deposit of large messages.
//!
//! Small messages are read many at a time into a pooled window of 64 KiB and handed out as views of it. When a
//! header announces more than [`DEPOSIT_MIN`] octets that are not there yet, the rest of the message is read
//! straight into its final buffer, together with exactly one next header, so that a bulk message costs one read
//! and no copy (what was in the window already, the header and a first part, is moved once).

use std::io::IoSliceMut;
use std::sync::Arc;

use bytes::Bytes;
use giop_codec::giop::{HeaderError, MessageHeader};

use crate::pool::{Buffer, BufferPool, WINDOW};

/// The length of a GIOP message header.
pub const HEADER_LEN: usize = 12;

/// A message of at least this many octets that has not arrived whole is read into a buffer of its own.
pub const DEPOSIT_MIN: usize = 16 * 1024;

/// One whole GIOP message (or fragment), header included.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The decoded header.
    pub header: MessageHeader,
    /// The message from its first header octet; octet 0 is the CDR alignment origin.
    pub octets: Bytes,
}

/// Why the stream of octets can not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The twelve octets where a header must stand are none.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The header announces more octets than the endpoint takes.
    #[error(
        "a message of {size} octets is over the limit of {limit}: raise it by `Limits::max_message_size`"
    )]
    TooLarge {
        /// The octets announced, header included.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
}

/// Cuts a stream of octets into [`Frame`]s.
///
/// Call order: [`take_read_buf`](Self::take_read_buf), fill it from the socket,
/// [`handle_read`](Self::handle_read), then [`next_frame`](Self::next_frame) until it returns `None`, and again.
#[derive(Debug)]
pub struct Receiver {
    pool: Arc<BufferPool>,
    max_message: usize,
    state: State,
    /// The size of the last deposited message: the next one is expected to be like it.
    expect: usize,
    /// Octets that were moved inside user space.
    copied: u64,
}

/// A buffer lent to whoever reads from the socket.
#[derive(Debug)]
pub struct ReadBuf {
    buffer: Buffer,
    from: usize,
    to: usize,
    /// The end of the message in `buffer`, where one is being deposited.
    deposit: Option<Deposit>,
    next: [u8; HEADER_LEN],
}

#[derive(Debug, Clone, Copy)]
struct Deposit {
    header: MessageHeader,
    total: usize,
}

#[derive(Debug)]
enum State {
    /// Nothing read and nothing left over.
    Empty,
    /// The buffer is with the reader.
    Lent,
    /// Octets `from..to` of the window are not cut yet.
    Cut { window: Bytes, from: usize, to: usize },
    /// A whole deposited message, and how many octets of the next header came with it.
    Whole { header: MessageHeader, octets: Bytes, next: [u8; HEADER_LEN], next_len: usize },
    /// A header, or part of one, that came behind a deposited message.
    Early { next: [u8; HEADER_LEN], next_len: usize },
    /// A message that is not complete.
    Partial(ReadBuf),
}

impl Receiver {
    /// A receiver that takes messages of up to `max_message` octets, header included.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message: usize) -> Self {
        Self { pool, max_message, state: State::Empty, expect: 0, copied: 0 }
    }

    /// How many octets were copied inside user space so far: the starts of deposited messages and the cut ends of
    /// windows. In a steady bulk stream only headers are.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// The size of the message that is incomplete, as far as it is known; 0 before that.
    #[must_use]
    pub fn announced(&self) -> usize {
        match &self.state {
            State::Partial(ReadBuf { deposit: Some(deposit), .. }) => deposit.total,
            _ => 0,
        }
    }

    /// Forgets everything that was received.
    pub fn clear(&mut self) {
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Partial(buf) => self.pool.give_back(buf.buffer),
            State::Lent => self.state = State::Lent,
            _ => {}
        }
    }

    /// Whether octets of an incomplete message are waiting for the rest.
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Empty | State::Whole { .. } => false,
            State::Lent | State::Partial(_) => true,
            State::Cut { from, to, .. } => from < to,
            State::Early { next_len, .. } => *next_len > 0,
        }
    }

    /// The buffer for the next read. It must come back by [`handle_read`](Self::handle_read).
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        match std::mem::replace(&mut self.state, State::Lent) {
            State::Partial(buf) => buf,
            State::Early { next, next_len } => self.window_with(next.get(..next_len).unwrap_or_default()),
            State::Cut { window, from, to } => {
                let rest = window.slice(from..to);
                drop(window);
                self.window_with(&rest)
            }
            State::Empty | State::Lent | State::Whole { .. } => self.window_with(&[]),
        }
    }

    /// Takes the buffer back with `n` more octets in it.
    pub fn handle_read(&mut self, mut buf: ReadBuf, n: usize) {
        let filled = buf.from.saturating_add(n);
        self.state = match buf.deposit {
            Some(Deposit { header, total }) if filled >= total => {
                self.expect = total;
                let octets = self.pool.share(buf.buffer).slice(..total);
                State::Whole { header, octets, next: buf.next, next_len: (filled - total).min(HEADER_LEN) }
            }
            Some(_) => {
                buf.from = filled;
                State::Partial(buf)
            }
            None if filled == 0 => {
                self.pool.give_back(buf.buffer);
                State::Empty
            }
            None => {
                buf.from = filled.min(buf.to);
                self.window_filled(buf)
            }
        };
    }

    /// The next whole message, `None` when more octets are needed.
    ///
    /// # Errors
    /// [`FrameError`] when no message can follow: the stream is lost.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Whole { header, octets, next, next_len } => {
                self.state = State::Early { next, next_len };
                Ok(Some(Frame { header, octets }))
            }
            State::Early { next, next_len } => {
                self.state = State::Early { next, next_len };
                if next_len == HEADER_LEN {
                    let header = MessageHeader::decode(&next)?;
                    let total = self.check(&header)?;
                    if total == HEADER_LEN {
                        self.state = State::Empty;
                        return Ok(Some(Frame { header, octets: Bytes::copy_from_slice(&next) }));
                    }
                    if total >= DEPOSIT_MIN {
                        self.state = State::Partial(self.deposit(header, total, &next));
                    }
                }
                Ok(None)
            }
            State::Cut { window, from, to } => self.cut(window, from, to),
            other => {
                self.state = other;
                Ok(None)
            }
        }
    }

    /// A window in which no message is complete is read on in place, whatever its message's size: nothing moves.
    fn window_filled(&mut self, mut buf: ReadBuf) -> State {
        let filled = buf.from;
        let start = buf.buffer.octets().first_chunk::<HEADER_LEN>();
        if filled < HEADER_LEN {
            return State::Partial(buf);
        }
        if let Some(Ok(header)) = start.map(MessageHeader::decode) {
            let total = (header.size as usize).saturating_add(HEADER_LEN);
            if filled < total && total <= buf.buffer.capacity().min(self.max_message) {
                if total >= DEPOSIT_MIN {
                    buf.deposit = Some(Deposit { header, total });
                    buf.to = total;
                }
                return State::Partial(buf);
            }
        }
        State::Cut { window: self.pool.share(buf.buffer), from: 0, to: filled }
    }

    fn cut(&mut self, window: Bytes, from: usize, to: usize) -> Result<Option<Frame>, FrameError> {
        let rest = window.get(from..to).unwrap_or_default();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else {
            if !rest.is_empty() {
                self.state = State::Cut { window, from, to };
            }
            return Ok(None);
        };
        let header = MessageHeader::decode(start)?;
        let total = self.check(&header)?;
        if total <= rest.len() {
            let octets = window.slice(from..from + total);
            if from + total < to {
                self.state = State::Cut { window, from: from + total, to };
            }
            return Ok(Some(Frame { header, octets }));
        }
        self.state = if total >= DEPOSIT_MIN {
            State::Partial(self.deposit(header, total, rest))
        } else {
            State::Cut { window, from, to }
        };
        Ok(None)
    }

    fn check(&self, header: &MessageHeader) -> Result<usize, FrameError> {
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total > self.max_message {
            return Err(FrameError::TooLarge { size: total, limit: self.max_message });
        }
        Ok(total)
    }

    /// A buffer of the message's own, with the octets that are there already.
    fn deposit(&mut self, header: MessageHeader, total: usize, start: &[u8]) -> ReadBuf {
        let mut buffer = self.pool.take(total);
        self.copied += copy(start, buffer.octets_mut());
        ReadBuf {
            buffer,
            from: start.len(),
            to: total,
            deposit: Some(Deposit { header, total }),
            next: [0; HEADER_LEN],
        }
    }

    /// A window that starts with the octets left over.
    fn window_with(&mut self, rest: &[u8]) -> ReadBuf {
        let size = if self.expect > 0 { self.expect + HEADER_LEN } else { WINDOW };
        self.expect = 0;
        let mut buffer = self.pool.take(size.max(rest.len() + HEADER_LEN));
        self.copied += copy(rest, buffer.octets_mut());
        let to = buffer.capacity().min(size.max(WINDOW));
        ReadBuf { buffer, from: rest.len(), to, deposit: None, next: [0; HEADER_LEN] }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let State::Partial(buf) = std::mem::replace(&mut self.state, State::Empty) {
            self.pool.give_back(buf.buffer);
        }
    }
}

impl ReadBuf {
    /// Where the octets go: the rest of the buffer, and behind a deposited message one next header.
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let into = self.buffer.octets_mut().get_mut(self.from..self.to).unwrap_or_default();
        let next: &mut [u8] = if self.deposit.is_some() { &mut self.next } else { &mut [] };
        [IoSliceMut::new(into), IoSliceMut::new(next)]
    }

    /// How many octets [`io_slices`](Self::io_slices) takes. A read that returns fewer has emptied the socket.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.to - self.from + if self.deposit.is_some() { HEADER_LEN } else { 0 }
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
    from.len() as u64
}
