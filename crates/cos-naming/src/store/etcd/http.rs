//! [`Cluster`], which sends requests over HTTP/1.1 to a member of the etcd cluster that answers.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::response::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use zorb::OneLine;

use super::api::{AuthRequest, AuthResponse, ErrorResponse};
use super::tls::Tls;
use super::{ConnectError, EtcdConfig};

/// The maximum number of concurrent requests to the cluster, without streams. Further requests are queued.
const MAX_REQUESTS: usize = 64;

pub(super) struct Cluster {
    members: Vec<Member>,
    /// The index of the member to which requests are sent.
    preferred_index: AtomicUsize,
    request_slots: Semaphore,
    member_timeout: Duration,
    login: Option<(String, String)>,
    token: RwLock<Option<String>>,
}

struct Member {
    /// `host:port`.
    address: String,
    tls: Option<Tls>,
    /// The connections without a request in progress.
    idle_connections: Mutex<Vec<Connection>>,
}

/// A response whose body has not been read yet.
struct PendingResponse {
    head: Parts,
    body: Incoming,
    /// Can be used for another request after the whole body has been read.
    connection: Connection,
}

type Connection = SendRequest<Full<Bytes>>;

#[derive(Debug)]
pub(super) enum Failure {
    NotSent(String),
    /// The request may have been executed or not.
    MaybeExecuted(String),
    /// etcd has deleted the history that begins at the requested revision.
    Compacted,
    /// The request was not executed because the login has expired.
    LoggedOut(String),
    /// The request was not executed, and would fail again if it were repeated.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(reason)
            | Self::MaybeExecuted(reason)
            | Self::LoggedOut(reason)
            | Self::Refused(reason) => OneLine::new(reason).fmt(f),
            Self::Compacted => f.write_str("etcd has deleted the requested history"),
        }
    }
}

impl Cluster {
    pub(super) fn new(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let tls = Tls::client(config)?;
        let mut members = Vec::new();
        for endpoint in &config.endpoints {
            let (scheme, address) = endpoint.split_once("://").unwrap_or(("http", endpoint));
            let address = address.trim_end_matches('/').to_owned();
            let config_error = |why| ConnectError::Config(format!("{endpoint} {why}"));
            if address.is_empty() || address.contains('/') {
                return Err(config_error("is not of the form http://HOST[:PORT] or https://HOST[:PORT]"));
            }
            let tls = match scheme {
                "http" => None,
                "https" => Some(tls.clone()),
                _ => return Err(config_error("is neither http:// nor https://")),
            };
            let address = if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
                address
            } else {
                format!("{address}:2379")
            };
            members.push(Member { address, tls, idle_connections: Mutex::default() });
        }
        if members.is_empty() {
            return Err(ConnectError::Config("no endpoint is configured".to_owned()));
        }
        Ok(Self {
            members,
            preferred_index: AtomicUsize::new(0),
            request_slots: Semaphore::new(MAX_REQUESTS),
            member_timeout: config.member_timeout,
            login: config.login.clone(),
            token: RwLock::default(),
        })
    }

    /// Returns the preferred member and its index.
    fn preferred_member(&self) -> (usize, &Member) {
        let index = self.preferred_index.load(Ordering::Relaxed) % self.members.len();
        (index, &self.members[index])
    }

    /// Makes the member after the one at `index` the preferred one, unless another task has done so. Closes
    /// the idle connections to the member at `index`.
    pub(super) fn prefer_next(&self, index: usize) {
        let next = (index + 1) % self.members.len();
        let _ = self.preferred_index.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
        if let Some(member) = self.members.get(index) {
            member.idle_connections().clear();
        }
    }

    /// Sends a request once, to the preferred member. If the member does not answer, or the outcome is not
    /// known, the next member becomes the preferred one.
    pub(super) async fn request<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        request: &Q,
    ) -> Result<A, Failure> {
        let _slot =
            self.request_slots.acquire().await.map_err(|closed| Failure::NotSent(closed.to_string()))?;
        let (index, member) = self.preferred_member();
        let response = async {
            let PendingResponse { head, body, connection } = self.post(member, path, request).await?;
            let body_bytes = body.collect().await.map_err(|error| member.maybe_executed(&error))?.to_bytes();
            if !head.status.is_success() {
                return Err(member.failure_of_response(head.status.as_u16(), &body_bytes));
            }
            member.idle_connections().push(connection);
            serde_json::from_slice(&body_bytes).map_err(|error| member.maybe_executed(&error))
        };
        let response = timeout(self.member_timeout, response).await;
        let response = response.unwrap_or_else(|_| Err(member.maybe_executed(&"timeout")));
        if let Err(Failure::NotSent(_) | Failure::MaybeExecuted(_)) = response {
            self.prefer_next(index);
        }
        response
    }

    /// Sends an idempotent request, and repeats it at other members until one answers or the deadline passes.
    pub(super) async fn request_from_any<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        request: &Q,
        deadline: Instant,
    ) -> Result<A, Failure> {
        loop {
            match self.request(path, request).await {
                Err(failure) if self.prepare_retry(&failure, deadline).await => {}
                response => return response,
            }
        }
    }

    /// Returns whether to repeat a request that failed. If so, first waits for a moment or logs in again.
    pub(super) async fn prepare_retry(&self, failure: &Failure, deadline: Instant) -> bool {
        match failure {
            Failure::NotSent(_) | Failure::MaybeExecuted(_) if Instant::now() < deadline => {
                // Without a pause, attempts would fail in rapid succession while all members are down.
                tokio::time::sleep(Duration::from_millis(20)).await;
                true
            }
            Failure::LoggedOut(_) if Instant::now() < deadline => self.log_in().await.is_ok(),
            _ => false,
        }
    }

    pub(super) async fn log_in(&self) -> Result<(), Failure> {
        let Some((name, password)) = &self.login else { return Ok(()) };
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        let response: AuthResponse =
            self.request("/v3/auth/authenticate", &AuthRequest { name, password }).await?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(response.token);
        Ok(())
    }

    /// Sends a request whose response is a stream of lines. The stream ends when the result is dropped.
    pub(super) async fn stream<Q: Serialize>(&self, path: &str, request: &Q) -> Result<Lines, Failure> {
        let (index, member) = self.preferred_member();
        let started = timeout(self.member_timeout, self.post(member, path, request)).await;
        match started.unwrap_or_else(|_| Err(member.maybe_executed(&"timeout"))) {
            Ok(PendingResponse { head, body, connection }) if head.status.is_success() => Ok(Lines {
                body,
                buffer: Vec::new(),
                member_index: index,
                address: member.address.clone(),
                _connection: connection,
            }),
            Ok(PendingResponse { head, body, .. }) => {
                let body_bytes =
                    body.collect().await.map_err(|error| member.maybe_executed(&error))?.to_bytes();
                self.prefer_next(index);
                Err(member.failure_of_response(head.status.as_u16(), &body_bytes))
            }
            Err(failure) => {
                self.prefer_next(index);
                Err(failure)
            }
        }
    }

    /// Sends a request to a member, over an idle connection or a new one.
    async fn post<Q: Serialize>(
        &self,
        member: &Member,
        path: &str,
        request: &Q,
    ) -> Result<PendingResponse, Failure> {
        let body = serde_json::to_vec(request).map_err(|error| Failure::Refused(error.to_string()))?;
        let body = Full::new(Bytes::from(body));
        let mut http_request = Request::post(path).header("host", &member.address);
        http_request = http_request.header("content-type", "application/json");
        if let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            http_request = http_request.header("authorization", token);
        }
        let mut http_request =
            http_request.body(body).map_err(|error| Failure::Refused(error.to_string()))?;
        loop {
            // This must be a separate statement, because the lock must not be held across an await.
            let idle = member.idle_connections().pop();
            let is_new = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                None => member.connect().await.map_err(|error| member.not_sent(&error))?,
            };
            if let Err(error) = connection.ready().await {
                if is_new {
                    return Err(member.not_sent(&error));
                }
                continue;
            }
            match connection.try_send_request(http_request).await {
                Ok(response) => {
                    let (head, body) = Response::into_parts(response);
                    return Ok(PendingResponse { head, body, connection });
                }
                Err(mut error) => match error.take_message() {
                    // etcd closed the idle connection before it received the request. Send it again.
                    Some(unsent) if !is_new => http_request = unsent,
                    Some(_) => return Err(member.not_sent(&error.into_error())),
                    None => return Err(member.maybe_executed(&error.into_error())),
                },
            }
        }
    }
}

impl Member {
    fn idle_connections(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle_connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> io::Result<Connection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => open_connection(stream).await,
            Some(tls) => {
                let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
                open_connection(tls.connect(host, stream).await?).await
            }
        }
    }

    #[cold]
    fn not_sent(&self, error: &impl fmt::Display) -> Failure {
        Failure::NotSent(format!("etcd at {}: {error}", self.address))
    }

    #[cold]
    fn maybe_executed(&self, error: &impl fmt::Display) -> Failure {
        Failure::MaybeExecuted(format!("etcd at {}: {error}", self.address))
    }

    #[cold]
    fn failure_of_response(&self, status: u16, body: &[u8]) -> Failure {
        let response: ErrorResponse = serde_json::from_slice(body).unwrap_or_default();
        let message = [&response.message, &response.error].into_iter().find(|text| !text.is_empty());
        let message = message.cloned().unwrap_or_else(|| format!("HTTP {status}"));
        let reason = format!("etcd at {}: {message}", self.address);
        // The gRPC codes OUT_OF_RANGE (11) and UNAUTHENTICATED (16), then INVALID_ARGUMENT (3), NOT_FOUND
        // (5), PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION (7 to 9) and UNIMPLEMENTED (12).
        match response.code {
            11 => Failure::Compacted,
            16 => Failure::LoggedOut(reason),
            3 | 5 | 7..=9 | 12 => Failure::Refused(reason),
            // These include the codes that a cluster without a leader returns.
            _ => Failure::MaybeExecuted(reason),
        }
    }
}

/// Starts an HTTP connection over a stream, with a task that drives it.
async fn open_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> io::Result<Connection> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The task ends when the sender is dropped.
    tokio::spawn(connection);
    Ok(sender)
}

pub(super) struct Lines {
    body: Incoming,
    /// The bytes received after the last complete line.
    buffer: Vec<u8>,
    pub(super) member_index: usize,
    pub(super) address: String,
    /// Keeps the connection open.
    _connection: Connection,
}

impl Lines {
    /// Returns the next line with its line end, or `None` at the end of the response.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, hyper::Error> {
        let mut searched_len = 0;
        loop {
            let end =
                self.buffer.get(searched_len..).and_then(|new| new.iter().position(|byte| *byte == b'\n'));
            if let Some(end) = end {
                let remaining = self.buffer.split_off(searched_len + end + 1);
                return Ok(Some(std::mem::replace(&mut self.buffer, remaining)));
            }
            searched_len = self.buffer.len();
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
