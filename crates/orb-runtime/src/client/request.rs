//! Encoding of requests.

use std::sync::Arc;

use giop_codec::cdr::{Encoder, Mark};
use giop_codec::giop::{
    AddressingDisposition, MessageHeader, MessageType, RequestHeader, ResponseFlags, ServiceContext,
    ServiceContexts, TargetAddress, TargetReference, announce_message_size, begin_body, finish_message,
    insert_block_list, put_message_header,
};
use giop_codec::ior::{IiopProfile, Ior, TaggedProfile};
use giop_codec::{ByteOrder, EncodeError, EncodeErrorKind, Version};

use crate::client::Arguments;
use crate::client::CallObserver;
use crate::connection::{Binding, Flow, HeaderKey, SharedConnection, StartedRequest, padding_context};
use crate::reference::ObjectRef;
use crate::reference::operation::CallOperation;
use crate::stream::ElementLayout;

pub(crate) struct OutgoingRequest<'a> {
    target: &'a ObjectRef,
    binding: &'a Arc<Binding>,
    link: &'a SharedConnection,
    /// Service contexts that the server may not have received yet, such as the code sets.
    initial_contexts: &'a [ServiceContext],
    operation: &'a CallOperation<'a>,
    response: ResponseFlags,
    addressing: Option<AddressingDisposition>,
    /// The size in bytes, and the layout of the elements, of a last argument that is sent separately.
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
        let is_announced = link.has_reply() && !(binding.requests_reference && target.must_fetch_reference());
        let initial_contexts = if is_announced { &[] } else { binding.initial_contexts.as_slice() };
        Self {
            target,
            binding,
            link,
            initial_contexts,
            operation,
            response,
            addressing,
            payload: None,
            observer: CallObserver::NONE,
        }
    }

    /// Adds a sequence as the last argument. Its elements have `size` bytes in all, and are not encoded.
    pub(crate) fn with_payload(self, size: u32, layout: ElementLayout) -> Self {
        Self { payload: Some((size, layout)), ..self }
    }

    #[inline]
    pub(crate) fn with_observer(self, observer: CallObserver<'a>) -> Self {
        Self { observer, ..self }
    }

    /// Returns the key by which the connection caches the encoded header. Returns `None` if the header is not
    /// the same in all requests of the operation.
    #[inline]
    pub(crate) fn header_key(&self) -> Option<HeaderKey<'a>> {
        let is_cacheable = self.initial_contexts.is_empty()
            && self.addressing.is_none()
            && self.observer.context().is_none()
            && self.target.options().contexts.is_empty();
        let Self { binding, operation, response, .. } = *self;
        if !is_cacheable {
            return None;
        }
        operation.address().map(|operation| HeaderKey { binding, operation, response })
    }

    /// Encodes the message in one pass over the arguments, and returns `None`. If they contain a long
    /// sequence of structs, encodes only the header. The returned [`Flow`] encodes them while they are sent.
    pub(crate) fn encode<'b>(
        &self,
        started: &mut StartedRequest,
        arguments: Arguments<'b>,
    ) -> Result<Option<Flow<'b>>, EncodeError> {
        let order = self.operation.raw_arguments.map_or(ByteOrder::NATIVE, |(order, _)| order);
        match self.encode_in(order, started, arguments) {
            // The arguments contain a custom value in the other byte order, which cannot be converted.
            Err(EncodeError { kind: EncodeErrorKind::UnconvertibleCustomState })
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
        let header_end = e.mark();
        begin_body(e);
        let body_start = e.mark();
        let body = e.position();
        let may_flow = self.payload.is_none() && self.link.supports_flows();
        if may_flow {
            e.begin_measuring_runs();
        }
        arguments(e)?;
        if may_flow && e.end_measuring_runs() > 0 {
            if let Some(flow) = self.begin_flow(e, body_start, arguments)? {
                return Ok(Some(flow));
            }
            arguments(e)?;
        }
        if let Some((size, layout)) = self.payload {
            layout.encode_start(size as usize, e)?;
            announce_message_size(e, MessageHeader::SIZE_AT, size.into())?;
            return Ok(None);
        }
        if e.position() == body {
            e.rewind(header_end); // The padding before the arguments is omitted if there are none.
        }
        if e.chunk_count() > 1 && self.binding.sends_block_lists && !self.operation.is_streamed {
            insert_block_list(e);
        }
        finish_message(e, MessageHeader::SIZE_AT)?;
        Ok(None)
    }

    /// Rewinds to the start of the measured arguments. Returns `None` if they cannot be encoded while they
    /// are sent.
    #[cold]
    fn begin_flow<'b>(
        &self,
        e: &mut Encoder,
        body_start: Mark,
        arguments: Arguments<'b>,
    ) -> Result<Option<Flow<'b>>, EncodeError> {
        let end = e.position();
        // Value types can refer to each other, and arguments with shared chunks may need a list of blocks.
        // Both must be encoded completely before they are sent.
        let may_flow = e.chunk_count() == 0 && !e.has_value_types();
        if may_flow {
            finish_message(e, MessageHeader::SIZE_AT)?;
        }
        e.rewind(body_start);
        let size = end.saturating_sub(e.position()) as u64;
        Ok(may_flow.then_some(Flow { arguments, size }))
    }

    #[cold]
    fn encode_header(&self, order: ByteOrder, started: &mut StartedRequest) -> Result<(), EncodeError> {
        let Self { target, binding, operation, response, .. } = *self;
        let e = &mut started.encoder;
        if order != e.order() {
            e.reset(order, binding.version);
        }
        e.set_code_sets(binding.code_sets);
        e.set_base_end_tags(binding.writes_base_end_tags);
        put_message_header(e, MessageType::Request);
        let header_start = e.mark();
        let own = &target.options().contexts;
        let joined: Vec<ServiceContext>;
        let trace = self.observer.context();
        let contexts = match (self.initial_contexts, own.is_empty(), binding.caller_contexts.as_slice()) {
            (initial_contexts, _, caller) if trace.is_some() => {
                let own = own.iter().filter(|own| trace.is_none_or(|trace| trace.id != own.id));
                joined = initial_contexts.iter().chain(caller).chain(own).chain(trace).cloned().collect();
                ServiceContexts::from(&*joined)
            }
            ([], _, []) => ServiceContexts::from(&**own),
            (initial_contexts, true, []) => ServiceContexts::from(initial_contexts),
            ([], true, caller) => ServiceContexts::from(caller),
            (initial_contexts, _, caller) => {
                joined = initial_contexts.iter().chain(caller).chain(own.iter()).cloned().collect();
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
        if let Some((_, start_modulo_8)) = operation.raw_arguments
            && binding.version < Version::V1_2
            && e.position() % 8 != start_modulo_8
        {
            e.rewind(header_start);
            let contexts: Vec<ServiceContext> =
                contexts.to_vec().into_iter().chain([padding_context()]).collect();
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

/// Returns the object's address in the form that the server requested. The default is the object key.
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

/// Returns the reference with the index of the profile that the binding uses. If the reference does not
/// contain this profile, for example after a forward, the result contains only this profile.
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
