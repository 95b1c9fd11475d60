//! A request as generated code and servants see it.

use std::cell::Cell;

use giop_codec::any::Any;
use giop_codec::cdr::{CdrEncode, Decoder, Encoder, Mark};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, ResponseFlags, ServiceContext, ServiceContexts,
    announce_blocks, begin_body, finish_message, put_message_header,
};
use giop_codec::ior::Ior;
use giop_codec::{DecodeError, EncodeError, EncodeErrorKind, Version};
use giop_proto::{Arguments, IncomingRequest, RawBody, ServeToken};

use super::charge::Charge;
use super::current::{Extras, Request};
use super::reply::ReplyBuffer;
use super::skeleton::UserException;
use crate::invoke;
use crate::orb::backpressure::LARGE_REPLY;
use crate::poa::{ForwardRequest, Refusal};

/// A request that waits to be served: its message, the buffer of its reply and what `zorb::request()` tells of it.
#[derive(Debug)]
pub struct ServerRequest {
    pub(crate) to: ReplyTo,
    pub(crate) encoder: Box<ReplyBuffer>,
    pub(crate) current: Request,
    /// Where they are not with `current`: of a large request.
    pub(crate) arguments: Option<Arguments>,
    /// What its decoded arguments take.
    pub(crate) charge: Charge,
}

/// What a dispatched request leaves: the encoded reply, or that there is none.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) token: ServeToken,
    /// The whole message; empty where no reply is sent, or it is sent already.
    pub(crate) encoder: Box<ReplyBuffer>,
    /// A oneway's servant failed: nobody is told but the log.
    pub(crate) failed: Option<SystemException>,
}

/// The facts by which a reply to a request is addressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyTo {
    pub(crate) token: ServeToken,
    pub(crate) id: RequestId,
    pub(crate) version: Version,
    pub(crate) order: giop_codec::ByteOrder,
    pub(crate) wanted: bool,
    /// The client reads lists of blocks.
    pub(crate) blocks: bool,
}

impl ServerRequest {
    /// The operation's name on the wire: `_get_balance` for an attribute.
    #[inline]
    #[must_use]
    pub fn operation(&self) -> &[u8] {
        self.current.operation_octets()
    }

    /// Decodes the arguments by `f`, which runs twice where that makes views of sequences of structs. The arguments of a large
    /// request are gone then but for views of them: its buffer is free as soon as these are dropped.
    ///
    /// # Errors
    /// What `f` returns; [`bad_arguments`](Self::bad_arguments) tells the client.
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
            Some(arguments) => arguments.decode(core.pool(), |d| f(d.with_context(core))),
        };
        match &decoded {
            Ok(_) if Charge::is_worth(used.get()) => self.charge = Charge::new(core.pool(), used.get()),
            Ok(_) => {}
            Err(error) => core.hit_by(error),
        }
        decoded
    }

    /// Bytes of the arguments that are not decoded yet.
    pub(crate) fn argument_bytes(&self) -> usize {
        match &self.arguments {
            Some(arguments) => arguments.decoder().remaining(),
            None => self.current.arguments().remaining(),
        }
    }

    /// The arguments as they came; `None` of a call that has none, because it is not marshalled.
    pub(crate) fn raw_body(&self) -> Option<RawBody> {
        match &self.arguments {
            Some(arguments) => Some(arguments.raw_body()),
            None => self.current.raw_body(),
        }
    }

    /// A reply with that body as it came, and with these contexts.
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
            all.push(invoke::padding());
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
                    self.current.core().note_large_reply(self.current.operation_octets(), len);
                }
                Outcome { token: to.token, encoder: self.encoder, failed: None }
            }
            Err(error) => to.system_exception(self.encoder, error.system(CompletionStatus::Yes)),
        }
    }

    /// Results, encoded by `encode`, which runs twice where they are long; none for a oneway. Long runs of structs leave while they are
    /// encoded.
    #[inline]
    pub fn reply(self, encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>) -> Outcome {
        self.answer(ReplyStatus::NoException, encode)
    }

    /// An exception of the operation's raises clause.
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

    /// The same of one that is an any.
    #[cold]
    pub fn raise(self, exception: &Any) -> Outcome {
        self.current.seen().user_exception(exception.type_code().id().unwrap_or_default());
        let failed = (!self.to.wanted).then(|| unlisted(exception.type_code().to_string()));
        let mut outcome = self.answer(ReplyStatus::UserException, |e| exception.encode_value(e));
        outcome.failed = failed;
        outcome
    }

    /// No servant serves it: the exception, or where the object is.
    #[cold]
    pub(crate) fn refuse(self, refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::System(exception) => self.system_exception(exception),
            Refusal::Forward(forward) => self.to.forward(self.encoder, &forward),
        }
    }

    /// A system exception.
    #[cold]
    pub fn system_exception(self, exception: SystemException) -> Outcome {
        self.current.seen().system_exception(&exception);
        let contexts = self.current.take_extras().contexts;
        self.to.system_exception_with(self.encoder, exception, &contexts)
    }

    /// The arguments do not decode: `MARSHAL`, `COMPLETED_NO`.
    #[cold]
    pub fn bad_arguments(self, error: DecodeError) -> Outcome {
        let exception = error.system(CompletionStatus::No);
        self.system_exception(exception)
    }

    /// The operations that every object has (`_is_a`, `_non_existent`, ...), `BAD_OPERATION` for all others.
    #[cold]
    pub fn other_operation(self, ids: &'static [&'static str]) -> Outcome {
        let interface = ids.first().copied().unwrap_or(OBJECT_ID);
        self.operation_of_every_object(interface, |id| id == OBJECT_ID || ids.contains(&id))
    }

    /// The same of an interface that is known by its repository id and its bases.
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
            // No interface repository and no component behind this object: nil.
            b"_component" => self.reply(|e| Ior::nil().encode(e)),
            b"_interface" => {
                let source = self.current.core().known.source();
                let found =
                    source.as_ref().and_then(|source| source.interface(&self.current.orb(), interface));
                match found {
                    Some(described) => self.reply(|e| described.encode(e)),
                    None => self.system_exception(not_described(source.is_some())),
                }
            }
            name => {
                if name == b"omg_get_ifr_metadata"
                    && let Some(source) = self.current.core().known.source()
                    && let Some(metadata) = source.metadata(&self.current.orb(), interface)
                {
                    return self.reply(|e| metadata.encode(e));
                }
                let text = format!("{interface} has no operation `{}`", String::from_utf8_lossy(name));
                self.system_exception(
                    SystemException::new(
                        SystemExceptionKind::BadOperation,
                        minor::BAD_OPERATION_UNKNOWN,
                        CompletionStatus::No,
                    )
                    .because(text),
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
                // One that has left already, while it was encoded, leaves nothing.
                let len = self.encoder.len();
                if len.wrapping_sub(1) >= LARGE_REPLY {
                    self.current.core().note_large_reply(self.current.operation_octets(), len);
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
    SystemException::new(SystemExceptionKind::IntfRepos, minor, CompletionStatus::No).because(text)
}

/// Where the header of a reply with these contexts ends before GIOP 1.2.
fn reply_end(contexts: &[ServiceContext]) -> usize {
    let end = |at: usize, context: &ServiceContext| at.next_multiple_of(4) + 8 + context.data.len();
    // The message's header and the number of contexts; id and status.
    contexts.iter().fold(16, end).next_multiple_of(4) + 8
}

/// Places in the start of a reply.
pub(super) struct Head {
    /// Where the message's size is put.
    pub(super) size_at: usize,
    /// The end of the header.
    end: Mark,
    /// Where the body begins.
    pub(super) body: usize,
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

    /// No reply. The encoder is an empty one.
    pub(crate) fn nothing(self, encoder: Box<ReplyBuffer>) -> Outcome {
        debug_assert!(encoder.is_empty(), "nothing is encoded where no reply is wanted");
        Outcome { token: self.token, encoder, failed: None }
    }

    /// The empty reply that tells the sender of a oneway that the server has it (`SYNC_WITH_SERVER`).
    #[cold]
    pub(crate) fn received(self, encoder: &mut ReplyBuffer) {
        let written = self.put(encoder, ReplyStatus::NoException, &[], |_| Ok(())).is_ok();
        debug_assert!(written, "three numbers always encode");
    }

    /// The reply to `_non_existent` that the object is gone.
    #[cold]
    pub(crate) fn non_existent(self, mut encoder: Box<ReplyBuffer>) -> Outcome {
        let written = self.put(&mut encoder, ReplyStatus::NoException, &[], |e| true.encode(e)).is_ok();
        debug_assert!(written, "a boolean always encodes");
        Outcome { token: self.token, encoder, failed: None }
    }

    /// A reply that carries a system exception; for a oneway only a note of it.
    #[cold]
    pub(crate) fn system_exception(self, encoder: Box<ReplyBuffer>, exception: SystemException) -> Outcome {
        self.system_exception_with(encoder, exception, &[])
    }

    /// The same with what else the reply says.
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

    /// The same where the request's own encoder is gone.
    #[cold]
    pub(crate) fn failed(self, exception: SystemException) -> Outcome {
        self.system_exception(ReplyBuffer::new(None), exception)
    }

    /// A reply that says where the object is.
    #[cold]
    pub(crate) fn forward(self, encoder: Box<ReplyBuffer>, forward: &ForwardRequest) -> Outcome {
        self.forward_with(encoder, forward, &[])
    }

    /// The same with what else the reply says.
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
            let lost = SystemException::new(
                SystemExceptionKind::Transient,
                minor::TRANSIENT_DISCARDED,
                CompletionStatus::No,
            )
            .because(lost);
            return self.system_exception(encoder, lost);
        }
        let status = match forward.permanent && self.version >= Version::V1_2 {
            true => ReplyStatus::LocationForwardPerm,
            false => ReplyStatus::LocationForward,
        };
        match self.put(&mut encoder, status, contexts, |e| forward.to.encode(e)) {
            Ok(()) => Outcome { token: self.token, encoder, failed: None },
            Err(error) => self.system_exception(encoder, error.system(CompletionStatus::No)),
        }
    }

    /// Encodes what stands before the results.
    #[inline]
    pub(super) fn put_head(
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

    /// Encodes a whole reply message; one that has left already leaves the encoder empty.
    fn put(
        self,
        encoder: &mut ReplyBuffer,
        status: ReplyStatus,
        contexts: &[giop_codec::giop::ServiceContext],
        encode: impl Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match self.put_once(encoder, status, contexts, &encode) {
            // There is a custom value among them that came in the other order, and stays as it came.
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
            encoder.rewind(end); // no body, no padding for one
        }
        if self.blocks && encoder.chunk_count() > 1 {
            announce_blocks(encoder);
        }
        finish_message(encoder, size_at)?;
        Ok(())
    }
}

/// An exception that the client can not know.
#[cold]
pub(crate) fn unlisted(text: String) -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION, CompletionStatus::Maybe)
        .because(text)
}

/// A servant's exception that an operation without it in its raises clause passes on.
#[cold]
pub fn unknown_user_exception(exception: impl std::error::Error + Send + Sync + 'static) -> SystemException {
    SystemException::new(SystemExceptionKind::Unknown, minor::UNKNOWN_USER_EXCEPTION, CompletionStatus::Maybe)
        .with_source(exception)
}

/// A panic of a servant: `UNKNOWN`, `COMPLETED_MAYBE`.
#[cold]
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> SystemException {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    SystemException::new(SystemExceptionKind::Unknown, MinorCode::NONE, CompletionStatus::Maybe)
        .because(format!("the servant panicked: {text}"))
}

const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<ServerRequest>();
    is_send::<Outcome>();
};
