//! `zorb names serve --etcd`, with etcd.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{Names, zorb};

/// A cluster of one member, which ends with this.
struct Etcd(Child);

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &std::path::Path) -> Option<(Etcd, String)> {
    let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [client, peer] = sockets.each_ref().map(|socket| format!("http://{}", socket.local_addr().unwrap()));
    drop(sockets);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "etcd", "--data-dir"]).arg(folder.join("etcd"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| std::env::split_paths(&paths).any(|folder| folder.join(program).is_file());
    if !has("etcd") || !has("setpriv") {
        let what = "no etcd: scripts/install-peers.sh installs it";
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty() || ci == "false"), "{what}");
        eprintln!("SKIPPED: {what}");
        return None;
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    Some((Etcd(child), client))
}

#[test]
fn names_in_etcd_are_served_by_several() {
    let folder = tempfile::tempdir().unwrap();
    let Some((etcd, members)) = start(folder.path()) else { return };
    let one = Names::kept(&["--etcd", &members, "--etcd-prefix", "/site"]);
    let two = Names::kept(&["--etcd", &members, "--etcd-prefix", "/site", "--etcd-latest"]);
    let names = |at: &Names, args: &[&str]| zorb(&[&["names", "--service", &at.url][..], args].concat(), "");
    let url = "corbaloc:iiop:1.2@127.0.0.1:1/x";
    assert_eq!(names(&one, &["bind", "bank/mine", url, "--parents", "--for", "600"]).code, 0);
    assert_eq!(names(&two, &["bind", "bank/mine", url, "--for", "600"]).code, 0);
    assert_eq!(names(&two, &["tree"]).out, "bank/\n  mine\n");
    assert_eq!(names(&two, &["status"]).code, 0);
    drop(etcd);
    // It takes some seconds until the service gives etcd up.
    let status = loop {
        let status = names(&one, &["status"]);
        if status.code == 1 {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(status.out.contains("may be outdated"), "{}", status.out);
    assert_eq!(names(&one, &["resolve", "bank/mine"]).code, 0);
    let refused = names(&one, &["bind", "other", url]);
    assert!(refused.code == 1 && refused.err.contains("TRANSIENT"), "{}", refused.err);
}

#[test]
fn options_of_etcd_go_together() {
    for (options, why) in [
        (&["--etcd", "http://127.0.0.1:1", "--memory"][..], "cannot be used with"),
        (&["--etcd-user", "me"], "--etcd <URL>"),
        (&["--etcd", "https://127.0.0.1:1"], "requires the certificates"),
        (&["--etcd", "ftp://x"], "neither http://"),
    ] {
        let wrong = zorb(&[&["names", "serve", "--listen", "iiop://127.0.0.1:0"], options].concat(), "");
        assert!(wrong.code >= 2 && wrong.err.contains(why), "{options:?}: {}", wrong.err);
    }
}
