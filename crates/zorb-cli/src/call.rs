//! `zorb call`: calls an operation of an object of any interface.

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

use crate::client::{ClientOptions, block_on};
use crate::failure::{Verdict, verdict_of_dynamic};
use crate::limits::replace_library_options;
use crate::login::LoginOptions;
use crate::output::{Node, Output, Tone, escaped_json, printable};
use crate::target;
use interface::CallNames;
pub(crate) use interface::repository_id;

const EXAMPLES: &str = "\
Examples:
  zorb call account.ior deposit '{\"amount\": 10}' --idl bank.idl
  zorb call account.ior Bank::Account.deposit '[10]' --idl bank.idl    arguments by position
  zorb call account.ior balance       read an attribute, with the interface repository of the object
  zorb call account.ior limit 100     set an attribute
  zorb call account.ior --idl bank.idl    list all operations
  zorb call corbaloc::host:2809/Account deposit '[10]' --idl bank.idl    the object reports which interface of the IDL it has
  zorb call account.ior deposit --template --idl bank.idl    print a template of the arguments
  zorb call account.ior photo --idl bank.idl --max-message 64M    a reply of more than 16 MiB

The output is a JSON object with the out and inout arguments, and with the result as \"$result\". An exception is printed as JSON
too, with exit code 1. docs/JSON.md of zorb describes the JSON form of IDL types.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The object: IOR:, corbaloc:, corbaname: or file:, a file that contains one, or - for standard input
    #[arg(value_name = "REFERENCE")]
    target: String,
    /// The operation or attribute: NAME or INTERFACE.NAME. INTERFACE is a name such as Bank::Account, or a
    /// repository id. Without NAME, all operations are listed
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
    /// The arguments: an object (by name), an array (by position), or a single value; @FILE reads them from a
    /// file, and - from standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Print a template of the arguments of OPERATION as JSON, without a call
    #[arg(long, requires = "operation", conflicts_with = "arguments")]
    template: bool,
    #[command(flatten)]
    idl: IdlArgs,
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    client: ClientOptions,
}

/// The source of the interface.
#[derive(Debug, Args)]
#[command(next_help_heading = "Interfaces")]
pub(crate) struct IdlArgs {
    /// An IDL file with the interface (default: the interface repository of the object); may be repeated
    #[arg(long = "idl", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A folder that is searched by #include; may be repeated
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a macro, with the value 1 by default; may be repeated
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// The interface repository to use instead of the object's
    #[arg(long, value_name = "REFERENCE", conflicts_with = "files")]
    pub(crate) repository: Option<String>,
}

/// Calls the operation and prints the results, lists the operations, or prints a template of the arguments.
/// An exception is a printed result and not an error.
pub(crate) fn run(args: &CallArgs, output: &Output) -> anyhow::Result<Verdict> {
    let url = target::read(&args.target)?.to_string();
    let idl = args.idl.read()?;
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    let credentials = args.login.credentials()?;
    block_on(async {
        let orb = args.client.orb(credentials).await?;
        if let Some(idl) = &idl {
            orb.add_value_types(&idl.value_types());
        }
        let object: ObjectRef = orb.resolve_unchecked(&url).await?;
        let sources = (idl.as_ref(), args.idl.repository.as_deref());
        let target = CallTarget::find(&orb, &object, args.operation.as_deref(), sources, output).await?;
        let Some(name) = target.operation else {
            anyhow::ensure!(
                !args.template,
                "--template requires an operation, but only an interface is given; {}",
                operation_list(&target.interface)
            );
            output.show(&signatures(&target.interface), |operations| {
                let lines = operations.iter().map(|operation| Node::new(operation.clone(), ""));
                vec![Node::new(printable(target.interface.id()), "").children(lines)]
            })?;
            return Ok(Verdict::Good);
        };
        if args.template {
            // For an attribute, find the operation that sets it, because only this operation has an argument.
            let operation = find_operation(&target.interface, name, true, idl.as_ref())?;
            let template = RawValue::from_string(template::arguments_template(input_params(&operation))?)?;
            output.show(&template, |template| vec![Node::lines("", escaped_json(template.get()).lines())])?;
            return Ok(Verdict::Good);
        }
        let operation = find_operation(&target.interface, name, arguments.is_some(), idl.as_ref())?;
        let request = create_request(&object, &operation, arguments.as_deref())?;
        let result = if operation.oneway {
            let sent = match request.send_oneway().await {
                // Without the flush, the process could end before the message is sent.
                Ok(()) => object.flush().await,
                Err(error) => Err(error),
            };
            sent.map(|()| None).map_err(DynamicException::System)
        } else {
            request.invoke().await.map(Some)
        };
        let (json, verdict, tone) = match &result {
            Ok(Some(results)) => (results.to_json(), Verdict::Good, Tone::Plain),
            Ok(None) => (Ok("{}".to_owned()), Verdict::Good, Tone::Plain),
            Err(exception) => (exception_json(exception), verdict_of_dynamic(exception), Tone::Bad),
        };
        let json = json.context("the result cannot be written as JSON")?;
        if let Err(DynamicException::System(error)) = &result {
            let text = error.to_string();
            output.remark(&text);
            if error.kind == SystemExceptionKind::ImpLimit && replace_library_options(&text) == text {
                output.remark(
                    "this is a limit of the server; for `zorb serve`, the option --max-message SIZE increases it",
                );
            }
        }
        output.show_json(&json, tone)?;
        Ok(verdict)
    })
}

/// The interface with which an object is called, and the name of the operation, if the user has given one.
pub(crate) struct CallTarget<'a> {
    pub(crate) interface: Arc<Interface>,
    pub(crate) operation: Option<&'a str>,
}

impl<'a> CallTarget<'a> {
    /// Interprets OPERATION, INTERFACE.OPERATION or INTERFACE, with IDL or an interface repository.
    pub(crate) async fn find(
        orb: &Orb,
        object: &ObjectRef,
        text: Option<&'a str>,
        (idl, repository): (Option<&Idl>, Option<&str>),
        output: &Output,
    ) -> anyhow::Result<Self> {
        let mut names = CallNames::parse(text);
        let (mut interface, remark) = interface::find(orb, object, names, idl, repository).await?;
        if let Some(remark) = &remark {
            output.remark(remark);
        }
        // The name of an interface outside of modules looks like the name of an operation.
        if let (Some(idl), Some(name)) = (idl, names.operation)
            && find_operation(&interface, name, false, None).is_err()
            && let Some(other) = idl.interface(name)
        {
            (interface, names.operation) = (other, None);
        }
        Ok(Self { interface, operation: names.operation })
    }
}

pub(crate) fn create_request(
    object: &ObjectRef,
    operation: &Arc<OperationInfo>,
    arguments: Option<&str>,
) -> anyhow::Result<Request> {
    let json = arguments_by_name(operation, arguments.unwrap_or("{}"))?;
    let request = Request::described(object, operation).with_json(&json);
    request.map_err(|error| argument_error(operation, &json, &error))
}

fn input_params(operation: &OperationInfo) -> impl Iterator<Item = (&str, &TypeCode)> {
    let inputs = operation.params.iter().filter(|param| param.mode.is_input());
    inputs.map(|param| (&*param.name, &param.code))
}

impl IdlArgs {
    pub(crate) fn read(&self) -> anyhow::Result<Option<Idl>> {
        if self.files.is_empty() {
            anyhow::ensure!(
                self.include.is_empty() && self.define.is_empty(),
                "-I and -D require --idl FILE"
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

/// Returns an exception as JSON. Its reason mentions options of this program, not of the library.
fn exception_json(exception: &DynamicException) -> Result<String, DynError> {
    let json = exception.to_json()?;
    Ok(match exception {
        DynamicException::System(_) => replace_library_options(&json).into_owned(),
        _ => json,
    })
}

/// Returns the IDL declarations of all operations and attributes. Their names are escaped.
fn signatures(interface: &Interface) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for ancestor in interface.lineage() {
        for attribute in ancestor.attributes() {
            let readonly = if attribute.readonly { "readonly " } else { "" };
            all.push(format!("{readonly}attribute {} {};", type_name(&attribute.code), attribute.name));
        }
        all.extend(ancestor.operations().iter().map(|operation| signature(operation)));
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

/// Returns the name of a type as in IDL. For a type with a definition, this is the scoped name.
fn type_name(code: &TypeCode) -> String {
    match code.id() {
        Ok(id) => {
            scoped_name(id).unwrap_or_else(|| code.name().map_or_else(|_| code.to_string(), str::to_owned))
        }
        Err(_) => code.to_string(),
    }
}

/// Returns the scoped name in a repository id, without prefixes: `Bank::Account` for `IDL:Bank/Account:1.0`.
/// Returns `None` if the id has another format.
pub(crate) fn scoped_name(id: &str) -> Option<String> {
    let (path, _) = id.strip_prefix("IDL:")?.rsplit_once(':')?;
    Some(path.split('/').filter(|scope| !scope.contains('.')).collect::<Vec<_>>().join("::"))
}

/// Returns the operation with this name. For the name of an attribute, returns the operation that sets it if
/// `has_arguments` is true, and the operation that gets it otherwise.
pub(crate) fn find_operation(
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
        bail!("the attribute {name} is readonly");
    }
    let others = idl.map(|idl| interface::operations_named(idl, name)).unwrap_or_default();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; another interface has {}", others.join(" or ")),
    };
    bail!("{} has no operation {name}{others}; {}", Printable::new(interface.id()), operation_list(interface))
}

fn operation_list(interface: &Interface) -> String {
    format!("it has\n  {}", signatures(interface).join("\n  "))
}

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

/// Converts arguments to a JSON object with the names of the parameters. Keeps the text of values.
fn arguments_by_name(operation: &OperationInfo, json: &str) -> anyhow::Result<String> {
    let names: Vec<&str> = input_params(operation).map(|(name, _)| name).collect();
    let values: Vec<&RawValue> = match json.trim_start().chars().next() {
        Some('{') => return Ok(json.to_owned()),
        Some('[') => serde_json::from_str(json),
        _ => serde_json::from_str(json).map(|one| vec![one]),
    }
    .context("the arguments are not valid JSON")?;
    // A single parameter may itself be an array.
    let values = match (&*names, values.len()) {
        ([_], count) if count != 1 => {
            vec![serde_json::from_str(json).context("the arguments are not valid JSON")?]
        }
        _ => values,
    };
    if values.len() != names.len() {
        bail!(
            "{} takes {} argument(s), but {} are given: {}",
            operation.name,
            names.len(),
            values.len(),
            signature(operation)
        );
    }
    let members: Vec<String> = names
        .iter()
        .zip(values)
        .map(|(name, value)| Ok(format!("{}:{value}", serde_json::to_string(name)?)))
        .collect::<anyhow::Result<_>>()?;
    Ok(format!("{{{}}}", members.join(",")))
}

fn argument_error(operation: &OperationInfo, json: &str, error: &SystemException) -> anyhow::Error {
    let source = std::error::Error::source(error);
    let reason = match source.and_then(|source| source.downcast_ref::<DynError>()) {
        Some(error) => {
            let members: Vec<(&str, &TypeCode)> = input_params(operation).collect();
            fit::describe_members_error(&members, json, error)
        }
        None => source.map_or_else(|| error.to_string(), ToString::to_string),
    };
    anyhow::anyhow!("the arguments do not fit: {reason}; the operation is {}", signature(operation))
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
        let found = |name: &str, has_arguments| {
            find_operation(&account, name, has_arguments, None).map(|one| one.name.to_string())
        };
        assert_eq!(found("deposit", true).unwrap(), "deposit");
        assert_eq!(found("owner", false).unwrap(), "_get_owner");
        assert_eq!(found("limit", true).unwrap(), "_set_limit");
        assert_eq!(found("_get_limit", false).unwrap(), "_get_limit");
        assert_eq!(found("owner", true).unwrap_err().to_string(), "the attribute owner is readonly");
        let unknown = found("deposits", false).unwrap_err().to_string();
        assert!(unknown.contains("double deposit(in double amount, in Bank::Coins coins, out string note) raises (Bank::Broke);"), "{unknown}");
        assert!(
            unknown.contains("readonly attribute string owner;") && unknown.contains("oneway void poke();"),
            "{unknown}"
        );
    }

    #[test]
    fn arguments_are_given_by_name_by_position_or_as_a_single_value() {
        let account = account();
        let of = |name: &str, json: &str| {
            arguments_by_name(&find_operation(&account, name, true, None).unwrap(), json)
        };
        let named = r#"{"amount":1,"coins":[2]}"#;
        assert_eq!(of("deposit", named).unwrap(), named);
        assert_eq!(of("deposit", "[1,[2]]").unwrap(), named);
        assert_eq!(of("list", "[1,2]").unwrap(), r#"{"all":[1,2]}"#);
        assert_eq!(of("list", "[[1]]").unwrap(), r#"{"all":[1]}"#);
        assert_eq!(of("limit", "1.50").unwrap(), r#"{"value":1.50}"#);
        assert!(
            of("deposit", "[1]").unwrap_err().to_string().contains("takes 2 argument(s), but 1 are given")
        );
        assert!(of("deposit", "nonsense").is_err());
    }
}
