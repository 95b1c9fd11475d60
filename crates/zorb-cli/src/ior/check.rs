//! `zorb ior check`: tests which addresses of a reference lead from this machine to its object, and why
//! others do not.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use giop_codec::Printable;
use giop_codec::ior::{ComponentTag, IiopProfile, Ior};
use giop_codec::url::ObjectUrl;
use serde::Serialize;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use zorb::prelude::*;

use super::dump::{Address, Protocol, ways};
use crate::Verdict;
use crate::output::{Node, Output, Tone};

/// The results for the addresses of a reference.
#[derive(Debug, Serialize)]
struct Report {
    type_id: String,
    /// Whether a client that tries the addresses in order reaches the object.
    usable: bool,
    addresses: Vec<Tried>,
}

/// The result for one address.
#[derive(Debug, Serialize)]
struct Tried {
    #[serde(flatten)]
    address: Address,
    /// The IP addresses that the host's name resolves to.
    resolved: Vec<IpAddr>,
    outcome: Outcome,
    /// The meaning of the outcome, or what to do.
    text: String,
    /// A note about an address that can cause problems even if it works from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The time until the answer in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_us: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The object exists, or the server knows its location.
    Object,
    /// A server answers that does not have the object.
    NoObject,
    /// A server listens, but it was not asked.
    Listens,
    /// A server listens, and answered with an error.
    Error,
    /// No server can be reached.
    Unreachable,
    /// The address cannot be used at all.
    Unusable,
}

/// Tests all addresses concurrently, and prints the results.
///
/// # Errors
/// The reference names no address, or output fails.
pub(super) fn run(url: &ObjectUrl, within: Duration, output: &Output) -> anyhow::Result<Verdict> {
    let ior = match url {
        ObjectUrl::Ior(ior) => ior.clone(),
        ObjectUrl::Corbaloc(url) => url.to_ior()?,
        ObjectUrl::Corbaname(url) => url.context.to_ior()?,
        ObjectUrl::File(path) => anyhow::bail!("{} is a file in a file", path.display()),
    };
    let ways = ways(&ior);
    anyhow::ensure!(
        !ways.is_empty(),
        "the reference has no IIOP profile, and so no address to try (zorb ior dump shows what it has)"
    );
    let addresses = crate::start::threads(Some(2))?.block_on(async {
        let orb = Orb::builder().connect_timeout(within).timeout(within).build().await?;
        let mut tasks = Vec::new();
        for (address, profile) in ways {
            let (orb, type_id) = (orb.clone(), ior.type_id.clone());
            tasks.push(tokio::spawn(async move { tried(&orb, &type_id, address, &profile, within).await }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await?);
        }
        orb.shutdown().await;
        anyhow::Ok(all)
    })?;
    let usable = addresses.iter().any(|tried| tried.outcome == Outcome::Object);
    let report = Report { type_id: ior.type_id, usable, addresses };
    output.show(&report, Report::tree)?;
    Ok(if usable { Verdict::Good } else { Verdict::Bad })
}

impl Report {
    fn tree(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.addresses.iter().map(Tried::node).collect();
        nodes.push(match self.usable {
            true => Node::new("usable", "yes").tone(Tone::Good),
            false => Node::new("usable", "not from this machine").tone(Tone::Bad),
        });
        nodes
    }
}

impl Tried {
    fn node(&self) -> Node {
        let tone = match self.outcome {
            Outcome::Object => Tone::Good,
            Outcome::Listens | Outcome::NoObject => Tone::Doubtful,
            Outcome::Error | Outcome::Unreachable | Outcome::Unusable => Tone::Bad,
        };
        let took = self.answered_us.map(|us| format!(" ({:.1} ms)", us as f64 / 1e3)).unwrap_or_default();
        let mut under = vec![Node::new("from", self.address.from)];
        let by_name = self.address.host.parse::<IpAddr>().is_err();
        if by_name && !self.resolved.is_empty() {
            let all: Vec<String> = self.resolved.iter().map(ToString::to_string).collect();
            under.push(Node::new("resolved", all.join(", ")));
        }
        under.extend(self.note.map(|note| Node::new("note", note).tone(Tone::Doubtful)));
        Node::new(self.address.shown(), format!("{}{took}", self.text)).tone(tone).under(under)
    }
}

async fn tried(orb: &Orb, type_id: &str, address: Address, profile: &IiopProfile, within: Duration) -> Tried {
    let start = Instant::now();
    let mut tried = Tried {
        address,
        resolved: Vec::new(),
        outcome: Outcome::Unusable,
        text: String::new(),
        note: None,
        answered_us: None,
    };
    match find(orb, type_id, &mut tried, profile, within).await {
        Ok((outcome, text)) => {
            tried.answered_us = Some(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
            (tried.outcome, tried.text) = (outcome, text);
        }
        Err((outcome, text)) => (tried.outcome, tried.text) = (outcome, text),
    }
    tried
}

/// Tests an address. The result is an error if no server can be reached.
async fn find(
    orb: &Orb,
    type_id: &str,
    tried: &mut Tried,
    profile: &IiopProfile,
    within: Duration,
) -> Result<(Outcome, String), (Outcome, String)> {
    let Address { protocol, host, port, .. } = tried.address.clone();
    if protocol == Protocol::Unix {
        return unix(&host).await;
    }
    if port == 0 {
        let why = "port 0: the server does not listen there; another address or TLS is the way to it";
        return Err((Outcome::Unusable, why.to_owned()));
    }
    let found = timeout(within, lookup_host((host.clone(), port))).await;
    let resolved: Vec<SocketAddr> = match found {
        Ok(Ok(resolved)) => resolved.collect(),
        Ok(Err(error)) => {
            let why = format!(
                "{} is no name that this machine can resolve ({error}): the server should publish one that it can, or its IP address",
                Printable::new(&host)
            );
            return Err((Outcome::Unreachable, why));
        }
        Err(_) => {
            return Err((
                Outcome::Unreachable,
                format!("no name server told within {within:?} what {} is", Printable::new(&host)),
            ));
        }
    };
    tried.resolved = resolved.iter().map(SocketAddr::ip).collect();
    tried.resolved.dedup();
    tried.note = tried.resolved.iter().find_map(|ip| note(*ip));
    if resolved.iter().all(|at| at.ip().is_unspecified()) {
        return Err((Outcome::Unusable, UNSPECIFIED.to_owned()));
    }
    connect(&resolved, within).await.map_err(|why| (Outcome::Unreachable, why))?;
    if protocol == Protocol::Ssliop {
        return Ok((
            Outcome::Listens,
            "somebody listens; not asked, because TLS takes somebody whom one trusts".to_owned(),
        ));
    }
    let alone = alone(type_id, profile, host, port);
    let object = orb.resolve_unchecked::<ObjectRef>(&alone.to_string()).await;
    let object = object.map_err(|error| (Outcome::Unusable, error.to_string()))?;
    match object.locate().await {
        Ok(true) => Ok((Outcome::Object, "the object is there".to_owned())),
        Ok(false) => Ok((Outcome::NoObject, "a server answers, which does not have the object".to_owned())),
        Err(error) => Err((Outcome::Error, format!("somebody listens, but: {error}"))),
    }
}

const UNSPECIFIED: &str = "it names no machine: the server publishes the address that it listens at. Tell the server its own name \
                           (omniORB: -ORBendPointPublish; TAO: hostname_in_ior in -ORBListenEndpoints; JacORB: OAIAddr or \
                           jacorb.ior_proxy_host; zorb: OrbBuilder::publish)";

/// Returns a note about an address that can cause problems.
fn note(ip: IpAddr) -> Option<&'static str> {
    let (private, link_local) = match ip {
        IpAddr::V4(v4) => (v4.is_private(), v4.is_link_local()),
        IpAddr::V6(v6) => (v6.is_unique_local(), v6.is_unicast_link_local()),
    };
    if ip.is_loopback() {
        Some(
            "a loopback address: it means this machine here, and every other machine for those who read the reference there",
        )
    } else if link_local {
        Some("a link-local address: only machines on the same link reach it")
    } else if private {
        Some("a private address: only machines of the same network reach it")
    } else {
        None
    }
}

/// Connects to one of the resolved addresses.
async fn connect(resolved: &[SocketAddr], within: Duration) -> Result<(), String> {
    let mut whys = Vec::new();
    for at in resolved {
        match timeout(within, TcpStream::connect(at)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => whys.push(format!("{at}: {}", why(&error))),
            Err(_) if !has_route(*at) => whys.push(format!("{at}: this machine has no route to it")),
            Err(_) => whys.push(format!(
                "{at}: no answer within {within:?}: a firewall drops what comes, or the machine is off or elsewhere"
            )),
        }
    }
    whys.dedup();
    Err(whys.join("; "))
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "refused: the machine is there, and nobody listens at that port; the server has ended, or started anew elsewhere".to_owned()
        }
        io::ErrorKind::NetworkUnreachable => "this machine has no route to it".to_owned(),
        io::ErrorKind::HostUnreachable => "no such machine on its network".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns whether the system has a route for a datagram to this address. None is sent.
fn has_route(at: SocketAddr) -> bool {
    let any: SocketAddr = if at.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    UdpSocket::bind(any).and_then(|socket| socket.connect(at)).is_ok()
}

async fn unix(path: &str) -> Result<(Outcome, String), (Outcome, String)> {
    #[cfg(unix)]
    match tokio::net::UnixStream::connect(path).await {
        Ok(_) => Ok((Outcome::Listens, "somebody listens at the socket".to_owned())),
        Err(error) => Err((
            Outcome::Unreachable,
            format!("{error}: the socket is of another machine, or its server has ended"),
        )),
    }
    #[cfg(not(unix))]
    Err((Outcome::Unusable, format!("{path}: this system has no Unix sockets")))
}

/// Returns the reference with this address only.
fn alone(type_id: &str, profile: &IiopProfile, host: String, port: u16) -> Ior {
    let other = [
        ComponentTag::ALTERNATE_IIOP_ADDRESS,
        ComponentTag::SSL_SEC_TRANS,
        ComponentTag::CSI_SEC_MECH_LIST,
        ComponentTag::OMNI_UNIX,
        ComponentTag::TAO_ENDPOINTS,
    ];
    let mut profile = profile.clone();
    profile.components.retain(|component| !other.contains(&component.tag));
    (profile.host, profile.port) = (host, port);
    Ior::from_profiles(type_id, &[profile]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_limited_reach_are_noted() {
        let noted =
            |ip: &str| note(ip.parse().unwrap()).map(|note| note.split(':').next().unwrap_or_default());
        assert_eq!(noted("127.0.0.1"), Some("a loopback address"));
        assert_eq!(noted("::1"), Some("a loopback address"));
        assert_eq!(noted("10.1.2.3"), Some("a private address"));
        assert_eq!(noted("169.254.1.1"), Some("a link-local address"));
        assert_eq!(noted("fe80::1"), Some("a link-local address"));
        assert_eq!(noted("192.0.2.1"), None);
    }
}
