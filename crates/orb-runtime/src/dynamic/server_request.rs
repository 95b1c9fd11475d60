//! [`ServerRequest`]: a request to a dynamic servant.

use std::sync::Arc;

use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::dynamic::{DynError, Mode, OperationInfo};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::typecode::Typed;

use crate::dynamic::named::{NVList, NamedValue, decode_value, inside, missing_value, unknown_argument};
use crate::dynamic::request::{DynamicReply, RESULT_NAME, is_void_or_null};
use crate::dynamic::{bad_param, check_type};
use crate::reference::context::Context;

/// A request that a [`DynServant`](super::DynServant) serves, with its arguments and results.
/// [`zorb::request()`](crate::request) returns further properties, such as the deadline and the caller.
#[derive(Clone, Debug)]
#[doc(alias = "CORBA::ServerRequest")]
pub struct ServerRequest {
    operation: Arc<OperationInfo>,
    arguments: NVList,
    context: Context,
    result: Option<Any>,
}

impl ServerRequest {
    pub(super) fn decode(operation: &Arc<OperationInfo>, d: &mut Decoder<'_>) -> Result<Self, DynError> {
        let mut arguments: NVList = operation.params.iter().map(NamedValue::for_param).collect();
        for argument in arguments.iter_mut().filter(|argument| argument.mode.is_input()) {
            argument.value = Some(decode_value(&argument.code, &argument.name, d)?);
        }
        let context = match operation.contexts.is_empty() {
            true => Context::new(),
            false => Context::decode(d)?,
        };
        Ok(Self { operation: Arc::clone(operation), arguments, context, result: None })
    }

    /// Returns the operation's name on the wire: `_get_balance` for an attribute.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation.name
    }

    /// Returns the interface's description of the operation.
    #[must_use]
    pub fn info(&self) -> &Arc<OperationInfo> {
        &self.operation
    }

    /// Returns the arguments. The `in` and `inout` arguments have values.
    #[must_use]
    pub fn arguments(&self) -> &NVList {
        &self.arguments
    }

    /// Returns the arguments mutably, so that the `out` and `inout` ones can be set.
    pub fn arguments_mut(&mut self) -> &mut NVList {
        &mut self.arguments
    }

    /// Returns the properties that the client sent for the operation's `context` clause.
    #[must_use]
    #[doc(alias = "ctx")]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the value of an argument as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM if the argument does not exist or has no value, BAD_OPERATION if the value has another type,
    /// MARSHAL if `T` rejects the value.
    pub fn get<T: Typed + CdrDecode>(&self, name: &str) -> Result<T, SystemException> {
        self.arguments.get(name)
    }

    /// Returns the result, if it was set.
    #[must_use]
    pub fn result(&self) -> Option<&Any> {
        self.result.as_ref()
    }

    /// Sets the result. Its type is checked when the reply is encoded.
    pub fn set_result(&mut self, value: Any) {
        self.result = Some(value);
    }

    /// Sets an `out` or `inout` argument. Its type is checked when the reply is encoded.
    ///
    /// # Errors
    /// BAD_PARAM if there is no such argument.
    pub fn set(&mut self, name: &str, value: Any) -> Result<(), SystemException> {
        let argument = self.arguments.named_mut(name).filter(|argument| argument.mode.is_output());
        argument.ok_or_else(|| unknown_argument(name))?.value = Some(value);
        Ok(())
    }

    /// Sets the result, and returns the request.
    ///
    /// # Errors
    /// A system exception if the value cannot be encoded.
    pub fn returning<T: Typed + CdrEncode>(mut self, value: T) -> Result<Self, SystemException> {
        self.set_result(Any::new(value)?);
        Ok(self)
    }

    /// Sets an `out` or `inout` argument, and returns the request.
    ///
    /// # Errors
    /// BAD_PARAM if there is no such argument, or a system exception if the value cannot be encoded.
    pub fn with<T: Typed + CdrEncode>(mut self, name: &str, value: T) -> Result<Self, SystemException> {
        self.set(name, Any::new(value)?)?;
        Ok(self)
    }

    pub(super) fn with_reply(mut self, reply: DynamicReply) -> Self {
        self.result = Some(reply.result);
        for output in reply.outputs {
            if let Some(argument) = self.arguments.named_mut(&output.name) {
                argument.value = output.value;
            }
        }
        self
    }

    /// Returns BAD_PARAM unless all results are set and have the types of the operation.
    pub(super) fn check_results(&self) -> Result<(), SystemException> {
        let completed = CompletionStatus::Yes;
        let operation = &self.operation;
        match &self.result {
            _ if is_void_or_null(&operation.result) => {}
            Some(result) => check_type(|| "the result".to_owned(), result, &operation.result, completed)?,
            None => {
                let text = format!("the servant has not set the result of `{}`", operation.name);
                return Err(bad_param(text, completed));
            }
        }
        for argument in self.arguments.iter().filter(|argument| argument.mode.is_output()) {
            let value = argument.value.as_ref().ok_or_else(|| missing_value(&argument.name, completed))?;
            check_type(|| format!("the argument `{}`", argument.name), value, &argument.code, completed)?;
        }
        Ok(())
    }

    pub(super) fn reply_byte_len(&self) -> usize {
        let outputs = self.arguments.iter().filter(|argument| argument.mode.is_output());
        let outputs = outputs.filter_map(|argument| argument.value.as_ref());
        self.result.iter().chain(outputs).map(Any::byte_len).sum()
    }

    pub(super) fn encode(&self, e: &mut Encoder) -> Result<(), DynError> {
        if let Some(result) = &self.result
            && !is_void_or_null(&self.operation.result)
        {
            result.encode_value_with_path(e).map_err(|error| inside(error, RESULT_NAME))?;
        }
        self.arguments.encode(Mode::is_output, e)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use giop_codec::dynamic::ParamInfo;
    use giop_codec::typecode::TypeCode;
    use giop_codec::{ByteOrder, Version};

    use super::*;

    #[test]
    fn decoding_error_has_the_location_in_the_argument() {
        let frame = TypeCode::create_struct(
            "IDL:Frame:1.0",
            "Frame",
            &[("name", &TypeCode::string(0)), ("width", &TypeCode::SHORT)],
        )
        .unwrap();
        let param = |name: &str, code| ParamInfo { name: name.into(), mode: Mode::In, code };
        let operation = OperationInfo {
            id: "IDL:I/show:1.0".into(),
            name: "show".into(),
            oneway: false,
            result: TypeCode::VOID,
            params: vec![param("count", TypeCode::LONG), param("frames", TypeCode::sequence(&frame, 0))],
            raises: Vec::new(),
            contexts: Vec::new(),
        };
        // The name of the second frame is longer than the message.
        let bytes = [7_u32, 2, 1, 0, 1000, 0, 0].map(u32::to_ne_bytes).concat();
        let mut d = Decoder::new(&bytes, ByteOrder::NATIVE, Version::V1_2);
        let error = ServerRequest::decode(&Arc::new(operation), &mut d).unwrap_err();
        assert!(error.to_string().starts_with("frames[1].name: "), "{error}");
        let exception = error.to_system_exception(CompletionStatus::No).to_string();
        assert!(exception.starts_with("MARSHAL, COMPLETED_NO: frames[1].name: "), "{exception}");
    }
}
