//! The messages of the plain-socket client and server, and their transfer over blocking sockets.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use socket2::SockRef;

use crate::work::MAX_BUFFER_BYTES;

pub(super) const HEADER_BYTES: usize = 8;
/// Size of a header with the request id that follows it in two-way messages.
pub(super) const CALL_HEADER_BYTES: usize = 12;
const READ_AHEAD_BYTES: usize = 65_536;
/// If at least this many bytes of a payload are missing, a read receives only them and the following header.
/// If fewer are missing, it also fills the read-ahead buffer with further messages.
const MIN_DIRECT_READ_BYTES: usize = 16_384;

pub(super) mod kind {
    /// A sequence of bytes, without reply.
    pub(crate) const ONEWAY: u32 = 0;
    /// Queries how many bytes have arrived in [`ONEWAY`] messages since the previous query.
    pub(crate) const SYNC: u32 = 1;
    pub(crate) const PING: u32 = 2;
    pub(crate) const ECHO: u32 = 3;
    /// Starts a series; the payload is the number of pattern bytes in each message.
    pub(crate) const BEGIN: u32 = 4;
    pub(crate) const SERIES_CALL: u32 = 5;
    pub(crate) const SERIES_ONEWAY: u32 = 6;
    /// Queries which messages of a series have arrived.
    pub(crate) const ARRIVALS: u32 = 7;
    /// Queries how many calls of large interfaces were to the last operation, and how many to all others.
    pub(crate) const TALLY: u32 = 8;

    /// Returns the kinds that correspond to the operations of an interface with `operation_count` operations.
    pub(crate) const fn operations(operation_count: u32, oneway: bool) -> std::ops::Range<u32> {
        match (operation_count > 100, oneway) {
            (false, false) => 100..200,
            (false, true) => 200..300,
            (true, false) => 1_000..2_000,
            (true, true) => 2_000..3_000,
        }
    }

    pub(crate) const fn is_oneway(kind: u32) -> bool {
        matches!(kind, ONEWAY | SERIES_ONEWAY | 200..300 | 2_000..3_000)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u32,
    /// Size of the payload.
    pub(super) len: u32,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let (kind, len) = out.split_at_mut(4);
        kind.copy_from_slice(&self.kind.to_ne_bytes());
        len.copy_from_slice(&self.len.to_ne_bytes());
        out
    }

    fn from_bytes([k0, k1, k2, k3, l0, l1, l2, l3]: [u8; HEADER_BYTES]) -> Header {
        Header { kind: u32::from_ne_bytes([k0, k1, k2, k3]), len: u32::from_ne_bytes([l0, l1, l2, l3]) }
    }
}

pub(super) fn call_header(header: Header, id: u32) -> [u8; CALL_HEADER_BYTES] {
    let mut out = [0; CALL_HEADER_BYTES];
    let (head, tail) = out.split_at_mut(HEADER_BYTES);
    head.copy_from_slice(&header.to_bytes());
    tail.copy_from_slice(&id.to_ne_bytes());
    out
}

/// The receiving end of a connection: a socket and the bytes that were read ahead from it.
#[derive(Debug)]
pub(super) struct Incoming<'s> {
    stream: &'s TcpStream,
    read_ahead: Box<[u8]>,
    /// The part of `read_ahead` that has been received but not returned yet.
    unread: std::ops::Range<usize>,
}

impl<'s> Incoming<'s> {
    pub(super) fn new(stream: &'s TcpStream) -> Self {
        Incoming { stream, read_ahead: vec![0; READ_AHEAD_BYTES].into_boxed_slice(), unread: 0..0 }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.unread.is_empty()
    }

    /// Reads the header of the next message; `None` at the end of the connection.
    pub(super) fn read_header(&mut self) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES];
        match self.fill(&mut bytes) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
        let header = Header::from_bytes(bytes);
        if u64::from(header.len) > MAX_BUFFER_BYTES {
            let reason = format!("a payload of {} bytes is larger than {MAX_BUFFER_BYTES}", header.len);
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        Ok(Some(header))
    }

    /// Reads the request id that follows the header of a two-way message.
    pub(super) fn read_id(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub(super) fn fill(&mut self, target: &mut [u8]) -> io::Result<()> {
        let unread = self.take_unread(target.len());
        let (front, mut rest) = target.split_at_mut(unread.len());
        front.copy_from_slice(unread);
        while !rest.is_empty() {
            let missing = rest.len();
            let ahead_size = if missing >= MIN_DIRECT_READ_BYTES { HEADER_BYTES } else { READ_AHEAD_BYTES };
            let ahead = self.read_ahead.get_mut(..ahead_size).unwrap_or_default();
            let got = match self.stream.read_vectored(&mut [IoSliceMut::new(rest), IoSliceMut::new(ahead)]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => got,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if let Some(more) = got.checked_sub(missing) {
                self.unread = 0..more;
                return Ok(());
            }
            rest = rest.split_at_mut(got).1;
        }
        Ok(())
    }

    /// Reads the next `len` bytes into a new buffer.
    ///
    /// The buffer has space for one header after the payload. Therefore a plain `read` into its uninitialised
    /// memory receives both: a message needs only one system call, and no byte is written twice.
    pub(super) fn read_new_buffer(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        if len == 0 {
            return Ok(out);
        }
        out.try_reserve_exact(len + HEADER_BYTES).map_err(|_| ErrorKind::OutOfMemory)?;
        out.extend_from_slice(self.take_unread(len));
        while len - out.len() >= MIN_DIRECT_READ_BYTES {
            match rustix::io::read(self.stream, spare_capacity(&mut out)) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            if out.len() >= len {
                self.store_unread(out.get(len..).unwrap_or_default());
                out.truncate(len);
                return Ok(out);
            }
        }
        let received = out.len();
        out.resize(len, 0);
        if let Some(rest) = out.get_mut(received..) {
            self.fill(rest)?;
        }
        Ok(out)
    }

    fn take_unread(&mut self, len: usize) -> &[u8] {
        let start = self.unread.start;
        self.unread.start += len.min(self.unread.len());
        self.read_ahead.get(start..self.unread.start).unwrap_or_default()
    }

    /// Stores bytes that were received after a payload. The read-ahead buffer must have no unread bytes.
    #[inline]
    fn store_unread(&mut self, bytes: &[u8]) {
        if let Some(target) = self.read_ahead.get_mut(..bytes.len()) {
            target.copy_from_slice(bytes);
            self.unread = 0..bytes.len();
        }
    }
}

pub(super) fn send(mut stream: &TcpStream, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(header), IoSlice::new(payload)];
    let mut rest = &mut parts[..];
    // Removes empty parts at the start, such as both parts of an empty message.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match stream.write_vectored(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

pub(super) fn set_buffer_sizes(socket: SockRef<'_>, sockbuf: Option<u64>) -> io::Result<()> {
    if let Some(bytes) = sockbuf {
        let bytes = usize::try_from(bytes).map_err(|_| ErrorKind::InvalidInput)?;
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn payload(len: usize) -> Vec<u8> {
        (0..len).map(crate::test_loops::pattern).collect()
    }

    #[test]
    fn messages_of_all_sizes_arrive_whole_and_in_order() {
        let sizes: Vec<usize> = "0 1 7 8 9 16383 16384 16385 3 65535 65536 65537 100000 1048576 5 0 70000"
            .split(' ')
            .map(|size| size.parse().unwrap())
            .collect();
        let sent_sizes = sizes.clone();
        let (tx, rx) = pair();
        let sender = thread::spawn(move || {
            for &len in sent_sizes.iter().cycle().take(200) {
                let header = Header { kind: kind::ONEWAY, len: len as u32 };
                send(&tx, &header.to_bytes(), &payload(len)).unwrap();
            }
        });
        let mut incoming = Incoming::new(&rx);
        for (i, &len) in sizes.iter().cycle().take(200).enumerate() {
            assert_eq!(incoming.read_header().unwrap(), Some(Header { kind: kind::ONEWAY, len: len as u32 }));
            // The two ways of receiving alternate.
            if i % 3 == 0 {
                let mut buffer = vec![0; len];
                incoming.fill(&mut buffer).unwrap();
                assert!(buffer == payload(len), "message {i}");
            } else {
                assert!(incoming.read_new_buffer(len).unwrap() == payload(len), "message {i}");
            }
        }
        sender.join().unwrap();
        assert_eq!(incoming.read_header().unwrap(), None);
    }

    #[test]
    fn a_message_that_arrives_in_small_parts_is_reassembled() {
        let (mut tx, rx) = pair();
        tx.set_nodelay(true).unwrap();
        let sender = thread::spawn(move || {
            let mut bytes = Header { kind: kind::ONEWAY, len: 40_000 }.to_bytes().to_vec();
            bytes.extend(payload(40_000));
            bytes.extend(call_header(Header { kind: kind::PING, len: 0 }, 9));
            let mut sizes = [1, 2, 4, 3, 20_000, 19_997, 5, 10].into_iter();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
                tx.write_all(now).unwrap();
                thread::sleep(Duration::from_millis(3));
                rest = later;
            }
        });
        let mut incoming = Incoming::new(&rx);
        assert_eq!(incoming.read_header().unwrap().unwrap().len, 40_000);
        assert!(incoming.read_new_buffer(40_000).unwrap() == payload(40_000));
        assert_eq!(incoming.read_header().unwrap().unwrap().kind, kind::PING);
        assert_eq!(incoming.read_id().unwrap(), 9);
        assert!(incoming.is_drained());
        sender.join().unwrap();
    }

    #[test]
    fn truncated_and_oversized_messages_are_errors() {
        for cut in [100, 20_000] {
            let (tx, rx) = pair();
            send(&tx, &Header { kind: kind::ONEWAY, len: 40_000 }.to_bytes(), &payload(cut)).unwrap();
            drop(tx);
            let mut incoming = Incoming::new(&rx);
            let len = incoming.read_header().unwrap().unwrap().len;
            assert_eq!(incoming.read_new_buffer(len as usize).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
        let (tx, rx) = pair();
        send(&tx, &Header { kind: kind::ONEWAY, len: u32::MAX }.to_bytes(), &[]).unwrap();
        assert_eq!(Incoming::new(&rx).read_header().unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
