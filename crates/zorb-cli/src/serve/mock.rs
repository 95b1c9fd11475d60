//! The servant of an object that answers by a script.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use giop_codec::Printable;
use serde_json::Value;
use zorb::Any;
use zorb::dynamic::{DynServant, Dynamic, DynamicException, OperationInfo, ServerRequest};
use zorb::{SystemException, TypeCode};

use super::script::{Answer, Answers, Outcome};
use crate::output::{Output, escaped_json};

/// Answers requests as a script says, and with what types begin with where it says nothing.
pub(super) struct Mock {
    answers: Answers,
    state: Mutex<State>,
    log: Option<Log>,
}

/// Where calls are told.
pub(super) struct Log {
    pub(super) key: String,
    pub(super) output: Output,
}

#[derive(Default)]
struct State {
    /// What attributes were set to.
    attributes: BTreeMap<String, Any>,
    /// How often each answer was given, by operation and place.
    given: BTreeMap<(String, usize), u64>,
}

impl Mock {
    pub(super) fn new(answers: Answers, log: Option<Log>) -> Self {
        Self { answers, state: Mutex::default(), log }
    }

    /// The answer that counts for these arguments; it counts as given.
    fn choose(&self, operation: &str, arguments: &Value) -> Option<&Answer> {
        let answers = self.answers.get(operation)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().enumerate().find_map(|(at, answer)| {
            let fits = answer.when.iter().all(|(name, value)| arguments.get(name) == Some(value));
            let given = state.given.entry((operation.to_owned(), at)).or_default();
            if !fits || answer.times.is_some_and(|times| *given >= times) {
                return None;
            }
            *given += 1;
            Some(answer)
        })
    }

    async fn answer(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let operation = request.info().clone();
        let arguments = arguments(&request);
        let answer = self.choose(&operation.name, &arguments);
        if let Some(answer) = answer
            && !answer.delay.is_zero()
        {
            tokio::time::sleep(answer.delay).await;
        }
        let (mut result, outs): (Option<Any>, &[(String, Any)]) = match answer.map(|answer| &answer.outcome) {
            None => (None, &[]),
            Some(Outcome::Values(result, outs)) => (result.clone(), outs),
            Some(Outcome::User(exception)) => return Err(DynamicException::User(exception.clone())),
            Some(Outcome::System(exception)) => return Err(exception.clone().into()),
        };
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(attribute) = operation.name.strip_prefix("_set_")
                && let Some(value) =
                    request.arguments().iter().next().and_then(|argument| argument.value.clone())
            {
                state.attributes.insert(attribute.to_owned(), value);
            } else if let Some(attribute) = operation.name.strip_prefix("_get_") {
                // What was set counts for more than what the script begins with.
                result = state.attributes.get(attribute).cloned().or(result);
            }
        }
        if operation.result.kind() != TypeCode::VOID.kind() {
            request.set_result(match result {
                Some(result) => result,
                None => blank(&operation.result)?,
            });
        }
        for (name, value) in outs {
            request.set(name, value.clone())?;
        }
        // What came in goes out again where nothing is said.
        for argument in request.arguments_mut().iter_mut() {
            if argument.mode.comes_out() && argument.value.is_none() {
                argument.value = Some(blank(&argument.code)?);
            }
        }
        Ok(request)
    }
}

impl DynServant for Mock {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let said = self.log.as_ref().map(|_| (request.info().clone(), arguments(&request)));
        let answered = self.answer(request).await;
        if let (Some(log), Some((operation, arguments))) = (&self.log, said) {
            log.tell(&operation, &arguments, &answered);
        }
        answered
    }
}

fn blank(code: &TypeCode) -> Result<Any, SystemException> {
    Ok(Any::from_dynamic(&Dynamic::default_of(code)?)?)
}

/// What came in, as JSON; null where a value has none.
fn arguments(request: &ServerRequest) -> Value {
    let json = request.arguments().to_json().ok();
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or(Value::Null)
}

/// What goes out, as JSON.
fn answer(request: &ServerRequest) -> Value {
    let json = request.reply_to_json().ok();
    json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or(Value::Null)
}

impl Log {
    fn tell(
        &self,
        operation: &OperationInfo,
        arguments: &Value,
        answered: &Result<ServerRequest, DynamicException>,
    ) {
        let outcome = match answered {
            Ok(_) if operation.oneway => String::new(),
            Ok(request) => format!(" -> {}", answer(request)),
            Err(exception) => {
                format!(" -> {}", exception.to_json().unwrap_or_else(|_| exception.to_string()))
            }
        };
        let call = format!("{}.{} {arguments}{outcome}", Printable::new(&self.key), operation.name);
        self.output.remark(&escaped_json(&call));
    }
}
