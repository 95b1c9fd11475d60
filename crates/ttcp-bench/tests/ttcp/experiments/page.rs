//! The report as displayed by a browser: charts, colours of both themes, the width of a phone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{run, text};

/// Runs within a copy of the page, and reports its findings to the surrounding frame. The report's pages
/// contain no scripts.
const PROBE: &str = r#"<script>
const errors = [];
addEventListener("error", event => errors.push(String(event.message)));
addEventListener("load", () => {
  const all = (selector, of) => [...document.querySelectorAll(selector)].map(of);
  const style = element => getComputedStyle(element);
  const box = element => element.getBoundingClientRect();
  const found = {
    errors,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    inner: innerWidth,
    scroll: document.documentElement.scrollWidth,
    paper: style(document.body).backgroundColor,
    ink: style(document.body).color,
    charts: all("figure svg", svg => ({
      width: box(svg).width, height: box(svg).height,
      lines: [...new Set([...svg.querySelectorAll("polyline")].map(line => style(line).stroke))],
      text: style(svg.querySelector("text")).fill,
    })),
    figcaptions: all("figcaption", caption => box(caption).width),
    tables: document.querySelectorAll("table").length,
  };
  parent.postMessage(JSON.stringify(found), "*");
});
</script>"#;

/// The surrounding page: windows cannot be as narrow as a phone, but frames can.
const FRAME: &str = r#"<!DOCTYPE html><meta name="color-scheme" content="light dark"><title>frame</title><link rel="icon" href="data:,">
<script>addEventListener("message", event => { document.getElementById("found").textContent = event.data; });</script>
<pre id="found"></pre><iframe src="copy.html" width="WIDTH" height="900" style="border:0"></iframe>"#;

/// Writes the page with the probe in it.
fn put(dir: &Path, page: &str) {
    fs::write(dir.join("copy.html"), page.replacen("<head>", &format!("<head>{PROBE}"), 1)).unwrap();
}

/// Returns a chromium, or `None` if none is installed. With `CI=true` it is required.
fn chromium() -> Option<&'static str> {
    let there = |name: &&str| {
        let version =
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    if found.is_none() {
        let told = "no chromium, so no report is opened: scripts/install-peers.sh installs it";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{told}");
        eprintln!("SKIPPED: {told}");
    }
    found
}

/// Returns the probe's findings in a view of that width.
fn opened(chromium: &str, dir: &Path, dark: bool, width: u32) -> Value {
    let frame = dir.join("frame.html");
    fs::write(&frame, FRAME.replace("WIDTH", &width.to_string())).unwrap();
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        "60",
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
    ]);
    command.args([
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ]);
    command.arg("--enable-logging=stderr").arg(format!("--user-data-dir={}", dir.join("profile").display()));
    // 0 is dark, 1 is light.
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    // Long enough for the frame to receive the findings.
    command.args(["--window-size=1400,900", "--virtual-time-budget=5000", "--dump-dom"]);
    command.arg(format!("file://{}", frame.display()));
    let out = command.stdin(Stdio::null()).output().unwrap();
    let (document, stderr) = (text(&out.stdout), text(&out.stderr));
    // Messages about the browser's own pages are irrelevant.
    let ours = |line: &&str| line.contains(":CONSOLE") && !line.contains("source: chrome://");
    let console: Vec<&str> = stderr.lines().filter(ours).collect();
    assert!(out.status.success() && console.is_empty(), "{console:?} {stderr}");
    let found = document.rsplit_once("<pre id=\"found\">").and_then(|(_, found)| found.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("the probe did not run: {stderr}"));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

/// Returns the brightness of a colour `rgb(r, g, b)`, 0 to 255.
fn brightness(colour: &Value) -> f64 {
    let parts = colour.as_str().unwrap().trim_start_matches("rgb(").trim_end_matches(')').split(", ");
    let parts: Vec<f64> = parts.map(|part| part.parse().unwrap_or_else(|_| panic!("{colour}"))).collect();
    0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]
}

#[test]
fn a_report_is_readable_in_both_themes_and_on_a_phone() {
    let Some(chromium) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    for line in [
        "latency --quick --n 20 --repeat 2 --peers raw,zorb --out r",
        "scale --quick --n 20 --peers raw,zorb --parts clients --out r",
    ] {
        let out = run(dir.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
    assert!(run(dir.path(), &["report", "r"]).status.success());
    let page = fs::read_to_string(dir.path().join("r/report.html")).unwrap();
    put(dir.path(), &page);

    for (dark, width) in [(false, 1280), (true, 1280), (false, 390), (true, 390)] {
        let found = opened(chromium, dir.path(), dark, width);
        assert_eq!((&found["dark"], &found["inner"]), (&dark.into(), &width.into()), "{found}");
        assert_eq!(found["errors"], Value::Array(Vec::new()));
        assert!(
            found["scroll"].as_u64().unwrap() <= u64::from(width),
            "the page is wider than its window: {found}"
        );
        let (paper, ink) = (brightness(&found["paper"]), brightness(&found["ink"]));
        assert!(if dark { ink - paper > 150.0 } else { paper - ink > 150.0 }, "{found}");

        let charts = found["charts"].as_array().unwrap();
        assert_eq!(charts.len(), 2 + 2, "octets and structs; rate and time of clients: {found}");
        for chart in charts {
            assert!(
                chart["width"].as_f64().unwrap() > 300.0 && chart["height"].as_f64().unwrap() > 150.0,
                "{chart}"
            );
            // Not black on black: the colours are those of the page.
            assert!((brightness(&chart["text"]) - paper).abs() > 100.0, "{chart}");
            let lines = chart["lines"].as_array().unwrap();
            assert!(lines.len() >= 2, "a line for each peer, in a colour of its own: {chart}");
            assert!(lines.iter().all(|line| (brightness(line) - paper).abs() > 40.0), "{chart}");
        }
        let captions = found["figcaptions"].as_array().unwrap();
        assert_eq!(captions.len() as u64, 4 + found["tables"].as_u64().unwrap());
        assert!(
            captions.iter().all(|caption| caption.as_f64().unwrap() <= f64::from(width)),
            "a caption is cut: {found}"
        );
    }
}

/// The checks above detect a faulty page.
#[test]
fn a_page_that_is_wrong_is_seen() {
    let Some(chromium) = chromium() else { return };
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "<html><head></head><body><script>throw new Error('oh')</script></body></html>");
    let told = std::panic::catch_unwind(|| opened(chromium, dir.path(), false, 390)).unwrap_err();
    let told = told.downcast::<String>().unwrap();
    assert!(told.contains("Uncaught Error: oh"), "{told}");
    put(dir.path(), "<html><head></head><body><div style='width:900px'>wide</div></body></html>");
    let found = opened(chromium, dir.path(), true, 390);
    assert!(found["scroll"].as_u64().unwrap() >= 900 && found["inner"] == 390, "{found}");
}
