//! `zorb ior check`: tests which addresses of a reference lead to the object, and why others fail.

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

use super::dump::{Address, Protocol, addresses_with_profiles, to_ior};
use crate::failure::Verdict;
use crate::output::{Node, Output, Tone};

#[derive(Debug, Serialize)]
struct Report {
    type_id: String,
    /// Whether a client that tries the addresses in order reaches the object.
    usable: bool,
    addresses: Vec<AddressResult>,
}

#[derive(Debug, Serialize)]
struct AddressResult {
    #[serde(flatten)]
    address: Address,
    resolved: Vec<IpAddr>,
    outcome: Outcome,
    /// A description of the outcome, or what to do.
    text: String,
    /// A note about an address that some machines cannot reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The time until the outcome was known, if a server was reached and the request did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_us: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The object exists, or the server returned its location.
    Object,
    /// A server answers, but it does not have the object.
    NoObject,
    /// A server listens, but no request was sent.
    Listens,
    /// A server listens, but the request failed.
    Error,
    /// The host name cannot be resolved, or no connection can be opened.
    Unreachable,
    /// No connection can be attempted, for example because the address is a wildcard.
    Unusable,
}

pub(super) fn run(url: &ObjectUrl, time_limit: Duration, output: &Output) -> anyhow::Result<Verdict> {
    let ior = to_ior(url)?;
    let candidates = addresses_with_profiles(&ior);
    anyhow::ensure!(
        !candidates.is_empty(),
        "the reference has no IIOP profile, so there is no address to test (see `zorb ior dump`)"
    );
    let addresses = crate::start::runtime(Some(2))?.block_on(async {
        let orb = Orb::builder().connect_timeout(time_limit).timeout(time_limit).build().await?;
        let mut tasks = Vec::new();
        for (address, profile) in candidates {
            let (orb, type_id) = (orb.clone(), ior.type_id.clone());
            tasks.push(tokio::spawn(async move {
                test_address(&orb, &type_id, address, &profile, time_limit).await
            }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await?);
        }
        orb.shutdown().await;
        anyhow::Ok(all)
    })?;
    let usable = addresses.iter().any(|result| result.outcome == Outcome::Object);
    let report = Report { type_id: ior.type_id, usable, addresses };
    output.show(&report, Report::tree)?;
    Ok(if usable { Verdict::Good } else { Verdict::Bad })
}

impl Report {
    fn tree(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = self.addresses.iter().map(AddressResult::node).collect();
        nodes.push(match self.usable {
            true => Node::new("usable", "yes").tone(Tone::Good),
            false => Node::new("usable", "not from this machine").tone(Tone::Bad),
        });
        nodes
    }
}

impl AddressResult {
    fn node(&self) -> Node {
        let tone = match self.outcome {
            Outcome::Object => Tone::Good,
            Outcome::Listens | Outcome::NoObject => Tone::Doubtful,
            Outcome::Error | Outcome::Unreachable | Outcome::Unusable => Tone::Bad,
        };
        let time = self.answered_us.map(|us| format!(" ({:.1} ms)", us as f64 / 1e3)).unwrap_or_default();
        let mut children = vec![Node::new("from", self.address.from)];
        let has_name = self.address.host.parse::<IpAddr>().is_err();
        if has_name && !self.resolved.is_empty() {
            let all: Vec<String> = self.resolved.iter().map(ToString::to_string).collect();
            children.push(Node::new("resolved", all.join(", ")));
        }
        children.extend(self.note.map(|note| Node::new("note", note).tone(Tone::Doubtful)));
        Node::new(self.address.display(), format!("{}{time}", self.text)).tone(tone).children(children)
    }
}

async fn test_address(
    orb: &Orb,
    type_id: &str,
    address: Address,
    profile: &IiopProfile,
    time_limit: Duration,
) -> AddressResult {
    let start = Instant::now();
    let mut result = AddressResult {
        address,
        resolved: Vec::new(),
        outcome: Outcome::Unusable,
        text: String::new(),
        note: None,
        answered_us: None,
    };
    let found = find_object(orb, type_id, &mut result, profile, time_limit).await;
    if found.is_ok() {
        result.answered_us = Some(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    (result.outcome, result.text) = found.unwrap_or_else(|failure| failure);
    result
}

/// Looks for the object at the address in `result`. Fails if the server or its answer is missing.
async fn find_object(
    orb: &Orb,
    type_id: &str,
    result: &mut AddressResult,
    profile: &IiopProfile,
    time_limit: Duration,
) -> Result<(Outcome, String), (Outcome, String)> {
    let Address { protocol, host, port, .. } = result.address.clone();
    if protocol == Protocol::Unix {
        return connect_unix(&host).await;
    }
    if port == 0 {
        let reason = "port 0: the server does not listen at this address, only at another one or with TLS";
        return Err((Outcome::Unusable, reason.to_owned()));
    }
    let lookup = timeout(time_limit, lookup_host((host.clone(), port))).await;
    let resolved: Vec<SocketAddr> = match lookup {
        Ok(Ok(resolved)) => resolved.collect(),
        Ok(Err(error)) => {
            let reason = format!(
                "this machine cannot resolve the host name {} ({error}); the server should publish another name, or its IP address",
                Printable::new(&host)
            );
            return Err((Outcome::Unreachable, reason));
        }
        Err(_) => {
            return Err((
                Outcome::Unreachable,
                format!("the host name {} was not resolved within {time_limit:?}", Printable::new(&host)),
            ));
        }
    };
    result.resolved = resolved.iter().map(SocketAddr::ip).collect();
    result.resolved.dedup();
    result.note = result.resolved.iter().find_map(|ip| note(*ip));
    if resolved.iter().all(|address| address.ip().is_unspecified()) {
        return Err((Outcome::Unusable, UNSPECIFIED.to_owned()));
    }
    connect(&resolved, time_limit).await.map_err(|reason| (Outcome::Unreachable, reason))?;
    if protocol == Protocol::Ssliop {
        return Ok((
            Outcome::Listens,
            "a server listens; no request was sent, because this command does not use TLS".to_owned(),
        ));
    }
    let single = single_address_ior(type_id, profile, host, port);
    let object = orb.resolve_unchecked::<ObjectRef>(&single.to_string()).await;
    let object = object.map_err(|error| (Outcome::Unusable, error.to_string()))?;
    match object.locate().await {
        Ok(true) => Ok((Outcome::Object, "the object exists".to_owned())),
        Ok(false) => Ok((Outcome::NoObject, "a server answers, but it does not have the object".to_owned())),
        Err(error) => Err((Outcome::Error, format!("a server listens, but the request failed: {error}"))),
    }
}

const UNSPECIFIED: &str = "this is not the address of a machine, but the wildcard address at which the server listens. Configure the host \
                           name of the server (omniORB: -ORBendPointPublish; TAO: hostname_in_ior in -ORBListenEndpoints; JacORB: OAIAddr or \
                           jacorb.ior_proxy_host; zorb: OrbBuilder::publish)";

fn note(ip: IpAddr) -> Option<&'static str> {
    let (private, link_local) = match ip {
        IpAddr::V4(v4) => (v4.is_private(), v4.is_link_local()),
        IpAddr::V6(v6) => (v6.is_unique_local(), v6.is_unicast_link_local()),
    };
    if ip.is_loopback() {
        Some("a loopback address: it always refers to the machine of the client")
    } else if link_local {
        Some("a link-local address: only machines on the same link can reach it")
    } else if private {
        Some("a private address: only machines in the same network can reach it")
    } else {
        None
    }
}

async fn connect(resolved: &[SocketAddr], time_limit: Duration) -> Result<(), String> {
    let mut errors = Vec::new();
    for address in resolved {
        match timeout(time_limit, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => errors.push(format!("{address}: {}", connect_error(&error))),
            Err(_) if !has_route(*address) => errors.push(format!("{address}: {NO_ROUTE}")),
            Err(_) => errors.push(format!(
                "{address}: no response within {time_limit:?}; a firewall may drop the packets, or the machine is off"
            )),
        }
    }
    errors.dedup();
    Err(errors.join("; "))
}

const NO_ROUTE: &str = "this machine has no route to the address";

fn connect_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "connection refused: no server listens at this port; it may have ended or been restarted at another port".to_owned()
        }
        io::ErrorKind::NetworkUnreachable => NO_ROUTE.to_owned(),
        io::ErrorKind::HostUnreachable => "no machine with this address can be reached in its network".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns whether the system has a route to an address. Nothing is sent.
fn has_route(address: SocketAddr) -> bool {
    let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    UdpSocket::bind(any).and_then(|socket| socket.connect(address)).is_ok()
}

async fn connect_unix(path: &str) -> Result<(Outcome, String), (Outcome, String)> {
    #[cfg(unix)]
    match tokio::net::UnixStream::connect(path).await {
        Ok(_) => Ok((Outcome::Listens, "a server listens at the socket".to_owned())),
        Err(error) => Err((
            Outcome::Unreachable,
            format!("{error}; perhaps the socket is on another machine, or the server has ended"),
        )),
    }
    #[cfg(not(unix))]
    Err((Outcome::Unusable, format!("{path}: this system does not support Unix sockets")))
}

/// Returns a reference that contains only this address.
fn single_address_ior(type_id: &str, profile: &IiopProfile, host: String, port: u16) -> Ior {
    let removed_tags = [
        ComponentTag::ALTERNATE_IIOP_ADDRESS,
        ComponentTag::SSL_SEC_TRANS,
        ComponentTag::CSI_SEC_MECH_LIST,
        ComponentTag::OMNI_UNIX,
        ComponentTag::TAO_ENDPOINTS,
    ];
    let mut profile = profile.clone();
    profile.components.retain(|component| !removed_tags.contains(&component.tag));
    (profile.host, profile.port) = (host, port);
    Ior::from_profiles(type_id, &[profile]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_other_machines_may_not_reach_have_notes() {
        let note_kind =
            |ip: &str| note(ip.parse().unwrap()).map(|note| note.split(':').next().unwrap_or_default());
        assert_eq!(note_kind("127.0.0.1"), Some("a loopback address"));
        assert_eq!(note_kind("::1"), Some("a loopback address"));
        assert_eq!(note_kind("10.1.2.3"), Some("a private address"));
        assert_eq!(note_kind("169.254.1.1"), Some("a link-local address"));
        assert_eq!(note_kind("fe80::1"), Some("a link-local address"));
        assert_eq!(note_kind("192.0.2.1"), None);
    }
}
