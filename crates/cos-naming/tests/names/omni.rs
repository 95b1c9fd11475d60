//! omniORB: its `nameclt` as a client of this service, and `omniNames` as a service for clients of zorb and
//! for federation.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use cos_naming::store::DiskStore;
use zorb::cos_naming::{BindingType, NamingContextExtRef, NamingContextRef, NamingError};
use zorb::prelude::*;

use crate::support::{Site, key_of, name, url};

/// Returns whether a program is installed. If not, a message is printed, and with `CI=true` the test fails.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&paths).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    let what = format!("no {program}: scripts/install-peers.sh installs it");
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
    eprintln!("SKIPPED: {what}");
    false
}

/// Runs `nameclt` against the service at that URL.
async fn nameclt(url: &str, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new("nameclt");
    command.args(["-ORBInitRef", &format!("NameService={url}"), "-advanced"]).args(arguments);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(Duration::from_secs(60), output).await.unwrap().unwrap()
}

/// Returns the output of a successful `nameclt`.
async fn done(url: &str, arguments: &[&str]) -> String {
    let output = nameclt(url, arguments).await;
    assert!(output.status.success(), "nameclt {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the error output of a `nameclt` that fails.
async fn refused(url: &str, arguments: &[&str]) -> String {
    let output = nameclt(url, arguments).await;
    assert!(!output.status.success(), "nameclt {arguments:?}: {output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

// clause: poa.naming.context, poa.naming.exceptions, poa.naming.key
#[tokio::test]
async fn nameclt_does_all_that_it_can_do() {
    if !has("nameclt") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let site = Site::of(DiskStore::open(folder.path().join("names")).unwrap(), |builder| builder).await;
    let at = url(&site.server_orb);
    let (o, p) = (site.object("o").await.to_string(), site.object("p").await.to_string());
    let context = done(&at, &["bind_new_context", "c.kind"]).await;
    done(&at, &["bind", r"c.kind/a\.b", &o]).await;
    let found = done(&at, &["resolve", r"c.kind/a\.b"]).await;
    let found: zorb::ObjectRef = site.orb.resolve_unchecked(&found).await.unwrap();
    assert_eq!(key_of(&found), "o");
    done(&at, &["rebind", r"c.kind/a\.b", &p]).await;
    assert_eq!(key_of(&site.root.resolve(&name(r"c.kind/a\.b")).await.unwrap().unwrap()), "p");
    assert_eq!(done(&at, &["list"]).await, "c.kind/");
    assert_eq!(done(&at, &["list", "c.kind"]).await, r"a\.b");
    done(&at, &["bind_context", "same", &context]).await;
    done(&at, &["rebind_context", "same", &context]).await;
    assert_eq!(done(&at, &["list", "same"]).await, r"a\.b");
    let free = done(&at, &["new_context"]).await;
    let free: NamingContextExtRef = site.orb.resolve(&free).await.unwrap();
    free.destroy().await.unwrap();
    assert!(refused(&at, &["bind", r"c.kind/a\.b", &o]).await.contains("AlreadyBound"));
    assert!(refused(&at, &["resolve", "missing"]).await.contains("NotFound"));
    assert!(refused(&at, &["remove_context", "c.kind"]).await.contains("NotEmpty"));
    done(&at, &["unbind", r"c.kind/a\.b"]).await;
    done(&at, &["unbind", "same"]).await;
    done(&at, &["remove_context", "c.kind"]).await;
    assert_eq!(done(&at, &["list"]).await, "");
}

/// omniNames in a process that ends with this value.
pub(crate) struct OmniNames {
    process: Child,
    pub(crate) url: String,
}

impl OmniNames {
    /// Starts it on a port that was free just before.
    pub(crate) async fn start(data: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("omniNames");
        command.args(["-start", &port.to_string(), "-datadir"]).arg(data);
        command.args(["-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/NameService");
        let mut names = Self { process, url };
        let orb = Orb::builder().build().await.unwrap();
        loop {
            let context: NamingContextExtRef = orb.resolve_unchecked(&names.url).await.unwrap();
            if context.list(0).await.is_ok() {
                return names;
            }
            assert!(names.process.try_wait().unwrap().is_none(), "omniNames ended");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for OmniNames {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn programs_of_zorb_work_with_omninames() {
    if !has("omniNames") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = OmniNames::start(folder.path()).await;
    let orb = Orb::builder().init_ref("NameService", &names.url).build().await.unwrap();
    let naming = orb.naming().await.unwrap();
    let inner = naming.make_contexts("a.k/b").await.unwrap();
    let object = crate::support::object(&orb, "o").await;
    inner.bind(r"x\/y.z", &object).await.unwrap();
    let found: zorb::ObjectRef = naming.resolve(r"a.k/b/x\/y.z").await.unwrap();
    assert_eq!(key_of(&found), "o");
    assert!(matches!(inner.bind(r"x\/y.z", &object).await, Err(NamingError::AlreadyBound(_))));
    assert!(matches!(naming.resolve::<zorb::ObjectRef>("a.k/no").await, Err(NamingError::NotFound { .. })));
    assert_eq!(naming.list().all().await.unwrap(), [("a.k".to_owned(), BindingType::Ncontext)]);
    for number in 0..1005 {
        inner.rebind(&format!("n{number}"), &object).await.unwrap();
    }
    assert_eq!(inner.list().all().await.unwrap().len(), 1006, "more than one page");
    let address = names.url.strip_prefix("corbaloc:").unwrap();
    let found: zorb::ObjectRef =
        orb.resolve_unchecked(&format!("corbaname:{address}#a.k/b/n7")).await.unwrap();
    assert_eq!(key_of(&found), "o");
}

#[tokio::test]
async fn names_lead_into_omninames_and_back() {
    if !has("omniNames") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names = OmniNames::start(folder.path()).await;
    let site = Site::new().await;
    let there: NamingContextRef = site.orb.resolve(&names.url).await.unwrap();
    site.root.bind_context(&name("omni"), there.clone()).await.unwrap();
    there.bind_context(&name("zorb"), NamingContextRef::from(site.root.clone())).await.unwrap();
    site.root.bind(&name("omni/zorb/o"), site.object("o").await).await.unwrap();
    for text in ["o", "omni/zorb/o", "omni/zorb/omni/zorb/o"] {
        assert_eq!(key_of(&site.root.resolve(&name(text)).await.unwrap().unwrap()), "o", "{text}");
    }
    assert_eq!(key_of(&there.resolve(&name("zorb/omni/zorb/o")).await.unwrap().unwrap()), "o");
    drop(names);
    assert!(matches!(
        site.root.resolve(&name("omni/x")).await,
        Err(zorb::cos_naming::naming_context::ResolveError::CannotProceed(_))
    ));
}
