//! The script of `zorb serve`: a JSON file with the objects to serve and their answers.

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

#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Script(BTreeMap<String, ScriptObject>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptObject {
    pub(super) interface: String,
    /// One answer, or an array of answers, for each operation and attribute.
    #[serde(default)]
    operations: BTreeMap<String, Value>,
}

/// An answer as it is written in a script. The field names are the JSON keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptAnswer {
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

/// The answers of an object, by the operation name in requests, such as `deposit` or `_get_balance`.
pub(super) type Answers = BTreeMap<String, Vec<Answer>>;

#[derive(Debug)]
pub(super) struct Answer {
    /// The arguments with which the answer applies: names, and values as normalized JSON.
    pub(super) when: Vec<(String, String)>,
    pub(super) outcome: Outcome,
    pub(super) delay: Duration,
    /// The maximum number of calls that get this answer, or `None` if there is no limit.
    pub(super) max_uses: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// The result and the `out` and `inout` arguments, if given.
    Values(Option<Any>, Vec<(String, Any)>),
    UserException(Any),
    SystemException(SystemException),
}

impl Script {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a valid script", path.display()))
    }

    /// Adds an object without answers. If the key is already in use, replaces that object and returns false.
    pub(super) fn add(&mut self, key: &str, interface: &str) -> bool {
        let object = ScriptObject { interface: interface.to_owned(), operations: BTreeMap::new() };
        self.0.insert(key.to_owned(), object).is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = (&str, &ScriptObject)> {
        self.0.iter().map(|(key, object)| (key.as_str(), object))
    }
}

impl ScriptObject {
    /// Parses the answers and checks them against the interface. `key` is the object's key, for errors.
    pub(super) fn answers(
        &self,
        key: &str,
        interface: &Interface,
        value_types: &ValueTypes,
    ) -> anyhow::Result<Answers> {
        let mut answers = Answers::new();
        for (name, entry) in &self.operations {
            let location = format!("{key}.{name}");
            let found = interface.find(name).or_else(|| interface.find(&format!("_get_{name}")));
            let operation = found.with_context(|| {
                format!("{location}: {} has no such operation or attribute", self.interface)
            })?;
            let answer_values: Vec<(String, &Value)> = match entry {
                Value::Array(values) => values
                    .iter()
                    .enumerate()
                    .map(|(index, value)| (format!("{location}[{index}]"), value))
                    .collect(),
                value => vec![(location, value)],
            };
            let all: anyhow::Result<Vec<Answer>> = answer_values
                .into_iter()
                .map(|(location, value)| parse_answer(operation, value_types, value).context(location))
                .collect();
            answers.insert(operation.name.to_string(), all?);
        }
        Ok(answers)
    }
}

fn parse_answer(
    operation: &OperationInfo,
    value_types: &ValueTypes,
    value: &Value,
) -> anyhow::Result<Answer> {
    let parsed = ScriptAnswer::deserialize(value)?;
    let mut when = Vec::new();
    for (name, value) in parsed.when {
        let param = operation.params.iter().find(|param| *param.name == *name && param.mode.is_input());
        let param = param.with_context(|| {
            format!("when.{name}: {} has no `in` or `inout` argument of this name", operation.name)
        })?;
        // The JSON is normalized, because for example 10 and 10.0 are the same double.
        let value = parse_value(&param.code, value_types, &value).with_context(|| format!("when.{name}"))?;
        when.push((name, value.to_json()?));
    }
    let outcome = match (parsed.raises, parsed.result, parsed.out.is_empty()) {
        (Some(_), Some(_), _) | (Some(_), _, false) => {
            bail!("an answer with `raises` cannot have `result` or `out`")
        }
        (Some(raises), None, true) => parse_exception(operation, value_types, &raises).context("raises")?,
        (None, result, _) => {
            if result.is_some() && operation.result.kind() == TypeCode::VOID.kind() {
                bail!("{} has no result, so `result` must be omitted", operation.name);
            }
            let result = result
                .map(|value| parse_any(&operation.result, value_types, &value).context("result"))
                .transpose()?;
            let mut outs = Vec::new();
            for (name, value) in parsed.out {
                let param =
                    operation.params.iter().find(|param| *param.name == *name && param.mode.is_output());
                let param = param.with_context(|| {
                    format!("out.{name}: {} has no `out` or `inout` argument of this name", operation.name)
                })?;
                outs.push((
                    name.clone(),
                    parse_any(&param.code, value_types, &value).with_context(|| format!("out.{name}"))?,
                ));
            }
            Outcome::Values(result, outs)
        }
    };
    Ok(Answer { when, outcome, delay: Duration::from_millis(parsed.delay_ms), max_uses: parsed.times })
}

fn parse_value(code: &TypeCode, value_types: &ValueTypes, value: &Value) -> anyhow::Result<Dynamic> {
    let json = value.to_string();
    Dynamic::from_json_with_types(code, value_types, &json)
        .map_err(|error| anyhow::anyhow!(fit::describe_value_error(code, &json, &error)))
}

fn parse_any(code: &TypeCode, value_types: &ValueTypes, value: &Value) -> anyhow::Result<Any> {
    Ok(Any::from_dynamic(&parse_value(code, value_types, value)?)?)
}

/// Parses a user exception that the operation declares, or a system exception.
fn parse_exception(
    operation: &OperationInfo,
    value_types: &ValueTypes,
    value: &Value,
) -> anyhow::Result<Outcome> {
    let id = value.as_str().or_else(|| value.get("$exception")?.as_str());
    let id = id.context(
        "expected the repository id of an exception, as a string or in the member \"$exception\" of an object",
    )?;
    if let Some(kind) =
        SystemExceptionKind::from_repository_id(id).or_else(|| SystemExceptionKind::from_name(id))
    {
        return parse_system_exception(kind, value).map(Outcome::SystemException);
    }
    let declared = operation.raises.iter().find(|code| code.unaliased().id().is_ok_and(|other| other == id));
    let code = declared.with_context(|| {
        let declared: Vec<String> =
            operation.raises.iter().filter_map(|code| Some(code.id().ok()?.to_owned())).collect();
        format!(
            "{} does not raise {id}, but only {}",
            operation.name,
            if declared.is_empty() { "system exceptions".to_owned() } else { declared.join(", ") }
        )
    })?;
    // An exception without members can be written as a string.
    let members = if value.is_string() { &Value::Object(Map::new()) } else { value };
    Ok(Outcome::UserException(parse_any(code, value_types, members)?))
}

fn parse_system_exception(kind: SystemExceptionKind, value: &Value) -> anyhow::Result<SystemException> {
    let minor = match value.get("minor") {
        None => MinorCode::NONE,
        Some(minor) => {
            let minor = minor.as_u64().and_then(|minor| u32::try_from(minor).ok());
            MinorCode(minor.context("minor: expected an integer from 0 to 4294967295")?)
        }
    };
    let completed = match value.get("completed").map(|completed| completed.as_str()) {
        None => CompletionStatus::No,
        Some(Some("COMPLETED_YES")) => CompletionStatus::Yes,
        Some(Some("COMPLETED_NO")) => CompletionStatus::No,
        Some(Some("COMPLETED_MAYBE")) => CompletionStatus::Maybe,
        Some(_) => bail!("completed: expected COMPLETED_YES, COMPLETED_NO or COMPLETED_MAYBE"),
    };
    // `reason` is ignored. It is permitted so that the output of `zorb call` can be used in a script.
    let known = ["$exception", "minor", "completed", "reason"];
    if let Some(unknown) =
        value.as_object().and_then(|members| members.keys().find(|key| !known.contains(&key.as_str())))
    {
        bail!("{unknown}: the only other members of a system exception are minor and completed");
    }
    Ok(SystemException::new(kind, minor, completed))
}
