//! Calls of etcd over HTTP/1.1, to any member that answers.

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

use super::api::{AuthRequest, AuthResponse, Refusal};
use super::tls::Tls;
use super::{ConnectError, EtcdConfig};

/// The maximum number of concurrent requests to the cluster; further ones are queued. Each has a connection.
const REQUESTS: usize = 64;

/// The members of a cluster.
pub(super) struct Cluster {
    members: Vec<Member>,
    /// The index of the member that is asked first.
    preferred: AtomicUsize,
    turns: Semaphore,
    /// The timeout for one member.
    patience: Duration,
    login: Option<(String, String)>,
    /// The token of the last login.
    token: RwLock<Option<String>>,
}

/// A member of the cluster.
struct Member {
    /// `host:port`.
    address: String,
    tls: Option<Tls>,
    idle: Mutex<Vec<Sender>>,
}

type Sender = SendRequest<Full<Bytes>>;

/// The reason why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request was not sent.
    NotSent(String),
    /// The request may have been executed or not.
    Unknown(String),
    /// The history of the requested revision has been compacted.
    Compacted,
    /// The login has expired; the request was not executed.
    LoggedOut(String),
    /// The request was not executed, and repeating it does not help.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(what) | Self::Unknown(what) | Self::LoggedOut(what) | Self::Refused(what) => {
                OneLine::new(what).fmt(f)
            }
            Self::Compacted => f.write_str("the history was compacted"),
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
            let bad = |why| ConnectError::Config(format!("{endpoint} {why}"));
            if address.is_empty() || address.contains('/') {
                return Err(bad("is no http://HOST:PORT"));
            }
            let tls = match scheme {
                "http" => None,
                "https" => Some(tls.clone()),
                _ => return Err(bad("is neither http:// nor https://")),
            };
            let address = if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
                address
            } else {
                format!("{address}:2379")
            };
            members.push(Member { address, tls, idle: Mutex::default() });
        }
        if members.is_empty() {
            return Err(ConnectError::Config("no member of the cluster is named".to_owned()));
        }
        Ok(Self {
            members,
            preferred: AtomicUsize::new(0),
            turns: Semaphore::new(REQUESTS),
            patience: config.patience,
            login: config.login.clone(),
            token: RwLock::default(),
        })
    }

    fn member(&self) -> (usize, &Member) {
        let index = self.preferred.load(Ordering::Relaxed) % self.members.len();
        (index, &self.members[index])
    }

    /// Makes the next member the preferred one, unless another task has already done so.
    pub(super) fn leave(&self, index: usize) {
        let next = (index + 1) % self.members.len();
        let _ = self.preferred.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
        if let Some(member) = self.members.get(index) {
            member.idle().clear();
        }
    }

    /// Asks one member. If it does not answer, the next member becomes the preferred one.
    pub(super) async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Q,
    ) -> Result<A, Failure> {
        let _turn = self.turns.acquire().await.map_err(|closed| Failure::NotSent(closed.to_string()))?;
        let (index, member) = self.member();
        let answer = async {
            let (head, body, sender) = self.post(member, path, question).await?;
            let whole = body.collect().await.map_err(|error| member.unknown(&error))?.to_bytes();
            if !head.status.is_success() {
                return Err(member.refusal(head.status.as_u16(), &whole));
            }
            member.idle().push(sender);
            serde_json::from_slice(&whole).map_err(|error| member.unknown(&error))
        };
        let answer = timeout(self.patience, answer).await;
        let answer = answer.unwrap_or_else(|_| Err(member.unknown(&"no answer in time")));
        if let Err(Failure::NotSent(_) | Failure::Unknown(_)) = answer {
            self.leave(index);
        }
        answer
    }

    /// Sends an idempotent request to one member after the other, until one answers or the deadline passes.
    pub(super) async fn ask_any<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Q,
        until: Instant,
    ) -> Result<A, Failure> {
        loop {
            match self.ask(path, question).await {
                Err(failure) if self.goes_on(&failure, until).await => {}
                answer => return answer,
            }
        }
    }

    /// Prepares a repetition after a failure, by a short pause or a new login. Returns whether to repeat the
    /// request.
    pub(super) async fn goes_on(&self, failure: &Failure, until: Instant) -> bool {
        match failure {
            Failure::NotSent(_) | Failure::Unknown(_) if Instant::now() < until => {
                // All members may be down, in which case each attempt fails immediately.
                tokio::time::sleep(Duration::from_millis(20)).await;
                true
            }
            Failure::LoggedOut(_) if Instant::now() < until => self.log_in().await.is_ok(),
            _ => false,
        }
    }

    /// Gets a token, if a login is configured.
    pub(super) async fn log_in(&self) -> Result<(), Failure> {
        let Some((name, password)) = &self.login else { return Ok(()) };
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        let answer: AuthResponse = self.ask("/v3/auth/authenticate", &AuthRequest { name, password }).await?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(answer.token);
        Ok(())
    }

    /// Starts a response that consists of lines, until the result is dropped.
    pub(super) async fn stream<Q: Serialize>(&self, path: &str, question: &Q) -> Result<Lines, Failure> {
        let (index, member) = self.member();
        let begun = timeout(self.patience, self.post(member, path, question)).await;
        match begun.unwrap_or_else(|_| Err(member.unknown(&"no answer in time"))) {
            Ok((head, body, sender)) if head.status.is_success() => Ok(Lines {
                body,
                rest: Vec::new(),
                from: index,
                address: member.address.clone(),
                _sender: sender,
            }),
            Ok((head, body, _)) => {
                let whole = body.collect().await.map_err(|error| member.unknown(&error))?.to_bytes();
                self.leave(index);
                Err(member.refusal(head.status.as_u16(), &whole))
            }
            Err(failure) => {
                self.leave(index);
                Err(failure)
            }
        }
    }

    /// Sends a request. Returns the response and the connection, which can be reused when all of the response
    /// was read.
    async fn post<Q: Serialize>(
        &self,
        member: &Member,
        path: &str,
        question: &Q,
    ) -> Result<(Parts, Incoming, Sender), Failure> {
        let body = serde_json::to_vec(question).map_err(|error| Failure::Refused(error.to_string()))?;
        let body = Full::new(Bytes::from(body));
        let mut request = Request::post(path).header("host", &member.address);
        request = request.header("content-type", "application/json");
        if let Some(token) = &*self.token.read().unwrap_or_else(PoisonError::into_inner) {
            request = request.header("authorization", token);
        }
        let mut request = request.body(body).map_err(|error| Failure::Refused(error.to_string()))?;
        loop {
            // In a statement of its own: the lock must not be held across an await.
            let kept = member.idle().pop();
            let fresh = kept.is_none();
            let mut sender = match kept {
                Some(sender) => sender,
                None => member.connect().await.map_err(|error| member.not_sent(&error))?,
            };
            if let Err(error) = sender.ready().await {
                if fresh {
                    return Err(member.not_sent(&error));
                }
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => {
                    let (head, body) = Response::into_parts(response);
                    return Ok((head, body, sender));
                }
                Err(mut error) => match error.take_message() {
                    // The idle connection was closed.
                    Some(again) if !fresh => request = again,
                    Some(_) => return Err(member.not_sent(&error.into_error())),
                    None => return Err(member.unknown(&error.into_error())),
                },
            }
        }
    }
}

impl Member {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> io::Result<Sender> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => spawn(stream).await,
            Some(tls) => {
                let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
                spawn(tls.connect(host, stream).await?).await
            }
        }
    }

    #[cold]
    fn not_sent(&self, error: &impl fmt::Display) -> Failure {
        Failure::NotSent(format!("etcd at {}: {error}", self.address))
    }

    #[cold]
    fn unknown(&self, error: &impl fmt::Display) -> Failure {
        Failure::Unknown(format!("etcd at {}: {error}", self.address))
    }

    #[cold]
    fn refusal(&self, status: u16, body: &[u8]) -> Failure {
        let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
        let said = [&refusal.message, &refusal.error].into_iter().find(|text| !text.is_empty());
        let said = said.cloned().unwrap_or_else(|| format!("HTTP {status}"));
        let what = format!("etcd at {}: {said}", self.address);
        match refusal.code {
            11 => Failure::Compacted,
            16 => Failure::LoggedOut(what),
            // INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION,
            // UNIMPLEMENTED.
            3 | 5 | 7..=9 | 12 => Failure::Refused(what),
            // A cluster without a leader reports this in several ways.
            _ => Failure::Unknown(what),
        }
    }
}

async fn spawn(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<Sender> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // The connection ends when the sender is dropped.
    tokio::spawn(connection);
    Ok(sender)
}

/// A streamed response.
pub(super) struct Lines {
    body: Incoming,
    rest: Vec<u8>,
    /// The index of the member.
    pub(super) from: usize,
    pub(super) address: String,
    /// Keeps the connection open.
    _sender: Sender,
}

impl Lines {
    /// Returns the next line, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, hyper::Error> {
        let mut looked = 0;
        loop {
            let end = self.rest.get(looked..).and_then(|new| new.iter().position(|octet| *octet == b'\n'));
            if let Some(end) = end {
                let behind = self.rest.split_off(looked + end + 1);
                return Ok(Some(std::mem::replace(&mut self.rest, behind)));
            }
            looked = self.rest.len();
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.rest.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
