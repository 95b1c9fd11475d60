//! [`Request`]: a call whose operation is selected by name.

use giop_codec::DecodeError;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::dynamic::{DynError, Interface, Mode, OperationInfo};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::giop::{ReplyStatus, ResponseFlags};
use giop_codec::typecode::{TypeCode, Typed};
use giop_proto::Reply;

use crate::client;
use crate::dynamic::check_type;
use crate::dynamic::error::DynamicException;
use crate::dynamic::named::{
    LocatedErrorSlot, NVList, NamedValue, decode_value, missing_value, typed_value, unknown_argument,
};
use crate::dynamic::offload::{is_large, offload};
use crate::dynamic::server_request::ServerRequest;
use crate::reference::context::Context;
use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, Reference};
use crate::runtime::Shared;

/// A call of an operation that is known only at run time (the Dynamic Invocation Interface).
///
/// The types of arguments, result and exceptions come from an [`Interface`] ([`Request::of`]), or the program
/// declares them. A request may be invoked any number of times.
///
/// * To send now and await later: `request.invoke().deferred()`, see [`Defer`](crate::Defer).
/// * To call many objects concurrently: [`fan_out`](crate::fan_out) with [`to`](Request::to).
/// * The target reference determines timeouts, retries, the sync scope and service contexts.
///
/// ```no_run
/// use orb_runtime::dynamic::{DynamicException, Request};
/// use orb_runtime::types::TypeCode;
/// # use orb_runtime::ObjectRef;
/// # async fn call(account: ObjectRef) -> Result<(), DynamicException> {
/// let deposit = Request::new(&account, "deposit").input("amount", 10.0)?.returns(TypeCode::DOUBLE);
/// let deposited = deposit.invoke().await?;
/// println!("{}", deposited.get::<f64>()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent before it is invoked"]
#[doc(alias = "CORBA::Request")]
pub struct Request {
    target: ObjectRef,
    operation: Box<str>,
    pub(super) arguments: NVList,
    result: TypeCode,
    raises: Vec<TypeCode>,
    is_oneway: bool,
    /// Whether the arguments come from the description of an operation.
    is_described: bool,
    context: Option<Context>,
    /// The patterns of the operation's `context` clause, if it has one.
    context_patterns: Option<Vec<Box<str>>>,
}

/// The outcome of a dynamic call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DynamicReply {
    /// The result. Its type is [`TypeCode::NULL`] if the operation returns nothing.
    pub result: Any,
    /// The `out` and `inout` arguments, in the order of the operation's parameters.
    pub outputs: NVList,
}

impl DynamicReply {
    /// Returns the result as a `T`.
    ///
    /// # Errors
    /// BAD_OPERATION if the result has another type, MARSHAL if `T` rejects the result.
    pub fn get<T: Typed + CdrDecode>(&self) -> Result<T, SystemException> {
        typed_value(&self.result, RESULT_NAME)
    }

    /// Returns the `out` or `inout` argument with this name as a `T`.
    ///
    /// # Errors
    /// BAD_PARAM if there is no such argument, and the errors of [`get`](Self::get).
    pub fn out<T: Typed + CdrDecode>(&self, name: &str) -> Result<T, SystemException> {
        self.outputs.get(name)
    }

    #[cfg(feature = "serde")]
    pub(super) fn byte_len(&self) -> usize {
        let outputs = self.outputs.iter().filter_map(|output| output.value.as_ref());
        self.result.byte_len() + outputs.map(Any::byte_len).sum::<usize>()
    }
}

impl Request {
    /// Creates a call of an operation by its name on the wire (`_get_balance` for an attribute).
    #[doc(alias = "create_request")]
    pub fn new(target: &impl Reference, operation: &str) -> Self {
        Self {
            target: target.as_object().clone(),
            operation: operation.into(),
            arguments: NVList::new(),
            result: TypeCode::VOID,
            raises: Vec::new(),
            is_oneway: false,
            is_described: false,
            context: None,
            context_patterns: None,
        }
    }

    /// Creates a call of the operation that has this name on the wire in an interface. Set the arguments with
    /// [`set`](Self::set).
    ///
    /// # Errors
    /// BAD_OPERATION if the interface has no such operation.
    pub fn of(
        target: &impl Reference,
        interface: &Interface,
        operation: &str,
    ) -> Result<Self, SystemException> {
        let unknown_operation = || {
            SystemException::bad_operation()
                .with_minor(minor::BAD_OPERATION_UNKNOWN)
                .with_reason(format!("{} has no operation `{operation}`", interface.id()))
        };
        Ok(Self::described(target, interface.find(operation).ok_or_else(unknown_operation)?))
    }

    /// Creates a call of a described operation. Set the arguments with [`set`](Self::set).
    pub fn described(target: &impl Reference, operation: &OperationInfo) -> Self {
        let context_patterns = (!operation.contexts.is_empty()).then(|| operation.contexts.clone());
        Self {
            arguments: operation.params.iter().map(NamedValue::for_param).collect(),
            result: operation.result.clone(),
            raises: operation.raises.clone(),
            is_oneway: operation.oneway,
            is_described: true,
            context_patterns,
            ..Self::new(target, &operation.name)
        }
    }

    /// Creates a call of another object with the operation, arguments and context of a received request.
    pub(super) fn repeat(target: &impl Reference, request: &ServerRequest) -> Self {
        let context = Some(request.context().clone());
        let arguments = request.arguments().clone();
        Self { arguments, context, ..Self::described(target, request.info()) }
    }

    /// Returns the same call with another object as its target.
    pub fn to(&self, target: &impl Reference) -> Self {
        Self { target: target.as_object().clone(), ..self.clone() }
    }

    /// Appends an argument.
    pub fn arg(mut self, argument: NamedValue) -> Self {
        self.arguments.push(argument);
        self
    }

    /// Appends an `in` argument.
    ///
    /// # Errors
    /// A system exception if the value cannot be encoded.
    #[doc(alias = "add_in_arg")]
    pub fn input<T: Typed + CdrEncode>(self, name: &str, value: T) -> Result<Self, SystemException> {
        Ok(self.arg(NamedValue::new(name, Mode::In, Any::new(value)?)))
    }

    /// Appends an `inout` argument.
    ///
    /// # Errors
    /// A system exception if the value cannot be encoded.
    #[doc(alias = "add_inout_arg")]
    pub fn inout<T: Typed + CdrEncode>(self, name: &str, value: T) -> Result<Self, SystemException> {
        Ok(self.arg(NamedValue::new(name, Mode::InOut, Any::new(value)?)))
    }

    /// Appends an `out` argument.
    #[doc(alias = "add_out_arg")]
    pub fn declare_out(self, name: &str, code: TypeCode) -> Self {
        self.arg(NamedValue::without_value(name, Mode::Out, code))
    }

    /// Sets the type of the result.
    #[doc(alias = "set_return_type")]
    pub fn returns(mut self, code: TypeCode) -> Self {
        self.result = code;
        self
    }

    /// Adds an exception that the operation may raise.
    #[doc(alias = "exceptions")]
    pub fn raises(mut self, code: TypeCode) -> Self {
        self.raises.push(code);
        self
    }

    /// Sets the properties for the operation's `context` clause. If the request was created from a
    /// description of the operation, only the properties that this clause lists are sent. Otherwise all of
    /// them are sent.
    #[doc(alias = "ctx")]
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// Sets the value of an argument.
    ///
    /// # Errors
    /// BAD_PARAM if there is no such argument, or if its type differs from the type of the value. References
    /// of all types may be passed to arguments of any reference type.
    pub fn set(&mut self, name: &str, value: Any) -> Result<(), SystemException> {
        let argument = self.arguments.named_mut(name).ok_or_else(|| unknown_argument(name))?;
        check_type(|| format!("the argument `{name}`"), &value, &argument.code, CompletionStatus::No)?;
        argument.value = Some(value);
        Ok(())
    }

    /// Sets the value of an argument, and returns the call.
    ///
    /// # Errors
    /// The same as for [`set`](Self::set), or a system exception if the value cannot be encoded.
    pub fn with<T: Typed + CdrEncode>(mut self, name: &str, value: T) -> Result<Self, SystemException> {
        self.set(name, Any::new(value)?)?;
        Ok(self)
    }

    /// Returns the operation's name on the wire.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Returns the object that is called.
    #[must_use]
    pub fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Returns the arguments.
    #[must_use]
    pub fn arguments(&self) -> &NVList {
        &self.arguments
    }

    /// Sends the request and waits for its reply. If the operation is described as `oneway`, calls
    /// [`send_oneway`](Self::send_oneway), and returns an empty reply.
    ///
    /// A reply of 64 KiB or more is decoded on a thread of the runtime for blocking work. The calling task
    /// encodes the arguments.
    ///
    /// # Errors
    /// * The exception that the servant raised.
    /// * BAD_PARAM if an argument is missing.
    /// * BAD_PARAM minor OMG 32 for operations such as `_hash`, which are not sent to servers.
    /// * UNKNOWN minor OMG 1 for a user exception that was not declared for the call.
    /// * MARSHAL, COMPLETED_YES, if the reply cannot be decoded.
    /// * TRANSIENT, COMM_FAILURE or TIMEOUT, if the call failed without a reply. The completion status tells
    ///   how far the request got.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call. If the request was already sent, a CancelRequest follows.
    #[doc(alias = "send_deferred")]
    pub async fn invoke(&self) -> Result<DynamicReply, DynamicException> {
        if self.is_oneway {
            self.send_oneway().await?;
            return Ok(DynamicReply::default());
        }
        self.check_before_sending()?;
        let operation = CallOperation::temporary(&self.operation, false);
        let error_slot = LocatedErrorSlot::new();
        let encode = |e: &mut Encoder| error_slot.keep_encode_error(self.encode(e));
        let reply = client::transact(&self.target, &operation, ResponseFlags::Target, &encode).await;
        let reply = reply.map_err(|exception| with_location(&error_slot, exception))?;
        if !is_large(reply.body().remaining()) {
            return self.decode_reply(reply);
        }
        let request = self.clone();
        offload(self.target.orb(), CompletionStatus::Yes, move || request.decode_reply(reply)).await?
    }

    /// Sends the request as a oneway, whose reply has no results. The reference's
    /// [`SyncScope`](crate::SyncScope) determines how long this waits.
    ///
    /// # Errors
    /// * BAD_PARAM if an argument is missing.
    /// * BAD_PARAM minor OMG 32 for operations such as `_hash`, which are not sent to servers.
    /// * BAD_PARAM minor OMG 31 if the call has a result, an `out` argument or a declared exception.
    /// * TRANSIENT or COMM_FAILURE, if the request could not be sent.
    /// * TIMEOUT, if it was not sent before the deadline, for example because the queue was full.
    ///
    /// # Cancel safety
    /// The message is queued completely or not at all.
    pub async fn send_oneway(&self) -> Result<(), SystemException> {
        self.check_before_sending()?;
        let needs_reply = self.arguments.iter().any(|argument| argument.mode.is_output())
            || !self.raises.is_empty()
            || !is_void_or_null(&self.result);
        if needs_reply {
            let text = "has a result, an `out` argument or an exception, so it cannot be sent as a oneway";
            return Err(SystemException::bad_param()
                .with_minor(minor::BAD_PARAM_ONEWAY_DEFINITION)
                .with_reason(format!("`{}` {text}", self.operation)));
        }
        let operation = CallOperation::temporary(&self.operation, true);
        let error_slot = LocatedErrorSlot::new();
        let encode = |e: &mut Encoder| error_slot.keep_encode_error(self.encode(e));
        let sent = client::send_without_reply(&self.target, &operation, encode).await;
        sent.map_err(|exception| with_location(&error_slot, exception))
    }

    fn check_before_sending(&self) -> Result<(), SystemException> {
        if self.operation.starts_with('_') && !is_sent_to_servers(&self.operation) {
            let text = "is performed by the reference itself, and cannot be sent to a server";
            return Err(SystemException::bad_param()
                .with_minor(minor::BAD_PARAM_IMPLICIT_OPERATION)
                .with_reason(format!("`{}` {text}", self.operation)));
        }
        let is_missing = |argument: &&NamedValue| argument.mode.is_input() && argument.value.is_none();
        match self.arguments.iter().find(is_missing) {
            Some(argument) => Err(missing_value(&argument.name, CompletionStatus::No)),
            None => Ok(()),
        }
    }

    fn encode(&self, e: &mut Encoder) -> Result<(), DynError> {
        self.arguments.encode(Mode::is_input, e)?;
        match (&self.context_patterns, &self.context) {
            (Some(patterns), context) => {
                let patterns: Vec<&str> = patterns.iter().map(|pattern| &**pattern).collect();
                context.as_ref().map(|context| context.matching(&patterns)).unwrap_or_default().encode(e)?;
            }
            (None, Some(context)) if !self.is_described => context.encode(e)?,
            (None, _) => {}
        }
        Ok(())
    }

    fn decode_reply(&self, reply: Reply) -> Result<DynamicReply, DynamicException> {
        let orb = self.target.orb();
        let operation = &CallOperation::temporary(&self.operation, false);
        if reply.status() != ReplyStatus::NoException {
            return Err(self.decode_user_exception(&reply, operation));
        }
        let error_slot = LocatedErrorSlot::new();
        let decoded = reply.decode(&orb.pool, |body| {
            let mut d = body.with_context(orb);
            let decoded = self.decode_results(&mut d);
            error_slot.keep_decode_error(&d, decoded)
        });
        decoded.map_err(|error| {
            bad_reply(self.target.orb(), error_slot.take(), error, &self.operation, operation).into()
        })
    }

    fn decode_results(&self, d: &mut Decoder<'_>) -> Result<DynamicReply, DynError> {
        let result = match is_void_or_null(&self.result) {
            true => Any::default(),
            false => decode_value(&self.result, RESULT_NAME, d)?,
        };
        let outputs = self.arguments.iter().filter(|argument| argument.mode.is_output());
        Ok(DynamicReply { result, outputs: NVList::decode(outputs, d)? })
    }

    #[cold]
    fn decode_user_exception(&self, reply: &Reply, operation: &CallOperation<'_>) -> DynamicException {
        let id = match reply.body().read_unconverted_str() {
            Ok(id) => id.to_owned(),
            Err(error) => return client::bad_reply(self.target.orb(), error, operation).into(),
        };
        let declared =
            self.raises.iter().find(|code| code.unaliased().id().is_ok_and(|declared| declared == id));
        let Some(code) = declared else {
            return client::undeclared_user_exception(operation, &id).into();
        };
        let mut d = reply.body().with_context(self.target.orb());
        let error_slot = LocatedErrorSlot::new();
        match error_slot.keep_decode_error(&d.clone(), Any::decode_value_with_path(code, &mut d)) {
            Ok(exception) => DynamicException::User(exception),
            Err(error) => {
                bad_reply(self.target.orb(), error_slot.take(), error, &self.operation, operation).into()
            }
        }
    }
}

/// The name of an operation's result in errors and in JSON.
pub(super) const RESULT_NAME: &str = "$result";

/// Creates the exception for a reply that cannot be decoded. `located_error` is `error` with its location.
#[cold]
fn bad_reply(
    orb: &Shared,
    located_error: Option<DynError>,
    error: DecodeError,
    name: &str,
    operation: &CallOperation<'_>,
) -> SystemException {
    let exception = client::bad_reply(orb, error, operation);
    match located_error {
        Some(error) => exception.with_reason(format!("the reply of `{name}` cannot be decoded: {error}")),
        None => exception,
    }
}

/// Adds the error in the slot, if any, as the source of the exception. It has the location in the arguments.
#[cold]
fn with_location(error_slot: &LocatedErrorSlot, exception: SystemException) -> SystemException {
    match error_slot.take() {
        Some(error) => exception.with_source(error),
        None => exception,
    }
}

pub(super) fn is_void_or_null(result: &TypeCode) -> bool {
    use giop_codec::typecode::TcKind;
    matches!(result.kind(), TcKind::Void | TcKind::Null)
}

/// Returns whether an operation whose name begins with `_` is sent to servers, not performed locally.
fn is_sent_to_servers(operation: &str) -> bool {
    const SENT_IMPLICIT_OPERATIONS: [&str; 6] =
        ["_is_a", "_non_existent", "_not_existent", "_interface", "_repository_id", "_component"];
    operation.starts_with("_get_")
        || operation.starts_with("_set_")
        || SENT_IMPLICIT_OPERATIONS.contains(&operation)
}
