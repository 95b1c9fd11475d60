//! The admin endpoint of an ORB, which shows its state over HTTP (feature `admin`).
//!
//! [`OrbBuilder::admin`](crate::OrbBuilder::admin) enables the endpoint on a loopback address, and
//! `OrbBuilder::admin_unprotected` on any address. It is read-only:
//!
//! | path | answer |
//! |---|---|
//! | `/` | a page for browsers, updated once a second; it loads nothing from other hosts |
//! | `/status.json` | the data of that page and of `zorb top`, with a history of ten minutes |
//! | `/metrics` | the metrics for Prometheus, text format 0.0.4 |
//! | `/health` | 200, or 503 with a line for each problem that a check reports ([`Orb::add_health_check`](crate::Orb::add_health_check)) |
//! | `/ready` | 200 while the ORB serves requests; 503 while it holds them (`OrbBuilder::start_paused`) or shuts down |
//!
//! Only the methods GET and HEAD are accepted. A request is refused with 403 if it has no `Host` field, or if
//! that field or the authority of an absolute URI is a name other than `localhost`. This protects against DNS
//! rebinding. A request with several `Host` fields is refused with 400.
//!
//! At most 16 connections are served concurrently. Each is closed after one response. It must send its
//! request within 5 s, and is closed after 10 s in any case. If all slots are taken, a new connection evicts
//! the oldest one that has not sent a complete request head. If there is none, the new one is closed.

mod adapters;
mod connection_slots;
mod history;
mod state;
mod status;
mod text;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior};

use crate::admin::connection_slots::{ConnectionSlot, ConnectionSlots};
use crate::config::{AdminConfig, BuildError};
use crate::runtime::Shared;

const MAX_CONNECTIONS: usize = 16;
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEAD_BYTES: usize = 8 * 1024;
/// The delay before `accept` is called again after a failure, for example because no file descriptor is free.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Permits only resources of this endpoint, and prevents embedding of its page in frames.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(crate) struct AdminListener {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

impl AdminConfig {
    /// Opens the listener. Fails if the address is malformed, in use, or not permitted (`admin_unprotected`).
    pub(crate) fn open(&self) -> Result<AdminListener, BuildError> {
        let endpoint = || format!("{} (OrbBuilder::admin)", self.address);
        let refused = |source| BuildError::Listen { endpoint: endpoint(), source };
        let address = self.address.strip_prefix("http://").unwrap_or(&self.address);
        let found: Vec<SocketAddr> =
            address.trim_end_matches('/').to_socket_addrs().map_err(refused)?.collect();
        if !self.is_remote_allowed && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(BuildError::Admin(self.address.clone()));
        }
        let listener = std::net::TcpListener::bind(&*found).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(AdminListener { listener: TcpListener::from_std(listener).map_err(refused)?, address })
    }
}

impl AdminListener {
    pub(crate) fn serve(self, core: &Arc<Shared>) {
        let weak_core = Arc::downgrade(core);
        core.spawn_until_closed(async move {
            let slots = ConnectionSlots::new(MAX_CONNECTIONS);
            let mut samples =
                tokio::time::interval_at(Instant::now() + history::SAMPLE_INTERVAL, history::SAMPLE_INTERVAL);
            samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let accepted = tokio::select! {
                    accepted = self.listener.accept() => accepted,
                    _ = samples.tick() => {
                        let Some(core) = weak_core.upgrade() else { return };
                        core.admin().history().take_sample(&core);
                        continue;
                    }
                };
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                };
                let Some(core) = weak_core.upgrade() else { return };
                // Without a slot, the connection is closed here.
                if let Some(slot) = slots.acquire() {
                    let weak_core = Arc::downgrade(&core);
                    core.spawn_until_closed(async move {
                        let answered = serve_connection(weak_core, stream, &slot);
                        tokio::select! {
                            _ = tokio::time::timeout(CONNECTION_TIMEOUT, answered) => {}
                            () = slot.wait_for_eviction() => {}
                        }
                    });
                }
            }
        });
    }
}

async fn serve_connection(core: Weak<Shared>, stream: TcpStream, slot: &ConnectionSlot) {
    let answer = service_fn(|request: Request<Incoming>| {
        slot.set_request_received();
        let orb_dropped = || text_response(StatusCode::SERVICE_UNAVAILABLE, "the ORB has been dropped\n");
        let answer = core.upgrade().map_or_else(orb_dropped, |core| answer(&core, &request));
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(target: "zorb", %error, "the admin endpoint could not answer a request");
    }
}

fn answer<B>(core: &Shared, request: &Request<B>) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return text_response(StatusCode::BAD_REQUEST, "the request has several Host fields\n");
    }
    // An absolute URI names a host in addition to the `Host` field.
    let authority = request.uri().authority().map(Authority::as_str);
    if !host.is_some_and(is_allowed_host_field) || !authority.is_none_or(is_allowed_host) {
        return text_response(StatusCode::FORBIDDEN, "the host must be an IP address or localhost\n");
    }
    match request.uri().path() {
        "/" => response("text/html; charset=utf-8", include_str!("page.html").to_owned()),
        "/page.js" => response("text/javascript; charset=utf-8", include_str!("page.js").to_owned()),
        "/history.js" => response("text/javascript; charset=utf-8", include_str!("history.js").to_owned()),
        "/page.css" => response("text/css; charset=utf-8", include_str!("page.css").to_owned()),
        "/status.json" => response("application/json", status::status(core).to_string()),
        "/metrics" => response("text/plain; version=0.0.4; charset=utf-8", text::metrics(core)),
        "/health" => match core.admin().problems() {
            problems if problems.is_empty() => text_response(StatusCode::OK, "healthy\n"),
            problems => text_response(StatusCode::SERVICE_UNAVAILABLE, &(problems.join("\n") + "\n")),
        },
        "/ready" if core.is_ready() => text_response(StatusCode::OK, "ready\n"),
        "/ready" => text_response(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        _ => text_response(
            StatusCode::NOT_FOUND,
            "the paths are /, /status.json, /metrics, /health and /ready\n",
        ),
    }
}

/// Returns whether a `Host` field is an IP address or `localhost`. DNS rebinding can abuse other names.
fn is_allowed_host_field(host: &HeaderValue) -> bool {
    host.to_str().is_ok_and(is_allowed_host)
}

fn is_allowed_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return port && address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
    }
    let (name, port) = host.split_once(':').map_or((host, true), |(name, port)| (name, is_port(port)));
    port && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn text_response(status: StatusCode, text: &str) -> Response<String> {
    let mut response = response("text/plain; charset=utf-8", text.to_owned());
    *response.status_mut() = status;
    response
}

fn response(kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_localhost() {
        let good = |host: &str| is_allowed_host_field(&HeaderValue::from_str(host).unwrap());
        for host in
            ["127.0.0.1", "127.0.0.1:80", "localhost:9", "LocalHost", "[::1]", "[::1]:80", "10.0.0.1:1"]
        {
            assert!(good(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "[::1",
            "[127.0.0.1]",
            "::1",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "[::1]x",
        ] {
            assert!(!good(host), "{host}");
        }
        assert!(!is_allowed_host_field(&HeaderValue::from_bytes(b"\xff").unwrap()));
    }
}
