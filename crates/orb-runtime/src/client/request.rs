//! Encoding of requests.

use std::sync::Arc;

use giop_codec::cdr::{Encoder, Mark};
use giop_codec::giop::{
    AddressingDisposition, MessageHeader, MessageType, RequestHeader, ResponseFlags, ServiceContext,
    ServiceContexts, TargetAddress, TargetReference, announce_blocks, announce_message, begin_body,
    finish_message, put_message_header,
};
use giop_codec::ior::{IiopProfile, Ior, TaggedProfile};
use giop_codec::{ByteOrder, EncodeError, EncodeErrorKind, Version};

use crate::client::Arguments;
use crate::client::CallObserver;
use crate::connection::{Binding, Flow, HeaderKey, SharedConnection, StartedRequest, padding};
use crate::reference::ObjectRef;
use crate::reference::operation::CallOperation;
use crate::stream::ElementLayout;

pub(crate) struct OutgoingRequest<'a> {
    target: &'a ObjectRef,
    binding: &'a Arc<Binding>,
    link: &'a SharedConnection,
    /// Service contexts that the server has not received yet, such as the code sets.
    announce: &'a [ServiceContext],
    operation: &'a CallOperation<'a>,
    response: ResponseFlags,
    addressing: Option<AddressingDisposition>,
    /// The length in bytes, and the element type, of a last argument that is sent separately.
    payload: Option<(u32, ElementLayout)>,
    observer: CallObserver<'a>,
}

impl<'a> OutgoingRequest<'a> {
    #[inline]
    pub(crate) fn new(
        target: &'a ObjectRef,
        binding: &'a Arc<Binding>,
        link: &'a SharedConnection,
        operation: &'a CallOperation<'a>,
        response: ResponseFlags,
        addressing: Option<AddressingDisposition>,
    ) -> Self {
        let is_announced = link.has_reply() && !(binding.asks && target.must_fetch_reference());
        let announce = if is_announced { &[] } else { binding.announce.as_slice() };
        Self {
            target,
            binding,
            link,
            announce,
            operation,
            response,
            addressing,
            payload: None,
            observer: CallObserver::NONE,
        }
    }

    /// Adds a sequence of this size in bytes as the last argument. Only its length is encoded.
    pub(crate) fn with_payload(self, size: u32, layout: ElementLayout) -> Self {
        Self { payload: Some((size, layout)), ..self }
    }

    #[inline]
    pub(crate) fn with_observer(self, observer: CallObserver<'a>) -> Self {
        Self { observer, ..self }
    }

    /// Returns the key by which the connection caches the encoded header, or `None` if the header has
    /// contents that other requests of the operation do not have.
    #[inline]
    pub(crate) fn header_key(&self) -> Option<HeaderKey<'a>> {
        let is_cacheable = self.announce.is_empty()
            && self.addressing.is_none()
            && self.observer.context().is_none()
            && self.target.options().contexts.is_empty();
        let Self { binding, operation, response, .. } = *self;
        if !is_cacheable {
            return None;
        }
        operation.address().map(|operation| HeaderKey { binding, operation, response })
    }

    /// Encodes the whole message in one pass over the arguments, into one buffer and its shared chunks. If
    /// the arguments contain a long sequence of structs, only the header is encoded. The returned [`Flow`]
    /// then encodes the arguments while they are sent.
    pub(crate) fn encode<'b>(
        &self,
        started: &mut StartedRequest,
        arguments: Arguments<'b>,
    ) -> Result<Option<Flow<'b>>, EncodeError> {
        let order = self.operation.raw_arguments.map_or(ByteOrder::NATIVE, |(order, _)| order);
        match self.encode_in(order, started, arguments) {
            // The arguments contain a custom value that was received in the other byte order, and the byte
            // order of its state cannot be converted.
            Err(EncodeError { kind: EncodeErrorKind::CustomState })
                if self.operation.raw_arguments.is_none() =>
            {
                started.has_header = false;
                self.encode_in(order.swapped(), started, arguments)
            }
            encoded => encoded,
        }
    }

    #[inline]
    fn encode_in<'b>(
        &self,
        order: ByteOrder,
        started: &mut StartedRequest,
        arguments: Arguments<'b>,
    ) -> Result<Option<Flow<'b>>, EncodeError> {
        if !started.has_header {
            self.encode_header(order, started)?;
        }
        let e = &mut started.encoder;
        let end = e.mark();
        begin_body(e);
        let begun = e.mark();
        let body = e.position();
        let flows = self.payload.is_none() && self.link.flows();
        if flows {
            e.measure_runs();
        }
        arguments(e)?;
        if flows && e.measured_runs() > 0 {
            if let Some(flow) = self.begin_flow(e, begun, arguments)? {
                return Ok(Some(flow));
            }
            arguments(e)?;
        }
        if let Some((size, layout)) = self.payload {
            layout.encode_start(size as usize, e)?;
            announce_message(e, MessageHeader::SIZE_AT, size.into())?;
            return Ok(None);
        }
        if e.position() == body {
            e.rewind(end); // Without arguments, their padding is omitted.
        }
        if e.chunk_count() > 1 && self.binding.blocks && !self.operation.streamed {
            announce_blocks(e);
        }
        finish_message(e, MessageHeader::SIZE_AT)?;
        Ok(None)
    }

    /// Rewinds to the start of the arguments, whose size was measured. Returns `None` if the arguments cannot
    /// be encoded while they are sent.
    #[cold]
    fn begin_flow<'b>(
        &self,
        e: &mut Encoder,
        begun: Mark,
        arguments: Arguments<'b>,
    ) -> Result<Option<Flow<'b>>, EncodeError> {
        let end = e.position();
        // Values can refer to each other, so they are encoded completely. Arguments with shared chunks are as
        // well, because they may need a list of blocks.
        let flows = e.chunk_count() == 0 && !e.has_values();
        if flows {
            finish_message(e, MessageHeader::SIZE_AT)?;
        }
        e.rewind(begun);
        let size = end.saturating_sub(e.position()) as u64;
        Ok(flows.then_some(Flow { arguments, size }))
    }

    #[cold]
    fn encode_header(&self, order: ByteOrder, started: &mut StartedRequest) -> Result<(), EncodeError> {
        let Self { target, binding, operation, response, .. } = *self;
        let e = &mut started.encoder;
        if order != e.order() {
            e.reset(order, binding.version);
        }
        e.set_code_sets(binding.code_sets);
        e.set_ends_bases(binding.ends_bases);
        put_message_header(e, MessageType::Request);
        let begun = e.mark();
        let own = &target.options().contexts;
        let joined: Vec<ServiceContext>;
        let trace = self.observer.context();
        let contexts = match (self.announce, own.is_empty(), binding.caller_contexts.as_slice()) {
            (announce, _, caller) if trace.is_some() => {
                let own = own.iter().filter(|own| trace.is_none_or(|trace| trace.id != own.id));
                joined = announce.iter().chain(caller).chain(own).chain(trace).cloned().collect();
                ServiceContexts::from(&*joined)
            }
            ([], _, []) => ServiceContexts::from(&**own),
            (announce, true, []) => ServiceContexts::from(announce),
            ([], true, caller) => ServiceContexts::from(caller),
            (announce, _, caller) => {
                joined = announce.iter().chain(caller).chain(own.iter()).cloned().collect();
                ServiceContexts::from(&*joined)
            }
        };
        let address = address_of(target, binding, self.addressing)?;
        let header = RequestHeader {
            request_id: started.id,
            response,
            target: address,
            #[cfg(feature = "experiments")]
            operation: &operation.wire_name(&binding.profile),
            #[cfg(not(feature = "experiments"))]
            operation: operation.name,
            contexts,
        };
        header.encode(e)?;
        if let Some((_, phase)) = operation.raw_arguments
            && binding.version < Version::V1_2
            && e.position() % 8 != phase
        {
            e.rewind(begun);
            let contexts: Vec<ServiceContext> = contexts.to_vec().into_iter().chain([padding()]).collect();
            RequestHeader { contexts: ServiceContexts::from(&*contexts), ..header }.encode(e)?;
        }
        if self.payload.is_none()
            && !order.is_foreign()
            && let Some(key) = self.header_key()
        {
            self.link.cache_header(key, e.head());
        }
        Ok(())
    }
}

/// Returns the address in the form that the server requested, by default as an object key.
#[inline]
pub(crate) fn address_of<'a>(
    target: &ObjectRef,
    binding: &'a Binding,
    form: Option<AddressingDisposition>,
) -> Result<TargetAddress<'a>, EncodeError> {
    Ok(match form {
        None | Some(AddressingDisposition::Key) => TargetAddress::Key(binding.key.as_slice()),
        Some(AddressingDisposition::Profile) => TargetAddress::Profile(binding.profile.to_tagged()?),
        Some(AddressingDisposition::Reference) => {
            TargetAddress::Reference(Box::new(reference_with_profile(target, binding)?))
        }
    })
}

/// Returns the reference, with the index of the profile that the binding uses. After a forward, the reference
/// consists of that profile only.
#[cold]
fn reference_with_profile(target: &ObjectRef, binding: &Binding) -> Result<TargetReference, EncodeError> {
    let ior = target.ior();
    let is_called = |profile: &TaggedProfile| {
        IiopProfile::from_tagged(profile).is_ok_and(|profile| profile == binding.profile)
    };
    Ok(match (0..).zip(&ior.profiles).find(|(_, profile)| is_called(profile)) {
        Some((selected_profile, _)) => TargetReference { selected_profile, ior: ior.clone() },
        None => TargetReference {
            selected_profile: 0,
            ior: Ior::from_profiles(ior.type_id.clone(), std::slice::from_ref(&binding.profile))?,
        },
    })
}
