//! Calls with arguments and results in JSON. docs/JSON.md describes the mapping.

use std::error::Error as _;
use std::io::{self, Write};

use giop_codec::any::Any;
use giop_codec::cdr::DecodeLimits;
use giop_codec::dynamic::{DynError, DynErrorKind, Dynamic, Interface, Step, Value};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::typecode::TypeCode;

use crate::dynamic::error::DynamicException;
use crate::dynamic::named::NVList;
use crate::dynamic::offload::{is_large, offload};
use crate::dynamic::request::{DynamicReply, RESULT_NAME, Request, is_void_or_null};
use crate::dynamic::server_request::ServerRequest;
use crate::reference::ObjectRef;

impl ObjectRef {
    /// Calls an operation of an interface by its name on the wire. `arguments` is a JSON object with the `in`
    /// and `inout` arguments by name. The returned JSON object has the `out` and `inout` arguments by name,
    /// and the result, if there is one, as `"$result"`.
    ///
    /// ```no_run
    /// # use orb_runtime::dynamic::{DynamicException, Interface};
    /// # use orb_runtime::ObjectRef;
    /// # async fn call(account: ObjectRef, interface: &Interface) -> Result<(), DynamicException> {
    /// let answer = account.call_json(interface, "deposit", r#"{"amount": 10.0}"#).await?;
    /// assert_eq!(answer, r#"{"$result":110.0}"#);
    /// # Ok(()) }
    /// ```
    ///
    /// Arguments and answers of 64 KiB or more are converted on a thread of the runtime for blocking work.
    ///
    /// # Errors
    /// The errors of [`Request::of`], [`Request::with_json`], [`Request::invoke`] and
    /// [`DynamicReply::to_json`]. [`DynamicException::to_json`] returns them as JSON.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, as for [`Request::invoke`].
    pub async fn call_json(
        &self,
        interface: &Interface,
        operation: &str,
        arguments: &str,
    ) -> Result<String, DynamicException> {
        let request = Request::of(self, interface, operation)?;
        let request = if is_large(arguments.len()) {
            let arguments = arguments.to_owned();
            offload(self.orb(), CompletionStatus::No, move || request.with_json(&arguments)).await??
        } else {
            request.with_json(arguments)?
        };
        let reply = request.invoke().await?;
        if !is_large(reply.byte_len()) {
            return Ok(reply.to_json()?);
        }
        Ok(offload(self.orb(), CompletionStatus::Yes, move || reply.to_json()).await??)
    }
}

impl Request {
    /// Sets the `in` and `inout` arguments from a JSON object that has all of them by name.
    ///
    /// # Errors
    /// BAD_PARAM, or IMP_LIMIT if a limit is exceeded. The source is the error of
    /// [`Dynamic::members_from_json`], which names the argument that is missing, unknown or invalid, and the
    /// location in the argument.
    pub fn with_json(mut self, arguments: &str) -> Result<Self, SystemException> {
        let inputs = self.arguments().iter().filter(|argument| argument.mode.is_input());
        let members: Vec<(&str, &TypeCode)> =
            inputs.map(|argument| (&*argument.name, &argument.code)).collect();
        let known = self.target().orb().runtime_types().value_types();
        let values = Dynamic::members_from_json(&members, &known, arguments)?;
        let inputs = self.arguments.iter_mut().filter(|argument| argument.mode.is_input());
        for (argument, value) in inputs.zip(&values) {
            let any = Any::from_dynamic(value);
            argument.value = Some(any.map_err(|error| error.inside(Step::Member(argument.name.clone())))?);
        }
        Ok(self)
    }
}

impl DynamicReply {
    /// Returns a JSON object with the `out` and `inout` arguments by name, and with the result, if there is
    /// one, as `"$result"`.
    ///
    /// # Errors
    /// * A value has no JSON form, for example a value of a local interface.
    /// * [`Limit`](DynErrorKind::Limit), if the text would be longer than 16 MiB and longer than eight times
    ///   the size of the values in the message.
    pub fn to_json(&self) -> Result<String, DynError> {
        let result = (!is_void_or_null(self.result.type_code())).then_some((RESULT_NAME, &self.result));
        json_object(result.into_iter().chain(named_values(&self.outputs)))
    }
}

impl ServerRequest {
    /// Returns the results that are set, in the form of [`DynamicReply::to_json`].
    ///
    /// # Errors
    /// The same as for [`DynamicReply::to_json`].
    pub fn reply_to_json(&self) -> Result<String, DynError> {
        let result = self
            .result()
            .filter(|_| !is_void_or_null(&self.info().result))
            .map(|result| (RESULT_NAME, result));
        let outputs = self.arguments().iter().filter(|argument| argument.mode.is_output());
        let outputs = outputs.filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?)));
        json_object(result.into_iter().chain(outputs))
    }
}

impl NVList {
    /// Returns a JSON object with the arguments that have values, by name.
    ///
    /// # Errors
    /// The same as for [`DynamicReply::to_json`].
    pub fn to_json(&self) -> Result<String, DynError> {
        json_object(named_values(self))
    }
}

impl DynamicException {
    /// Returns the exception as JSON.
    ///
    /// The JSON object has the repository id of the exception as `"$exception"`. For a user exception, it
    /// also has the members of the exception. For a system exception, it also has:
    ///
    /// * `"minor"`, a number;
    /// * `"completed"`, such as `"COMPLETED_NO"`;
    /// * `"reason"` if the exception has a source: the texts of all sources, separated by `: `.
    ///
    /// # Errors
    /// * A member has no JSON form.
    /// * [`Limit`](DynErrorKind::Limit), if the text would be longer than 16 MiB and longer than eight times
    ///   the size of the members in the message.
    pub fn to_json(&self) -> Result<String, DynError> {
        match self {
            Self::User(exception) => {
                bounded_json(exception.byte_len(), |json| exception.to_dynamic()?.write_json(json))
            }
            Self::System(exception) => {
                let reason = match reason(exception) {
                    Some(reason) => format!(",\"reason\":{}", quoted(&reason)?),
                    None => String::new(),
                };
                Ok(format!(
                    "{{\"$exception\":{},\"minor\":{},\"completed\":\"{}\"{reason}}}",
                    quoted(exception.repository_id())?,
                    exception.minor.0,
                    exception.completed
                ))
            }
        }
    }
}

/// Returns the texts of all sources, which `Display` of the exception would shorten.
fn reason(exception: &SystemException) -> Option<String> {
    let mut texts = Vec::new();
    let mut source = exception.source();
    while let Some(error) = source {
        texts.push(error.to_string());
        // The text of a system exception includes its own sources.
        source = if error.is::<SystemException>() { None } else { error.source() };
    }
    (!texts.is_empty()).then(|| texts.join(": "))
}

fn named_values(list: &NVList) -> impl Iterator<Item = (&str, &Any)> {
    list.iter().filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?)))
}

/// Returns a JSON object. Numbers `"$id"` are unique only within each of its values.
fn json_object<'a>(members: impl Iterator<Item = (&'a str, &'a Any)>) -> Result<String, DynError> {
    let members: Vec<(&str, &Any)> = members.collect();
    let bytes = members.iter().map(|(_, value)| value.byte_len()).sum();
    bounded_json(bytes, |json| {
        json.text.push(b'{');
        for (name, value) in members {
            if json.text.len() > 1 {
                json.text.push(b',');
            }
            json.text.extend_from_slice(quoted(name)?.as_bytes());
            json.text.push(b':');
            let written = value.to_dynamic().and_then(|value| value.write_json(&mut *json));
            written.map_err(|error| error.inside(Step::Member(name.into())))?;
        }
        json.text.push(b'}');
        Ok(())
    })
}

/// Returns the text that `write` writes, or an error if it exceeds the limit for values of this size.
fn bounded_json(
    value_bytes: usize,
    write: impl FnOnce(&mut BoundedText) -> Result<(), DynError>,
) -> Result<String, DynError> {
    let mut json = BoundedText {
        text: Vec::new(),
        bytes_left: DecodeLimits::for_data(value_bytes).alloc,
        is_full: false,
    };
    let written = write(&mut json);
    if json.is_full {
        let text = "the JSON text would be longer than 16 MiB and than eight times the values in the message";
        return Err(DynErrorKind::Limit(text).into());
    }
    written?;
    String::from_utf8(json.text).map_err(|_| DynErrorKind::InvalidValue("the JSON text is not UTF-8").into())
}

struct BoundedText {
    text: Vec<u8>,
    bytes_left: usize,
    is_full: bool,
}

impl Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.bytes_left.checked_sub(bytes.len()) {
            Some(bytes_left) => {
                self.bytes_left = bytes_left;
                self.text.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            None => {
                self.is_full = true;
                Err(io::ErrorKind::OutOfMemory.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn quoted(text: &str) -> Result<String, DynError> {
    let value = Value::String(text.into());
    Dynamic { code: TypeCode::string(0), value, graph: Default::default() }.to_json()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
mod tests {
    use giop_codec::cdr::{Char, Seq};
    use giop_codec::dynamic::Mode;

    use super::*;
    use crate::dynamic::named::NamedValue;

    /// Returns an argument list whose JSON has nine bytes for each character.
    fn list(characters: usize) -> NVList {
        let value = Any::new(Seq::from(vec![Char(1); characters])).unwrap();
        [NamedValue::new("all", Mode::In, value)].into_iter().collect()
    }

    #[test]
    fn text_beyond_the_limit_of_its_values_is_an_error() {
        assert_eq!(list(2).to_json().unwrap(), "{\"all\":[\"\\u0001\",\"\\u0001\"]}");
        assert!(list(1 << 18).to_json().unwrap().len() > 2 << 20);
        let error = list(2 << 20).to_json().unwrap_err();
        assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
        let raised = DynamicException::User(list(2 << 20)[0].value.clone().unwrap());
        let error = raised.to_json().unwrap_err();
        assert!(matches!(error.kind(), DynErrorKind::Limit(_)), "{error}");
    }

    #[test]
    fn reason_of_a_system_exception_is_complete() {
        let json = |exception: SystemException| DynamicException::System(exception).to_json().unwrap();
        let none = r#"{"$exception":"IDL:omg.org/CORBA/NO_MEMORY:1.0","minor":0,"completed":"COMPLETED_NO"}"#;
        assert_eq!(json(SystemException::no_memory()), none);
        let text = "\"quoted\" \\ \n\u{1b}\u{202e} ".repeat(1_000);
        let with_reason = json(SystemException::no_memory().with_reason(text.clone()));
        let (before, reason) = with_reason.rsplit_once(",\"reason\":").unwrap();
        assert_eq!(format!("{before}}}"), none);
        let reason = Dynamic::from_json(&TypeCode::STRING, reason.strip_suffix('}').unwrap()).unwrap();
        assert_eq!(reason.value, Value::String(text.into()));
    }
}
