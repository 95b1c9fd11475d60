//! A request as generated code and servants use it.

use std::cell::Cell;

use giop_codec::any::Any;
use giop_codec::cdr::{CdrEncode, Decoder, Encoder, Mark};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, ResponseFlags, ServiceContext, ServiceContexts,
    announce_blocks, begin_body, finish_message, put_message_header,
};
use giop_codec::ior::Ior;
use giop_codec::{DecodeError, EncodeError, EncodeErrorKind, Version};
use giop_proto::{Arguments, IncomingRequest, RawBody, ServeToken};

use crate::connection::padding;
use crate::runtime::backpressure::LARGE_REPLY;
use crate::servant::charge::Charge;
use crate::servant::current::{Extras, Request};
#[cfg(not(feature = "experiments"))]
use crate::servant::optable::OpTable;
use crate::servant::reply::ReplyBuffer;
use crate::servant::skeleton::UserException;
use crate::servant::{ForwardRequest, Refusal};

/// A request to be served: its message, its reply buffer and its description (`zorb::request()`).
#[derive(Debug)]
pub struct ServerRequest {
    pub(crate) to: ReplyTo,
    pub(crate) encoder: Box<ReplyBuffer>,
    pub(crate) current: Request,
    /// The arguments of a large request. Those of other requests are in `current`.
    pub(crate) arguments: Option<Arguments>,
    /// The memory of the decoded arguments.
    pub(crate) charge: Charge,
}

/// The result of a dispatched request: the encoded reply, or none.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) token: ServeToken,
    /// The whole message. Empty if no reply is sent, or if it was sent already.
    pub(crate) encoder: Box<ReplyBuffer>,
    /// The failure of a oneway, which is only logged.
    pub(crate) failed: Option<SystemException>,
}

/// The data needed to address a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyTo {
    pub(crate) token: ServeToken,
    pub(crate) id: RequestId,
    pub(crate) version: Version,
    pub(crate) order: giop_codec::ByteOrder,
    pub(crate) wanted: bool,
    /// Whether the client supports lists of blocks.
    pub(crate) blocks: bool,
}

impl ServerRequest {
    /// Returns the operation's name as in GIOP messages: `_get_balance` for an attribute.
    #[inline]
    #[must_use]
    pub fn operation(&self) -> &[u8] {
        self.current.operation_octets()
    }

    /// Returns the number of the operation that is called.
    #[cfg(not(feature = "experiments"))]
    #[inline]
    #[must_use]
    pub fn find<const N: usize, const SLOTS: usize>(&self, table: &OpTable<N, SLOTS>) -> Option<usize> {
        table.find(self.operation())
    }

    /// Decodes the arguments with `f`. `f` runs twice if sequences of structs become views.
    ///
    /// This drops the arguments of a large request, except for views of them. Its buffer is freed after the
    /// last view is dropped.
    ///
    /// # Errors
    /// Those of `f`. Report them to the client with [`bad_arguments`](Self::bad_arguments).
    #[inline]
    pub fn decode<R>(
        &mut self,
        f: impl Fn(&mut Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        let core = self.current.core();
        let used = Cell::new(0);
        let f = |mut d: Decoder<'_>| {
            let before = d.limits().alloc;
            let decoded = f(&mut d);
            used.set(before.saturating_sub(d.limits().alloc));
            decoded
        };
        let decoded = match self.arguments.take() {
            None => f(self.current.arguments().with_context(core)),
            Some(arguments) => arguments.decode(&core.pool, |d| f(d.with_context(core))),
        };
        match &decoded {
            Ok(_) if Charge::is_worth(used.get()) => self.charge = Charge::new(&core.pool, used.get()),
            Ok(_) => {}
            Err(error) => core.counters.hit_by(error),
        }
        decoded
    }

    /// Returns the number of bytes of the arguments that are not decoded yet.
    pub(crate) fn argument_bytes(&self) -> usize {
        match &self.arguments {
            Some(arguments) => arguments.decoder().remaining(),
            None => self.current.arguments().remaining(),
        }
    }

    /// Returns the arguments as received. `None` for a call that is not marshalled.
    pub(crate) fn raw_body(&self) -> Option<RawBody> {
        match &self.arguments {
            Some(arguments) => Some(arguments.raw_body()),
            None => self.current.raw_body(),
        }
    }

    /// Replies with a body as received, and with these contexts.
    pub(crate) fn pass_on(
        mut self,
        status: ReplyStatus,
        contexts: Vec<ServiceContext>,
        body: &RawBody,
    ) -> Outcome {
        let mut to = self.to;
        if !to.wanted {
            return to.nothing(self.encoder);
        }
        let mut all = self.current.take_extras().contexts;
        all.extend(contexts);
        if to.version < Version::V1_2 && reply_end(&all) % 8 != body.phase() {
            all.push(padding());
        }
        to.order = body.order();
        let put = |e: &mut Encoder| {
            body.put(e);
            Ok(())
        };
        match to.put(&mut self.encoder, status, &all, put) {
            Ok(()) => {
                let len = self.encoder.len();
                if len >= LARGE_REPLY {
                    self.current.core().backpressure.note_large_reply(self.current.operation_octets(), len);
                }
                Outcome { token: to.token, encoder: self.encoder, failed: None }
            }
            Err(error) => to.system_exception(self.encoder, error.system(CompletionStatus::Yes)),
        }
    }

    /// Replies with results encoded by `encode`. `encode` runs twice if the results are long, and not at all
    /// for a oneway. Long sequences of structs are sent while they are encoded.
    #[inline]
    pub fn reply(self, encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>) -> Outcome {
        self.answer(ReplyStatus::NoException, encode)
    }

    /// Replies with an exception of the operation's raises clause.
    #[cold]
    pub fn user_exception<X: UserException>(self, exception: &X) -> Outcome {
        self.current.seen().user_exception(X::REPOSITORY_ID);
        let failed = (!self.to.wanted).then(|| unlisted(exception.to_string()));
        let mut outcome = self.answer(ReplyStatus::UserException, |e| {
            e.put_ascii(X::REPOSITORY_ID)?;
            exception.encode(e)
        });
        outcome.failed = failed;
        outcome
    }

    /// Replies with a user exception that is contained in an any.
    #[cold]
    pub fn raise(self, exception: &Any) -> Outcome {
        self.current.seen().user_exception(exception.type_code().id().unwrap_or_default());
        let failed = (!self.to.wanted).then(|| unlisted(exception.type_code().to_string()));
        let mut outcome = self.answer(ReplyStatus::UserException, |e| exception.encode_value(e));
        outcome.failed = failed;
        outcome
    }

    /// Replies for a request without a servant: with the exception, or with the location of the object.
    #[cold]
    pub(crate) fn refuse(self, refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::System(exception) => self.system_exception(exception),
            Refusal::Forward(forward) => self.to.forward(self.encoder, &forward),
        }
    }

    /// Replies with a system exception.
    #[cold]
    pub fn system_exception(self, exception: SystemException) -> Outcome {
        self.current.seen().system_exception(&exception);
        let contexts = self.current.take_extras().contexts;
        self.to.system_exception_with(self.encoder, exception, &contexts)
    }

    /// Replies with `MARSHAL`, `COMPLETED_NO`: the arguments cannot be decoded.
    #[cold]
    pub fn bad_arguments(self, error: DecodeError) -> Outcome {
        let exception = error.system(CompletionStatus::No);
        self.system_exception(exception)
    }

    /// Serves the operations that every object has (`_is_a`, `_non_existent`, ...). All others get
    /// `BAD_OPERATION`.
    #[cold]
    pub fn other_operation(self, ids: &'static [&'static str]) -> Outcome {
        let interface = ids.first().copied().unwrap_or(OBJECT_ID);
        self.operation_of_every_object(interface, |id| id == OBJECT_ID || ids.contains(&id))
    }

    /// Serves the operations that every object has, for an interface with this repository id and these bases.
    pub(crate) fn operation_of_every_object(
        mut self,
        interface: &str,
        is_a: impl FnOnce(&str) -> bool,
    ) -> Outcome {
        match self.operation() {
            b"_is_a" => match self.decode(|d| d.read_string()) {
                Ok(id) => {
                    let is = is_a(&id);
                    self.reply(|e| is.encode(e))
                }
                Err(error) => self.bad_arguments(error),
            },
            b"_non_existent" | b"_not_existent" => self.reply(|e| false.encode(e)),
            b"_repository_id" => self.reply(|e| e.put_str(interface)),
            // Without interface repository and component: nil.
            b"_component" => self.reply(|e| Ior::nil().encode(e)),
            b"_interface" => {
                let source = self.current.core().known().source();
                let found =
                    source.as_ref().and_then(|source| source.interface(&self.current.orb(), interface));
                match found {
                    Some(described) => self.reply(|e| described.encode(e)),
                    None => self.system_exception(not_described(source.is_some())),
                }
            }
            name => {
                if name == b"omg_get_ifr_metadata"
                    && let Some(source) = self.current.core().known().source()
                    && let Some(metadata) = source.metadata(&self.current.orb(), interface)
                {
                    return self.reply(|e| metadata.encode(e));
                }
                let text = format!("{interface} has no operation `{}`", String::from_utf8_lossy(name));
                self.system_exception(
                    SystemException::bad_operation()
                        .with_minor(minor::BAD_OPERATION_UNKNOWN)
                        .with_reason(text),
                )
            }
        }
    }

    fn answer(
        mut self,
        status: ReplyStatus,
        encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Outcome {
        let to = self.to;
        if status == ReplyStatus::NoException {
            self.current.seen().results();
        }
        if !to.wanted {
            return to.nothing(self.encoder);
        }
        let Extras { contexts, forward, .. } = self.current.take_extras();
        if let Some(forward) = forward {
            return to.forward(self.encoder, &forward);
        }
        match to.put(&mut self.encoder, status, &contexts, encode) {
            Ok(()) => {
                // The encoder is empty if the reply was sent while it was encoded.
                let len = self.encoder.len();
                if len.wrapping_sub(1) >= LARGE_REPLY {
                    self.current.core().backpressure.note_large_reply(self.current.operation_octets(), len);
                }
                Outcome { token: to.token, encoder: self.encoder, failed: None }
            }
            Err(error) => {
                let exception = error.system(CompletionStatus::Yes);
                self.current.seen().system_exception(&exception);
                to.system_exception(self.encoder, exception)
            }
        }
    }
}

#[cold]
fn not_described(has_repository: bool) -> SystemException {
    let (minor, text) = match has_repository {
        true => (minor::INTF_REPOS_NO_ENTRY, "the interface repository has no such interface"),
        false => (minor::INTF_REPOS_UNAVAILABLE, "this ORB has no interface repository"),
    };
    SystemException::intf_repos().with_minor(minor).with_reason(text)
}

/// Returns where the header of a reply with these contexts ends in GIOP versions before 1.2.
fn reply_end(contexts: &[ServiceContext]) -> usize {
    let end = |at: usize, context: &ServiceContext| at.next_multiple_of(4) + 8 + context.data.len();
    // Before: message header and number of contexts. After: request id and status.
    contexts.iter().fold(16, end).next_multiple_of(4) + 8
}

/// Positions in the start of a reply.
pub(crate) struct Head {
    /// Position of the message size.
    pub(crate) size_at: usize,
    /// The end of the header.
    end: Mark,
    /// Start of the body.
    pub(crate) body: usize,
}

/// The repository id of the base of all interfaces.
pub(crate) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

impl ReplyTo {
    pub(crate) fn new(incoming: &IncomingRequest) -> Self {
        Self {
            token: incoming.token(),
            id: incoming.id(),
            version: incoming.version(),
            order: giop_codec::ByteOrder::NATIVE,
            wanted: incoming.response() == ResponseFlags::Target,
            blocks: incoming.reads_blocks(),
        }
    }

    /// Ends the request without a reply. The encoder must be empty.
    pub(crate) fn nothing(self, encoder: Box<ReplyBuffer>) -> Outcome {
        debug_assert!(encoder.is_empty(), "nothing is encoded where no reply is wanted");
        Outcome { token: self.token, encoder, failed: None }
    }

    /// Encodes the empty reply that confirms a oneway to its sender (`SYNC_WITH_SERVER`).
    #[cold]
    pub(crate) fn received(self, encoder: &mut ReplyBuffer) {
        let written = self.put(encoder, ReplyStatus::NoException, &[], |_| Ok(())).is_ok();
        debug_assert!(written, "three numbers always encode");
    }

    /// Replies to `_non_existent` that the object does not exist.
    #[cold]
    pub(crate) fn non_existent(self, mut encoder: Box<ReplyBuffer>) -> Outcome {
        let written = self.put(&mut encoder, ReplyStatus::NoException, &[], |e| true.encode(e)).is_ok();
        debug_assert!(written, "a boolean always encodes");
        Outcome { token: self.token, encoder, failed: None }
    }

    /// Replies with a system exception. For a oneway, only records it.
    #[cold]
    pub(crate) fn system_exception(self, encoder: Box<ReplyBuffer>, exception: SystemException) -> Outcome {
        self.system_exception_with(encoder, exception, &[])
    }

    /// Replies with a system exception and these contexts. For a oneway, only records the exception.
    #[cold]
    pub(crate) fn system_exception_with(
        self,
        mut encoder: Box<ReplyBuffer>,
        exception: SystemException,
        contexts: &[ServiceContext],
    ) -> Outcome {
        if !self.wanted {
            encoder.reset(self.order, self.version);
            return Outcome { failed: Some(exception), ..self.nothing(encoder) };
        }
        let written =
            self.put(&mut encoder, ReplyStatus::SystemException, contexts, |e| exception.encode(e)).is_ok();
        debug_assert!(written, "an id and two numbers always encode");
        Outcome { token: self.token, encoder, failed: None }
    }

    /// Replies with a system exception if the request's encoder is lost.
    #[cold]
    pub(crate) fn failed(self, exception: SystemException) -> Outcome {
        self.system_exception(ReplyBuffer::new(None), exception)
    }

    /// Replies with the location of the object.
    #[cold]
    pub(crate) fn forward(self, encoder: Box<ReplyBuffer>, forward: &ForwardRequest) -> Outcome {
        self.forward_with(encoder, forward, &[])
    }

    /// Replies with the location of the object and these contexts.
    #[cold]
    pub(crate) fn forward_with(
        self,
        mut encoder: Box<ReplyBuffer>,
        forward: &ForwardRequest,
        contexts: &[ServiceContext],
    ) -> Outcome {
        if !self.wanted {
            let lost =
                "a oneway is forwarded, whose caller is not told: take SyncScope::Target to have it follow";
            let lost = SystemException::transient().with_minor(minor::TRANSIENT_DISCARDED).with_reason(lost);
            return self.system_exception(encoder, lost);
        }
        let status = match forward.permanent && self.version >= Version::V1_2 {
            true => ReplyStatus::LocationForwardPerm,
            false => ReplyStatus::LocationForward,
        };
        match self.put(&mut encoder, status, contexts, |e| forward.encode(e)) {
            Ok(()) => Outcome { token: self.token, encoder, failed: None },
            Err(error) => self.system_exception(encoder, error.system(CompletionStatus::No)),
        }
    }

    /// Encodes the message header and the reply header.
    #[inline]
    pub(crate) fn put_head(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
    ) -> Result<Head, EncodeError> {
        let sets = encoder.code_sets();
        encoder.reset(self.order, self.version);
        encoder.set_code_sets(sets);
        let size_at = put_message_header(encoder, MessageType::Reply);
        let contexts = ServiceContexts::from(contexts);
        ReplyHeader { request_id: self.id, status, contexts }.encode(encoder)?;
        let end = encoder.mark();
        begin_body(encoder);
        Ok(Head { size_at, end, body: encoder.position() })
    }

    /// Encodes a whole reply message. If it was sent while it was encoded, the encoder is empty.
    fn put(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
        encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match self.put_once(encoder, status, contexts, &encode) {
            // The results contain a custom value that was received in the other byte order and is passed on
            // unchanged.
            Err(EncodeError { kind: EncodeErrorKind::CustomState }) => {
                Self { order: self.order.swapped(), ..self }.put_once(encoder, status, contexts, &encode)
            }
            put => put,
        }
    }

    fn put_once(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
        encode: &impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let Head { size_at, end, body } = self.put_head(encoder, status, contexts)?;
        if encoder.put_results(self.token, size_at, encode)? {
            return Ok(());
        }
        if encoder.position() == body {
            encoder.rewind(end); // no padding without a body
        }
        if self.blocks && encoder.chunk_count() > 1 {
            announce_blocks(encoder);
        }
        finish_message(encoder, size_at)?;
        Ok(())
    }
}

/// Creates the exception for a user exception that the client does not know.
#[cold]
pub(crate) fn unlisted(text: String) -> SystemException {
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Maybe)
        .with_reason(text)
}

/// Creates the exception for a servant's exception that is not in the operation's raises clause.
#[cold]
pub fn unknown_user_exception(exception: impl std::error::Error + Send + Sync + 'static) -> SystemException {
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Maybe)
        .with_source(exception)
}

/// Creates the exception for a panic of a servant: `UNKNOWN`, `COMPLETED_MAYBE`.
#[cold]
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> SystemException {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    SystemException::unknown()
        .completed(CompletionStatus::Maybe)
        .with_reason(format!("the servant panicked: {text}"))
}

const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<ServerRequest>();
    is_send::<Outcome>();
};
