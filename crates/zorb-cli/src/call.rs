//! `zorb call`: calls an operation of an object whose interface is not compiled into this program.

pub(crate) mod fit;
mod interface;
mod template;

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use giop_codec::{OneLine, Printable};
use serde_json::value::RawValue;
use zorb::dynamic::{DynError, DynamicException, Idl, Interface, Mode, OperationInfo, Request};
use zorb::prelude::*;
use zorb::{ObjectRef, TypeCode};

use crate::client::{Client, block_on};
use crate::failure::of_exception;
use crate::limits::in_options;
use crate::login::Login;
use crate::output::{Node, Output, Tone, escaped_json, told};
use crate::{Verdict, target};
use interface::Wanted;
pub(crate) use interface::repository_id;

const EXAMPLES: &str = "\
Examples:
  zorb call account.ior deposit '{\"amount\": 10}' --idl bank.idl
  zorb call account.ior Bank::Account.deposit '[10]' --idl bank.idl    arguments in their order
  zorb call account.ior balance       an attribute, by the interface repository of the object
  zorb call account.ior limit 100     and a new value for one
  zorb call account.ior --idl bank.idl    which operations are there?
  zorb call corbaloc::host:2809/Account deposit '[10]' --idl bank.idl    the object is asked which interface of the IDL it has
  zorb call account.ior deposit --template --idl bank.idl    a skeleton of the arguments
  zorb call account.ior photo --idl bank.idl --max-message 64M    an answer of more than 16 MiB

The answer is an object with the out and inout arguments, and with the result as \"$result\". An exception is printed as JSON too,
and the exit code is 1. How types of IDL look in JSON is in docs/JSON.md of zorb.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// IOR:, corbaloc:, corbaname:, file:, a file that holds one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// OPERATION, or INTERFACE.OPERATION, or an attribute; without it, or with INTERFACE alone, all are
    /// listed. INTERFACE is Bank::Account or a repository id
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
    /// Arguments: an object with their names, an array in their order, or one value; @FILE reads a file, -
    /// standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Print a skeleton of the arguments of OPERATION as JSON, and call nothing
    #[arg(long, requires = "operation", conflicts_with = "arguments")]
    template: bool,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    login: Login,
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
    pub(crate) repository: Option<String>,
}

/// Runs the command: calls and prints the answer, lists the operations, or prints a skeleton of the
/// arguments.
///
/// # Errors
/// The reference, the IDL or the arguments are invalid, or output fails. An exception is printed and is not
/// an error.
pub(crate) fn run(args: &CallArgs, output: &Output) -> anyhow::Result<Verdict> {
    let url = target::read(&args.target)?.to_string();
    let idl = args.idl.read()?;
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    let credentials = args.login.credentials()?;
    block_on(async {
        let orb = args.client.orb_as(credentials).await?;
        if let Some(idl) = &idl {
            orb.add_value_types(&idl.value_types());
        }
        let object: ObjectRef = orb.resolve_unchecked(&url).await?;
        let known = (idl.as_ref(), args.idl.repository.as_deref());
        let named = Named::of(&orb, &object, args.operation.as_deref(), known, output).await?;
        let Some(name) = named.operation else {
            anyhow::ensure!(!args.template, "which operation? {}", choice(&named.interface));
            output.show(&listed(&named.interface), |operations| {
                let lines = operations.iter().map(|operation| Node::new(operation.clone(), ""));
                vec![Node::new(told(named.interface.id()), "").under(lines)]
            })?;
            return Ok(Verdict::Good);
        };
        if args.template {
            // For an attribute, the operation with an argument, which sets it.
            let operation = find(&named.interface, name, true, idl.as_ref())?;
            let skeleton = RawValue::from_string(template::of(inputs(&operation))?)?;
            output.show(&skeleton, |skeleton| vec![Node::lines("", escaped_json(skeleton.get()).lines())])?;
            return Ok(Verdict::Good);
        }
        let operation = find(&named.interface, name, arguments.is_some(), idl.as_ref())?;
        let request = request(&object, &operation, arguments.as_deref())?;
        let answered = if operation.oneway {
            let sent = match request.send_oneway().await {
                // The message must be handed to the system before this process ends.
                Ok(()) => object.flush().await,
                Err(error) => Err(error),
            };
            sent.map(|()| None).map_err(DynamicException::System)
        } else {
            request.invoke().await.map(Some)
        };
        let (text, verdict, tone) = match &answered {
            Ok(Some(answered)) => (answered.to_json(), Verdict::Good, Tone::Plain),
            Ok(None) => (Ok("{}".to_owned()), Verdict::Good, Tone::Plain),
            Err(exception) => (told_exception(exception), of_answer(exception), Tone::Bad),
        };
        let json = text.context("the answer has no JSON")?;
        if let Err(DynamicException::System(error)) = &answered {
            let text = error.to_string();
            output.remark(&text);
            if error.kind == SystemExceptionKind::ImpLimit && in_options(&text) == text {
                output.remark("it is a limit of the server: zorb serve has --max-message SIZE too");
            }
        }
        output.show_json(&json, tone)?;
        Ok(verdict)
    })
}

/// An interface of an object, and one of its operations if the command line names one.
pub(crate) struct Named<'a> {
    pub(crate) interface: Arc<Interface>,
    pub(crate) operation: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Interprets the command line: OPERATION, INTERFACE.OPERATION, or INTERFACE, by IDL or by an interface
    /// repository.
    ///
    /// # Errors
    /// The interface is not known.
    pub(crate) async fn of(
        orb: &Orb,
        object: &ObjectRef,
        text: Option<&'a str>,
        (idl, repository): (Option<&Idl>, Option<&str>),
        output: &Output,
    ) -> anyhow::Result<Self> {
        let mut wanted = Wanted::of(text);
        let found = interface::find(orb, object, wanted, idl, repository).await?;
        if let Some(remark) = &found.remark {
            output.remark(remark);
        }
        let mut interface = found.interface;
        // An interface outside of all modules has the syntax of an operation.
        if let (Some(idl), Some(name)) = (idl, wanted.operation)
            && find(&interface, name, false, None).is_err()
            && let Some(other) = idl.interface(name)
        {
            (interface, wanted.operation) = (other, None);
        }
        Ok(Self { interface, operation: wanted.operation })
    }
}

/// Returns the request for an operation with arguments in JSON.
///
/// # Errors
/// The arguments do not fit the operation.
pub(crate) fn request(
    object: &ObjectRef,
    operation: &Arc<OperationInfo>,
    arguments: Option<&str>,
) -> anyhow::Result<Request> {
    let json = by_name(operation, arguments.unwrap_or("{}"))?;
    let request = Request::described(object, operation).with_json(&json);
    request.map_err(|error| misfit(operation, &json, &error))
}

/// Returns the names and types of the arguments that the caller passes.
fn inputs(operation: &OperationInfo) -> impl Iterator<Item = (&str, &TypeCode)> {
    let inputs = operation.params.iter().filter(|param| param.mode.goes_in());
    inputs.map(|param| (&*param.name, &param.code))
}

impl IdlArgs {
    /// Returns the IDL, if files were named.
    ///
    /// # Errors
    /// All errors of the IDL.
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

/// Returns the verdict for an exception. It is the object's answer, unless no server answered.
fn of_answer(exception: &DynamicException) -> Verdict {
    match exception {
        DynamicException::System(error) => of_exception(error),
        _ => Verdict::Bad,
    }
}

/// Returns an exception as JSON, with a reason in terms of this program's options.
fn told_exception(exception: &DynamicException) -> Result<String, DynError> {
    let json = exception.to_json()?;
    Ok(match exception {
        DynamicException::System(_) => in_options(&json).into_owned(),
        _ => json,
    })
}

/// Lists the operations and attributes in IDL. The names are untrusted, because they may come from an
/// interface repository.
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

/// Returns the name of a type as in IDL: for a definition, its scoped name.
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

/// Returns the operation of this name, or the accessor of the attribute of this name: with arguments the one
/// that sets it.
///
/// # Errors
/// There is none, or the attribute is readonly. The message names another interface of `idl` that has the
/// operation.
pub(crate) fn find(
    interface: &Interface,
    name: &str,
    has_arguments: bool,
    idl: Option<&Idl>,
) -> anyhow::Result<Arc<OperationInfo>> {
    let (get, set) = (format!("_get_{name}"), format!("_set_{name}"));
    let accessor = if has_arguments { &set } else { &get };
    if let Some(found) = interface.find(name).or_else(|| interface.find(accessor)) {
        return Ok(found.clone());
    }
    if interface.find(&get).is_some() {
        bail!("{name} is readonly");
    }
    let others = idl.map(|idl| interface::having(idl, name)).unwrap_or_default();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; {} would be one of another interface", others.join(" or ")),
    };
    bail!("{} has no operation {name}{others}; {}", Printable::new(interface.id()), choice(interface))
}

fn choice(interface: &Interface) -> String {
    format!("it has\n  {}", listed(interface).join("\n  "))
}

/// Returns the text of the arguments: `text` itself, a file, or standard input.
pub(crate) fn read_arguments(text: &str) -> anyhow::Result<String> {
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

/// Converts arguments to an object with their names. The texts of the values are not changed.
fn by_name(operation: &OperationInfo, json: &str) -> anyhow::Result<String> {
    let inputs: Vec<&str> =
        operation.params.iter().filter(|param| param.mode.goes_in()).map(|param| &*param.name).collect();
    let values: Vec<&RawValue> = match json.trim_start().chars().next() {
        Some('{') => return Ok(json.to_owned()),
        Some('[') => serde_json::from_str(json),
        _ => serde_json::from_str(json).map(|one| vec![one]),
    }
    .context("the arguments are no JSON")?;
    // A single parameter may itself be an array.
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

/// Returns the error for arguments that do not fit, with the expected form.
fn misfit(operation: &OperationInfo, json: &str, error: &SystemException) -> anyhow::Error {
    let why = std::error::Error::source(error);
    let why = match why.and_then(|why| why.downcast_ref::<DynError>()) {
        Some(error) => {
            let members: Vec<(&str, &TypeCode)> = inputs(operation).collect();
            fit::members(&members, json, error)
        }
        None => why.map_or_else(|| error.to_string(), ToString::to_string),
    };
    anyhow::anyhow!("the arguments do not fit: {why}; the operation is {}", signature(operation))
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
        // Anonymous sequences as parameters require IDL 4 or later.
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
        let found =
            |name: &str, arguments| find(&account, name, arguments, None).map(|one| one.name.to_string());
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
        let of = |name: &str, json: &str| by_name(&find(&account, name, true, None).unwrap(), json);
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
