//! The servant of an object that answers according to a script.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use giop_codec::Printable;
use zorb::Any;
use zorb::dynamic::{DynServant, Dynamic, DynamicException, NVList, OperationInfo, ServerRequest};
use zorb::{SystemException, TypeCode};

use super::look::{LOOKED_AT, is_told, told};
use super::script::{Answer, Answers, Outcome};
use crate::output::{Output, escaped_json};

/// A servant that answers requests according to a script, and with default values if the script has no
/// answer.
pub(super) struct Mock {
    answers: Arc<Answers>,
    state: Mutex<State>,
    log: Option<Log>,
}

/// The log of calls.
pub(super) struct Log {
    pub(super) key: String,
    pub(super) output: Output,
}

#[derive(Default)]
struct State {
    /// Values that attributes were set to.
    attributes: BTreeMap<String, Any>,
    /// How often each answer was given, by operation and index.
    given: BTreeMap<(String, usize), u64>,
}

impl Mock {
    pub(super) fn new(answers: Answers, log: Option<Log>) -> Self {
        Self { answers: Arc::new(answers), state: Mutex::default(), log }
    }

    /// Returns the first of these answers whose number of uses is not exhausted, and counts it as given.
    fn choose(&self, operation: &str, fitting: Vec<usize>) -> Option<&Answer> {
        let answers = self.answers.get(operation)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        fitting.into_iter().find_map(|at| {
            let answer = answers.get(at)?;
            let given = state.given.entry((operation.to_owned(), at)).or_default();
            if answer.times.is_some_and(|times| *given >= times) {
                return None;
            }
            *given += 1;
            Some(answer)
        })
    }

    /// Returns the answers that match these arguments. If the script needs large arguments, they are decoded
    /// on a blocking thread.
    async fn fitting(&self, request: &ServerRequest) -> Vec<usize> {
        let operation = request.operation();
        let Some(answers) = self.answers.get(operation) else { return Vec::new() };
        let arguments = request.arguments();
        let asked_for =
            |name: &str| answers.iter().any(|answer| answer.when.iter().any(|(of, _)| of == name));
        let asked = arguments.iter().filter(|argument| asked_for(&argument.name));
        let bytes: usize = asked.filter_map(|argument| argument.value.as_ref()).map(Any::byte_len).sum();
        if bytes <= LOOKED_AT {
            return fitting(answers, arguments);
        }
        let (answers, arguments) = (Arc::clone(&self.answers), arguments.clone());
        let operation = operation.to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            answers.get(&operation).map(|answers| fitting(answers, &arguments)).unwrap_or_default()
        });
        looked.await.unwrap_or_default()
    }

    async fn answer(&self, mut request: ServerRequest) -> Result<ServerRequest, DynamicException> {
        let operation = request.info().clone();
        let fitting = self.fitting(&request).await;
        let answer = self.choose(&operation.name, fitting);
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
                // A value that was set has priority over the script's initial value.
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
        // Without a value in the script, `inout` arguments are returned unchanged.
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
        let said = self.log.as_ref().map(|_| (request.info().clone(), arguments(request.arguments())));
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

/// Returns the answers that match these arguments. Each argument is decoded at most once.
fn fitting(answers: &[Answer], arguments: &NVList) -> Vec<usize> {
    let mut trees: BTreeMap<&str, Option<Dynamic>> = BTreeMap::new();
    let mut fits = |answer: &Answer| {
        answer.when.iter().all(|(name, text)| {
            let Some(argument) = arguments.named(name) else { return false };
            let tree = trees
                .entry(&argument.name)
                .or_insert_with(|| argument.value.as_ref().and_then(|value| value.to_dynamic().ok()));
            tree.as_ref().is_some_and(|tree| is_told(tree, text))
        })
    };
    answers.iter().enumerate().filter(|(_, answer)| fits(answer)).map(|(at, _)| at).collect()
}

/// Returns the incoming arguments as JSON.
fn arguments(arguments: &NVList) -> String {
    told(arguments.iter().filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?))))
}

/// Returns the results as JSON.
fn answer(request: &ServerRequest) -> String {
    let nothing = request.info().result.kind() == TypeCode::VOID.kind();
    let result = request.result().filter(|_| !nothing).map(|result| ("$result", result));
    let outputs = request.arguments().iter().filter(|argument| argument.mode.comes_out());
    let outputs = outputs.filter_map(|argument| Some((&*argument.name, argument.value.as_ref()?)));
    told(result.into_iter().chain(outputs))
}

impl Log {
    fn tell(
        &self,
        operation: &OperationInfo,
        arguments: &str,
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
