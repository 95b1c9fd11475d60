//! Service contexts: data that accompanies the arguments or results of a message.

use std::ops::Range;

use bytes::Bytes;

use super::MAX_SERVICE_CONTEXTS;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::code_set::CodeSetContext;
use crate::ior::{Policies, encapsulation, open_encapsulation_slice};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};

/// The id of the service to which a context belongs.
///
/// Source clause: "Object Service Context" (`IOP::ServiceId`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u32);

impl ContextId {
    /// `TransactionService`: the caller's transaction.
    pub const TRANSACTION_SERVICE: Self = Self(0);
    /// `CodeSets`: the transmission code sets that the client chose.
    pub const CODE_SETS: Self = Self(1);
    /// `ChainBypassCheck`: interworking with COM.
    pub const CHAIN_BYPASS_CHECK: Self = Self(2);
    /// `ChainBypassInfo`: interworking with COM.
    pub const CHAIN_BYPASS_INFO: Self = Self(3);
    /// `LogicalThreadId`: the caller's chain of calls, for COM.
    pub const LOGICAL_THREAD_ID: Self = Self(4);
    /// `BI_DIR_IIOP`: addresses whose objects may be called over this connection. See
    /// [`BiDirIiopServiceContext`](super::BiDirIiopServiceContext).
    pub const BI_DIR_IIOP: Self = Self(5);
    /// `SendingContextRunTime`: the location of the sender's Java classes.
    pub const SENDING_CONTEXT_RUN_TIME: Self = Self(6);
    /// `INVOCATION_POLICIES`: the quality of service that the caller requests. See
    /// [`Policies`](crate::ior::Policies).
    pub const INVOCATION_POLICIES: Self = Self(7);
    /// `FORWARDED_IDENTITY`: the identity of the client, which a firewall has added.
    pub const FORWARDED_IDENTITY: Self = Self(8);
    /// `UnknownExceptionInfo`: a Java exception that the IDL does not declare.
    pub const UNKNOWN_EXCEPTION_INFO: Self = Self(9);
    /// `RTCorbaPriority`: the priority of the call.
    pub const RT_CORBA_PRIORITY: Self = Self(10);
    /// `RTCorbaPriorityRange`: the priorities that the caller permits.
    pub const RT_CORBA_PRIORITY_RANGE: Self = Self(11);
    /// `FT_GROUP_VERSION`: the version of the client's reference to a group of replicas.
    pub const FT_GROUP_VERSION: Self = Self(12);
    /// `FT_REQUEST`: the identity of a request that may be repeated.
    pub const FT_REQUEST: Self = Self(13);
    /// `ExceptionDetailMessage`: a text that explains a system exception.
    pub const EXCEPTION_DETAIL_MESSAGE: Self = Self(14);
    /// `SecurityAttributeService`: the identity of the caller. See [`SasContext`](crate::csi::SasContext).
    pub const SECURITY_ATTRIBUTE_SERVICE: Self = Self(15);
    /// `ActivityService`: the caller's activity.
    pub const ACTIVITY_SERVICE: Self = Self(16);
    /// `RMICustomMaxStreamFormat`: the highest stream format of Java's custom value types.
    pub const RMI_CUSTOM_MAX_STREAM_FORMAT: Self = Self(17);
    /// `ACCESS_SESSION_ID`: the session in which a user accesses telecommunication services.
    pub const ACCESS_SESSION_ID: Self = Self(18);
    /// `SERVICE_SESSION_ID`: the session of one telecommunication service.
    pub const SERVICE_SESSION_ID: Self = Self(19);
    /// `FIREWALL_PATH`: the firewalls that a request passes.
    pub const FIREWALL_PATH: Self = Self(20);
    /// `FIREWALL_PATH_RESP`: the response of the firewalls.
    pub const FIREWALL_PATH_RESP: Self = Self(21);
    /// The version of the sender, which is an ORB of the JDK or of GlassFish.
    pub const SUN_ORB_VERSION: Self = Self(0x4E45_4F00);
    /// A context that only zorb defines: the positions of large sequences in a message. See
    /// [`BlockList`](super::BlockList). The number is `ZOR` and a 1. Other ORBs ignore it.
    pub const ZORB_BLOCKS: Self = Self(0x5A4F_5201);
    /// A context that only zorb defines. Its data is at most seven zeros without meaning. It shifts the bytes
    /// after it, so that a body that is forwarded in GIOP 1.0 or 1.1 keeps its alignment.
    pub const ZORB_PADDING: Self = Self(0x5A4F_5203);
    /// A context that only zorb defines: the trace to which a call belongs. The data is an encapsulation of
    /// two strings, the `traceparent` and the `tracestate` of the W3C's Trace Context. The OMG has not
    /// assigned a number for such a context.
    pub const ZORB_TRACE: Self = Self(0x5A4F_5204);
    /// A context that only zorb defines. In a request, it asks for the reference of an object of which the
    /// client has only a URL. A zorb server forwards the request to that reference, with this context in the
    /// reply. The data is an empty encapsulation.
    pub const ZORB_REFERENCE: Self = Self(0x5A4F_5205);
}

/// A service context that owns its data.
///
/// Source clause: "Object Service Context" (`IOP::ServiceContext`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceContext {
    /// The service to which the context belongs.
    pub id: ContextId,
    /// The data. For almost every service, it is an encapsulation.
    pub data: Bytes,
}

impl ServiceContext {
    /// Creates a context whose data is an encapsulation of `value`.
    ///
    /// # Errors
    /// The value has no encoding.
    pub fn encapsulate(id: ContextId, value: &impl CdrEncode) -> Result<Self, EncodeError> {
        Ok(Self { id, data: encapsulation(|e| value.encode(e))? })
    }
}

/// A service context that borrows its data from a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceContextRef<'a> {
    /// The service to which the context belongs.
    pub id: ContextId,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> ServiceContextRef<'a> {
    /// Returns a decoder of the data as an encapsulation.
    ///
    /// # Errors
    /// The data is empty.
    pub fn open(&self) -> Result<Decoder<'a>, DecodeError> {
        open_encapsulation_slice(self.data)
    }

    /// Decodes the value in the data, which must be an encapsulation.
    ///
    /// # Errors
    /// The data is malformed. The offset in the error counts from the start of the data.
    pub fn value<T: CdrDecode>(&self) -> Result<T, DecodeError> {
        T::decode(&mut self.open()?)
    }

    /// Returns a copy that owns its data.
    pub fn to_owned(&self) -> ServiceContext {
        ServiceContext { id: self.id, data: Bytes::copy_from_slice(self.data) }
    }
}

/// The service contexts of a message: a list to send, or a complete part of a received message.
///
/// Creating it allocates no memory. Unknown contexts are permitted. If several contexts have the same id,
/// [`find`](Self::find) returns the first one.
/// Source clause: "Object Service Context" (`IOP::ServiceContextList`).
#[derive(Clone, Copy, Debug)]
pub struct ServiceContexts<'a>(ContextSource<'a>);

#[derive(Clone, Copy, Debug)]
enum ContextSource<'a> {
    List(&'a [ServiceContext]),
    Wire(WireList<'a>),
}

/// A received list that is known to be complete. The bytes begin at the first context, which is aligned to 4.
#[derive(Clone, Copy, Debug)]
struct WireList<'a> {
    count: u32,
    order: ByteOrder,
    bytes: &'a [u8],
}

impl<'a> ServiceContexts<'a> {
    /// An empty list.
    pub const EMPTY: ServiceContexts<'static> = ServiceContexts(ContextSource::List(&[]));

    /// Returns the number of contexts.
    pub fn len(&self) -> usize {
        match &self.0 {
            ContextSource::List(list) => list.len(),
            ContextSource::Wire(list) => list.count as usize,
        }
    }

    /// Returns whether there are no contexts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns copies of all contexts.
    pub fn to_vec(&self) -> Vec<ServiceContext> {
        self.iter().map(|context| context.to_owned()).collect()
    }

    /// Returns an iterator over all contexts in their order.
    pub fn iter(&self) -> ServiceContextsIter<'a> {
        ServiceContextsIter(match self.0 {
            ContextSource::List(list) => Iter::List(list.iter()),
            ContextSource::Wire(list) => Iter::Wire {
                remaining: list.count as usize,
                d: Decoder::new(list.bytes, list.order, Version::V1_2),
            },
        })
    }

    /// Returns the first context with this id.
    pub fn find(&self, id: ContextId) -> Option<ServiceContextRef<'a>> {
        self.iter().find(|context| context.id == id)
    }

    /// Reads a list and checks that it is complete.
    #[inline]
    pub(super) fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match d.read_len(ServiceContext::MIN_SIZE)? {
            0 => Ok(Self(ContextSource::List(&[]))),
            count => Self::decode_some(d, count),
        }
    }

    fn decode_some(d: &mut Decoder<'a>, count: usize) -> Result<Self, DecodeError> {
        if count > MAX_SERVICE_CONTEXTS {
            return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, d.position() - 4));
        }
        let (start, bytes) = (d.position(), d.rest());
        for _ in 0..count {
            read_context(d)?;
        }
        let bytes = bytes.get(..d.position() - start).unwrap_or_default();
        Ok(Self(ContextSource::Wire(WireList { count: count as u32, order: d.order(), bytes })))
    }

    /// Returns the position of this list in `message`. A received list must be a part of that message.
    pub(super) fn range_in(&self, message: &[u8]) -> ContextsRange {
        match &self.0 {
            ContextSource::List(_) => ContextsRange { count: 0, range: 0..0 },
            ContextSource::Wire(list) => {
                ContextsRange { count: list.count, range: range_in(message, list.bytes) }
            }
        }
    }

    /// Returns the list at a position that [`range_in`](Self::range_in) returned for `message`.
    pub(super) fn at_range(at: &ContextsRange, message: &'a [u8], order: ByteOrder) -> Self {
        let bytes = message.get(at.range.clone()).unwrap_or_default();
        Self(ContextSource::Wire(WireList { count: at.count, order, bytes }))
    }
}

/// The position in a message of a list that is known to be complete.
#[derive(Clone, Debug)]
pub(super) struct ContextsRange {
    count: u32,
    pub(super) range: Range<usize>,
}

/// Returns the position of `part` in `whole`. `part` must be a subslice of `whole`.
pub(super) fn range_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    start..start + part.len()
}

impl Default for ServiceContexts<'_> {
    fn default() -> Self {
        Self(ContextSource::List(&[]))
    }
}

impl<'a> From<&'a [ServiceContext]> for ServiceContexts<'a> {
    fn from(list: &'a [ServiceContext]) -> Self {
        Self(ContextSource::List(list))
    }
}

impl<'a, const N: usize> From<&'a [ServiceContext; N]> for ServiceContexts<'a> {
    fn from(list: &'a [ServiceContext; N]) -> Self {
        Self(ContextSource::List(list))
    }
}

impl PartialEq for ServiceContexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ServiceContexts<'_> {}

impl<'a> IntoIterator for &ServiceContexts<'a> {
    type Item = ServiceContextRef<'a>;
    type IntoIter = ServiceContextsIter<'a>;

    fn into_iter(self) -> ServiceContextsIter<'a> {
        self.iter()
    }
}

impl CdrEncode for ServiceContexts<'_> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.len())?;
        self.iter().try_for_each(|context| put_context(e, context.id, context.data))
    }
}

impl CdrEncode for ServiceContext {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        put_context(e, self.id, &self.data)
    }
}

impl CdrDecode for ServiceContext {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(read_context(d)?.to_owned())
    }
}

/// An iterator over [`ServiceContexts`].
#[derive(Clone, Debug)]
pub struct ServiceContextsIter<'a>(Iter<'a>);

#[derive(Clone, Debug)]
enum Iter<'a> {
    List(std::slice::Iter<'a, ServiceContext>),
    Wire { remaining: usize, d: Decoder<'a> },
}

impl<'a> Iterator for ServiceContextsIter<'a> {
    type Item = ServiceContextRef<'a>;

    fn next(&mut self) -> Option<ServiceContextRef<'a>> {
        match &mut self.0 {
            Iter::List(list) => {
                list.next().map(|context| ServiceContextRef { id: context.id, data: &context.data })
            }
            Iter::Wire { remaining, d } => {
                *remaining = remaining.checked_sub(1)?;
                // This cannot fail, because all contexts were read when the list was decoded.
                read_context(d).ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Iter::List(list) => list.size_hint(),
            Iter::Wire { remaining, .. } => (*remaining, Some(*remaining)),
        }
    }
}

impl ExactSizeIterator for ServiceContextsIter<'_> {}

fn read_context<'a>(d: &mut Decoder<'a>) -> Result<ServiceContextRef<'a>, DecodeError> {
    let id = ContextId(d.read_u32()?);
    let len = d.read_len(1)?;
    Ok(ServiceContextRef { id, data: d.take(len)? })
}

fn put_context(e: &mut Encoder, id: ContextId, data: &[u8]) -> Result<(), EncodeError> {
    e.put_u32(id.0);
    e.put_len(data.len())?;
    e.put_raw(data);
    Ok(())
}

impl CodeSetContext {
    /// Returns the service context to send.
    ///
    /// # Errors
    /// It never fails at present.
    pub fn to_service_context(self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::CODE_SETS, &self)
    }
}

impl Policies {
    /// Returns the service context to send, with the policies that the caller requests.
    ///
    /// # Errors
    /// There are more than 2^32 - 1 policies.
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::INVOCATION_POLICIES, self)
    }
}
