//! TLS over a TCP socket: rustls between the socket and the buffers of the GIOP state machine.
//!
//! * **Reading.** One `read` of up to 64 KiB fills a staging buffer. rustls decrypts its records into the
//!   state machine's buffer. A connection has a staging buffer only while bytes are left in it.
//! * **Writing.** A batch of up to 256 KiB is encrypted and sent by one `writev`. Its last byte is reported
//!   as written when all its records are sent. Until then, the state machine waits and applies its timeout.

use std::cell::RefCell;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use giop_proto::outbox::{MAX_SLICES, Transmit};
use giop_proto::receive::ReadBuf;
use rustix::io::retry_on_intr;
use rustls::{Connection, Error};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::lock::lock;
use crate::tls::TlsSession;
use crate::tls::failure::{HandshakeFailure, rejection_of_alert};
use crate::transport::outcome::{Progress, shut_down};
use crate::transport::{calls, tcp};

const STAGING_BYTES: usize = 64 * 1024;
/// The maximum number of staging buffers that a thread keeps for reuse.
const MAX_SPARE_BUFFERS: usize = 2;
/// The maximum number of bytes that are encrypted at a time: 16 records, which one `writev` sends.
const MAX_BATCH_BYTES: usize = 256 * 1024;

thread_local! {
    static SPARE_BUFFERS: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(crate) struct TlsSocket {
    stream: TcpStream,
    session: Arc<TlsSession>,
    state: Mutex<State>,
    /// Whether a read may return bytes, the end or an error without reading the socket.
    has_buffered_bytes: AtomicBool,
}

#[derive(Debug)]
struct State {
    tls: Connection,
    staging: Option<Staging>,
    /// Whether the last encrypted byte has not been reported as written yet.
    is_last_byte_withheld: bool,
    /// Whether the peer has accepted this side's certificate. The first received plaintext shows this.
    is_cert_accepted: bool,
    /// The error that the next read returns.
    error: Option<io::Error>,
    /// Whether the peer has ended the stream.
    is_closed: bool,
}

/// Bytes from the socket that rustls has not read yet: `bytes[at..end]`.
#[derive(Debug)]
struct Staging {
    bytes: Box<[u8]>,
    at: usize,
    end: usize,
}

/// The result of one read: the number of bytes, or `None` if nothing is available.
type ReadResult = io::Result<Option<usize>>;

impl TlsSocket {
    /// Performs the handshake. On failure, returns the stream. Calls `on_first_message` at least once after
    /// the peer's first message has arrived. Dropping the future closes the connection.
    pub(crate) async fn handshake(
        stream: TcpStream,
        tls: Connection,
        on_first_message: &(dyn Fn() + Sync),
    ) -> Result<Self, (TcpStream, HandshakeFailure)> {
        let mut state = State {
            tls,
            staging: None,
            is_last_byte_withheld: false,
            is_cert_accepted: false,
            error: None,
            is_closed: false,
        };
        state.tls.set_buffer_limit(Some(MAX_BATCH_BYTES));
        if let Err(failure) = state.run_handshake(&stream, on_first_message).await {
            return Err((stream, failure));
        }
        let session = Arc::new(TlsSession::new(&state.tls));
        // GIOP messages may have been received together with the end of the handshake.
        Ok(Self { stream, session, state: Mutex::new(state), has_buffered_bytes: AtomicBool::new(true) })
    }

    pub(crate) fn session(&self) -> &Arc<TlsSession> {
        &self.session
    }

    pub(super) fn try_read(&self, buf: &mut ReadBuf) -> ReadResult {
        self.read_with(buf, |into| {
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

    pub(super) fn spin_read(&self, buf: &mut ReadBuf, max_time: Duration) -> ReadResult {
        let begun = Instant::now();
        self.read_with(buf, |into| {
            loop {
                match read(&self.stream, into) {
                    Ok(n) => return Ok(Some(n)),
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    Err(_) if begun.elapsed() < max_time => std::hint::spin_loop(),
                    Err(_) => return Ok(None),
                }
            }
        })
    }

    /// Reads available plaintext. If there is none, reads the socket once with `read_socket`.
    fn read_with(&self, buf: &mut ReadBuf, read_socket: impl FnOnce(&mut [u8]) -> ReadResult) -> ReadResult {
        let mut slices = buf.io_slices();
        let space: usize = slices.iter().map(|slice| slice.len()).sum();
        if space == 0 {
            return Ok(None);
        }
        let mut state = lock(&self.state);
        let (mut got, mut read_socket) = (0, Some(read_socket));
        let outcome = loop {
            got += state.take_plaintext(&mut slices, got);
            if got == space || state.error.is_some() || state.is_closed {
                break Ok(());
            }
            if state.staging.is_some() {
                state.decrypt(&self.stream);
                continue;
            }
            let Some(read_socket) = read_socket.take().filter(|_| got == 0) else { break Ok(()) };
            match state.fill_staging_buffer(read_socket) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let left = got == space || state.staging.is_some() || state.error.is_some() || state.is_closed;
        self.has_buffered_bytes.store(left, Ordering::Release);
        match outcome {
            _ if got > 0 => {
                state.is_cert_accepted = true;
                state.error = outcome.err().or(state.error.take());
                Ok(Some(got))
            }
            Err(error) => Err(error),
            Ok(()) => match state.error.take() {
                Some(error) => Err(error),
                None if state.is_closed => Ok(Some(0)),
                None => Ok(None),
            },
        }
    }

    pub(super) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        self.write_with(transmit, |state| {
            let outcome = self.stream.try_io(Interest::WRITABLE, || state.send_records(&self.stream));
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
                outcome => outcome.map(|()| Progress::Done),
            }
        })
    }

    /// Writes like [`try_write`](Self::try_write), but does not ask tokio whether the socket is ready.
    pub(super) fn write_now(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        self.write_with(transmit, |state| match state.send_records(&self.stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Progress::Blocked),
            outcome => outcome.map(|()| Progress::Done),
        })
    }

    /// Encrypts and writes until everything is written or the socket blocks. `write` sends records.
    fn write_with(
        &self,
        transmit: &mut Transmit,
        write: impl Fn(&mut State) -> io::Result<Progress>,
    ) -> io::Result<Progress> {
        let mut state = lock(&self.state);
        loop {
            if state.tls.wants_write() && write(&mut state)? == Progress::Blocked {
                return Ok(Progress::Blocked);
            }
            if std::mem::take(&mut state.is_last_byte_withheld) {
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
                state.is_last_byte_withheld = taken > 0;
                return Ok(Progress::Blocked);
            }
        }
    }

    /// Blocks the thread until the socket can be read or written, as requested, or until `max_time` has
    /// passed. Returns at once if a read is requested and bytes are already available.
    pub(super) fn wait(&self, read: bool, write: bool, max_time: Duration) -> io::Result<()> {
        if read && self.has_buffered_bytes.load(Ordering::Acquire) {
            return Ok(());
        }
        tcp::wait(&self.stream, read, write, max_time)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_buffered_bytes.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        self.stream.poll_read_ready(cx)
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_write_ready(cx)
    }

    pub(super) fn shut_down_write(&self) {
        let mut state = lock(&self.state);
        state.tls.send_close_notify();
        // Ignore an error. The peer relies on GIOP's message CloseConnection, not on this alert.
        let _ = state.send_records(&self.stream);
        shut_down(&self.stream, Shutdown::Write);
    }

    pub(super) fn shut_down_socket(&self) {
        self.shut_down_write();
        shut_down(&self.stream, Shutdown::Read);
    }
}

impl State {
    async fn run_handshake(
        &mut self,
        stream: &TcpStream,
        on_first_message: &(dyn Fn() + Sync),
    ) -> Result<(), HandshakeFailure> {
        let mut must_check_for_plaintext = matches!(self.tls, Connection::Server(_));
        loop {
            while self.tls.wants_write() {
                match self.send_records(stream) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
                    outcome => outcome?,
                }
            }
            if !self.tls.is_handshaking() {
                return Ok(());
            }
            if self.staging.is_none() {
                stream.readable().await?;
                let outcome = self.fill_staging_buffer(|into| {
                    match stream.try_io(Interest::READABLE, || read(stream, into)) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                        outcome => outcome.map(Some),
                    }
                });
                if !outcome? {
                    if self.is_closed {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                    continue;
                }
            }
            let first_byte = self.staging.as_ref().and_then(|staging| staging.bytes.get(staging.at));
            if std::mem::take(&mut must_check_for_plaintext) && first_byte == Some(&b'G') {
                return Err(HandshakeFailure::Plaintext);
            }
            if let Err(error) = self.pass_to_rustls() {
                // Send the alert to the peer.
                let _ = self.send_records(stream);
                return Err(error.into());
            }
            if self.tls.protocol_version().is_some() {
                on_first_message();
            }
        }
    }

    /// Fills the staging buffer with bytes from `read_socket`. Returns whether bytes were received.
    fn fill_staging_buffer(&mut self, read_socket: impl FnOnce(&mut [u8]) -> ReadResult) -> io::Result<bool> {
        let spare = SPARE_BUFFERS.with_borrow_mut(Vec::pop);
        let mut bytes = spare.unwrap_or_else(|| vec![0; STAGING_BYTES].into_boxed_slice());
        let got = read_socket(&mut bytes);
        match got {
            Ok(Some(end)) if end > 0 => {
                self.staging = Some(Staging { bytes, at: 0, end });
                return Ok(true);
            }
            // A missing close_notify is ignored, because GIOP itself detects truncated messages.
            Ok(Some(_)) => self.is_closed = true,
            Ok(None) | Err(_) => {}
        }
        recycle(bytes);
        got.map(|_| false)
    }

    /// Passes staged bytes to rustls, which decrypts them.
    fn pass_to_rustls(&mut self) -> Result<(), Error> {
        let Some(staging) = &mut self.staging else { return Ok(()) };
        let mut rest = staging.bytes.get(staging.at..staging.end).unwrap_or_default();
        let taken = self.tls.read_tls(&mut rest).map_err(|error| Error::General(error.to_string()))?;
        staging.at += taken;
        // rustls reads no bytes after a close_notify.
        if (staging.at >= staging.end || taken == 0)
            && let Some(staging) = self.staging.take()
        {
            recycle(staging.bytes);
        }
        self.tls.process_new_packets().map(drop)
    }

    /// Decrypts staged bytes. After a failure, the next read returns the error, and the peer gets an alert.
    fn decrypt(&mut self, stream: &TcpStream) {
        if let Err(error) = self.pass_to_rustls() {
            self.error = Some(match error {
                Error::AlertReceived(alert) if !self.is_cert_accepted => match rejection_of_alert(alert) {
                    Some(refused) => io::Error::new(io::ErrorKind::PermissionDenied, refused),
                    None => io::Error::new(io::ErrorKind::ConnectionAborted, error),
                },
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            });
            if let Some(staging) = self.staging.take() {
                recycle(staging.bytes);
            }
        }
        if self.tls.wants_write() {
            // Send a key update or an alert. If the socket is full, the next write sends it.
            let _ = self.send_records(stream);
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
                        self.is_closed = true;
                        return got;
                    }
                    Ok(n) => (from, got) = (from + n, got + n),
                    Err(_) => return got,
                }
            }
        }
        got
    }

    /// Encrypts the next batch of bytes, and returns their number. A batch ends between slices, or in a slice
    /// of payload. Therefore its last byte is never the first byte of a message.
    fn encrypt(&mut self, transmit: &Transmit) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let used = transmit.io_slices(&mut slices);
        let mut sum = 0;
        let batch = slices.iter().take(used).take_while(|slice| {
            sum += slice.len();
            sum <= MAX_BATCH_BYTES
        });
        let count = batch.count();
        match slices.get(..count.max(1)).unwrap_or_default() {
            [one] => self.tls.writer().write(one.get(..MAX_BATCH_BYTES).unwrap_or(one)),
            batch => self.tls.writer().write_vectored(batch),
        }
    }

    /// Writes all pending records. Returns `WouldBlock` if the socket is full.
    fn send_records(&mut self, stream: &TcpStream) -> io::Result<()> {
        let mut out = RecordWriter { stream, is_full: false };
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
            recycle(staging.bytes);
        }
    }
}

struct RecordWriter<'a> {
    stream: &'a TcpStream,
    /// Whether the socket has accepted only a part of the bytes. The next write would then fail.
    is_full: bool,
}

impl Write for RecordWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_full {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = calls::write_vectored(self.stream, slices)?;
        self.is_full = n < slices.iter().map(|slice| slice.len()).sum();
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read(stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| calls::read(stream, into))?)
}

/// Keeps a staging buffer for reuse on this thread.
fn recycle(bytes: Box<[u8]>) {
    // `try_with` fails on a thread that is ending.
    let _ = SPARE_BUFFERS.try_with(|spares| {
        let mut spares = spares.borrow_mut();
        if spares.len() < MAX_SPARE_BUFFERS {
            spares.push(bytes);
        }
    });
}
