//! A proxy between clients and a server, which forwards all data unchanged and prints the calls.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use giop_codec::Printable;
use giop_codec::ior::{ComponentTag, IiopProfile, Ior};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zorb::ObjectRef;

use super::Pipeline;
use super::packets::{CaptureWriter, RecordedConnection};
use super::tcp::ConnectionEvent;
use crate::client::{ClientOptions, termination_signal};
use crate::failure::{Verdict, with_hint};
use crate::ior::{address_text, parse_host_and_port};
use crate::target;

/// The maximum number of concurrent connections. Further connections are accepted when others have ended.
const MAX_CONNECTIONS: usize = 1024;
const READ_BUFFER_BYTES: usize = 64 << 10;
/// The capacity of the queue of events. Connections wait while it is full.
const MAX_QUEUED_EVENTS: usize = 256;

/// A server, given as an address or by a reference to one of its objects.
pub(super) struct Target {
    pub(super) addresses: Vec<(String, u16)>,
    pub(super) ior: Option<Ior>,
}

/// The first output of the proxy. The field names are the JSON keys.
#[derive(Debug, Serialize)]
struct ProxyInfo {
    listening: SocketAddr,
    to: String,
    /// A reference to the object, with the address of the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

struct Event {
    connection: u64,
    time: Duration,
    kind: EventKind,
}

enum EventKind {
    Connection(ConnectionEvent),
    /// No more data of a side is forwarded, usually because it has closed its stream.
    SideClosed {
        from_client: bool,
    },
    ConnectFailed(String),
}

pub(super) async fn run(
    listen: &str,
    to: &str,
    record: Option<&Path>,
    ior: Option<&Path>,
    client: &ClientOptions,
    mut pipeline: Pipeline,
) -> anyhow::Result<Verdict> {
    let signal = termination_signal()?;
    let target = Target::find(to, client).await?;
    let mut writer = record.map(CaptureWriter::create).transpose()?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen at {listen}"))?;
    let address = listener.local_addr()?;
    let reference = target.ior.as_ref().map(|ior| with_proxy_address(ior, address)).transpose()?;
    let reference = reference.map(|ior| ior.to_string());
    if let (Some(path), Some(reference)) = (ior, &reference) {
        std::fs::write(path, format!("{reference}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let info = ProxyInfo { listening: address, to: target.to_string(), reference };
    if pipeline.printer.is_json {
        pipeline.printer.print_json(&info)?;
    } else {
        pipeline.printer.write(|out| {
            writeln!(out, "listening at {} for {}", info.listening, info.to)?;
            match &info.reference {
                Some(reference) => writeln!(out, "{reference}"),
                None => Ok(()),
            }
        })?;
    }
    if address.ip().is_unspecified() && info.reference.is_some() {
        pipeline.output.remark(
            "the reference contains the address 127.0.0.1; for clients on other machines, use --listen with the address of this machine",
        );
    }
    let (events, mut received_events) = mpsc::channel(MAX_QUEUED_EVENTS);
    let mut relays = JoinSet::new();
    let mut recorded: HashMap<u64, RecordedConnection> = HashMap::new();
    let mut next_connection = 0;
    tokio::pin!(signal);
    let result = loop {
        tokio::select! {
            accepted = listener.accept(), if relays.len() < MAX_CONNECTIONS => {
                // Accepting may fail for some time, for example because too many files are open.
                let Ok((socket, peer)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                let addresses = target.addresses.clone();
                relays.spawn(relay(next_connection, socket, peer, addresses, client.timeout, events.clone()));
                next_connection += 1;
            }
            Some(event) = received_events.recv() => {
                if let Err(error) = handle_event(event, &mut pipeline, &mut writer, &mut recorded) {
                    break Err(error);
                }
                if pipeline.printer.is_closed {
                    break Ok(());
                }
            }
            Some(_) = relays.join_next() => {}
            () = &mut signal => break Ok(()),
        }
    };
    relays.shutdown().await;
    while let Ok(event) = received_events.try_recv() {
        handle_event(event, &mut pipeline, &mut writer, &mut recorded)?;
    }
    result?;
    pipeline.print_summary(None, None)?;
    Ok(Verdict::Good)
}

fn handle_event(
    event: Event,
    pipeline: &mut Pipeline,
    writer: &mut Option<CaptureWriter>,
    recorded: &mut HashMap<u64, RecordedConnection>,
) -> anyhow::Result<()> {
    let Event { connection, time, kind } = event;
    if let Some(writer) = writer {
        match &kind {
            EventKind::Connection(ConnectionEvent::Opened { client, server, .. }) => {
                recorded.insert(connection, writer.write_handshake(time, *client, *server)?);
            }
            EventKind::Connection(ConnectionEvent::Data { from_client, data }) => {
                if let Some(recorded) = recorded.get_mut(&connection) {
                    writer.write_data(time, recorded, *from_client, data)?;
                }
            }
            EventKind::SideClosed { from_client } => {
                if let Some(recorded) = recorded.get_mut(&connection) {
                    writer.write_fin(time, recorded, *from_client)?;
                }
            }
            EventKind::Connection(ConnectionEvent::Closed) => {
                recorded.remove(&connection);
            }
            EventKind::Connection(ConnectionEvent::Lost { .. }) | EventKind::ConnectFailed(_) => {}
        }
    }
    match kind {
        EventKind::Connection(event) => pipeline.handle_event(connection, time, event),
        EventKind::SideClosed { .. } => Ok(()),
        EventKind::ConnectFailed(error) => {
            pipeline.output.remark(&error);
            Ok(())
        }
    }
}

async fn relay(
    connection: u64,
    client: TcpStream,
    peer: SocketAddr,
    addresses: Vec<(String, u16)>,
    timeout: Duration,
    events: mpsc::Sender<Event>,
) {
    let emit = async |kind| {
        // Sending fails only when the proxy ends.
        let _ = events.send(Event { connection, time: now(), kind }).await;
    };
    let (server, address) = match connect(&addresses, timeout).await {
        Ok(connected) => connected,
        Err(error) => {
            return emit(EventKind::ConnectFailed(format!("closed the connection of {peer}: {error:#}")))
                .await;
        }
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    emit(EventKind::Connection(ConnectionEvent::Opened { client: peer, server: address, from_start: true }))
        .await;
    let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), server.into_split());
    tokio::join!(
        forward(connection, true, client_in, server_out, &events),
        forward(connection, false, server_in, client_out, &events),
    );
    emit(EventKind::Connection(ConnectionEvent::Closed)).await;
}

/// Forwards the data of one side until that side closes its stream or the other side accepts no more data.
async fn forward(
    connection: u64,
    from_client: bool,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    events: &mpsc::Sender<Event>,
) {
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let piece = buffer.get(..count).unwrap_or_default();
        let data = Bytes::copy_from_slice(piece);
        // The event is sent before the data is written, so that it precedes the event of the reply.
        let kind = EventKind::Connection(ConnectionEvent::Data { from_client, data });
        if events.send(Event { connection, time: now(), kind }).await.is_err()
            || to.write_all(piece).await.is_err()
        {
            break;
        }
    }
    let kind = EventKind::SideClosed { from_client };
    let _ = events.send(Event { connection, time: now(), kind }).await;
    let _ = to.shutdown().await;
}

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Connects to the first address that accepts a connection. If none does, returns the error of the last one.
pub(super) async fn connect(
    addresses: &[(String, u16)],
    timeout: Duration,
) -> anyhow::Result<(TcpStream, SocketAddr)> {
    let mut last_error = anyhow::anyhow!("the target has no address");
    for (host, port) in addresses {
        let result = tokio::time::timeout(timeout, TcpStream::connect((host.as_str(), *port))).await;
        match result {
            Ok(Ok(socket)) => {
                let address = socket.peer_addr()?;
                return Ok((socket, address));
            }
            Ok(Err(error)) => {
                last_error = anyhow::Error::new(error)
                    .context(format!("cannot connect to {}:{port}", Printable::new(host)))
            }
            Err(_) => {
                last_error =
                    anyhow::anyhow!("cannot connect to {}:{port} within {timeout:?}", Printable::new(host));
            }
        }
    }
    Err(last_error)
}

impl Target {
    pub(super) async fn find(text: &str, client: &ClientOptions) -> anyhow::Result<Self> {
        let url = match target::read(text) {
            Ok(url) => url.to_string(),
            Err(error) => {
                let address = parse_host_and_port(text).ok().filter(|(_, port)| *port > 0);
                let address = address
                    .ok_or_else(|| with_hint(error, "--to must be HOST:PORT or a reference to an object"))?;
                return Ok(Self { addresses: vec![address], ior: None });
            }
        };
        let object: ObjectRef = client.orb(None).await?.resolve_unchecked(&url).await?;
        let ior = object.ior().clone();
        let Some(profile) = ior.iiop_profile() else {
            bail!("the reference of the object has no TCP address")
        };
        ensure!(
            !profile.requires_tls() && profile.port > 0,
            "the object requires TLS, which this command does not support"
        );
        Ok(Self { addresses: profile.addresses(), ior: Some(ior) })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.addresses.iter().map(|(host, port)| address_text(host, *port)).collect();
        f.write_str(&all.join(", "))
    }
}

/// Returns a reference to the same object with only the address of the proxy.
fn with_proxy_address(ior: &Ior, proxy: SocketAddr) -> anyhow::Result<Ior> {
    // The components for other addresses, TLS and local sockets, with which clients would bypass the proxy.
    const REMOVED_TAGS: [u32; 9] = [3, 14, 20, 33, 36, 123, 0x4154_5402, 0x4154_5404, 0x5441_4f02];
    let host = match proxy.ip().is_unspecified() {
        true => "127.0.0.1".to_owned(),
        false => proxy.ip().to_string(),
    };
    let profile = ior.iiop_profile().context("the reference of the object has no TCP address")?;
    let removed = REMOVED_TAGS.map(ComponentTag);
    let components =
        profile.components.into_iter().filter(|component| !removed.contains(&component.tag)).collect();
    let profile = IiopProfile { host, port: proxy.port(), components, ..profile };
    Ok(Ior::from_profiles(ior.type_id.clone(), &[profile])?)
}
