//! The client's checks: their common code, those that a peer or a GIOP version cannot pass, and the run.

use std::fmt::{self, Debug};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use zorb::OrbBuilder;
use zorb::prelude::*;
use zorb::wire::Version;

use super::extras::interop::ExtrasRef;
use super::guard::interop::GuardRef;
use super::transform::{Transform, transformed};
use super::types::interop::PeerRef;
use crate::java_ee;

/// The address of a server, and the GIOP version.
#[derive(Debug, Clone)]
pub enum Way {
    /// The IOR in a file, and the highest version to use.
    Ior(std::path::PathBuf, Version),
    /// `corbaloc:iiop:VERSION@HOST:PORT`.
    Corbaloc(String, Version),
}

impl Way {
    fn version(&self) -> Version {
        match self {
            Way::Ior(_, version) | Way::Corbaloc(_, version) => *version,
        }
    }

    /// Returns the URL of an object of the server. For a file, the others' references are next to that of
    /// `interop`.
    fn url(&self, key: &str) -> Option<String> {
        match self {
            Way::Corbaloc(address, version) => {
                Some(format!("corbaloc:iiop:1.{}@{address}/{key}", version.minor()))
            }
            Way::Ior(path, _) if key == "interop" => read(path),
            Way::Ior(path, _) => read(&std::path::PathBuf::from(format!("{}.{key}", path.display()))),
        }
    }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The context of the checks.
#[derive(Debug, Clone)]
pub struct Context {
    /// The client's ORB, which listens for callbacks.
    pub orb: Orb,
    /// `Interop::Peer`.
    pub peer: PeerRef,
    /// `None` if the server has none (JacORB).
    pub extras: Option<ExtrasRef>,
    /// `None` if the server has none (omniORB).
    pub guard: Option<GuardRef>,
    /// An object that forwards to `peer`.
    pub forward: Option<PeerRef>,
    /// An object that forwards to `peer` permanently.
    pub moved: Option<PeerRef>,
    /// The server's name.
    pub server: String,
    /// The GIOP version of the calls.
    pub version: Version,
    /// Whether the reference names code sets.
    pub code_sets: bool,
}

/// Why a check did not pass.
#[derive(Debug)]
pub enum Failure {
    /// A result is wrong.
    Wrong(String),
    /// It cannot be passed, for this reason.
    Skipped(String),
    /// A call failed.
    Raised(SystemException),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong(why) | Failure::Skipped(why) => f.write_str(why),
            Failure::Raised(error) => write!(f, "{} ({error})", describe(error)),
        }
    }
}

impl From<SystemException> for Failure {
    fn from(error: SystemException) -> Self {
        Failure::Raised(error)
    }
}

impl From<zorb::NarrowError> for Failure {
    fn from(error: zorb::NarrowError) -> Self {
        Failure::Wrong(error.to_string())
    }
}

/// The result of a check.
pub type Outcome = Result<(), Failure>;

/// A check, named as in the other peers' clients.
pub struct Check {
    name: &'static str,
    run: Run,
}

type Run = Box<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Outcome>>>>;

impl Check {
    /// Returns a check of that name.
    pub fn new<F, Fut>(name: &'static str, run: F) -> Self
    where
        F: Fn(Context) -> Fut + 'static,
        Fut: Future<Output = Outcome> + 'static,
    {
        Self { name, run: Box::new(move |context| Box::pin(run(context))) }
    }
}

/// Fails unless `ok`.
pub fn expect(ok: bool, what: impl FnOnce() -> String) -> Outcome {
    if ok { Ok(()) } else { Err(Failure::Wrong(what())) }
}

/// Compares as text, so that -0.0 differs from 0.0.
pub fn same<A: Debug + ?Sized, B: Debug + ?Sized>(got: &A, wanted: &B, what: &str) -> Outcome {
    let (got, wanted) = (format!("{got:?}"), format!("{wanted:?}"));
    expect(got == wanted, || format!("{what} is {}, should be {}", short(&got), short(&wanted)))
}

fn short(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Returns a text such as "BAD_PARAM 0x4f4d0001 COMPLETED_NO".
pub fn describe(error: &SystemException) -> String {
    format!("{} 0x{:08x} {}", error.kind.name(), error.minor.0, error.completed.name())
}

/// Returns the system exception that the call raises, or "nothing".
pub async fn raised<T>(call: impl Future<Output = Result<T, SystemException>>) -> String {
    match call.await {
        Ok(_) => "nothing".to_owned(),
        Err(error) => describe(&error),
    }
}

/// Sends each sample as `a` with the next as `b`.
pub async fn each_pair<T, F, Fut>(values: Vec<T>, call: F) -> Outcome
where
    T: Clone + Debug + Transform,
    F: Fn(T, T) -> Fut,
    Fut: Future<Output = Result<(T, T, T), SystemException>>,
{
    for (i, a) in values.iter().enumerate() {
        let b = &values[(i + 1) % values.len()];
        let (result, changed, c) = call(a.clone(), b.clone()).await?;
        let sent = || short(&format!("{a:?}"));
        same(&result, a, &format!("the result of a = {}", sent()))?;
        same(&changed, &transformed(b), &format!("b of b = {}", short(&format!("{b:?}"))))?;
        same(&c, a, &format!("c of a = {}", sent()))?;
    }
    Ok(())
}

const WIDE: &[&str] = &[
    "echo_wchar",
    "echo_wstring",
    "echo_wide_code",
    "echo_wchar_seq",
    "echo_wstring_seq",
    "echo_caption",
    "echo_wide_choice",
];

/// Runs a check, with the result that version and server allow.
async fn run(check: &Check, x: &Context) -> Outcome {
    if check.name == "echo_wide_code" && x.extras.is_none() {
        return Err(Failure::Skipped("the server has no extras.idl".to_owned()));
    }
    let call = async {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, (check.run)(x.clone()))
            .await
            .unwrap_or_else(|_| Err(Failure::Wrong("it did not end".to_owned())))
    };
    if !WIDE.contains(&check.name) {
        return call.await;
    }
    match x.version {
        Version::V1_0 => {
            // "wchar sent by client over GIOP 1.0", and nothing is sent.
            let wanted = "MARSHAL 0x4f4d0005 COMPLETED_NO";
            match call.await {
                Err(Failure::Raised(error)) if describe(&error) == wanted => Ok(()),
                other => Err(Failure::Wrong(format!("wide text in GIOP 1.0 gave {other:?}, not {wanted}"))),
            }
        }
        Version::V1_1 if x.server == "omniORB" => {
            Err(Failure::Skipped("known defect of omniORB: no wide text in GIOP 1.1".to_owned()))
        }
        _ if !x.code_sets => {
            // The reference names no code sets, and nothing is sent.
            let wanted = "INV_OBJREF 0x4f4d0001 COMPLETED_NO";
            match call.await {
                Err(Failure::Raised(error)) if describe(&error) == wanted => Ok(()),
                other => {
                    Err(Failure::Wrong(format!("wide text without code set gave {other:?}, not {wanted}")))
                }
            }
        }
        _ => call.await,
    }
}

/// Returns a client's ORB for that way, which is called back by TCP.
pub async fn client(way: &Way, builder: OrbBuilder) -> Orb {
    client_at(way, builder.listen("iiop://127.0.0.1:0")).await
}

/// Returns a client's ORB for that way, which listens as the builder is configured.
pub async fn client_at(way: &Way, builder: OrbBuilder) -> Orb {
    let builder = builder.max_giop_version(way.version());
    builder.timeout(Duration::from_secs(30)).build().await.expect("a client on a free port")
}

/// Calls every operation of a server, and shuts the client's ORB down. Returns a line for each check that
/// passed or was skipped.
///
/// # Panics
/// A check failed; the message contains all failures.
pub async fn drive(way: &Way, orb: &Orb) -> Vec<String> {
    let x = match connect(way, orb.clone()).await {
        Ok(x) => x,
        Err(error) => panic!("cannot reach the server by {way:?}: {error}"),
    };
    let mut checks = super::checks_calls::checks();
    checks.extend(super::checks_echo::checks());
    checks.extend(super::checks_references::checks());
    checks.extend(super::checks_calls::last_checks());
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for check in &checks {
        match java_ee::judged(check.name, &x, run(check, &x).await) {
            Ok(()) => lines.push(format!("ok {}", check.name)),
            Err(Failure::Skipped(why)) => lines.push(format!("skip {}: {why}", check.name)),
            Err(failure) => failures.push(format!("FAIL {}: {failure}", check.name)),
        }
    }
    x.orb.shutdown().await;
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), checks.len(), failures.join("\n"));
    lines
}

async fn connect(way: &Way, orb: Orb) -> Result<Context, Box<dyn std::error::Error>> {
    let version = way.version();
    let url = way.url("interop").ok_or("there is no IOR file")?;
    let peer: PeerRef = orb.resolve(&url).await?;
    let profile = peer.ior().iiop_profile().ok_or("the IOR has no IIOP profile")?;
    let server = peer.server_name().await?;
    // A client with only a URL queries the code sets from zorb; servers of Java EE forward it to their IORs.
    let tells = server == "zorb" || java_ee::SERVERS.contains(&server.as_str());
    let code_sets = (profile.code_sets().is_some() || tells) && version > Version::V1_0;
    Ok(Context {
        extras: companion(&orb, way, "extras").await?,
        guard: companion(&orb, way, "guard").await?,
        forward: elsewhere(&orb, way, "forward").await?,
        moved: elsewhere(&orb, way, "moved").await?,
        orb,
        peer,
        server,
        version,
        code_sets,
    })
}

/// Returns an object that is forwarded, without a request to it.
async fn elsewhere(orb: &Orb, way: &Way, key: &str) -> Result<Option<PeerRef>, zorb::ResolveError> {
    let Some(url) = way.url(key) else { return Ok(None) };
    orb.resolve_unchecked(&url).await.map(Some)
}

/// Returns an object that the server publishes in addition to its main one, if it has it.
async fn companion<R: Reference>(
    orb: &Orb,
    way: &Way,
    key: &str,
) -> Result<Option<R>, Box<dyn std::error::Error>> {
    let Some(url) = way.url(key) else { return Ok(None) };
    let reference: R = orb.resolve_unchecked(&url).await?;
    Ok(if reference.non_existent().await? { None } else { Some(reference) })
}
