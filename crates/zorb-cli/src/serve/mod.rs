//! `zorb serve`: objects of any IDL that answer according to a script.

mod look;
mod mock;
mod script;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::Serialize;
use zorb::dynamic::{Idl, Interface, InterfaceRepository, ServeError};
use zorb::prelude::*;
use zorb::{ObjectRef, Servant};

use crate::call::IdlArgs;
use crate::client::ended;
use crate::limits::MessageSize;
use crate::output::{Node, Output, Tone};
use crate::{Verdict, log, start};
use mock::{Log, Mock};
use script::Script;

const EXAMPLES: &str = "\
Examples:
  zorb serve --idl bank.idl --object Account=Bank::Account         answers with zeros and empty texts
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

Of several answers the first counts whose `when` names arguments as they came, and that was not given `times` times already. What
is not said is zero or empty, attributes are what they were set to.";

/// Options of `zorb serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Where to listen; may be given again
    #[arg(long, value_name = "URL", default_value = "iiop://127.0.0.1:0")]
    listen: Vec<String>,
    /// What objects answer, a JSON file
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// An object that answers with zeros and empty texts; may be given again
    #[arg(long, value_name = "KEY=INTERFACE", value_parser = object)]
    object: Vec<(String, String)>,
    /// Write the reference of each object into this folder, as KEY.ior
    #[arg(long, value_name = "FOLDER")]
    ior: Option<PathBuf>,
    /// Say nothing of each call on standard error
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    idl: IdlArgs,
    /// Open an HTTP endpoint that shows what the server is doing, for browsers, Prometheus and zorb top
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    #[command(flatten)]
    size: MessageSize,
    /// -ORB options
    #[arg(last = true, value_name = "-ORB...")]
    orb: Vec<String>,
}

fn object(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, interface)) if !key.is_empty() && !interface.is_empty() => {
            Ok((key.to_owned(), interface.to_owned()))
        }
        _ => Err("KEY=INTERFACE is expected, such as Account=Bank::Account".to_owned()),
    }
}

/// An object that is served.
#[derive(Debug, Serialize)]
struct Served {
    key: String,
    type_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    reference: String,
}

/// Serves until a signal ends it.
///
/// # Errors
/// The IDL or the script is invalid, the address is in use, or output fails.
pub(crate) fn run(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    let idl = args.idl.read()?.context("no interface is known: --idl FILE names the IDL that has it")?;
    let mut script = match &args.script {
        Some(path) => Script::read(path)?,
        None => Script::default(),
    };
    for (key, interface) in &args.object {
        ensure!(script.add(key, interface), "--object {key}: the script has an object of that key");
    }
    ensure!(!script.is_empty(), "no object: --object KEY=INTERFACE, or --script FILE");
    let known = idl.value_types();
    let mut mocks: Vec<(String, Arc<Interface>, Mock)> = Vec::new();
    for (key, object) in script.objects() {
        let interface = idl.interface(&object.interface.replace('/', "::"));
        let interface =
            interface.with_context(|| format!("{key}: the IDL has no interface {}", object.interface))?;
        let answers = object.answers(key, &interface, &known)?;
        let log = if args.quiet { None } else { Some(Log { key: key.to_owned(), output: *output }) };
        mocks.push((key.to_owned(), interface, Mock::new(answers, log)));
    }
    output.never_block()?;
    log::start();
    start::threads(Some(2))?.block_on(serve(args, &idl, mocks, output))
}

async fn serve(
    args: &ServeArgs,
    idl: &Idl,
    mocks: Vec<(String, Arc<Interface>, Mock)>,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let (mut builder, rest) = Orb::from_args(args.orb.iter().cloned())?;
    if let Some(unknown) = rest.first() {
        bail!("{unknown} is no -ORB option");
    }
    builder = args.size.of(builder)?;
    for url in &args.listen {
        builder = builder.listen(url);
    }
    let over = ended()?;
    if let Some(admin) = &args.admin {
        builder = builder.admin(admin);
    }
    // Requests are held until all objects exist. OBJECT_NOT_EXIST would tell clients that an object is
    // permanently gone.
    let orb = builder.start_paused().build().await?;
    orb.add_value_types(&idl.value_types());
    output.admin_at(&orb);
    let served = present(&orb, args, idl, mocks, output);
    if served.is_ok() {
        orb.resume();
        start::serves();
        over.await;
    }
    // Even after a failure: clients whose requests are held learn that they were not executed.
    orb.shutdown().await;
    served.map(|()| Verdict::Good)
}

/// Activates the objects and prints their references.
fn present(
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
            // A key can contain characters that a file name cannot.
            let name: String =
                key.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
            let path = folder.join(format!("{name}.ior"));
            std::fs::write(&path, format!("{object}\n"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        all.push(Served {
            key,
            type_id: object.repository_id().to_owned(),
            url: object.to_corbaloc(),
            reference: object.to_string(),
        });
    }
    // From now on, objects answer `_interface`. The repository's key may be in use by an object.
    match InterfaceRepository::new().idl(idl).serve(orb) {
        Err(ServeError::Key(_)) => {
            output.remark("objects do not answer _interface: one has the key InterfaceRepository")
        }
        served => drop(served?),
    }
    output.show(&all, |all| {
        let node = |served: &Served| {
            let url = served.url.as_deref().unwrap_or(&served.reference);
            Node::new(&served.key, url).tone(Tone::Head).under([Node::new("type", &served.type_id)])
        };
        all.iter().map(node).collect()
    })
}
