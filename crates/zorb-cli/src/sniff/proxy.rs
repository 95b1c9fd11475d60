//! A proxy between clients and a server. It forwards bytes unchanged and prints the calls in them.

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

use super::Front;
use super::packets::{Recorded, Writer};
use super::tcp::Happened;
use crate::client::{Client, ended};
use crate::failure::hinted;
use crate::{Verdict, target};

/// Maximum number of concurrent connections of a proxy. Further ones are not accepted until one ends.
const MAX_CONNECTIONS: usize = 1024;
/// Read size, and capacity of the event queue. When the queue is full, connections wait.
const PIECE: usize = 64 << 10;
const WAITING: usize = 256;

/// A server, and the named object if there is one.
pub(super) struct Target {
    /// All addresses, in order of preference.
    pub(super) addresses: Vec<(String, u16)>,
    pub(super) ior: Option<Ior>,
}

/// The addresses and references for clients.
#[derive(Debug, Serialize)]
struct Listening {
    listening: SocketAddr,
    to: String,
    /// The object's reference through the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

struct Event {
    connection: u64,
    time: Duration,
    what: What,
}

enum What {
    Happened(Happened),
    /// A side sends no more.
    Ended {
        from_client: bool,
    },
    Refused(String),
}

/// Relays until Ctrl-C.
///
/// # Errors
/// The address is in use, the target is not found, the record cannot be written, or output fails.
pub(super) async fn run(
    listen: &str,
    to: &str,
    record: Option<&Path>,
    ior: Option<&Path>,
    client: &Client,
    mut front: Front,
) -> anyhow::Result<Verdict> {
    let over = ended()?;
    let target = Target::find(to, client).await?;
    let mut writer = record.map(Writer::create).transpose()?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen at {listen}"))?;
    let here = listener.local_addr()?;
    let reference = target.ior.as_ref().map(|ior| through(ior, here)).transpose()?.map(|ior| ior.to_string());
    if let (Some(path), Some(reference)) = (ior, &reference) {
        std::fs::write(path, format!("{reference}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let listening = Listening { listening: here, to: target.to_string(), reference };
    if front.lines.json {
        front.lines.object(&listening)?;
    } else {
        front.lines.write(|out| {
            writeln!(out, "listening at {} for {}", listening.listening, listening.to)?;
            match &listening.reference {
                Some(reference) => writeln!(out, "{reference}"),
                None => Ok(()),
            }
        })?;
    }
    if here.ip().is_unspecified() {
        front
            .output
            .remark("the reference names this machine as 127.0.0.1: --listen HOST:PORT names another");
    }
    let (events, mut told) = mpsc::channel(WAITING);
    let mut relays = JoinSet::new();
    let mut recorded: HashMap<u64, Recorded> = HashMap::new();
    let mut next = 0;
    tokio::pin!(over);
    let result = loop {
        tokio::select! {
            accepted = listener.accept(), if relays.len() < MAX_CONNECTIONS => {
                // Possibly out of descriptors: retry after other connections have ended.
                let Ok((socket, peer)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                relays.spawn(relay(next, socket, peer, target.addresses.clone(), client.timeout, events.clone()));
                next += 1;
            }
            Some(event) = told.recv() => {
                if let Err(error) = take(event, &mut front, &mut writer, &mut recorded) {
                    break Err(error);
                }
                if front.lines.closed {
                    break Ok(());
                }
            }
            Some(_) = relays.join_next() => {}
            () = &mut over => break Ok(()),
        }
    };
    relays.shutdown().await;
    while let Ok(event) = told.try_recv() {
        take(event, &mut front, &mut writer, &mut recorded)?;
    }
    result?;
    front.summary(None, None)?;
    Ok(Verdict::Good)
}

fn take(
    event: Event,
    front: &mut Front,
    writer: &mut Option<Writer>,
    recorded: &mut HashMap<u64, Recorded>,
) -> anyhow::Result<()> {
    let Event { connection, time, what } = event;
    if let Some(writer) = writer {
        match &what {
            What::Happened(Happened::Opened { client, server, .. }) => {
                recorded.insert(connection, writer.open(time, *client, *server)?);
            }
            What::Happened(Happened::Octets { from_client, octets }) => {
                if let Some(recorded) = recorded.get_mut(&connection) {
                    writer.octets(time, recorded, *from_client, octets)?;
                }
            }
            What::Ended { from_client } => {
                if let Some(recorded) = recorded.get_mut(&connection) {
                    writer.end(time, recorded, *from_client)?;
                }
            }
            What::Happened(Happened::Closed) => {
                recorded.remove(&connection);
            }
            What::Happened(Happened::Lost { .. }) | What::Refused(_) => {}
        }
    }
    match what {
        What::Happened(happened) => front.happened(connection, time, happened),
        What::Ended { .. } => Ok(()),
        What::Refused(why) => {
            front.output.remark(&why);
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
    let tell = async |what| {
        // The receiver is only closed at the end of the program.
        let _ = events.send(Event { connection, time: now(), what }).await;
    };
    let (server, address) = match connect(&addresses, timeout).await {
        Ok(connected) => connected,
        Err(error) => return tell(What::Refused(format!("{peer} is sent away: {error:#}"))).await,
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    tell(What::Happened(Happened::Opened { client: peer, server: address, whole: true })).await;
    let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), server.into_split());
    tokio::join!(
        copy(connection, true, client_in, server_out, &events),
        copy(connection, false, server_in, client_out, &events),
    );
    tell(What::Happened(Happened::Closed)).await;
}

/// Forwards the bytes of one side until it sends no more or the other side accepts no more.
async fn copy(
    connection: u64,
    from_client: bool,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    events: &mpsc::Sender<Event>,
) {
    let mut buffer = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let piece = buffer.get(..count).unwrap_or_default();
        let octets = Bytes::copy_from_slice(piece);
        // The event precedes the write, so that it also precedes the event of the answer.
        let what = What::Happened(Happened::Octets { from_client, octets });
        if events.send(Event { connection, time: now(), what }).await.is_err()
            || to.write_all(piece).await.is_err()
        {
            break;
        }
    }
    let _ = events.send(Event { connection, time: now(), what: What::Ended { from_client } }).await;
    let _ = to.shutdown().await;
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Connects to the first address that accepts a connection.
///
/// # Errors
/// No address does. The error is that of the last one.
pub(super) async fn connect(
    addresses: &[(String, u16)],
    timeout: Duration,
) -> anyhow::Result<(TcpStream, SocketAddr)> {
    let mut last = anyhow::anyhow!("there is no address");
    for (host, port) in addresses {
        let tried = tokio::time::timeout(timeout, TcpStream::connect((host.as_str(), *port))).await;
        match tried {
            Ok(Ok(socket)) => {
                let address = socket.peer_addr()?;
                return Ok((socket, address));
            }
            Ok(Err(error)) => {
                last = anyhow::Error::new(error)
                    .context(format!("no connection to {}:{port}", Printable::new(host)))
            }
            Err(_) => {
                last = anyhow::anyhow!("no connection to {}:{port} within {timeout:?}", Printable::new(host));
            }
        }
    }
    Err(last)
}

impl Target {
    /// Returns the server at HOST:PORT, or that of an object.
    ///
    /// # Errors
    /// The text is neither, or the object has no address of TCP without TLS.
    pub(super) async fn find(text: &str, client: &Client) -> anyhow::Result<Self> {
        let url = match target::read(text) {
            Ok(url) => url.to_string(),
            Err(error) => {
                let address = crate::ior::host_and_port(text).ok().filter(|(_, port)| *port > 0);
                let address = address.ok_or_else(|| hinted(error, "--to takes HOST:PORT, or an object"))?;
                return Ok(Self { addresses: vec![address], ior: None });
            }
        };
        let object: ObjectRef = client.orb().await?.resolve_unchecked(&url).await?;
        let ior = object.ior().clone();
        let Some(profile) = ior.iiop_profile() else { bail!("the object has no address of TCP") };
        ensure!(
            !profile.requires_tls() && profile.port > 0,
            "the object is reached by TLS alone, which can not be read on the way"
        );
        Ok(Self { addresses: profile.addresses(), ior: Some(ior) })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self
            .addresses
            .iter()
            .map(|(host, port)| match host.contains(':') {
                true => format!("[{}]:{port}", Printable::new(host)),
                false => format!("{}:{port}", Printable::new(host)),
            })
            .collect();
        f.write_str(&all.join(", "))
    }
}

/// Returns the reference with all addresses replaced by that of the proxy.
fn through(ior: &Ior, here: SocketAddr) -> anyhow::Result<Ior> {
    // Components with alternate addresses, TLS or local sockets would bypass the proxy.
    const PAST: [u32; 9] = [3, 14, 20, 33, 36, 123, 0x4154_5402, 0x4154_5404, 0x5441_4f02];
    let host = match here.ip().is_unspecified() {
        true => "127.0.0.1".to_owned(),
        false => here.ip().to_string(),
    };
    let profile = ior.iiop_profile().context("the object has no address of TCP")?;
    let components =
        profile.components.into_iter().filter(|one| !PAST.map(ComponentTag).contains(&one.tag)).collect();
    let profile = IiopProfile { host, port: here.port(), components, ..profile };
    Ok(Ior::from_profiles(ior.type_id.clone(), &[profile])?)
}
