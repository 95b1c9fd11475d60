//! The header of a request: decoded once, or recognised as that of the request before it.

use giop_codec::exception::SystemException;
use giop_codec::giop::{
    MAX_OBJECT_KEY, MessageHeader, ObjectKey, RequestHeader, RequestId, ResponseFlags, TargetAddress,
    enter_body,
};
use giop_codec::{DecodeError, Version};

use super::{decoder, narrow, part, place_of, word};
use crate::receive::HEADER_LEN;

/// Where the parts of a request's header lie.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The key, where the peer sent it inside a profile.
    pub(super) outside_key: Option<Box<ObjectKey>>,
    pub(crate) id: RequestId,
    pub(super) key_at: u32,
    pub(super) key_len: u32,
    pub(super) operation_at: u32,
    pub(crate) body_at: u32,
    pub(super) operation_len: u16,
    pub(crate) response: ResponseFlags,
    pub(crate) has_contexts: bool,
    /// It says the same as the one before.
    pub(crate) repeats: bool,
    /// It says where the peer would listen.
    pub(crate) announces: bool,
    /// It asks for the reference of its object.
    pub(crate) asks: bool,
    /// Where the header ends, padding before the body not counted.
    pub(super) end: u32,
}

/// The last request header, octet by octet: the next one is often the same but for its id.
#[derive(Debug, Default)]
pub(crate) struct LastHead {
    /// From behind the request id to the end of the header.
    octets: Vec<u8>,
    header: Option<(MessageHeader, RequestHead)>,
}

/// Why a request is answered by an exception before anybody sees it.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The header does not decode.
    Header(DecodeError),
    /// The header decodes; this exception is the answer.
    Refused(RequestId, ResponseFlags, SystemException),
}

/// Where the request id of a GIOP 1.2 message ends.
const ID_END: usize = HEADER_LEN + 4;

/// Longer headers are decoded each time.
const LONGEST_REMEMBERED: usize = 512;

impl RequestHead {
    /// The object's key in the message.
    pub(crate) fn key<'a>(&'a self, octets: &'a [u8]) -> &'a [u8] {
        match &self.outside_key {
            None => part(octets, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }

    /// The operation's name in the message.
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
    /// The header of a message that repeats the last one, which then need not be decoded.
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

    /// Remembers no header.
    #[cold]
    pub(crate) fn forget(&mut self) {
        self.header = None;
    }

    /// Remembers a header. Those before GIOP 1.2 have the id in their middle.
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
