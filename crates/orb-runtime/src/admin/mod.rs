//! The admin endpoint of an ORB: its state over HTTP (feature `admin`).
//!
//! [`OrbBuilder::admin`](crate::OrbBuilder::admin) enables it, on a loopback address unless others are
//! allowed. It is read-only:
//!
//! | path | answer |
//! |---|---|
//! | `/` | a page for people, updated once a second; it loads nothing from other hosts |
//! | `/status.json` | the data of that page and of `zorb top`, with a history of ten minutes |
//! | `/metrics` | the metrics for Prometheus, text format 0.0.4 |
//! | `/health` | 200 while the ORB exists, 503 with a line for each problem that a check finds ([`Orb::add_health_check`](crate::Orb::add_health_check)) |
//! | `/ready` | 200 while it serves requests; 503 while it holds them (`OrbBuilder::start_paused`) or closes |
//!
//! Methods are GET and HEAD. A request whose `Host` is a name other than `localhost` is refused with 403.
//! This protects against DNS rebinding: a foreign page whose name was rebound to this address can read
//! nothing. The same applies to the authority of an absolute URI. A request with several `Host` fields is
//! refused with 400.
//!
//! At most 16 connections are served concurrently. Each ends with its answer, and has 5 s for its request and
//! 10 s in total. If all slots are taken, a new connection evicts the oldest one that has not sent a complete
//! request head. If there is none, the new connection is closed at once.

mod adapters;
mod history;
mod seats;
mod snapshot;
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

use crate::admin::seats::{Seat, Seats};
use crate::config::{AdminConfig, BuildError};
use crate::runtime::Shared;

/// Connections that are served concurrently.
const MOST: usize = 16;

/// Timeouts of the request head, and of the whole connection.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// Maximum size of a request's head, in bytes.
const HEAD: usize = 8 * 1024;

/// Delay before the next accept after the system has run out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// The content security policy: only resources of this endpoint, and no embedding in frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// A listener that is not served yet.
pub(crate) struct Opened {
    listener: TcpListener,
    address: SocketAddr,
}

impl AdminConfig {
    /// Opens the listener.
    ///
    /// # Errors
    /// The address is malformed, taken, or not one of loopback.
    pub(crate) fn open(&self) -> Result<Opened, BuildError> {
        let endpoint = || format!("{} (OrbBuilder::admin)", self.address);
        let refused = |source| BuildError::Listen { endpoint: endpoint(), source };
        let address = self.address.strip_prefix("http://").unwrap_or(&self.address);
        let found: Vec<SocketAddr> =
            address.trim_end_matches('/').to_socket_addrs().map_err(refused)?.collect();
        if !self.anywhere && found.iter().any(|address| !address.ip().is_loopback()) {
            return Err(BuildError::Admin(self.address.clone()));
        }
        let listener = std::net::TcpListener::bind(&*found).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Opened { listener: TcpListener::from_std(listener).map_err(refused)?, address })
    }
}

impl Opened {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the ORB closes.
    pub(crate) fn serve(self, core: &Arc<Shared>) {
        let served = Arc::downgrade(core);
        core.spawn_until_closed(async move {
            let seats = Seats::new(MOST);
            let mut points = tokio::time::interval_at(Instant::now() + history::INTERVAL, history::INTERVAL);
            points.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let accepted = tokio::select! {
                    accepted = self.listener.accept() => accepted,
                    _ = points.tick() => {
                        let Some(core) = served.upgrade() else { return };
                        core.admin().history().sample(&core);
                        continue;
                    }
                };
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                    continue;
                };
                let Some(core) = served.upgrade() else { return };
                // A connection without a slot is closed here.
                if let Some(seat) = seats.enter() {
                    let core_of = Arc::downgrade(&core);
                    core.spawn_until_closed(async move {
                        let answered = connection(core_of, stream, &seat);
                        tokio::select! {
                            _ = tokio::time::timeout(PATIENCE.1, answered) => {}
                            () = seat.displaced() => {}
                        }
                    });
                }
            }
        });
    }
}

async fn connection(core: Weak<Shared>, stream: TcpStream, seat: &Seat) {
    let answer = service_fn(|request: Request<Incoming>| {
        seat.has_asked();
        let answer = core.upgrade().map_or_else(gone, |core| answer(&core, &request));
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE.0)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(target: "zorb", %error, "a request of the admin endpoint was not answered");
    }
}

fn answer<B>(core: &Shared, request: &Request<B>) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD alone\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return plain(StatusCode::BAD_REQUEST, "several Host fields: send one\n");
    }
    // An absolute URI names a host too, besides the field.
    let authority = request.uri().authority().map(Authority::as_str);
    if !host.is_some_and(names_an_address) || !authority.is_none_or(is_address) {
        return plain(StatusCode::FORBIDDEN, "call it by an address or as localhost\n");
    }
    match request.uri().path() {
        "/" => typed("text/html; charset=utf-8", include_str!("page.html").to_owned()),
        "/page.js" => typed("text/javascript; charset=utf-8", include_str!("page.js").to_owned()),
        "/history.js" => typed("text/javascript; charset=utf-8", include_str!("history.js").to_owned()),
        "/page.css" => typed("text/css; charset=utf-8", include_str!("page.css").to_owned()),
        "/status.json" => typed("application/json", status::status(core).to_string()),
        "/metrics" => typed("text/plain; version=0.0.4; charset=utf-8", text::metrics(core)),
        "/health" => health(&core.admin().problems()),
        "/ready" if core.is_ready() => plain(StatusCode::OK, "ready\n"),
        "/ready" => plain(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        _ => plain(StatusCode::NOT_FOUND, "there is /, /status.json, /metrics, /health and /ready\n"),
    }
}

fn health(problems: &[String]) -> Response<String> {
    if problems.is_empty() {
        return plain(StatusCode::OK, "healthy\n");
    }
    plain(StatusCode::SERVICE_UNAVAILABLE, &format!("{}\n", problems.join("\n")))
}

/// Returns whether a request names an address or `localhost`, which DNS rebinding cannot redirect to this
/// machine.
fn names_an_address(host: &HeaderValue) -> bool {
    host.to_str().is_ok_and(is_address)
}

fn is_address(host: &str) -> bool {
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

fn gone() -> Response<String> {
    plain(StatusCode::SERVICE_UNAVAILABLE, "the ORB is gone\n")
}

fn plain(status: StatusCode, text: &str) -> Response<String> {
    let mut response = typed("text/plain; charset=utf-8", text.to_owned());
    *response.status_mut() = status;
    response
}

fn typed(kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
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
        let good = |host: &str| names_an_address(&HeaderValue::from_str(host).unwrap());
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
        assert!(!names_an_address(&HeaderValue::from_bytes(b"\xff").unwrap()));
    }
}
