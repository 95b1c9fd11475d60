//! TLS over a TCP socket: rustls between the socket and the machine's buffers.
//!
//! * **Reading.** One `read` of up to 64 KiB fills a staging buffer of the thread. rustls takes a record from
//!   there and decrypts it in place. The plaintext is copied to the machine's buffer. A connection keeps a
//!   staging buffer only while bytes are left in it, so idle connections hold none.
//! * **Writing.** Up to 256 KiB are gathered into records, encrypted, and sent by one `writev`. Nothing else
//!   is encrypted before they are sent. Until then, their last byte counts as not written. The machine
//!   therefore keeps waiting for the socket and applying its timeout. The peer has not received the last
//!   record completely, so it has not seen the end of the last message either.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use rustix::io::Errno;
use rustls::{Connection, Error};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::tls::TlsSession;
use crate::tls::failure::{Failure, refusal};
use crate::transport::{Progress, calls, shut_down, tcp};

/// The maximum number of bytes of one read.
const STAGING: usize = 64 * 1024;

/// The number of staging buffers that a thread keeps.
const SPARE: usize = 2;

/// The maximum number of bytes that are encrypted at a time: 16 records, which one `writev` sends.
const BATCH: usize = 256 * 1024;

thread_local! {
    static SPARES: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A socket with a TLS session.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    stream: TcpStream,
    session: Arc<TlsSession>,
    state: Mutex<State>,
    /// More bytes may be available without reading the socket.
    pending: AtomicBool,
}

#[derive(Debug)]
struct State {
    tls: Connection,
    staging: Option<Staging>,
    /// The last byte that was encrypted is not yet reported as written.
    held: bool,
    /// Plaintext was received, so the peer has accepted this side.
    accepted: bool,
    /// The error that the next read returns.
    failed: Option<io::Error>,
    closed: bool,
}

#[derive(Debug)]
struct Staging {
    octets: Box<[u8]>,
    at: usize,
    end: usize,
}

/// The result of one read: the number of bytes, or `None` if nothing is available.
type Got = io::Result<Option<usize>>;

impl TlsSocket {
    /// Performs the handshake. If it fails, the stream is returned. `begun` is called when the peer's first
    /// message has arrived.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub(crate) async fn handshake(
        stream: TcpStream,
        tls: Connection,
        begun: &(dyn Fn() + Sync),
    ) -> Result<Self, (TcpStream, Failure)> {
        let mut state =
            State { tls, staging: None, held: false, accepted: false, failed: None, closed: false };
        state.tls.set_buffer_limit(Some(BATCH));
        if let Err(failure) = state.shake_hands(&stream, begun).await {
            return Err((stream, failure));
        }
        let session = Arc::new(TlsSession::new(&state.tls));
        // Messages may have arrived with the end of the handshake.
        Ok(Self { stream, session, state: Mutex::new(state), pending: AtomicBool::new(true) })
    }

    pub(crate) fn session(&self) -> &Arc<TlsSession> {
        &self.session
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> Got {
        self.read_by(buf, |into| {
            let mut got = None;
            let outcome = self.stream.try_io(Interest::READABLE, || {
                let n = read(&self.stream, into)?;
                got = Some(n);
                // A short read has emptied the socket.
                if n < into.len() && n > 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (got, outcome) {
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                (got, _) => Ok(got),
            }
        })
    }

    pub(super) fn spin_read(&self, buf: &mut ReadBuf, longest: Duration) -> Got {
        let begun = Instant::now();
        self.read_by(buf, |into| {
            loop {
                match read(&self.stream, into) {
                    Ok(n) => return Ok(Some(n)),
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    Err(_) if begun.elapsed() < longest => std::hint::spin_loop(),
                    Err(_) => return Ok(None),
                }
            }
        })
    }

    /// Returns plaintext that is available. If there is none, reads the socket once.
    fn read_by(&self, buf: &mut ReadBuf, look: impl FnOnce(&mut [u8]) -> Got) -> Got {
        let mut slices = buf.io_slices();
        let room: usize = slices.iter().map(|slice| slice.len()).sum();
        if room == 0 {
            return Ok(None);
        }
        let mut state = self.lock();
        let (mut got, mut look) = (0, Some(look));
        let outcome = loop {
            got += state.take_plaintext(&mut slices, got);
            if got == room || state.failed.is_some() || state.closed {
                break Ok(());
            }
            if state.staging.is_some() {
                state.decrypt(&self.stream);
                continue;
            }
            let Some(look) = look.take().filter(|_| got == 0) else { break Ok(()) };
            match state.stage(look) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let left = got == room || state.staging.is_some() || state.failed.is_some() || state.closed;
        self.pending.store(left, Ordering::Release);
        match outcome {
            _ if got > 0 => {
                state.accepted = true;
                state.failed = outcome.err().or(state.failed.take());
                Ok(Some(got))
            }
            Err(error) => Err(error),
            Ok(()) => match state.failed.take() {
                Some(error) => Err(error),
                None if state.closed => Ok(Some(0)),
                None => Ok(None),
            },
        }
    }

    pub(super) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        self.write_by(transmit, |records| {
            let outcome = self.stream.try_io(Interest::WRITABLE, || records.leave(&self.stream));
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
                outcome => outcome.map(|()| Progress::Done),
            }
        })
    }

    /// Writes like [`try_write`](Self::try_write), bypassing tokio's readiness.
    pub(super) fn write_now(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        self.write_by(transmit, |records| match records.leave(&self.stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
            outcome => outcome.map(|()| Progress::Done),
        })
    }

    fn write_by(
        &self,
        transmit: &mut Transmit,
        write: impl Fn(&mut State) -> io::Result<Progress>,
    ) -> io::Result<Progress> {
        let mut state = self.lock();
        loop {
            if state.tls.wants_write() && write(&mut state)? == Progress::Blocked {
                return Ok(Progress::Blocked);
            }
            if std::mem::take(&mut state.held) {
                transmit.advance(1);
            }
            if transmit.is_empty() {
                return Ok(Progress::Done);
            }
            let taken = state.encrypt(transmit)?;
            if write(&mut state)? == Progress::Done {
                transmit.advance(taken);
            } else {
                transmit.advance(taken.saturating_sub(1));
                state.held = taken > 0;
                return Ok(Progress::Blocked);
            }
        }
    }

    /// Blocks the thread, unless bytes are available already.
    pub(super) fn wait(&self, read: bool, write: bool, longest: Duration) -> io::Result<()> {
        if read && self.pending.load(Ordering::Acquire) {
            return Ok(());
        }
        tcp::wait(&self.stream, read, write, longest)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pending.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        self.stream.poll_read_ready(cx)
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_write_ready(cx)
    }

    pub(super) fn shut_down_write(&self) {
        let mut state = self.lock();
        state.tls.send_close_notify();
        // Ignore a full socket: the end of the stream has the same meaning, because GIOP has a
        // CloseConnection of its own.
        let _ = state.leave(&self.stream);
        shut_down(&self.stream, Shutdown::Write);
    }

    pub(super) fn shut_down_socket(&self) {
        self.shut_down_write();
        shut_down(&self.stream, Shutdown::Read);
    }
}

impl State {
    async fn shake_hands(&mut self, stream: &TcpStream, begun: &(dyn Fn() + Sync)) -> Result<(), Failure> {
        let mut first = matches!(self.tls, Connection::Server(_));
        loop {
            while self.tls.wants_write() {
                match self.leave(stream) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
                    outcome => outcome?,
                }
            }
            if !self.tls.is_handshaking() {
                return Ok(());
            }
            if self.staging.is_none() {
                stream.readable().await?;
                let outcome =
                    self.stage(|into| match stream.try_io(Interest::READABLE, || read(stream, into)) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                        outcome => outcome.map(Some),
                    });
                if !outcome? {
                    if self.closed {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                    continue;
                }
            }
            let begins = self.staging.as_ref().and_then(|staging| staging.octets.get(staging.at));
            if std::mem::take(&mut first) && begins == Some(&b'G') {
                return Err(Failure::Plaintext);
            }
            if let Err(error) = self.feed() {
                // Send the alert to the peer.
                let _ = self.leave(stream);
                return Err(error.into());
            }
            if self.tls.protocol_version().is_some() {
                begun();
            }
        }
    }

    /// Fills the staging buffer from `look`. Returns whether bytes were received.
    fn stage(&mut self, look: impl FnOnce(&mut [u8]) -> Got) -> io::Result<bool> {
        let spare = SPARES.with_borrow_mut(Vec::pop);
        let mut octets = spare.unwrap_or_else(|| vec![0; STAGING].into_boxed_slice());
        let got = look(&mut octets);
        match got {
            Ok(Some(end)) if end > 0 => {
                self.staging = Some(Staging { octets, at: 0, end });
                return Ok(true);
            }
            // The stream ended, with or without a close_notify. GIOP itself detects truncated messages.
            Ok(Some(_)) => self.closed = true,
            Ok(None) | Err(_) => {}
        }
        keep(octets);
        got.map(|_| false)
    }

    /// Passes staged bytes to rustls.
    fn feed(&mut self) -> Result<(), Error> {
        let Some(staging) = &mut self.staging else { return Ok(()) };
        let mut rest = staging.octets.get(staging.at..staging.end).unwrap_or_default();
        let taken = self.tls.read_tls(&mut rest).map_err(|error| Error::General(error.to_string()))?;
        staging.at += taken;
        // Nothing is accepted after a close_notify.
        if (staging.at >= staging.end || taken == 0)
            && let Some(staging) = self.staging.take()
        {
            keep(staging.octets);
        }
        self.tls.process_new_packets().map(drop)
    }

    /// Passes staged bytes to rustls. The next read returns an error, and the peer gets an alert.
    fn decrypt(&mut self, stream: &TcpStream) {
        if let Err(error) = self.feed() {
            self.failed = Some(match error {
                Error::AlertReceived(alert) if !self.accepted => match refusal(alert) {
                    Some(refused) => io::Error::new(io::ErrorKind::PermissionDenied, refused),
                    None => io::Error::new(io::ErrorKind::ConnectionAborted, error),
                },
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            });
            if let Some(staging) = self.staging.take() {
                keep(staging.octets);
            }
        }
        if self.tls.wants_write() {
            // A key update or an alert. If the socket is full, it is sent with the next write.
            let _ = self.leave(stream);
        }
    }

    /// Copies plaintext to the slices after their first `at` bytes. Returns the number of copied bytes.
    fn take_plaintext(&mut self, slices: &mut [io::IoSliceMut<'_>], at: usize) -> usize {
        let (mut skip, mut got) = (at, 0);
        let mut reader = self.tls.reader();
        for slice in slices {
            let mut from = skip.min(slice.len());
            skip -= from;
            while let Some(into) = slice.get_mut(from..).filter(|into| !into.is_empty()) {
                match io::Read::read(&mut reader, into) {
                    Ok(0) => {
                        self.closed = true;
                        return got;
                    }
                    Ok(n) => (from, got) = (from + n, got + n),
                    Err(_) => return got,
                }
            }
        }
        got
    }

    /// Encrypts the next bytes to be written, and returns their number. All earlier records must have been
    /// sent.
    ///
    /// A batch that is too large is split between slices. A single slice that is too large, which is payload,
    /// is split inside. Therefore a message's first byte is never the last one of a batch.
    fn encrypt(&mut self, transmit: &Transmit) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        let mut sum = 0;
        let fitting = slices.iter().take(used).take_while(|slice| {
            sum += slice.len();
            sum <= BATCH
        });
        let fitting = fitting.count();
        match slices.get(..fitting.max(1)).unwrap_or_default() {
            [one] => self.tls.writer().write(one.get(..BATCH).unwrap_or(one)),
            some => self.tls.writer().write_vectored(some),
        }
    }

    /// Writes all pending records. Returns `WouldBlock` if the socket is full.
    fn leave(&mut self, stream: &TcpStream) -> io::Result<()> {
        let mut out = Out { stream, full: false };
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut out) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(staging) = self.staging.take() {
            keep(staging.octets);
        }
    }
}

/// The socket to which rustls writes.
struct Out<'a> {
    stream: &'a TcpStream,
    /// The socket accepted only a part of the bytes: the next write would fail.
    full: bool,
}

impl Write for Out<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(octets)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = calls::write_vectored(self.stream, slices)?;
        self.full = n < slices.iter().map(|slice| slice.len()).sum();
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads once.
fn read(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match calls::read(stream, into) {
            Err(Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}

fn keep(octets: Box<[u8]>) {
    // A thread that is ending keeps no buffers.
    let _ = SPARES.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < SPARE {
            spares.push(octets);
        }
    });
}
