//! `zorb names serve` and `zorb names repair`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use cos_naming::Server;
use cos_naming::store::{DiskStore, MemoryStore, Store};
use serde::Serialize;
use zorb::prelude::*;

use crate::client::ended;
use crate::failure::hinted;
use crate::limits::MessageSize;
use crate::output::{Node, Output, Tone};
use crate::{Verdict, log, start};

/// Options of `zorb names serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen: iiop://HOST:PORT, unix:PATH; may be given again
    #[arg(long, value_name = "URL", default_value = "iiop://127.0.0.1:2809")]
    listen: Vec<String>,
    /// The host that references name, where it is another than that of --listen
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The file of the names (default: zorb/names.redb among this user's data)
    #[arg(long, value_name = "FILE", conflicts_with = "memory")]
    store: Option<PathBuf>,
    /// Keep names in memory alone: they are gone with the process
    #[arg(long)]
    memory: bool,
    #[cfg(feature = "etcd")]
    #[command(flatten)]
    etcd: super::etcd::EtcdArgs,
    /// Write the reference of the first context to a file, for programs that are given one
    #[arg(long, value_name = "FILE")]
    ior: Option<PathBuf>,
    /// Open an HTTP endpoint that shows what the server is doing, for browsers, Prometheus and zorb top
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    /// Answer Java programs that are given -ORBInitialHost and -ORBInitialPort (Sun's bootstrap protocol)
    #[arg(long)]
    bootstrap: bool,
    #[command(flatten)]
    size: MessageSize,
    /// -ORB options, such as -ORBsslKeyFile
    #[arg(last = true, value_name = "-ORB...")]
    orb: Vec<String>,
}

/// The properties of the running service.
#[derive(Debug, Serialize)]
struct Served {
    urls: Vec<String>,
    reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<PathBuf>,
    /// No other machine can reach it.
    local: bool,
}

/// The result of a repair.
#[derive(Debug, Serialize)]
struct Repair {
    contexts: u64,
    bindings: u64,
    /// Number of lost bindings, if the damaged file contains their total number.
    lost: Option<u64>,
    /// The names come from the journal next to the file.
    from_journal: bool,
    damaged: PathBuf,
}

/// Serves names until a signal ends it.
///
/// # Errors
/// The address is in use, the store is in use or corrupt, or output fails.
pub(super) fn run(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    output.never_block()?;
    log::start();
    start::threads(None)?.block_on(begin(args, output))
}

/// Saves the readable part of a damaged store.
///
/// # Errors
/// Nothing can be saved, or output fails.
pub(super) fn repair(file: &Path, output: &Output) -> anyhow::Result<Verdict> {
    let repaired = DiskStore::repair(file)?;
    let found = Repair {
        contexts: repaired.contexts,
        bindings: repaired.bindings,
        lost: repaired.lost,
        from_journal: repaired.from_journal,
        damaged: repaired.damaged,
    };
    output.show(&found, |found| {
        let lost = found.lost.map_or("not known".to_owned(), |lost| lost.to_string());
        vec![
            Node::new("contexts", found.contexts.to_string()),
            Node::new("bindings", found.bindings.to_string()),
            Node::new("lost", lost).tone(if found.lost == Some(0) { Tone::Good } else { Tone::Doubtful }),
            Node::new("from", if found.from_journal { "the journal" } else { "the file" }),
            Node::new("damaged", found.damaged.display().to_string()),
        ]
    })?;
    Ok(Verdict::Good)
}

async fn begin(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    let (mut builder, rest) = Orb::from_args(args.orb.iter().cloned())?;
    if let Some(unknown) = rest.first() {
        bail!("{unknown} is no -ORB option");
    }
    builder = args.size.of(builder)?;
    for url in &args.listen {
        builder = builder.listen(url);
    }
    if let Some(admin) = &args.admin {
        builder = builder.admin(admin);
    }
    for host in &args.publish {
        builder = builder.publish(host);
    }
    #[cfg(feature = "etcd")]
    if let Some(config) = args.etcd.config()? {
        let store = cos_naming::store::EtcdStore::connect(config).await?;
        return serve(builder, store, Some(&args.etcd.place()), args, output).await;
    }
    let store = match (args.memory, &args.store) {
        (true, _) => None,
        (false, Some(path)) => Some(path.clone()),
        (false, None) => Some(usual_store()?),
    };
    match &store {
        None => serve(builder, MemoryStore::new(), None, args, output).await,
        Some(path) => serve(builder, DiskStore::open(path)?, Some(path), args, output).await,
    }
}

/// Serves an open store. The server does not listen before that, so early clients retry.
async fn serve<S: Store>(
    builder: zorb::OrbBuilder,
    store: S,
    path: Option<&Path>,
    args: &ServeArgs,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let store = Arc::new(store);
    // Requests are held until the first context exists. OBJECT_NOT_EXIST would tell clients that it is
    // permanently gone.
    let built = builder.start_paused().build().await;
    let hint = "another naming service may be there: --listen takes another port";
    let orb = built.map_err(|error| hinted(error, hint))?;
    let served = present(&orb, store, path, args, output).await;
    // Even after a failure: clients whose requests are held learn that they were not executed.
    orb.shutdown().await;
    served
}

async fn present<S: Store>(
    orb: &Orb,
    store: Arc<S>,
    path: Option<&Path>,
    args: &ServeArgs,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let health = Arc::downgrade(&store);
    orb.add_health_check(move || health.upgrade().and_then(|store| store.problem()));
    let server = Server::builder(store).bootstrap(args.bootstrap).serve(orb)?;
    orb.resume();
    start::serves();
    let reference = server.root().as_object().to_string();
    if let Some(file) = &args.ior {
        std::fs::write(file, format!("{reference}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let endpoints = orb.endpoints();
    let served = Served {
        urls: server.root().to_corbaloc().into_iter().collect(),
        reference,
        store: path.map(Path::to_owned),
        local: endpoints.iter().all(|endpoint| is_local(endpoint)) && args.publish.is_empty(),
    };
    let over = ended()?;
    output.admin_at(orb);
    output.show(&served, Served::tree)?;
    over.await;
    orb.shutdown().await;
    drop(server);
    Ok(Verdict::Good)
}

/// Returns the default location of the store, according to the XDG Base Directory Specification.
fn usual_store() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let folder =
        data.context("neither XDG_DATA_HOME nor HOME is set: --store says where to keep names")?.join("zorb");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join("names.redb"))
}

/// Returns whether an address, with or without a protocol, is reachable from this machine only.
fn is_local(endpoint: &str) -> bool {
    let address = endpoint.split_once("://").map_or(endpoint, |(_, address)| address);
    endpoint.starts_with("unix")
        || ["127.", "[::1]", "localhost"].iter().any(|host| address.starts_with(host))
}

impl Served {
    fn tree(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> =
            self.urls.iter().map(|url| Node::new("names at", url).tone(Tone::Head)).collect();
        let kept =
            self.store.as_ref().map_or("in memory: they are gone with this process".to_owned(), |path| {
                path.display().to_string()
            });
        nodes.push(Node::new("kept in", kept));
        if self.local {
            let how = "this machine alone; --listen iiop://0.0.0.0:2809 --publish HOST serves others";
            nodes.push(Node::new("for", how).tone(Tone::Doubtful));
        }
        nodes.push(Node::new("ends by", "Ctrl-C"));
        nodes
    }
}
