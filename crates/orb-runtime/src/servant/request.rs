//! A request to be served, and its reply.

use std::borrow::Cow;
use std::cell::Cell;

use giop_codec::any::Any;
use giop_codec::cdr::{CdrEncode, Decoder, Encoder, Mark};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, ResponseFlags, ServiceContext, ServiceContexts,
    begin_body, finish_message, insert_block_list, put_message_header,
};
use giop_codec::ior::Ior;
use giop_codec::{DecodeError, EncodeError, EncodeErrorKind, Version};
use giop_proto::{Arguments, IncomingRequest, RawBody, ServeToken};

use crate::connection::padding_context;
use crate::runtime::backpressure::MIN_LARGE_REPLY_BYTES;
use crate::servant::current::{Extras, Request};
#[cfg(not(feature = "experiments"))]
use crate::servant::optable::OpTable;
use crate::servant::reply::{Charge, ReplyBuffer};
use crate::servant::skeleton::UserException;
use crate::servant::{ForwardRequest, Refusal};

/// A request to be served: its message, its reply buffer and its description (`zorb::request()`).
#[derive(Debug)]
pub struct ServerRequest {
    pub(crate) to: ReplyTo,
    pub(crate) encoder: Box<ReplyBuffer>,
    pub(crate) current: Request,
    /// The arguments of a large request. The arguments of other requests are in `current`.
    pub(crate) arguments: Option<Arguments>,
    pub(crate) charge: Charge,
}

/// The result of a served request: the encoded reply, or no reply.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) token: ServeToken,
    /// The complete reply message. It is empty if there is no reply, or if the reply was sent already.
    pub(crate) encoder: Box<ReplyBuffer>,
    /// The failure of a oneway request, which is only logged.
    pub(crate) oneway_failure: Option<SystemException>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyTo {
    pub(crate) token: ServeToken,
    pub(crate) id: RequestId,
    pub(crate) version: Version,
    pub(crate) order: giop_codec::ByteOrder,
    pub(crate) wants_reply: bool,
    /// Whether the client reads bulk data in separate, aligned blocks (a zorb extension).
    pub(crate) reads_blocks: bool,
}

impl ServerRequest {
    /// Returns the name of the called operation in GIOP messages, such as `_get_balance` for an attribute.
    #[inline]
    #[must_use]
    pub fn operation(&self) -> &[u8] {
        self.current.operation_bytes()
    }

    /// Returns the index of the called operation in the table.
    #[cfg(not(feature = "experiments"))]
    #[inline]
    #[must_use]
    pub fn operation_index<const N: usize, const SLOTS: usize>(
        &self,
        table: &OpTable<N, SLOTS>,
    ) -> Option<usize> {
        table.find(self.operation())
    }

    /// Decodes the arguments with `f`. The caller must pass an error to
    /// [`bad_arguments`](Self::bad_arguments). For a large request, `f` may run twice. The first run finds
    /// sequences of structs, which are converted in the message to their form in memory. The second run
    /// returns views of them. The buffer of a large request is freed when all views of the arguments are
    /// dropped.
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
            Ok(_) if Charge::is_required(used.get()) => self.charge = Charge::new(&core.pool, used.get()),
            Ok(_) => {}
            Err(error) => core.counters.hit_decoding_limit(error),
        }
        decoded
    }

    pub(crate) fn argument_byte_len(&self) -> usize {
        self.arguments.as_ref().map_or_else(|| self.current.arguments(), Arguments::decoder).remaining()
    }

    /// Returns the undecoded arguments, or `None` for a collocated call, whose arguments are not encoded.
    pub(crate) fn raw_body(&self) -> Option<RawBody> {
        self.arguments.as_ref().map(Arguments::raw_body).or_else(|| self.current.raw_body())
    }

    pub(crate) fn reply_raw(
        mut self,
        status: ReplyStatus,
        contexts: Vec<ServiceContext>,
        body: &RawBody,
    ) -> Outcome {
        let mut to = self.to;
        if !to.wants_reply {
            return to.no_reply(self.encoder);
        }
        let mut all = self.current.take_extras().contexts;
        all.extend(contexts);
        if to.version < Version::V1_2 && reply_header_end(&all) % 8 != body.start_modulo_8() {
            all.push(padding_context());
        }
        to.order = body.order();
        let put = |e: &mut Encoder| {
            body.put(e);
            Ok(())
        };
        match to.put(&mut self.encoder, status, &all, put) {
            Ok(()) => {
                let len = self.encoder.len();
                if len >= MIN_LARGE_REPLY_BYTES {
                    self.current.core().backpressure.record_large_reply(self.current.operation_bytes(), len);
                }
                Outcome { token: to.token, encoder: self.encoder, oneway_failure: None }
            }
            Err(error) => to.system_exception(self.encoder, error.to_system_exception(CompletionStatus::Yes)),
        }
    }

    /// Replies with results that `encode` encodes. `encode` does not run for a oneway request. It may run
    /// several times, for example twice for a long sequence of structs: to measure the results, and to send
    /// them while they are encoded.
    #[inline]
    pub fn reply(self, encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>) -> Outcome {
        self.reply_with_status(ReplyStatus::NoException, encode)
    }

    /// Replies with an exception that the operation's `raises` clause lists.
    #[cold]
    pub fn user_exception<X: UserException>(self, exception: &X) -> Outcome {
        self.current.span().record_user_exception(X::REPOSITORY_ID);
        let failed = (!self.to.wants_reply).then(|| unreportable_user_exception(exception.to_string()));
        let mut outcome = self.reply_with_status(ReplyStatus::UserException, |e| {
            e.put_unconverted_str(X::REPOSITORY_ID)?;
            exception.encode(e)
        });
        outcome.oneway_failure = failed;
        outcome
    }

    /// Replies with a user exception that is contained in an any.
    #[cold]
    pub fn raise(self, exception: &Any) -> Outcome {
        self.current.span().record_user_exception(exception.type_code().id().unwrap_or_default());
        let failed =
            (!self.to.wants_reply).then(|| unreportable_user_exception(exception.type_code().to_string()));
        let mut outcome = self.reply_with_status(ReplyStatus::UserException, |e| exception.encode_value(e));
        outcome.oneway_failure = failed;
        outcome
    }

    /// Replies to a request that has no servant: with the exception, or with the location of the object.
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
        self.current.span().record_system_exception(&exception);
        let contexts = self.current.take_extras().contexts;
        self.to.system_exception_with(self.encoder, exception, &contexts)
    }

    /// Replies that the arguments cannot be decoded, normally with `MARSHAL`, `COMPLETED_NO`.
    #[cold]
    pub fn bad_arguments(self, error: DecodeError) -> Outcome {
        self.system_exception(error.to_system_exception(CompletionStatus::No))
    }

    /// Serves the operations that every object has (`_is_a`, `_non_existent`, ...). Other operations get
    /// `BAD_OPERATION`. `ids` are the repository ids of the interface, the most derived one first.
    #[cold]
    pub fn other_operation(self, ids: &'static [&'static str]) -> Outcome {
        let interface = ids.first().copied().unwrap_or(OBJECT_REPOSITORY_ID);
        self.operation_of_every_object(interface, |id| id == OBJECT_REPOSITORY_ID || ids.contains(&id))
    }

    /// Like [`other_operation`](Self::other_operation). `is_a` tells whether the interface is, or is derived
    /// from, the interface with a given repository id.
    pub(crate) fn operation_of_every_object(
        mut self,
        interface: &str,
        is_a: impl FnOnce(&str) -> bool,
    ) -> Outcome {
        match self.operation() {
            b"_is_a" => match self.decode(|d| d.read_string()) {
                Ok(id) => {
                    let answer = is_a(&id);
                    self.reply(|e| answer.encode(e))
                }
                Err(error) => self.bad_arguments(error),
            },
            b"_non_existent" | b"_not_existent" => self.reply(|e| false.encode(e)),
            b"_repository_id" => self.reply(|e| e.put_str(interface)),
            // No object is a facet of a CORBA component, so the component is a nil reference.
            b"_component" => self.reply(|e| Ior::nil().encode(e)),
            b"_interface" => {
                let source = self.current.core().runtime_types().interface_source();
                let found =
                    source.as_ref().and_then(|source| source.interface(&self.current.orb(), interface));
                match found {
                    Some(described) => self.reply(|e| described.encode(e)),
                    None => self.system_exception(not_described(source.is_some())),
                }
            }
            name => {
                if name == b"omg_get_ifr_metadata"
                    && let Some(source) = self.current.core().runtime_types().interface_source()
                    && let Some(metadata) = source.metadata(&self.current.orb(), interface)
                {
                    return self.reply(|e| metadata.encode(e));
                }
                let text = format!("{interface} has no operation `{}`", String::from_utf8_lossy(name));
                let unknown = SystemException::bad_operation().with_minor(minor::BAD_OPERATION_UNKNOWN);
                self.system_exception(unknown.with_reason(text))
            }
        }
    }

    fn reply_with_status(
        mut self,
        status: ReplyStatus,
        encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Outcome {
        let to = self.to;
        if status == ReplyStatus::NoException {
            self.current.span().record_results();
        }
        if !to.wants_reply {
            return to.no_reply(self.encoder);
        }
        let Extras { contexts, forward, .. } = self.current.take_extras();
        if let Some(forward) = forward {
            return to.forward(self.encoder, &forward);
        }
        match to.put(&mut self.encoder, status, &contexts, encode) {
            Ok(()) => {
                // The encoder is empty if the reply was sent while it was encoded. Such a reply is large: the
                // subtraction wraps for 0.
                let len = self.encoder.len();
                if len.wrapping_sub(1) >= MIN_LARGE_REPLY_BYTES {
                    self.current.core().backpressure.record_large_reply(self.current.operation_bytes(), len);
                }
                Outcome { token: to.token, encoder: self.encoder, oneway_failure: None }
            }
            Err(error) => {
                let exception = error.to_system_exception(CompletionStatus::Yes);
                self.current.span().record_system_exception(&exception);
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

/// Returns the offset of the end of a reply header with these contexts, in GIOP 1.0 and 1.1.
fn reply_header_end(contexts: &[ServiceContext]) -> usize {
    let end = |at: usize, context: &ServiceContext| at.next_multiple_of(4) + 8 + context.data.len();
    // 16 bytes before the contexts: message header and their number. 8 bytes after them: request id and
    // status.
    contexts.iter().fold(16, end).next_multiple_of(4) + 8
}

pub(crate) struct ReplyHead {
    pub(crate) size_at: usize,
    end: Mark,
    /// The start of the body, after padding.
    pub(crate) body_start: usize,
}

pub(crate) const OBJECT_REPOSITORY_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

impl ReplyTo {
    pub(crate) fn new(incoming: &IncomingRequest) -> Self {
        Self {
            token: incoming.token(),
            id: incoming.id(),
            version: incoming.version(),
            order: giop_codec::ByteOrder::NATIVE,
            wants_reply: incoming.response() == ResponseFlags::Target,
            reads_blocks: incoming.reads_blocks(),
        }
    }

    /// Ends the request without a reply. The encoder must be empty.
    pub(crate) fn no_reply(self, encoder: Box<ReplyBuffer>) -> Outcome {
        debug_assert!(encoder.is_empty(), "the encoder contains a reply that is not sent");
        Outcome { token: self.token, encoder, oneway_failure: None }
    }

    /// Encodes the empty reply that confirms the receipt of a oneway request (`SYNC_WITH_SERVER`).
    #[cold]
    pub(crate) fn put_confirmation(self, encoder: &mut ReplyBuffer) {
        let written = self.put(encoder, ReplyStatus::NoException, &[], |_| Ok(())).is_ok();
        debug_assert!(written, "a reply header can always be encoded");
    }

    /// Replies to `_non_existent` that the object does not exist.
    #[cold]
    pub(crate) fn non_existent(self, mut encoder: Box<ReplyBuffer>) -> Outcome {
        let written = self.put(&mut encoder, ReplyStatus::NoException, &[], |e| true.encode(e)).is_ok();
        debug_assert!(written, "a boolean can always be encoded");
        Outcome { token: self.token, encoder, oneway_failure: None }
    }

    /// Replies with a system exception. For a oneway request, only records the exception.
    #[cold]
    pub(crate) fn system_exception(self, encoder: Box<ReplyBuffer>, exception: SystemException) -> Outcome {
        self.system_exception_with(encoder, exception, &[])
    }

    #[cold]
    pub(crate) fn system_exception_with(
        self,
        mut encoder: Box<ReplyBuffer>,
        exception: SystemException,
        contexts: &[ServiceContext],
    ) -> Outcome {
        if !self.wants_reply {
            encoder.reset(self.order, self.version);
            return Outcome { oneway_failure: Some(exception), ..self.no_reply(encoder) };
        }
        let written =
            self.put(&mut encoder, ReplyStatus::SystemException, contexts, |e| exception.encode(e)).is_ok();
        debug_assert!(written, "a system exception can always be encoded");
        Outcome { token: self.token, encoder, oneway_failure: None }
    }

    /// Replies with a system exception in a new buffer, because the buffer of the request is not available.
    #[cold]
    pub(crate) fn exception_outcome(self, exception: SystemException) -> Outcome {
        self.system_exception(ReplyBuffer::new(None), exception)
    }

    #[cold]
    pub(crate) fn forward(self, encoder: Box<ReplyBuffer>, forward: &ForwardRequest) -> Outcome {
        self.forward_with(encoder, forward, &[])
    }

    #[cold]
    pub(crate) fn forward_with(
        self,
        mut encoder: Box<ReplyBuffer>,
        forward: &ForwardRequest,
        contexts: &[ServiceContext],
    ) -> Outcome {
        if !self.wants_reply {
            let text = "the object has moved, but the client of a oneway call gets no reply; use SyncScope::Target so that the client is redirected";
            let lost = SystemException::transient().with_minor(minor::TRANSIENT_DISCARDED).with_reason(text);
            return self.system_exception(encoder, lost);
        }
        let permanent = forward.is_permanent && self.version >= Version::V1_2;
        let status = if permanent { ReplyStatus::LocationForwardPerm } else { ReplyStatus::LocationForward };
        match self.put(&mut encoder, status, contexts, |e| forward.encode(e)) {
            Ok(()) => Outcome { token: self.token, encoder, oneway_failure: None },
            Err(error) => self.system_exception(encoder, error.to_system_exception(CompletionStatus::No)),
        }
    }

    #[inline]
    pub(crate) fn put_head(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
    ) -> Result<ReplyHead, EncodeError> {
        let sets = encoder.code_sets();
        encoder.reset(self.order, self.version);
        encoder.set_code_sets(sets);
        let size_at = put_message_header(encoder, MessageType::Reply);
        let contexts = ServiceContexts::from(contexts);
        ReplyHeader { request_id: self.id, status, contexts }.encode(encoder)?;
        let end = encoder.mark();
        begin_body(encoder);
        Ok(ReplyHead { size_at, end, body_start: encoder.position() })
    }

    /// Encodes a complete reply. The encoder is empty afterwards if the reply was sent while it was encoded.
    fn put(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
        encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match self.put_once(encoder, status, contexts, &encode) {
            // The results contain an undecoded custom value in the other byte order. Its bytes cannot be
            // converted, so the whole reply is encoded in that order.
            Err(EncodeError { kind: EncodeErrorKind::UnconvertibleCustomState }) => {
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
        let ReplyHead { size_at, end, body_start } = self.put_head(encoder, status, contexts)?;
        if encoder.put_results(self.token, size_at, encode)? {
            return Ok(());
        }
        if encoder.position() == body_start {
            // Without a body, there is no padding.
            encoder.rewind(end);
        }
        if self.reads_blocks && encoder.chunk_count() > 1 {
            insert_block_list(encoder);
        }
        finish_message(encoder, size_at)?;
        Ok(())
    }
}

/// Returns UNKNOWN, COMPLETED_MAYBE, for a user exception that cannot be sent to the client.
#[cold]
pub(crate) fn unreportable_user_exception(text: String) -> SystemException {
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Maybe)
        .with_reason(text)
}

/// Creates the exception for a servant's exception that the operation's `raises` clause does not list:
/// `UNKNOWN`, `COMPLETED_MAYBE`.
#[cold]
pub fn unknown_user_exception(exception: impl std::error::Error + Send + Sync + 'static) -> SystemException {
    SystemException::unknown()
        .with_minor(minor::UNKNOWN_USER_EXCEPTION)
        .completed(CompletionStatus::Maybe)
        .with_source(exception)
}

/// Creates the exception for a deadline that passed before the reply was complete: `TIMEOUT`,
/// `COMPLETED_MAYBE`.
#[cold]
pub(crate) fn reply_timeout(text: impl Into<Cow<'static, str>>) -> SystemException {
    SystemException::timeout()
        .with_minor(minor::TIMEOUT_REPLY_END)
        .completed(CompletionStatus::Maybe)
        .with_reason(text)
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
