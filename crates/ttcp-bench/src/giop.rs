//! Requests and replies of GIOP 1.0 for an operation that echoes bytes.
//!
//! Experiments with many connections send these messages over plain sockets. An ORB for each connection would
//! be too expensive, and all servers must receive the same bytes. All ORBs support GIOP 1.0.

use std::io::{self, ErrorKind, Read};

const HEADER_BYTES: usize = 12;
const MAX_REPLY_BYTES: usize = 1 << 16;

const REQUEST_TYPE: u8 = 0;
const REPLY_TYPE: u8 = 1;

/// The name of the operation that echoes bytes in the interface of all servers, with a terminating NUL.
pub(crate) const ECHO: &[u8] = b"echoOctets\0";

/// Returns a request for `operation`, whose name ends with NUL, with `bytes` as its only argument.
pub(crate) fn request(key: &[u8], operation: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut message = b"GIOP\x01\x00\x01".to_vec();
    message.push(REQUEST_TYPE);
    // Four bytes for the message size, which is set below, and four bytes for zero service contexts.
    message.extend([0; 8]);
    // The request id is 1, and `response_expected` is true.
    message.extend([1, 0, 0, 0, 1, 0, 0, 0]);
    put_with_length(&mut message, key);
    put_with_length(&mut message, operation);
    // The principal is empty.
    put_with_length(&mut message, b"");
    put_with_length(&mut message, bytes);
    let size = (message.len() - HEADER_BYTES) as u32;
    if let Some(field) = message.get_mut(8..HEADER_BYTES) {
        field.copy_from_slice(&size.to_le_bytes());
    }
    message
}

/// Appends padding to a multiple of four bytes, the number of `bytes`, and the bytes.
fn put_with_length(message: &mut Vec<u8>, bytes: &[u8]) {
    message.resize(message.len().next_multiple_of(4), 0);
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
}

/// Reads a reply and returns the echoed bytes.
pub(crate) fn echo_reply(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    source.read_exact(&mut header)?;
    let [b'G', b'I', b'O', b'P', _, _, flags, REPLY_TYPE, size @ ..] = header else {
        return Err(invalid("the received message is not a reply"));
    };
    let is_little_endian = flags & 1 == 1;
    let size = if is_little_endian { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) } as usize;
    if size > MAX_REPLY_BYTES {
        return Err(invalid("the reply is too long"));
    }
    let mut body = vec![0; size];
    source.read_exact(&mut body)?;
    let mut reply = Fields { rest: &body, is_little_endian, position: 0 };
    echoed_bytes(&mut reply).ok_or_else(|| invalid("the reply is an exception, or truncated"))
}

fn echoed_bytes(reply: &mut Fields<'_>) -> Option<Vec<u8>> {
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
        // The alignment is the same with and without the header, because its 12 bytes are a multiple of 4.
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
