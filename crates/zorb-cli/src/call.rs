//! `zorb call`: calls an operation of an object that this program knows nothing of.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use giop_codec::{OneLine, Printable};
use serde_json::value::RawValue;
use zorb::dynamic::{
    DynamicException, Idl, Interface, Mode, OperationInfo, Request, interface_of, look_up_interface,
};
use zorb::prelude::*;
use zorb::{ObjectRef, TypeCode};

use crate::client::{Client, block_on};
use crate::failure::of_exception;
use crate::output::{Node, Output, Tone, told};
use crate::{Verdict, target};

const EXAMPLES: &str = "\
Examples:
  zorb call account.ior deposit '{\"amount\": 10}' --idl bank.idl
  zorb call account.ior Bank::Account.deposit '[10]' --idl bank.idl    arguments in their order
  zorb call account.ior balance       an attribute, by the interface repository of the object
  zorb call account.ior limit 100     and a new value for one
  zorb call account.ior --idl bank.idl    which operations are there?

The answer is an object with the out and inout arguments, and with the result as \"$result\". An exception is printed as JSON too,
and the exit code is 1. How types of IDL look in JSON is in docs/JSON.md of zorb.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// IOR:, corbaloc:, corbaname:, file:, a file that holds one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// OPERATION, or Interface.OPERATION, or an attribute; without it all are listed
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
    /// Arguments: an object by their names, an array in their order, or one value; @FILE reads a file, - standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    client: Client,
}

/// Where the interface is known from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Interfaces")]
pub(crate) struct IdlArgs {
    /// IDL files that have the interface; without them the object's interface repository is asked
    #[arg(long = "idl", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A folder in which #include looks
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a macro; without a value it is 1
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The reference of an interface repository to ask in place of the object's
    #[arg(long, value_name = "REFERENCE", conflicts_with = "files")]
    repository: Option<String>,
}

/// An operation, as it was named.
struct Wanted<'a> {
    /// The interface, where it was said.
    interface: Option<&'a str>,
    operation: &'a str,
}

impl<'a> Wanted<'a> {
    fn of(text: &'a str) -> Self {
        match text.rsplit_once('.') {
            Some((interface, operation)) => Self { interface: Some(interface), operation },
            None => Self { interface: None, operation: text },
        }
    }
}

/// Calls, and prints the answer; or lists what can be called.
///
/// # Errors
/// The reference, the IDL or the arguments are not what they should be; output fails. An exception is none: it is printed.
pub(crate) fn run(args: &CallArgs, output: &Output) -> anyhow::Result<Verdict> {
    let url = target::read(&args.target)?.to_string();
    let wanted = args.operation.as_deref().map(Wanted::of);
    let idl = args.idl.read()?;
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    block_on(async {
        let orb = args.client.orb().await?;
        let object: ObjectRef = orb.resolve_unchecked(&url).await?;
        let name = wanted.as_ref().and_then(|wanted| wanted.interface);
        let interface = match &idl {
            Some(idl) => in_idl(idl, name, &object)?,
            None => in_repository(&orb, &object, name, args.idl.repository.as_deref()).await?,
        };
        let Some(wanted) = wanted else {
            output.show(&listed(&interface), |operations| {
                let lines = operations.iter().map(|operation| Node::new(operation.clone(), ""));
                vec![Node::new(told(interface.id()), "").under(lines)]
            })?;
            return Ok(Verdict::Good);
        };
        let operation = find(&interface, wanted.operation, arguments.is_some())?;
        let json = by_name(&operation, arguments.as_deref().unwrap_or("{}"))?;
        let request = Request::described(&object, &operation).with_json(&json);
        let request = request.map_err(|error| misfit(&operation, &error))?;
        let answered = if operation.oneway {
            request.send_oneway().await.map(|()| None).map_err(DynamicException::System)
        } else {
            request.invoke().await.map(Some)
        };
        let (text, verdict, tone) = match &answered {
            Ok(Some(answered)) => (answered.to_json(), Verdict::Good, Tone::Plain),
            Ok(None) => (Ok("{}".to_owned()), Verdict::Good, Tone::Plain),
            Err(exception) => (exception.to_json(), of_answer(exception), Tone::Bad),
        };
        // One that was sent is to be with the system before this process ends.
        object.flush().await.ok();
        let json: serde_json::Value = serde_json::from_str(&text.context("the answer has no JSON")?)?;
        if let Err(DynamicException::System(error)) = &answered {
            output.remark(&error.to_string());
        }
        output.show(&json, |json| vec![Node::json(json).tone(tone)])?;
        Ok(verdict)
    })
}

impl IdlArgs {
    /// The IDL, where files were named.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Idl>> {
        if self.files.is_empty() {
            anyhow::ensure!(
                self.include.is_empty() && self.define.is_empty(),
                "-I and -D are for IDL files: --idl FILE"
            );
            return Ok(None);
        }
        let mut options = Idl::options();
        for folder in &self.include {
            options = options.include(folder);
        }
        for define in &self.define {
            options = options.define(define);
        }
        Ok(Some(options.files(&self.files)?))
    }
}

/// An exception is the answer of the object, unless nothing answered.
fn of_answer(exception: &DynamicException) -> Verdict {
    match exception {
        DynamicException::System(error) => of_exception(error),
        _ => Verdict::Bad,
    }
}

/// The interface in IDL: the named one, else that of the reference's repository id.
fn in_idl(idl: &Idl, name: Option<&str>, object: &ObjectRef) -> anyhow::Result<Arc<Interface>> {
    let all = || {
        let names: Vec<&str> = idl
            .definitions()
            .filter(|one| one.interface().is_some() && !one.is_included())
            .map(|one| one.scoped_name())
            .collect();
        names.join(", ")
    };
    match name {
        Some(name) => idl
            .interface(&name.replace('/', "::"))
            .with_context(|| format!("the IDL has no interface {name}; it has {}", all())),
        None => {
            let id = object.repository_id();
            let found = idl.find_id(id).and_then(|one| one.interface().cloned());
            found.with_context(|| match id {
                "" => format!(
                    "the reference does not say its interface: name it, Interface.OPERATION; the IDL has {}",
                    all()
                ),
                id => {
                    format!(
                        "the IDL has no interface {}, which is that of the reference; it has {}",
                        Printable::new(id),
                        all()
                    )
                }
            })
        }
    }
}

/// The interface by an interface repository.
async fn in_repository(
    orb: &Orb,
    object: &ObjectRef,
    name: Option<&str>,
    repository: Option<&str>,
) -> anyhow::Result<Arc<Interface>> {
    let found = match repository {
        None => interface_of(object).await,
        Some(url) => {
            let url = target::read(url)?.to_string();
            let repository: ObjectRef = orb.resolve_unchecked(&url).await?;
            let id = match name {
                Some(name) => format!("IDL:{}:1.0", name.replace("::", "/")),
                None => object.repository_id().to_owned(),
            };
            look_up_interface(&repository, &id).await
        }
    };
    found.context("no interface repository told of the object's interface: name the IDL, --idl FILE")
}

/// What can be called, as IDL. An interface repository may have told anything.
fn listed(interface: &Interface) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for one in interface.lineage() {
        for attribute in one.attributes() {
            let readonly = if attribute.readonly { "readonly " } else { "" };
            all.push(format!("{readonly}attribute {} {};", type_name(&attribute.code), attribute.name));
        }
        all.extend(one.operations().iter().map(|operation| signature(operation)));
    }
    all.iter().map(|line| OneLine::new(line).to_string()).collect()
}

fn signature(operation: &OperationInfo) -> String {
    let oneway = if operation.oneway { "oneway " } else { "" };
    let param = |param: &zorb::dynamic::ParamInfo| {
        let mode = match param.mode {
            Mode::In => "in",
            Mode::Out => "out",
            Mode::InOut => "inout",
        };
        format!("{mode} {} {}", type_name(&param.code), param.name)
    };
    let params: Vec<String> = operation.params.iter().map(param).collect();
    let raises: Vec<String> = operation.raises.iter().map(type_name).collect();
    let raises = if raises.is_empty() { String::new() } else { format!(" raises ({})", raises.join(", ")) };
    let text = format!(
        "{oneway}{} {}({}){raises};",
        type_name(&operation.result),
        operation.name,
        params.join(", ")
    );
    OneLine::new(&text).to_string()
}

/// As IDL names it: a definition by its name alone.
fn type_name(code: &TypeCode) -> String {
    match code.id() {
        Ok(id) => match id.strip_prefix("IDL:").and_then(|id| id.rsplit_once(':')) {
            Some((path, _)) => {
                path.split('/').filter(|scope| !scope.contains('.')).collect::<Vec<_>>().join("::")
            }
            None => code.name().map_or_else(|_| code.to_string(), str::to_owned),
        },
        Err(_) => code.to_string(),
    }
}

/// The operation of that name, or the accessor of the attribute of that name: with arguments the one that sets it.
fn find(interface: &Interface, name: &str, has_arguments: bool) -> anyhow::Result<Arc<OperationInfo>> {
    let (get, set) = (format!("_get_{name}"), format!("_set_{name}"));
    let accessor = if has_arguments { &set } else { &get };
    if let Some(found) = interface.find(name).or_else(|| interface.find(accessor)) {
        return Ok(found.clone());
    }
    if interface.find(&get).is_some() {
        bail!("{name} is readonly");
    }
    bail!(
        "{} has no operation {name}; it has\n  {}",
        Printable::new(interface.id()),
        listed(interface).join("\n  ")
    )
}

/// The text of the arguments, from wherever it is.
fn read_arguments(text: &str) -> anyhow::Result<String> {
    match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read {path}")),
        None if text == "-" => {
            let mut read = String::new();
            io::stdin().read_to_string(&mut read).context("cannot read standard input")?;
            Ok(read)
        }
        None => Ok(text.to_owned()),
    }
}

/// Arguments by their names, whichever way they came. Their texts are left as they are.
fn by_name(operation: &OperationInfo, json: &str) -> anyhow::Result<String> {
    let inputs: Vec<&str> =
        operation.params.iter().filter(|param| param.mode.goes_in()).map(|param| &*param.name).collect();
    let values: Vec<&RawValue> = match json.trim_start().chars().next() {
        Some('{') => return Ok(json.to_owned()),
        Some('[') => serde_json::from_str(json),
        _ => serde_json::from_str(json).map(|one| vec![one]),
    }
    .context("the arguments are no JSON")?;
    // One parameter may be an array itself.
    let values = match (&*inputs, values.len()) {
        ([_], count) if count != 1 => vec![serde_json::from_str(json).context("the arguments are no JSON")?],
        _ => values,
    };
    if values.len() != inputs.len() {
        bail!(
            "{} takes {} argument(s), {} came: {}",
            operation.name,
            inputs.len(),
            values.len(),
            signature(operation)
        );
    }
    let members: Vec<String> = inputs
        .iter()
        .zip(values)
        .map(|(name, value)| Ok(format!("{}:{value}", serde_json::to_string(name)?)))
        .collect::<anyhow::Result<_>>()?;
    Ok(format!("{{{}}}", members.join(",")))
}

fn misfit(operation: &OperationInfo, error: &SystemException) -> anyhow::Error {
    let why = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    anyhow::anyhow!("the arguments do not fit {}: {why}", signature(operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANK: &str = "module Bank { exception Broke { double missing; };
        interface Base { readonly attribute string owner; };
        interface Account : Base {
            attribute double limit;
            double deposit(in double amount, in sequence<long> coins, out string note) raises (Broke);
            void list(in sequence<long> all);
            oneway void poke(); }; };";

    fn account() -> Arc<Interface> {
        // An anonymous sequence as a parameter is for IDL 4 and later.
        Idl::parse(
            &BANK
                .replace("sequence<long>", "Coins")
                .replace("interface Base", "typedef sequence<long> Coins; interface Base"),
        )
        .unwrap()
        .interface("Bank::Account")
        .unwrap()
    }

    #[test]
    fn operations_and_attributes_are_found_by_their_names() {
        let account = account();
        let found = |name: &str, arguments| find(&account, name, arguments).map(|one| one.name.to_string());
        assert_eq!(found("deposit", true).unwrap(), "deposit");
        assert_eq!(found("owner", false).unwrap(), "_get_owner");
        assert_eq!(found("limit", true).unwrap(), "_set_limit");
        assert_eq!(found("_get_limit", false).unwrap(), "_get_limit");
        assert_eq!(found("owner", true).unwrap_err().to_string(), "owner is readonly");
        let unknown = found("deposits", false).unwrap_err().to_string();
        assert!(unknown.contains("double deposit(in double amount, in Bank::Coins coins, out string note) raises (Bank::Broke);"), "{unknown}");
        assert!(
            unknown.contains("readonly attribute string owner;") && unknown.contains("oneway void poke();"),
            "{unknown}"
        );
    }

    #[test]
    fn arguments_come_by_name_in_order_or_alone() {
        let account = account();
        let of = |name: &str, json: &str| by_name(&find(&account, name, true).unwrap(), json);
        let named = r#"{"amount":1,"coins":[2]}"#;
        assert_eq!(of("deposit", named).unwrap(), named);
        assert_eq!(of("deposit", "[1,[2]]").unwrap(), named);
        assert_eq!(of("list", "[1,2]").unwrap(), r#"{"all":[1,2]}"#);
        assert_eq!(of("list", "[[1]]").unwrap(), r#"{"all":[1]}"#);
        assert_eq!(of("limit", "1.50").unwrap(), r#"{"value":1.50}"#);
        assert!(of("deposit", "[1]").unwrap_err().to_string().contains("takes 2 argument(s), 1 came"));
        assert!(of("deposit", "nonsense").is_err());
    }
}
