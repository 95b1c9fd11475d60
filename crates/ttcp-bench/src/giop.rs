//! Requests and replies of GIOP 1.0 for an operation that echoes bytes.
//!
//! Experiments hold many connections open, which must not each need a whole ORB, and must be the same for
//! every server. All ORBs support GIOP 1.0.

use std::io::{self, ErrorKind, Read};

const HEADER_SIZE: usize = 12;
const MAX_REPLY_SIZE: usize = 1 << 16;

/// Message types.
const REQUEST: u8 = 0;
const REPLY: u8 = 1;

/// The operation of the bench contract that echoes bytes, with its terminating NUL.
pub(crate) const ECHO: &[u8] = b"echoOctets\0";

/// Returns a request for `operation`, whose name ends with NUL, with `bytes` as its only argument.
pub(crate) fn request(key: &[u8], operation: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut message = b"GIOP\x01\x00\x01".to_vec();
    message.push(REQUEST);
    // Four bytes of the message size, which are set below, and the number of service contexts.
    message.extend([0; 8]);
    // Request id, and `response_expected`.
    message.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    put(&mut message, key);
    put(&mut message, operation);
    // No principal.
    put(&mut message, b"");
    put(&mut message, bytes);
    let size = (message.len() - HEADER_SIZE) as u32;
    if let Some(field) = message.get_mut(8..HEADER_SIZE) {
        field.copy_from_slice(&size.to_le_bytes());
    }
    message
}

fn put(message: &mut Vec<u8>, bytes: &[u8]) {
    message.resize(message.len().next_multiple_of(4), 0);
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
}

/// Reads a reply and returns the echoed bytes.
pub(crate) fn echo_reply(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER_SIZE];
    source.read_exact(&mut header)?;
    let [b'G', b'I', b'O', b'P', _, _, flags, REPLY, size @ ..] = header else {
        return Err(invalid("the received message is not a reply"));
    };
    let is_little_endian = flags & 1 == 1;
    let size = if is_little_endian { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) } as usize;
    if size > MAX_REPLY_SIZE {
        return Err(invalid("the reply is too long"));
    }
    let mut body = vec![0; size];
    source.read_exact(&mut body)?;
    let mut reply = Fields { rest: &body, is_little_endian, position: 0 };
    echoed(&mut reply).ok_or_else(|| invalid("the reply is an exception, or truncated"))
}

fn echoed(reply: &mut Fields<'_>) -> Option<Vec<u8>> {
    for _context in 0..reply.number()? {
        reply.number()?;
        reply.octets()?;
    }
    let _request_id = reply.number()?;
    let status = reply.number()?;
    if status == 0 { reply.octets().map(<[u8]>::to_vec) } else { None }
}

struct Fields<'m> {
    rest: &'m [u8],
    is_little_endian: bool,
    position: usize,
}

impl<'m> Fields<'m> {
    fn number(&mut self) -> Option<u32> {
        // The 12 bytes of the header do not affect the alignment.
        self.take(self.position.next_multiple_of(4) - self.position)?;
        let bytes = self.take(4)?.try_into().ok()?;
        Some(if self.is_little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn octets(&mut self) -> Option<&'m [u8]> {
        let len = self.number()?;
        self.take(len as usize)
    }

    fn take(&mut self, len: usize) -> Option<&'m [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        self.position += len;
        Some(taken)
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_encoded_as_giop_1_0() {
        let request = request(b"ttcp!", ECHO, &[7, 8]);
        let parts: Vec<u8> = [
            &b"GIOP\x01\x00\x01\x00\x32\x00\x00\x00"[..],
            b"\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00",
            b"\x05\x00\x00\x00ttcp!\x00\x00\x00",
            b"\x0b\x00\x00\x00echoOctets\x00\x00",
            b"\x00\x00\x00\x00\x02\x00\x00\x00\x07\x08",
        ]
        .concat();
        assert_eq!(request, parts);
    }

    #[test]
    fn replies_of_both_byte_orders_are_read_and_truncated_ones_are_errors() {
        let big = [
            &b"GIOP\x01\x00\x00\x01\x00\x00\x00\x22"[..],
            b"\x00\x00\x00\x01\x00\x00\x00\x09\x00\x00\x00\x03abc\x00",
            b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x06behind",
        ]
        .concat();
        assert_eq!(echo_reply(&big[..]).unwrap(), b"behind");
        let little = [
            &b"GIOP\x01\x02\x01\x01\x12\x00\x00\x00"[..],
            b"\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x07\x08",
        ]
        .concat();
        assert_eq!(echo_reply(&little[..]).unwrap(), [7, 8]);
        for cut in 0..little.len() {
            assert!(echo_reply(&little[..cut]).is_err(), "{cut}");
        }
        let mut exception = little.clone();
        exception[20] = 2;
        let error = echo_reply(&exception[..]).unwrap_err().to_string();
        assert_eq!(error, "the reply is an exception, or truncated");
        let mut huge = little;
        huge[10] = 0x40;
        assert_eq!(echo_reply(&huge[..]).unwrap_err().to_string(), "the reply is too long");
    }
}
