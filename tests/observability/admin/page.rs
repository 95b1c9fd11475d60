//! The page in a headless browser: its contents, and that no policy blocks a part of it.

use std::process::{Command, Stdio};

use super::Served;
use super::status::{freeze, point};

/// Returns a chromium, or `None` if none is installed. With `CI=true` it is required.
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

#[tokio::test]
async fn the_page_shows_what_the_orb_does() {
    let Some(chromium) = chromium() else { return };
    let _frozen = freeze();
    let served = Served::new().await;
    let name = "<b id=stranger>&amp;</b>";
    served.server.root_poa().create_poa(name, None, &[]).unwrap();
    for cents in [7, 7, 7, 0, 0, -1] {
        let _ = served.till.pay(cents).await;
    }
    point(&served).await;
    point(&served).await;
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
    for shown in [
        "IDL:Shop/Till:1.0",
        ">pay<",
        ">ready<",
        ">user exceptions<",
        ">p50<",
        ">p90<",
        ">p99<",
        ">max<",
        concat!("<span id=\"version\">", env!("CARGO_PKG_VERSION"), "</span>"),
        "<dt>uptime</dt>",
        "<dt>started</dt>",
        ">IMPLICIT_ACTIVATION<",
        ">RootPOA/&lt;b id=stranger&gt;&amp;amp;&lt;/b&gt;<",
        ">holding<",
    ] {
        assert!(dom.contains(shown), "{shown} is not in {dom}\n{log}");
    }
    let row = dom.split("<tr>").find(|row| row.contains(">pay<")).unwrap();
    let cells: Vec<&str> = row.split("<td").filter_map(|cell| cell.split(['>', '<']).nth(1)).collect();
    assert_eq!(cells[3..6], ["6", "2", "1"], "calls, user exceptions, failures in {row}");
    // A line for each, whose label contains the newest value.
    for line in
        ["served: calls/s", "served: failures/s", "served: p99", "connections: 1", "received: ", "sent: "]
    {
        let label = format!("role=\"img\" aria-label=\"{line}");
        let image = dom.split("<svg").find(|image| image.contains(&label));
        let image = image.unwrap_or_else(|| panic!("no {label} in {dom}\n{log}"));
        assert!(image.contains("in the last 10 minutes"), "{image}");
        assert!(image.contains(" d=\"M"), "{image}");
    }
    assert!(!dom.contains("made: calls/s"), "this server makes none");
    // The console reports blocked resources and script errors, and also messages of the browser's own pages.
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains(":CONSOLE") && !line.contains("source: chrome://")).collect();
    assert!(told.is_empty(), "{told:#?}");
}
