//! Authentication and authorization of requests.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use giop_codec::csi::gssup::{self, LoginError};
use giop_codec::csi::{ContextFailure, EstablishContext, IdentityToken, SasContext};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, minor};
use giop_codec::giop::{ContextId, ServiceContext};
use giop_codec::{OneLine, Printable};
use giop_proto::IncomingRequest;
use tokio_util::task::AbortOnDropHandle;

use crate::csi::authorizer::{Access, Decision};
use crate::csi::guard::{Caller, Guard, TokenDigest};
use crate::csi::logins::{Login, LoginRefused, Logins, Required};
use crate::csi::principal::{Principal, PrincipalKind, distinguished_name, subject_of_chain};
use crate::runtime::Shared;

pub(crate) enum AuthOutcome {
    Accepted(Caller),
    Pending(LoginCheck),
    Refused(Box<Refusal>),
}

pub(crate) struct Refusal {
    pub(crate) exception: SystemException,
    /// The service context of the reply, which tells the client why its security context was refused.
    pub(crate) context: Option<ServiceContext>,
}

/// A future that completes when the check of a login has ended. Dropping it aborts the check.
pub(crate) struct LoginCheck(AbortOnDropHandle<()>);

const THROTTLED: &str = "too many logins from this address have failed (Logins::max_failures_per_address)";
const QUEUE_FULL: &str = "too many logins are queued for a check (Logins::max_waiting)";

type Verdict = Result<Arc<Principal>, LoginFailure>;

enum LoginFailure {
    Refused(LoginRefused),
    /// The login was not checked, because too many others are queued.
    QueueFull,
}

pub(super) struct PendingLogin {
    token: TokenDigest,
    /// Set when the check has ended. Never set if the request is dropped before.
    verdict: Arc<OnceLock<Verdict>>,
    epoch: u64,
}

struct ContextRejection {
    failure: ContextFailure,
    /// The error token for the client.
    token: Bytes,
    /// For the log.
    reason: String,
}

impl ContextRejection {
    fn new(failure: ContextFailure, reason: impl Into<String>) -> Self {
        Self { failure, token: Bytes::new(), reason: reason.into() }
    }
}

enum LoginOutcome {
    /// The login was accepted. The value is its user, or `None` if the security context has no login.
    Known(Option<Arc<Principal>>),
    Pending(LoginCheck),
    QueueFull,
}

impl Future for LoginCheck {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

impl Guard {
    /// Authenticates the caller of a request. After `Pending`, call this again when the check has ended.
    pub(crate) fn identify(&mut self, orb: &Shared, incoming: &IncomingRequest) -> AuthOutcome {
        let Some(logins) = self.security.logins.clone() else {
            return AuthOutcome::Accepted(self.certified_caller.clone());
        };
        let contexts = incoming.contexts();
        let Some(context) = contexts.find(ContextId::SECURITY_ATTRIBUTE_SERVICE) else {
            return match (logins.required, self.certified_caller.principal()) {
                (Required::Login, _) | (Required::Identity, None) => self.refuse_unknown_caller(),
                (Required::Nothing, _) | (Required::Identity, Some(_)) => {
                    AuthOutcome::Accepted(self.certified_caller.clone())
                }
            };
        };
        let epoch = logins.authenticator.epoch();
        self.accepted.discard_outdated(epoch);
        let digest = self.accepted.digest(context.data);
        if let Some(caller) = self.accepted.recent_caller(&digest) {
            return AuthOutcome::Accepted(caller.clone());
        }
        let (number, outcome) = match SasContext::from_service_context(&context) {
            Ok(Some(SasContext::Establish(context))) => {
                let bytes = incoming.message().len();
                (context.client_context_id, self.establish(orb, &logins, epoch, digest, context, bytes))
            }
            Ok(Some(SasContext::InContext { client_context_id, .. })) => {
                let known = self.accepted.numbered.get(&client_context_id);
                let known = known.map(|(_, caller)| AuthOutcome::Accepted(caller.clone()));
                let unknown = || {
                    let text = "the request refers to an unknown context number";
                    ContextRejection::new(ContextFailure::NO_CONTEXT, text)
                };
                (client_context_id, known.ok_or_else(unknown))
            }
            Ok(_) => {
                let text = "the client sent a security context of a kind that only servers send";
                (0, Err(ContextRejection::new(ContextFailure::INVALID_MECHANISM, text)))
            }
            Err(error) => {
                orb.counters.hit_decoding_limit(&error);
                self.log_refusal("the security context cannot be decoded");
                let exception = error.to_system_exception(CompletionStatus::No);
                return AuthOutcome::Refused(Box::new(Refusal { exception, context: None }));
            }
        };
        outcome.unwrap_or_else(|rejection| self.refuse(number, rejection))
    }

    fn establish(
        &mut self,
        orb: &Shared,
        logins: &Arc<Logins>,
        epoch: u64,
        digest: TokenDigest,
        context: EstablishContext,
        bytes: usize,
    ) -> Result<AuthOutcome, ContextRejection> {
        let number = context.client_context_id;
        if self.accepted.numbered.get(&number).is_some_and(|(other, _)| *other != digest) {
            let text = "another security context of the connection already has this number";
            return Err(ContextRejection::new(ContextFailure::POLICY_CONFLICT, text));
        }
        let login = match self.log_in(orb, logins, epoch, &context.authentication, bytes)? {
            LoginOutcome::Pending(check) => return Ok(AuthOutcome::Pending(check)),
            LoginOutcome::QueueFull => return Ok(self.refuse_queue_full()),
            LoginOutcome::Known(login) => login,
        };
        let has_login = login.is_some();
        let asserted_by = login.or_else(|| self.certified_caller.principal().cloned());
        let missing = match logins.required {
            Required::Nothing => false,
            Required::Identity => asserted_by.is_none(),
            Required::Login => !has_login,
        };
        if missing {
            let text = "the security context has no login";
            return Err(ContextRejection::new(ContextFailure::INVALID_EVIDENCE, text));
        }
        let principal = asserted_principal(logins, asserted_by, context.identity)?;
        Ok(AuthOutcome::Accepted(self.accepted.insert(digest, number, principal, logins.max_contexts)))
    }

    /// Authenticates the login in `token`, if that is not empty. `bytes` is the size of the request.
    fn log_in(
        &mut self,
        orb: &Shared,
        logins: &Arc<Logins>,
        epoch: u64,
        token: &Bytes,
        bytes: usize,
    ) -> Result<LoginOutcome, ContextRejection> {
        if token.is_empty() {
            return Ok(LoginOutcome::Known(None));
        }
        if !self.is_private && !logins.allows_plaintext {
            let text =
                "a password was received over plain TCP, which Logins::allow_plaintext_passwords must permit";
            return Err(ContextRejection::new(ContextFailure::POLICY_CONFLICT, text));
        }
        let digest = self.accepted.digest(token);
        if let Some(principal) = self.accepted.login_principal(&digest) {
            return Ok(LoginOutcome::Known(Some(Arc::clone(principal))));
        }
        let is_this = |pending: &mut PendingLogin| pending.token == digest && pending.epoch == epoch;
        if let Some(pending) = self.pending_login.take_if(is_this) {
            match pending.verdict.get() {
                Some(Ok(principal)) => {
                    self.security.counters.logins.fetch_add(1, Ordering::Relaxed);
                    self.accepted.insert_login(digest, principal);
                    return Ok(LoginOutcome::Known(Some(Arc::clone(principal))));
                }
                Some(Err(LoginFailure::QueueFull)) => return Ok(LoginOutcome::QueueFull),
                Some(Err(LoginFailure::Refused(refused))) => {
                    self.failures += 1;
                    logins.throttle.record_failure(&self.peer, crate::connection::now());
                    return Err(self.login_failed(LoginError::Unspecified, refused.to_string()));
                }
                None => {}
            }
        }
        if self.failures >= logins.max_failures {
            let text = "too many logins have failed on this connection";
            return Err(self.login_failed(LoginError::Unspecified, text));
        }
        let Ok(login) = gssup::Login::from_token(token) else {
            let text = "the token of the login is not a GSSUP token";
            return Err(ContextRejection::new(ContextFailure::INVALID_MECHANISM, text));
        };
        if !logins.accepts_target(&login.target) {
            return Err(self.login_failed(LoginError::BadTarget, "the login is for another realm"));
        }
        if std::str::from_utf8(&login.user).is_err() || std::str::from_utf8(&login.password).is_err() {
            self.failures += 1;
            return Err(self.login_failed(LoginError::Unspecified, "the name or password is not UTF-8"));
        }
        if logins.throttle.refuses(&self.peer, crate::connection::now()) {
            self.security.counters.throttled_logins.fetch_add(1, Ordering::Relaxed);
            return Err(self.login_failed(LoginError::Unspecified, THROTTLED));
        }
        let Some(entry) = logins.queue.enqueue(&self.peer, bytes) else {
            return Ok(LoginOutcome::QueueFull);
        };
        let verdict = Arc::new(OnceLock::new());
        self.pending_login = Some(PendingLogin { token: digest, verdict: Arc::clone(&verdict), epoch });
        let (logins, peer, counters) =
            (Arc::clone(logins), self.peer.clone(), Arc::clone(&self.security.counters));
        let runtime = orb.tasks.runtime.clone().unwrap_or_else(tokio::runtime::Handle::current);
        let threads = runtime.clone();
        let check = async move {
            let permit = tokio::select! {
                permit = logins.queue.permits.acquire() => permit,
                () = entry.evicted() => {
                    let _ = verdict.set(Err(LoginFailure::QueueFull));
                    return;
                }
            };
            let Ok(_permit) = permit else { return };
            drop(entry);
            // Check this again, because other logins from the address may have failed since.
            if logins.throttle.refuses(&peer, crate::connection::now()) {
                counters.throttled_logins.fetch_add(1, Ordering::Relaxed);
                let _ = verdict.set(Err(LoginFailure::Refused(LoginRefused::because(THROTTLED))));
                return;
            }
            // Hashing takes too long for a worker thread that other tasks share.
            let logins = Arc::clone(&logins);
            let checked = threads.spawn_blocking(move || check_login(&logins, &login, &peer)).await;
            let panicked = |_| Err(LoginRefused::because("the authenticator panicked"));
            let _ = verdict.set(checked.unwrap_or_else(panicked).map_err(LoginFailure::Refused));
        };
        Ok(LoginOutcome::Pending(LoginCheck(AbortOnDropHandle::new(runtime.spawn(check)))))
    }

    fn login_failed(&self, error: LoginError, reason: impl Into<String>) -> ContextRejection {
        self.security.counters.failed_logins.fetch_add(1, Ordering::Relaxed);
        let token = error.to_token().unwrap_or_default();
        ContextRejection { token, ..ContextRejection::new(ContextFailure::INVALID_EVIDENCE, reason) }
    }

    fn refuse_unknown_caller(&mut self) -> AuthOutcome {
        self.security.counters.unknown_callers.fetch_add(1, Ordering::Relaxed);
        let text = "the request does not identify its caller";
        self.log_refusal(text);
        let exception = no_permission(minor::NO_PERMISSION_AUTHENTICATION_REQUIRED, text.to_owned());
        AuthOutcome::Refused(Box::new(Refusal { exception, context: None }))
    }

    #[cold]
    fn refuse_queue_full(&mut self) -> AuthOutcome {
        self.security.counters.throttled_logins.fetch_add(1, Ordering::Relaxed);
        self.log_refusal(QUEUE_FULL);
        let exception =
            SystemException::transient().with_minor(minor::TRANSIENT_OVERLOADED).with_reason(QUEUE_FULL);
        AuthOutcome::Refused(Box::new(Refusal { exception, context: None }))
    }

    fn refuse(&mut self, number: u64, rejection: ContextRejection) -> AuthOutcome {
        self.security.counters.refused_contexts.fetch_add(1, Ordering::Relaxed);
        self.log_refusal(&rejection.reason);
        let ContextRejection { failure, token, reason } = rejection;
        let error = SasContext::Error { client_context_id: number, failure, error_token: token };
        let exception = no_permission(minor::NO_PERMISSION_INVALID_CREDENTIALS, reason);
        AuthOutcome::Refused(Box::new(Refusal { exception, context: error.to_service_context().ok() }))
    }

    /// Fails with NO_PERMISSION if the authorizer does not allow the request.
    pub(crate) fn authorize(&mut self, access: &Access<'_>) -> Result<(), SystemException> {
        let Some(authorizer) = &self.security.authorizer else { return Ok(()) };
        if authorizer.decide(access) == Decision::Allow {
            return Ok(());
        }
        self.security.counters.denied.fetch_add(1, Ordering::Relaxed);
        let caller = access.principal().map_or_else(|| "an unknown caller".to_owned(), Principal::to_string);
        let operation = Printable::new(access.operation());
        self.log_refusal(&format!(
            "{caller} may not call `{operation}` of object {}",
            access.object_id().escape_ascii()
        ));
        Err(no_permission(minor::NO_PERMISSION_DENIED, "the rules do not allow the call".to_owned()))
    }

    /// Logs a refused request. Only the first one is a warning, so that a peer cannot flood the log.
    fn log_refusal(&mut self, reason: &str) {
        let (peer, reason) = (&self.peer, OneLine::new(reason));
        if std::mem::replace(&mut self.has_warned, true) {
            tracing::debug!(target: "zorb", %peer, "request refused: {reason}");
        } else {
            tracing::warn!(
                target: "zorb",
                %peer,
                "request refused: {reason}; further refusals on this connection are logged at level debug"
            );
        }
    }
}

/// Returns the identity that `sender` asserts, or `sender` if it asserts none.
fn asserted_principal(
    logins: &Logins,
    sender: Option<Arc<Principal>>,
    identity: IdentityToken,
) -> Result<Option<Arc<Principal>>, ContextRejection> {
    let invalid = |text| ContextRejection::new(ContextFailure::INVALID_MECHANISM, text);
    if identity == IdentityToken::Absent {
        return Ok(sender);
    }
    let Some(sender) = sender.filter(|sender| logins.may_assert(sender)) else {
        let text = "the caller asserts another identity, but is not trusted to do so (Logins::trust_user)";
        return Err(ContextRejection::new(ContextFailure::INVALID_EVIDENCE, text));
    };
    let (kind, name) = match identity {
        IdentityToken::Anonymous => (PrincipalKind::Anonymous, String::new()),
        IdentityToken::PrincipalName(name) => {
            let name = name.as_gssup().ok_or_else(|| invalid("the asserted name is not a GSSUP name"))?;
            (PrincipalKind::AssertedName, logins.local_user(name).to_owned())
        }
        IdentityToken::DistinguishedName(der) => {
            let name = distinguished_name(&der);
            let name = name.ok_or_else(|| invalid("the asserted name cannot be decoded"))?;
            (PrincipalKind::AssertedSubject, name)
        }
        IdentityToken::X509CertChain(der) => {
            let name = subject_of_chain(&der);
            let name = name.ok_or_else(|| invalid("the asserted certificates cannot be decoded"))?;
            (PrincipalKind::AssertedSubject, name)
        }
        _ => return Err(invalid("the form of the asserted identity is unknown")),
    };
    Ok(Some(Arc::new(Principal::asserted(kind, name, Principal::clone(&sender)))))
}

fn check_login(
    logins: &Logins,
    login: &gssup::Login,
    peer: &crate::transport::Peer,
) -> Result<Arc<Principal>, LoginRefused> {
    let text = |bytes| std::str::from_utf8(bytes).map_err(|error| LoginRefused::because(error.to_string()));
    let user = logins.local_user(text(&login.user)?);
    let refused = |refused: LoginRefused| {
        LoginRefused::because(format!("login of `{}`: {refused}", Printable::new(user)))
    };
    let name = logins.authenticator.check(&Login { user, password: text(&login.password)? }, peer);
    name.map(|name| Arc::new(Principal::new(PrincipalKind::Login, name))).map_err(refused)
}

#[cold]
pub(super) fn no_permission(minor: MinorCode, text: String) -> SystemException {
    SystemException::no_permission().with_minor(minor).with_reason(text)
}
