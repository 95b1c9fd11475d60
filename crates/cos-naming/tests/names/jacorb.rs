//! JacORB: a Java program as a client of this service, and JacORB's own program that lists a service.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use cos_naming::store::DiskStore;
use zorb::cos_naming::BindingType;

use crate::omni::has;
use crate::support::{Site, key_of, name, url};

/// Returns JacORB's jars, which `scripts/build-peers.sh` downloads.
fn jars() -> Option<PathBuf> {
    if !has("java") || !has("javac") {
        return None;
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/interop");
    let folder = std::env::var_os("ZORB_INTEROP_PEERS").map_or(built, PathBuf::from).join("jacorb/lib");
    if folder.is_dir() {
        return Some(folder.join("*"));
    }
    let what = format!("no {}: scripts/build-peers.sh fetches JacORB", folder.display());
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
    eprintln!("SKIPPED: {what}");
    None
}

async fn java(jars: &Path, arguments: &[&str]) -> Output {
    let mut command = tokio::process::Command::new("java");
    command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]).arg(jars).args(arguments);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(Duration::from_secs(120), output).await.unwrap().unwrap()
}

// clause: poa.naming.context, poa.naming.exceptions, poa.naming.key
#[tokio::test]
async fn programs_of_jacorb_bind_resolve_and_list() {
    let Some(jars) = jars() else { return };
    let folder = tempfile::tempdir().unwrap();
    let site = Site::of(DiskStore::open(folder.path().join("names")).unwrap(), |builder| builder).await;
    let object = site.object("o").await;
    site.root.bind(&name("from zorb"), object.clone()).await.unwrap();
    // It is compiled when it is started.
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/names/jacorb/Names.java");
    let at = url(&site.server_orb);
    let output = java(&jars, &[program.to_str().unwrap(), &at, &object.to_string()]).await;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim() == "all is well", "{output:?}");
    assert_eq!(site.server.iterator_count(), 0);
    let left = site.root.resolve(&name("left/Java")).await.unwrap().unwrap();
    assert_eq!(key_of(&left), "o");
    let (all, _) = site.root.list(10).await.unwrap();
    let kinds: Vec<_> = all.iter().map(|binding| binding.binding_type).collect();
    assert_eq!(kinds, [BindingType::Nobject, BindingType::Ncontext]);

    let init = format!("NameService={at}");
    let lister =
        ["-Djacorb.log.default.verbosity=0", "org.jacorb.naming.ContextLister", "-ORBInitRef", &init];
    let output = java(&jars, &lister).await;
    let said = String::from_utf8_lossy(&output.stdout);
    for told in ["from zorb", "left", "Java"] {
        assert!(said.contains(told), "{told}: {output:?}");
    }
}
