//! `zorb serve`: objects of any IDL that answer according to a script.

mod mock;
mod script;
mod value_json;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use serde::Serialize;
use zorb::dynamic::{Idl, Interface, InterfaceRepository, ServeError};
use zorb::prelude::*;
use zorb::{ObjectRef, Servant};

use crate::call::IdlArgs;
use crate::client::termination_signal;
use crate::failure::Verdict;
use crate::limits::MaxMessageValue;
use crate::output::{Node, Output, Tone};
use crate::{log, start};
use mock::{Log, Mock};
use script::Script;

const EXAMPLES: &str = "\
Examples:
  zorb serve --idl bank.idl --object Account=Bank::Account         answers with zeros and empty strings
  zorb serve --idl bank.idl --script bank.json --listen iiop://127.0.0.1:4711

A script is a JSON object with an object for each object key:
  { \"Account\": {
      \"interface\": \"Bank::Account\",
      \"operations\": {
        \"balance\": { \"result\": 110.0 },
        \"deposit\": [
          { \"when\": { \"amount\": 0 }, \"raises\": { \"$exception\": \"IDL:Bank/Broke:1.0\", \"missing\": 1 } },
          { \"result\": 3.5, \"out\": { \"note\": \"thanks\" }, \"delay_ms\": 20, \"times\": 2 },
          { \"raises\": \"TRANSIENT\" } ] } } }

If an operation has several answers, the first suitable one is used: the values in its `when` equal the arguments of the call, and it
was used fewer than `times` times. Results that the script does not give are zero or empty. Attributes keep the values that clients
set.";

/// Options of `zorb serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The address to listen on; may be repeated
    #[arg(long, value_name = "URL", default_value = "iiop://127.0.0.1:0")]
    listen: Vec<String>,
    /// A JSON file with the answers of the objects
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// An object that answers with zeros and empty strings; may be repeated
    #[arg(long, value_name = "KEY=INTERFACE", value_parser = parse_object)]
    object: Vec<(String, String)>,
    /// Write the reference of each object to the file KEY.ior in this folder
    #[arg(long, value_name = "FOLDER")]
    ior: Option<PathBuf>,
    /// Do not log each call on standard error
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    idl: IdlArgs,
    /// Open an HTTP endpoint with the state of the server, for browsers, Prometheus and `zorb top`
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    #[command(flatten)]
    max_message: MaxMessageValue,
    /// -ORB options
    #[arg(last = true, value_name = "-ORB...")]
    orb: Vec<String>,
}

fn parse_object(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, interface)) if !key.is_empty() && !interface.is_empty() => {
            Ok((key.to_owned(), interface.to_owned()))
        }
        _ => Err("expected KEY=INTERFACE, such as Account=Bank::Account".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct ServedObject {
    key: String,
    type_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    reference: String,
}

pub(crate) fn run(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    let idl = args.idl.read()?.context("the IDL is missing; use --idl FILE")?;
    let mut script = match &args.script {
        Some(path) => Script::read(path)?,
        None => Script::default(),
    };
    for (key, interface) in &args.object {
        ensure!(script.add(key, interface), "--object {key}: the script already has an object with this key");
    }
    ensure!(!script.is_empty(), "there are no objects; use --object KEY=INTERFACE or --script FILE");
    let value_types = idl.value_types();
    let mut mocks: Vec<(String, Arc<Interface>, Mock)> = Vec::new();
    for (key, object) in script.objects() {
        let interface = idl.interface(&object.interface.replace('/', "::"));
        let interface =
            interface.with_context(|| format!("{key}: the IDL has no interface {}", object.interface))?;
        let answers = object.answers(key, &interface, &value_types)?;
        let log = if args.quiet { None } else { Some(Log { key: key.to_owned(), output: *output }) };
        mocks.push((key.to_owned(), interface, Mock::new(answers, log)));
    }
    output.make_nonblocking()?;
    log::start();
    start::runtime(Some(2))?.block_on(serve(args, &idl, mocks, output))
}

async fn serve(
    args: &ServeArgs,
    idl: &Idl,
    mocks: Vec<(String, Arc<Interface>, Mock)>,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let builder = start::server_builder(&args.orb, args.max_message, &args.listen, args.admin.as_deref())?;
    let signal = termination_signal()?;
    // Requests are held until all objects exist. OBJECT_NOT_EXIST would tell clients to give up.
    let orb = builder.start_paused().build().await?;
    orb.add_value_types(&idl.value_types());
    output.print_admin_address(&orb);
    let result = activate(&orb, args, idl, mocks, output);
    if result.is_ok() {
        orb.resume();
        start::set_serving();
        signal.await;
    }
    // Shut down even after a failure. Clients are then notified that their held requests were not executed.
    orb.shutdown().await;
    result.map(|()| Verdict::Good)
}

fn activate(
    orb: &Orb,
    args: &ServeArgs,
    idl: &Idl,
    mocks: Vec<(String, Arc<Interface>, Mock)>,
    output: &Output,
) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for (key, interface, mock) in mocks {
        let object: ObjectRef =
            orb.activation().named(&key).activate_erased(Servant::dynamic(interface, mock))?;
        if let Some(folder) = &args.ior {
            // Keys may contain characters that file names cannot contain.
            let name: String =
                key.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
            let path = folder.join(format!("{name}.ior"));
            std::fs::write(&path, format!("{object}\n"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        all.push(ServedObject {
            key,
            type_id: object.repository_id().to_owned(),
            url: object.to_corbaloc(),
            reference: object.to_string(),
        });
    }
    // With the repository, objects answer `_interface`. A served object may have the repository's key.
    match InterfaceRepository::new().idl(idl).serve(orb) {
        Err(ServeError::Key(_)) => output
            .remark("objects do not answer _interface, because an object has the key InterfaceRepository"),
        result => drop(result?),
    }
    output.show(&all, |all| {
        let node = |object: &ServedObject| {
            let url = object.url.as_deref().unwrap_or(&object.reference);
            Node::new(&object.key, url).tone(Tone::Head).children([Node::new("type", &object.type_id)])
        };
        all.iter().map(node).collect()
    })
}
