//! The servant of an object that answers according to a script.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use giop_codec::Printable;
use zorb::Any;
use zorb::dynamic::{DynServant, Dynamic, DynamicException, NVList, OperationInfo, ServerRequest};
use zorb::{SystemException, TypeCode};

use super::script::{Answer, Answers, Outcome};
use super::value_json::{MAX_INLINE_BYTES, has_json, log_text};
use crate::output::{Output, escaped_json};

/// A servant that answers requests according to a script, or else with default values.
pub(super) struct Mock {
    answers: Arc<Answers>,
    state: Mutex<State>,
    log: Option<Log>,
}

pub(super) struct Log {
    pub(super) key: String,
    pub(super) output: Output,
}

#[derive(Default)]
struct State {
    attributes: BTreeMap<String, Any>,
    /// How often each answer was used, by operation and index.
    use_counts: BTreeMap<(String, usize), u64>,
}

impl Mock {
    pub(super) fn new(answers: Answers, log: Option<Log>) -> Self {
        Self { answers: Arc::new(answers), state: Mutex::default(), log }
    }

    /// Returns the first of the matching answers that was used fewer than `max_uses` times. Counts the use.
    fn choose(&self, operation: &str, matching: Vec<usize>) -> Option<&Answer> {
        let answers = self.answers.get(operation)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        matching.into_iter().find_map(|index| {
            let answer = answers.get(index)?;
            let use_count = state.use_counts.entry((operation.to_owned(), index)).or_default();
            if answer.max_uses.is_some_and(|max_uses| *use_count >= max_uses) {
                return None;
            }
            *use_count += 1;
            Some(answer)
        })
    }

    /// Returns the indexes of the answers that match the arguments. If large arguments must be compared with
    /// the script, they are decoded on a blocking thread.
    async fn matching_answers(&self, request: &ServerRequest) -> Vec<usize> {
        let operation = request.operation();
        let Some(answers) = self.answers.get(operation) else { return Vec::new() };
        let arguments = request.arguments();
        let is_compared = |name: &str| {
            answers.iter().any(|answer| answer.when.iter().any(|(compared, _)| compared == name))
        };
        let compared = arguments.iter().filter(|argument| is_compared(&argument.name));
        let bytes: usize = compared.filter_map(|argument| argument.value.as_ref()).map(Any::byte_len).sum();
        if bytes <= MAX_INLINE_BYTES {
            return matching_answers(answers, arguments);
        }
        let (answers, arguments) = (Arc::clone(&self.answers), arguments.clone());
        let operation = operation.to_owned();
        let task = tokio::task::spawn_blocking(move || {
            answers.get(&operation).map(|answers| matching_answers(answers, &arguments)).unwrap_or_default()
        });
        task.await.unwrap_or_default()
    }

    async fn answer(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let operation = request.info().clone();
        let matching = self.matching_answers(&request).await;
        let answer = self.choose(&operation.name, matching);
        if let Some(answer) = answer
            && !answer.delay.is_zero()
        {
            tokio::time::sleep(answer.delay).await;
        }
        let (mut result, outs): (Option<Any>, &[(String, Any)]) = match answer.map(|answer| &answer.outcome) {
            None => (None, &[]),
            Some(Outcome::Values(result, outs)) => (result.clone(), outs),
            Some(Outcome::UserException(exception)) => return Err(DynamicException::User(exception.clone())),
            Some(Outcome::SystemException(exception)) => return Err(exception.clone().into()),
        };
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(attribute) = operation.name.strip_prefix("_set_")
                && let Some(value) =
                    request.arguments().iter().next().and_then(|argument| argument.value.clone())
            {
                state.attributes.insert(attribute.to_owned(), value);
            } else if let Some(attribute) = operation.name.strip_prefix("_get_") {
                // A value that a client has set replaces the value in the script.
                result = state.attributes.get(attribute).cloned().or(result);
            }
        }
        if operation.result.kind() != TypeCode::VOID.kind() {
            request.set_result(match result {
                Some(result) => result,
                None => default_value(&operation.result)?,
            });
        }
        for (name, value) in outs {
            request.set(name, value.clone())?;
        }
        // An `inout` argument without a value in the script is returned unchanged.
        for argument in request.arguments_mut().iter_mut() {
            if argument.mode.is_output() && argument.value.is_none() {
                argument.value = Some(default_value(&argument.code)?);
            }
        }
        Ok(request)
    }
}

impl DynServant for Mock {
    async fn invoke(&self, request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let call = self.log.as_ref().map(|_| (request.info().clone(), arguments_text(request.arguments())));
        let result = self.answer(request).await;
        if let (Some(log), Some((operation, arguments))) = (&self.log, call) {
            log.write(&operation, &arguments, &result);
        }
        result
    }
}

fn default_value(code: &TypeCode) -> Result<Any, SystemException> {
    Ok(Any::from_dynamic(&Dynamic::default_of(code)?)?)
}

/// Returns the indexes of the answers that match the arguments. Each argument is decoded at most once.
fn matching_answers(answers: &[Answer], arguments: &NVList) -> Vec<usize> {
    let mut decoded: BTreeMap<&str, Option<Dynamic>> = BTreeMap::new();
    let mut matches = |answer: &Answer| {
        answer.when.iter().all(|(name, json)| {
            let Some(argument) = arguments.named(name) else { return false };
            let value = decoded
                .entry(&argument.name)
                .or_insert_with(|| argument.value.as_ref().and_then(|value| value.to_dynamic().ok()));
            value.as_ref().is_some_and(|value| has_json(value, json))
        })
    };
    answers.iter().enumerate().filter(|(_, answer)| matches(answer)).map(|(index, _)| index).collect()
}

fn arguments_text(arguments: &NVList) -> String {
    log_text(arguments.iter().filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?))))
}

fn results_text(request: &ServerRequest) -> String {
    let is_void = request.info().result.kind() == TypeCode::VOID.kind();
    let result = request.result().filter(|_| !is_void).map(|result| ("$result", result));
    let outputs = request.arguments().iter().filter(|argument| argument.mode.is_output());
    let outputs = outputs.filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?)));
    log_text(result.into_iter().chain(outputs))
}

impl Log {
    fn write(
        &self,
        operation: &OperationInfo,
        arguments: &str,
        result: &Result<ServerRequest, DynamicException>,
    ) {
        let outcome = match result {
            Ok(_) if operation.oneway => String::new(),
            Ok(request) => format!(" -> {}", results_text(request)),
            Err(exception) => {
                format!(" -> {}", exception.to_json().unwrap_or_else(|_| exception.to_string()))
            }
        };
        let call = format!("{}.{} {arguments}{outcome}", Printable::new(&self.key), operation.name);
        self.output.remark(&escaped_json(&call));
    }
}
