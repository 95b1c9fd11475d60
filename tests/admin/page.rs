//! The page in a browser, without a window: what it shows, and that nothing of it is refused.

use std::process::{Command, Stdio};

use super::Served;

/// A chromium, or `None` where there is none. With `CI=true` there has to be one.
fn chromium() -> Option<&'static str> {
    let there = |name: &&str| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    if found.is_none() {
        let told = "no chromium, so no page is opened: scripts/install-peers.sh installs it";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{told}");
        eprintln!("\n********\nSKIPPED: {told}\n********\n");
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_the_orb_does() {
    let Some(chromium) = chromium() else { return };
    let served = Served::new().await;
    for _ in 0..3 {
        served.till.pay(7).await.unwrap();
    }
    let url = format!("http://{}/", served.address());
    let opened = tokio::task::spawn_blocking(move || {
        let profile = tempfile::tempdir().unwrap();
        Command::new("timeout")
            .args(["--kill-after=5", "60", chromium, "--headless", "--no-first-run", "--disable-extensions"])
            .args([
                "--disable-background-networking",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .output()
            .unwrap()
    });
    let output = opened.await.unwrap();
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for shown in ["IDL:Shop/Till:1.0", ">pay<", ">ready<", "half within"] {
        assert!(dom.contains(shown), "{shown} is not in {dom}\n{log}");
    }
    // Whatever a policy refuses, or a script stumbles over, is told there.
    assert!(!log.contains(":CONSOLE"), "{log}");
}
