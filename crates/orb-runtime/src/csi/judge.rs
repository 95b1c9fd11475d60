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
use crate::csi::principal::{Principal, PrincipalKind};
use crate::runtime::Shared;

/// The result of authenticating a request.
pub(crate) enum AuthOutcome {
    /// The request is served for this caller.
    As(Caller),
    /// The login is being checked.
    Wait(Check),
    Refused(Box<Refused>),
}

/// The reason for which a request is not served.
pub(crate) struct Refused {
    pub(crate) exception: SystemException,
    pub(crate) context: Option<ServiceContext>,
}

/// A running check of a login. Completes when it has ended.
pub(crate) struct Check(AbortOnDropHandle<()>);

const THROTTLED: &str = "too many from this address have failed (Logins::max_failures_per_address)";

const CROWDED: &str = "too many logins wait to be checked: allow more by `Logins::max_waiting`";

type Verdict = Result<Arc<Principal>, NotChecked>;

/// The reason for which a login is not accepted.
enum NotChecked {
    Refused(LoginRefused),
    /// Too many other logins are queued, so it was not checked.
    Crowded,
}

/// A login that was passed to the authenticator.
pub(super) struct PendingLogin {
    token: TokenDigest,
    /// Empty until the check has ended. It stays empty if the request was dropped before.
    verdict: Arc<OnceLock<Verdict>>,
    epoch: u64,
}

/// The reason for which a context is refused.
struct ContextRejection {
    failure: ContextFailure,
    token: Bytes,
    /// The description for the log.
    reason: String,
}

impl ContextRejection {
    fn new(failure: ContextFailure, reason: impl Into<String>) -> Self {
        Self { failure, token: Bytes::new(), reason: reason.into() }
    }

    fn of_login(error: LoginError, reason: impl Into<String>) -> Self {
        let token = error.to_token().unwrap_or_default();
        Self { token, ..Self::new(ContextFailure::INVALID_EVIDENCE, reason) }
    }
}

/// The caller according to a context, or that it is not known yet.
enum Found {
    Somebody(Option<Arc<Principal>>),
    Wait(Check),
    /// Too many other logins are queued.
    Crowded,
}

impl Future for Check {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

impl Guard {
    /// Authenticates the caller. A request whose login is checked must be passed again after the [`Check`]
    /// has completed.
    pub(crate) fn identify(&mut self, orb: &Shared, incoming: &IncomingRequest) -> AuthOutcome {
        let Some(logins) = self.security.logins.clone() else {
            return AuthOutcome::As(self.certificate.clone());
        };
        let contexts = incoming.contexts();
        let Some(context) = contexts.find(ContextId::SECURITY_ATTRIBUTE_SERVICE) else {
            return match (logins.required, self.certificate.principal()) {
                (Required::Login, _) | (Required::Identity, None) => self.unknown(),
                (Required::Nothing, _) | (Required::Identity, Some(_)) => {
                    AuthOutcome::As(self.certificate.clone())
                }
            };
        };
        let epoch = logins.authenticator.epoch();
        self.known.keep_to(epoch);
        let fingerprint = self.known.fingerprint(context.data);
        if let Some(caller) = self.known.recent(&fingerprint) {
            return AuthOutcome::As(caller.clone());
        }
        let (number, judged) = match SasContext::from_service_context(&context) {
            Ok(Some(SasContext::Establish(context))) => {
                let bytes = incoming.message().len();
                (context.client_context_id, self.establish(orb, &logins, epoch, fingerprint, context, bytes))
            }
            Ok(Some(SasContext::InContext { client_context_id, .. })) => {
                let known = self.known.table.get(&client_context_id);
                let known = known.map(|(_, caller)| AuthOutcome::As(caller.clone()));
                let doubt = || {
                    ContextRejection::new(ContextFailure::NO_CONTEXT, "there is no context of that number")
                };
                (client_context_id, known.ok_or_else(doubt))
            }
            Ok(_) => {
                let text = "a client sends what only servers do";
                (0, Err(ContextRejection::new(ContextFailure::INVALID_MECHANISM, text)))
            }
            Err(error) => {
                orb.counters.hit_decoding_limit(&error);
                self.note("its security context does not decode");
                return AuthOutcome::Refused(Box::new(Refused {
                    exception: error.system(CompletionStatus::No),
                    context: None,
                }));
            }
        };
        judged.unwrap_or_else(|doubt| self.refuse(number, doubt))
    }

    fn establish(
        &mut self,
        orb: &Shared,
        logins: &Arc<Logins>,
        epoch: u64,
        fingerprint: TokenDigest,
        context: EstablishContext,
        bytes: usize,
    ) -> Result<AuthOutcome, ContextRejection> {
        let number = context.client_context_id;
        if self.known.table.get(&number).is_some_and(|(other, _)| *other != fingerprint) {
            let text = "another context of that number is there";
            return Err(ContextRejection::new(ContextFailure::POLICY_CONFLICT, text));
        }
        let login = match self.log_in(orb, logins, epoch, &context.authentication, bytes)? {
            Found::Wait(check) => return Ok(AuthOutcome::Wait(check)),
            Found::Crowded => return Ok(self.crowded()),
            Found::Somebody(login) => login,
        };
        let has_login = login.is_some();
        let asserted_by = login.or_else(|| self.certificate.principal().cloned());
        let missing = match logins.required {
            Required::Nothing => false,
            Required::Identity => asserted_by.is_none(),
            Required::Login => !has_login,
        };
        if missing {
            return Err(ContextRejection::new(ContextFailure::INVALID_EVIDENCE, "it has no login"));
        }
        let principal = asserted(logins, asserted_by, context.identity)?;
        Ok(AuthOutcome::As(self.known.keep(fingerprint, number, principal, logins.max_contexts)))
    }

    /// Authenticates the login in the token of a request with a size of `bytes`. An empty token has no login.
    fn log_in(
        &mut self,
        orb: &Shared,
        logins: &Arc<Logins>,
        epoch: u64,
        token: &Bytes,
        bytes: usize,
    ) -> Result<Found, ContextRejection> {
        if token.is_empty() {
            return Ok(Found::Somebody(None));
        }
        if !self.private && !logins.plaintext {
            let text = "a password came over plain TCP (Logins::allow_plaintext_passwords)";
            return Err(ContextRejection::new(ContextFailure::POLICY_CONFLICT, text));
        }
        let known = self.known.fingerprint(token);
        if let Some(principal) = self.known.login(&known) {
            return Ok(Found::Somebody(Some(Arc::clone(principal))));
        }
        if let Some(tried) = self.tried.take_if(|tried| tried.token == known && tried.epoch == epoch) {
            match tried.verdict.get() {
                Some(Ok(principal)) => {
                    self.security.counts.logins.fetch_add(1, Ordering::Relaxed);
                    self.known.keep_login(known, principal);
                    return Ok(Found::Somebody(Some(Arc::clone(principal))));
                }
                Some(Err(NotChecked::Crowded)) => return Ok(Found::Crowded),
                Some(Err(NotChecked::Refused(refused))) => {
                    self.failures += 1;
                    logins.throttle.failed(&self.peer, crate::connection::now());
                    return Err(self.failed(LoginError::Unspecified, refused.to_string()));
                }
                None => {}
            }
        }
        if self.failures >= logins.max_failures {
            return Err(self.failed(LoginError::Unspecified, "too many have failed on this connection"));
        }
        let Ok(login) = gssup::Login::from_token(token) else {
            return Err(ContextRejection::new(
                ContextFailure::INVALID_MECHANISM,
                "its token is none of GSSUP",
            ));
        };
        if !logins.is_meant(&login.target) {
            return Err(self.failed(LoginError::BadTarget, "it is meant for another realm"));
        }
        if std::str::from_utf8(&login.user).is_err() || std::str::from_utf8(&login.password).is_err() {
            self.failures += 1;
            return Err(self.failed(LoginError::Unspecified, "name or password is no UTF-8"));
        }
        if logins.throttle.refuses(&self.peer, crate::connection::now()) {
            self.security.counts.throttled_logins.fetch_add(1, Ordering::Relaxed);
            return Err(self.failed(LoginError::Unspecified, THROTTLED));
        }
        let Some(waiting) = logins.checks.enter(&self.peer, bytes) else { return Ok(Found::Crowded) };
        let verdict = Arc::new(OnceLock::new());
        self.tried = Some(PendingLogin { token: known, verdict: Arc::clone(&verdict), epoch });
        let (logins, peer, counts) =
            (Arc::clone(logins), self.peer.clone(), Arc::clone(&self.security.counts));
        let runtime = orb.tasks.runtime.clone().unwrap_or_else(tokio::runtime::Handle::current);
        let threads = runtime.clone();
        let checking = async move {
            let permit = tokio::select! {
                permit = logins.checks.running.acquire() => permit,
                () = waiting.displaced() => {
                    let _ = verdict.set(Err(NotChecked::Crowded));
                    return;
                }
            };
            let Ok(_permit) = permit else { return };
            drop(waiting);
            // Checks that ran earlier may have exceeded the limit.
            if logins.throttle.refuses(&peer, crate::connection::now()) {
                counts.throttled_logins.fetch_add(1, Ordering::Relaxed);
                let _ = verdict.set(Err(NotChecked::Refused(LoginRefused::because(THROTTLED))));
                return;
            }
            // Hashing takes too long for a worker thread that other tasks share.
            let by = Arc::clone(&logins);
            let checked = threads.spawn_blocking(move || check(&by, &login, &peer)).await;
            let panicked = |_| Err(LoginRefused::because("the authenticator panicked"));
            let _ = verdict.set(checked.unwrap_or_else(panicked).map_err(NotChecked::Refused));
        };
        Ok(Found::Wait(Check(AbortOnDropHandle::new(runtime.spawn(checking)))))
    }

    /// Counts a failed login and returns the refusal.
    fn failed(&self, error: LoginError, reason: impl Into<String>) -> ContextRejection {
        self.security.counts.failed_logins.fetch_add(1, Ordering::Relaxed);
        ContextRejection::of_login(error, reason)
    }

    /// Refuses a request that does not identify its caller, although the server requires it.
    fn unknown(&mut self) -> AuthOutcome {
        self.security.counts.unknown_callers.fetch_add(1, Ordering::Relaxed);
        self.note("it does not say who calls");
        let text = "the request does not say who calls";
        let exception = no_permission(minor::NO_PERMISSION_UNKNOWN_CALLER, text.to_owned());
        AuthOutcome::Refused(Box::new(Refused { exception, context: None }))
    }

    /// Refuses a request because too many logins are queued.
    #[cold]
    fn crowded(&mut self) -> AuthOutcome {
        self.security.counts.throttled_logins.fetch_add(1, Ordering::Relaxed);
        self.note(CROWDED);
        let exception =
            SystemException::transient().with_minor(minor::TRANSIENT_OVERLOADED).with_reason(CROWDED);
        AuthOutcome::Refused(Box::new(Refused { exception, context: None }))
    }

    fn refuse(&mut self, number: u64, doubt: ContextRejection) -> AuthOutcome {
        self.security.counts.refused_contexts.fetch_add(1, Ordering::Relaxed);
        self.note(&doubt.reason);
        let ContextRejection { failure, token, reason } = doubt;
        let error = SasContext::Error { client_context_id: number, failure, error_token: token };
        let exception = no_permission(minor::NO_PERMISSION_NOT_BELIEVED, reason);
        AuthOutcome::Refused(Box::new(Refused { exception, context: error.to_service_context().ok() }))
    }

    /// Asks the authorizer whether the caller may make the request.
    ///
    /// # Errors
    /// The exception for the caller, if it may not.
    pub(crate) fn permit(&mut self, access: &Access<'_>) -> Result<(), SystemException> {
        let Some(authorizer) = &self.security.authorizer else { return Ok(()) };
        if authorizer.decide(access) == Decision::Allow {
            return Ok(());
        }
        self.security.counts.denied.fetch_add(1, Ordering::Relaxed);
        let who = access.principal().map_or_else(|| "nobody known".to_owned(), Principal::to_string);
        let what = Printable::new(access.operation());
        self.note(&format!("{who} may not call `{what}` of {}", access.object_id().escape_ascii()));
        Err(no_permission(minor::NO_PERMISSION_DENIED, "the rules do not allow the call".to_owned()))
    }

    /// Logs a refused request. Only the first one of a connection is a warning, so that a peer cannot flood
    /// the log.
    fn note(&mut self, reason: &str) {
        let (peer, reason) = (&self.peer, OneLine::new(reason));
        if std::mem::replace(&mut self.warned, true) {
            tracing::debug!(target: "zorb", %peer, "request refused: {reason}");
        } else {
            tracing::warn!(target: "zorb", %peer, "request refused: {reason}; further ones of this connection are logged at debug");
        }
    }
}

/// Returns the principal of a request that `asserted_by` sends: the asserted identity, or `asserted_by`
/// itself if none is asserted.
fn asserted(
    logins: &Logins,
    asserted_by: Option<Arc<Principal>>,
    identity: IdentityToken,
) -> Result<Option<Arc<Principal>>, ContextRejection> {
    let doubt = |text: String| ContextRejection::new(ContextFailure::INVALID_EVIDENCE, text);
    let unknown = |text| ContextRejection::new(ContextFailure::INVALID_MECHANISM, text);
    if identity == IdentityToken::Absent {
        return Ok(asserted_by);
    }
    let Some(asserted_by) = asserted_by.filter(|asserted_by| logins.believes(asserted_by)) else {
        return Err(doubt("it speaks for another, and is not trusted to (Logins::trust_user)".to_owned()));
    };
    let (kind, name) = match identity {
        IdentityToken::Anonymous => (PrincipalKind::Anonymous, String::new()),
        IdentityToken::PrincipalName(name) => {
            let name = name.as_gssup().ok_or_else(|| unknown("the asserted name is none of GSSUP"))?;
            (PrincipalKind::AssertedName, logins.local_user(name).to_owned())
        }
        IdentityToken::DistinguishedName(der) => {
            let name = super::principal::distinguished_name(&der);
            (
                PrincipalKind::AssertedSubject,
                name.ok_or_else(|| unknown("the asserted name does not decode"))?,
            )
        }
        IdentityToken::X509CertChain(der) => {
            let name = super::principal::subject_of_chain(&der);
            let name = name.ok_or_else(|| unknown("the asserted certificates do not decode"))?;
            (PrincipalKind::AssertedSubject, name)
        }
        _ => return Err(unknown("the asserted identity is of an unknown form")),
    };
    Ok(Some(Arc::new(Principal::asserted(kind, name, Principal::clone(&asserted_by)))))
}

fn check(
    logins: &Logins,
    login: &gssup::Login,
    peer: &crate::transport::Peer,
) -> Result<Arc<Principal>, LoginRefused> {
    let text = |octets| std::str::from_utf8(octets).map_err(|error| LoginRefused::because(error.to_string()));
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
