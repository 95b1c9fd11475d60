//! `zorb names serve` and `zorb names repair`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use cos_naming::Server;
use cos_naming::store::{DiskStore, MemoryStore, Store};
use serde::Serialize;
use zorb::prelude::*;

use crate::client::termination_signal;
use crate::failure::{Verdict, with_hint};
use crate::limits::MaxMessageValue;
use crate::output::{Node, Output, Tone};
use crate::{log, start};

/// Options of `zorb names serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on: iiop://HOST:PORT or unix:PATH; may be repeated
    #[arg(long, value_name = "URL", default_value = "iiop://127.0.0.1:2809")]
    listen: Vec<String>,
    /// The host in references, if it differs from the host of --listen; may be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// The file of the names (default: zorb/names.redb in the data directory of the user)
    #[arg(long, value_name = "FILE", conflicts_with = "memory")]
    store: Option<PathBuf>,
    /// Keep the names in memory only; they are lost when the process ends
    #[arg(long)]
    memory: bool,
    #[cfg(feature = "etcd")]
    #[command(flatten)]
    etcd: super::etcd::EtcdArgs,
    /// Write the reference of the root context to a file
    #[arg(long, value_name = "FILE")]
    ior: Option<PathBuf>,
    /// Open an HTTP endpoint with the state of the server, for browsers, Prometheus and `zorb top`
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
    /// Support Java programs with -ORBInitialHost and -ORBInitialPort (Sun's bootstrap protocol)
    #[arg(long)]
    bootstrap: bool,
    #[command(flatten)]
    max_message: MaxMessageValue,
    /// -ORB options, such as -ORBsslKeyFile
    #[arg(last = true, value_name = "-ORB...")]
    orb: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ServiceInfo {
    urls: Vec<String>,
    reference: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<PathBuf>,
    /// True if no other machine can reach the service.
    local: bool,
}

#[derive(Debug, Serialize)]
struct RepairReport {
    contexts: u64,
    bindings: u64,
    /// The number of lost bindings, if it is known.
    lost: Option<u64>,
    /// True if all names come from the journal.
    from_journal: bool,
    damaged: PathBuf,
}

pub(super) fn run(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    output.make_nonblocking()?;
    log::start();
    start::runtime(None)?.block_on(open_store_and_serve(args, output))
}

pub(super) fn repair(file: &Path, output: &Output) -> anyhow::Result<Verdict> {
    let summary = DiskStore::repair(file)?;
    let report = RepairReport {
        contexts: summary.contexts,
        bindings: summary.bindings,
        lost: summary.lost_bindings,
        from_journal: summary.from_journal,
        damaged: summary.damaged_file,
    };
    output.show(&report, |report| {
        let lost = report.lost.map_or("unknown".to_owned(), |lost| lost.to_string());
        vec![
            Node::new("contexts", report.contexts.to_string()),
            Node::new("bindings", report.bindings.to_string()),
            Node::new("lost", lost).tone(if report.lost == Some(0) { Tone::Good } else { Tone::Doubtful }),
            Node::new("from", if report.from_journal { "the journal" } else { "the file" }),
            Node::new("damaged", report.damaged.display().to_string()),
        ]
    })?;
    Ok(Verdict::Good)
}

async fn open_store_and_serve(args: &ServeArgs, output: &Output) -> anyhow::Result<Verdict> {
    let mut builder =
        start::server_builder(&args.orb, args.max_message, &args.listen, args.admin.as_deref())?;
    for host in &args.publish {
        builder = builder.publish(host);
    }
    #[cfg(feature = "etcd")]
    if let Some(config) = args.etcd.config()? {
        let store = cos_naming::store::EtcdStore::connect(config).await?;
        return serve(builder, store, Some(&args.etcd.location()), args, output).await;
    }
    let store = match (args.memory, &args.store) {
        (true, _) => None,
        (false, Some(path)) => Some(path.clone()),
        (false, None) => Some(default_store_path()?),
    };
    match &store {
        None => serve(builder, MemoryStore::new(), None, args, output).await,
        Some(path) => serve(builder, DiskStore::open(path)?, Some(path), args, output).await,
    }
}

/// Serves an open store. Before the store is open, connections are refused, so that clients retry.
async fn serve<S: Store>(
    builder: zorb::OrbBuilder,
    store: S,
    path: Option<&Path>,
    args: &ServeArgs,
    output: &Output,
) -> anyhow::Result<Verdict> {
    let store = Arc::new(store);
    // Requests are held until the root context exists. OBJECT_NOT_EXIST would tell clients to give up.
    let built = builder.start_paused().build().await;
    let hint = "another naming service may use the port; --listen selects another one";
    let orb = built.map_err(|error| with_hint(error, hint))?;
    let result = serve_until_signal(&orb, store, path, args, output).await;
    // Shut down even after a failure. Clients are then notified that their held requests were not executed.
    orb.shutdown().await;
    result
}

async fn serve_until_signal<S: Store>(
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
    start::set_serving();
    let reference = server.root().as_object().to_string();
    if let Some(file) = &args.ior {
        std::fs::write(file, format!("{reference}\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let endpoints = orb.endpoints();
    let info = ServiceInfo {
        urls: server.root().to_corbaloc().into_iter().collect(),
        reference,
        store: path.map(Path::to_owned),
        local: endpoints.iter().all(|endpoint| is_local(endpoint)) && args.publish.is_empty(),
    };
    let signal = termination_signal()?;
    output.print_admin_address(orb);
    output.show(&info, ServiceInfo::tree)?;
    signal.await;
    orb.shutdown().await;
    drop(server);
    Ok(Verdict::Good)
}

/// Returns the default location of the store, according to the XDG Base Directory Specification.
fn default_store_path() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    let folder = data.context("neither XDG_DATA_HOME nor HOME is set; use --store FILE")?.join("zorb");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder.join("names.redb"))
}

/// Returns whether an address, with or without a protocol, is reachable from this machine only.
fn is_local(endpoint: &str) -> bool {
    let address = endpoint.split_once("://").map_or(endpoint, |(_, address)| address);
    endpoint.starts_with("unix")
        || ["127.", "[::1]", "localhost"].iter().any(|host| address.starts_with(host))
}

impl ServiceInfo {
    fn tree(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> =
            self.urls.iter().map(|url| Node::new("listening on", url).tone(Tone::Head)).collect();
        let store = self
            .store
            .as_ref()
            .map_or("memory; the names are lost when this process ends".to_owned(), |path| {
                path.display().to_string()
            });
        nodes.push(Node::new("stored in", store));
        if self.local {
            let access = "this machine only; use --listen iiop://0.0.0.0:2809 --publish HOST for others";
            nodes.push(Node::new("access", access).tone(Tone::Doubtful));
        }
        nodes.push(Node::new("stop with", "Ctrl-C"));
        nodes
    }
}
