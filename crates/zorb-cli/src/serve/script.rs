//! The answers of objects, from a script file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Map, Value};
use zorb::Any;
use zorb::dynamic::{Dynamic, Interface, OperationInfo, ValueTypes};
use zorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, TypeCode};

use crate::call::fit;

/// The objects of a script by their keys.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Script(BTreeMap<String, Object>);

/// An object of a script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Object {
    pub(super) interface: String,
    /// One or more answers for each operation and attribute.
    #[serde(default)]
    operations: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default)]
    when: Map<String, Value>,
    result: Option<Value>,
    #[serde(default)]
    out: Map<String, Value>,
    raises: Option<Value>,
    #[serde(default)]
    delay_ms: u64,
    times: Option<u64>,
}

/// The answers of an object, by operation names as in messages.
pub(super) type Answers = BTreeMap<String, Vec<Answer>>;

/// An answer of an operation.
#[derive(Debug)]
pub(super) struct Answer {
    /// The arguments that it applies to, as JSON in the form of the log.
    pub(super) when: Vec<(String, String)>,
    pub(super) outcome: Outcome,
    pub(super) delay: Duration,
    /// How often it is given; `None` if always.
    pub(super) times: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// The result and the `out` and `inout` arguments, if given.
    Values(Option<Any>, Vec<(String, Any)>),
    User(Any),
    System(SystemException),
}

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a script. The message gives line and column.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no script", path.display()))
    }

    /// Adds an object without answers of its own; `false` if the key is in use.
    pub(super) fn add(&mut self, key: &str, interface: &str) -> bool {
        let object = Object { interface: interface.to_owned(), operations: BTreeMap::new() };
        self.0.insert(key.to_owned(), object).is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = (&str, &Object)> {
        self.0.iter().map(|(key, object)| (key.as_str(), object))
    }
}

impl Object {
    /// Returns the answers, checked against the interface. `key` is used in errors.
    ///
    /// # Errors
    /// An operation that the interface does not have, or a value that does not fit its type. The message
    /// gives the location in the script.
    pub(super) fn answers(
        &self,
        key: &str,
        interface: &Interface,
        known: &ValueTypes,
    ) -> anyhow::Result<Answers> {
        let mut answers = Answers::new();
        for (name, said) in &self.operations {
            let place = format!("{key}.{name}");
            let found = interface.find(name).or_else(|| interface.find(&format!("_get_{name}")));
            let operation = found
                .with_context(|| format!("{place}: {} has no such operation or attribute", self.interface))?;
            let lines: Vec<(String, &Value)> = match said {
                Value::Array(lines) => {
                    lines.iter().enumerate().map(|(at, line)| (format!("{place}[{at}]"), line)).collect()
                }
                line => vec![(place, line)],
            };
            let all: anyhow::Result<Vec<Answer>> = lines
                .into_iter()
                .map(|(place, line)| answer(operation, known, line).context(place))
                .collect();
            answers.insert(operation.name.to_string(), all?);
        }
        Ok(answers)
    }
}

fn answer(operation: &OperationInfo, known: &ValueTypes, line: &Value) -> anyhow::Result<Answer> {
    let line: Line = Line::deserialize(line)?;
    let mut when = Vec::new();
    for (name, value) in line.when {
        let param = operation.params.iter().find(|param| *param.name == *name && param.mode.goes_in());
        let param =
            param.with_context(|| format!("when.{name}: {} takes no such argument", operation.name))?;
        // Normalized to the form of the log: 10 and 10.0 are the same double.
        let value = of_type(&param.code, known, &value).with_context(|| format!("when.{name}"))?;
        when.push((name, value.to_json()?));
    }
    let outcome = match (line.raises, line.result, line.out.is_empty()) {
        (Some(_), Some(_), _) | (Some(_), _, false) => {
            bail!("an answer that raises has no result and no out")
        }
        (Some(raises), None, true) => raised(operation, known, &raises).context("raises")?,
        (None, result, _) => {
            if result.is_some() && operation.result.kind() == TypeCode::VOID.kind() {
                bail!("{} has no result", operation.name);
            }
            let result =
                result.map(|value| any(&operation.result, known, &value).context("result")).transpose()?;
            let mut outs = Vec::new();
            for (name, value) in line.out {
                let param =
                    operation.params.iter().find(|param| *param.name == *name && param.mode.comes_out());
                let param =
                    param.with_context(|| format!("out.{name}: {} has no such argument", operation.name))?;
                outs.push((
                    name.clone(),
                    any(&param.code, known, &value).with_context(|| format!("out.{name}"))?,
                ));
            }
            Outcome::Values(result, outs)
        }
    };
    Ok(Answer { when, outcome, delay: Duration::from_millis(line.delay_ms), times: line.times })
}

fn of_type(code: &TypeCode, known: &ValueTypes, value: &Value) -> anyhow::Result<Dynamic> {
    let json = value.to_string();
    Dynamic::from_json_knowing(code, known, &json)
        .map_err(|error| anyhow::anyhow!(fit::value(code, &json, &error)))
}

fn any(code: &TypeCode, known: &ValueTypes, value: &Value) -> anyhow::Result<Any> {
    Ok(Any::from_dynamic(&of_type(code, known, value)?)?)
}

/// Returns a user exception of the operation, or a system exception, for which the name is sufficient.
fn raised(operation: &OperationInfo, known: &ValueTypes, said: &Value) -> anyhow::Result<Outcome> {
    let id = said.as_str().or_else(|| said.get("$exception")?.as_str());
    let id = id.context("the repository id of an exception is expected, alone or as \"$exception\"")?;
    if let Some(kind) =
        SystemExceptionKind::from_repository_id(id).or_else(|| SystemExceptionKind::from_name(id))
    {
        return system(kind, said).map(Outcome::System);
    }
    let listed = operation.raises.iter().find(|code| code.unaliased().id().is_ok_and(|listed| listed == id));
    let code = listed.with_context(|| {
        let listed: Vec<String> =
            operation.raises.iter().filter_map(|code| Some(code.id().ok()?.to_owned())).collect();
        format!(
            "{} does not raise {id}, but {}",
            operation.name,
            if listed.is_empty() { "system exceptions alone".to_owned() } else { listed.join(", ") }
        )
    })?;
    // For an exception without members, the name is sufficient.
    let members = if said.is_string() { &Value::Object(Map::new()) } else { said };
    Ok(Outcome::User(any(code, known, members)?))
}

fn system(kind: SystemExceptionKind, said: &Value) -> anyhow::Result<SystemException> {
    let minor = match said.get("minor") {
        None => MinorCode::NONE,
        Some(minor) => {
            let minor = minor.as_u64().and_then(|minor| u32::try_from(minor).ok());
            MinorCode(minor.context("minor: a number from 0 to 4294967295 is expected")?)
        }
    };
    let completed = match said.get("completed").map(|completed| completed.as_str()) {
        None => CompletionStatus::No,
        Some(Some("COMPLETED_YES")) => CompletionStatus::Yes,
        Some(Some("COMPLETED_NO")) => CompletionStatus::No,
        Some(Some("COMPLETED_MAYBE")) => CompletionStatus::Maybe,
        Some(_) => bail!("completed: COMPLETED_YES, COMPLETED_NO or COMPLETED_MAYBE is expected"),
    };
    // Answers of `zorb call` can be used in a script. A reason is only a comment there.
    let known = ["$exception", "minor", "completed", "reason"];
    if let Some(unknown) =
        said.as_object().and_then(|said| said.keys().find(|key| !known.contains(&key.as_str())))
    {
        bail!("{unknown}: system exceptions have minor and completed alone");
    }
    Ok(SystemException::new(kind, minor, completed))
}
