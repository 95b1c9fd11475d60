//! The header of a request: decoded once, or recognised as equal to that of the previous request.

use giop_codec::exception::SystemException;
use giop_codec::giop::{
    MAX_OBJECT_KEY, MessageHeader, ObjectKey, RequestHeader, RequestId, ResponseFlags, TargetAddress,
    enter_body,
};
use giop_codec::{DecodeError, Version};

use super::{decoder, narrow, part, place_of};
use crate::frame::{HEADER_LEN, word};

/// The parts of a request's header, by their offsets in the message.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The key, if the peer sent it inside a profile.
    pub(super) outside_key: Option<Box<ObjectKey>>,
    pub(crate) id: RequestId,
    pub(super) key_at: u32,
    pub(super) key_len: u32,
    pub(super) operation_at: u32,
    pub(crate) body_at: u32,
    pub(super) operation_len: u16,
    pub(crate) response: ResponseFlags,
    pub(crate) has_contexts: bool,
    /// True if it equals the previous header.
    pub(crate) repeats: bool,
    /// True if it carries listen points of the peer.
    pub(crate) announces: bool,
    /// True if it asks for the reference of its object.
    pub(crate) asks: bool,
    /// The offset of the end of the header, before the padding of the body.
    pub(super) end: u32,
}

/// The last request header, byte by byte. The next one often differs only in its id.
#[derive(Debug, Default)]
pub(crate) struct LastHead {
    /// The bytes from the end of the request id to the end of the header.
    octets: Vec<u8>,
    header: Option<(MessageHeader, RequestHead)>,
}

/// The reason why a request is answered with an exception before it is handed out.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The header does not decode.
    Header(DecodeError),
    /// The header decodes, but the request is answered with this exception.
    Refused(RequestId, ResponseFlags, SystemException),
}

/// The offset of the end of the request id in a GIOP 1.2 message.
const ID_END: usize = HEADER_LEN + 4;

/// The maximum length of a header that is remembered. Longer ones are decoded each time.
const LONGEST_REMEMBERED: usize = 512;

impl RequestHead {
    /// Returns the object's key in the message.
    pub(crate) fn key<'a>(&'a self, octets: &'a [u8]) -> &'a [u8] {
        match &self.outside_key {
            None => part(octets, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }

    /// Returns the operation's name in the message.
    pub(crate) fn operation<'a>(&self, octets: &'a [u8]) -> &'a [u8] {
        part(octets, self.operation_at, u32::from(self.operation_len))
    }

    /// Decodes the header of a request.
    pub(crate) fn decode(header: &MessageHeader, octets: &[u8]) -> Result<Self, RequestError> {
        let mut d = decoder(header, octets);
        let request = RequestHeader::decode(&mut d).map_err(RequestError::Header)?;
        let end = narrow(d.position());
        enter_body(&mut d);
        let (id, response) = (request.request_id, request.response);
        let (key_at, key_len, outside_key) = match place_of_key(octets, &request.target) {
            Ok(place) => place,
            Err(exception) => return Err(RequestError::Refused(id, response, exception)),
        };
        let (operation_at, operation_len) = place_of(octets, request.operation.as_bytes());
        Ok(Self {
            outside_key,
            id,
            key_at,
            key_len,
            operation_at,
            body_at: narrow(d.position()),
            operation_len: operation_len as u16, // at most `MAX_OPERATION`
            response,
            has_contexts: !request.contexts.is_empty(),
            repeats: false,
            announces: false,
            asks: false,
            end,
        })
    }
}

impl LastHead {
    /// Returns the header of a message that repeats the last one and therefore need not be decoded.
    #[inline]
    pub(crate) fn recall(&self, header: &MessageHeader, octets: &[u8]) -> Option<RequestHead> {
        let (last, head) = self.header.as_ref()?;
        let end = head.end as usize;
        if last.version != header.version
            || last.order != header.order
            || octets.get(ID_END..end)? != self.octets.as_slice()
        {
            return None;
        }
        let body_at = if octets.len() == end { end } else { end.next_multiple_of(8).min(octets.len()) };
        Some(RequestHead {
            outside_key: None,
            id: word(header.order, octets)?,
            body_at: narrow(body_at),
            repeats: true,
            announces: false,
            asks: false,
            key_at: head.key_at,
            key_len: head.key_len,
            operation_at: head.operation_at,
            operation_len: head.operation_len,
            response: head.response,
            has_contexts: head.has_contexts,
            end: head.end,
        })
    }

    /// Forgets the last header.
    #[cold]
    pub(crate) fn forget(&mut self) {
        self.header = None;
    }

    /// Remembers a header. Headers before GIOP 1.2 are not remembered, because the id is in their middle.
    pub(crate) fn remember(&mut self, header: &MessageHeader, head: &RequestHead, octets: &[u8]) {
        let end = head.end as usize;
        self.header = None;
        if let Some(octets) = octets.get(ID_END..end)
            && header.version == Version::V1_2
            && head.outside_key.is_none()
            && octets.len() <= LONGEST_REMEMBERED
        {
            self.octets.clear();
            self.octets.extend_from_slice(octets);
            self.header = Some((*header, RequestHead { outside_key: None, ..*head }));
        }
    }
}

pub(super) type KeyPlace = (u32, u32, Option<Box<ObjectKey>>);

#[inline]
pub(super) fn place_of_key(message: &[u8], target: &TargetAddress<'_>) -> Result<KeyPlace, SystemException> {
    match target {
        TargetAddress::Key(key) if key.len() <= MAX_OBJECT_KEY => {
            let (at, len) = place_of(message, key);
            Ok((at, len, None))
        }
        other => outside_key(other),
    }
}

#[cold]
fn outside_key(target: &TargetAddress<'_>) -> Result<KeyPlace, SystemException> {
    Ok((0, 0, Some(Box::new(target.object_key()?))))
}
