//! The measurement of one test with one peer.

use serde::Serialize;
use serde_json::Value;

use super::plan::Cell;
use crate::harness::Peer;
use crate::harness::peers::{ClientRun, Failure, RunContext};
use crate::harness::processor::ProcessorTime;

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    pub(crate) figure: f64,
    pub(crate) line: Value,
    pub(crate) processor: Option<ProcessorTime>,
}

impl Peer {
    pub(crate) fn measure(&self, cell: &Cell, context: &mut RunContext<'_>) -> Result<Sample, Failure> {
        let cell = &if self.supports_zstruct { cell.clone() } else { cell.with_plain_structs() };
        let (server, client) = self.arguments(cell);
        let ClientRun { line, processor, .. } = self.run_once(&server, client, context)?;
        let bad = |reason: String| Failure::BadLine { reason, line: line.to_string() };
        let figure = cell.figure(&line).map_err(bad)?;
        Ok(Sample { figure, line, processor })
    }

    /// Returns the server's and the client's arguments for a cell.
    fn arguments(&self, cell: &Cell) -> (Vec<String>, Vec<String>) {
        let batch = (cell.uses_batch && self.has_batch).then(|| "--batch".to_owned());
        let client = cell.arguments().into_iter().chain(batch.clone()).collect();
        (batch.into_iter().collect(), client)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::harness::children::Children;
    use crate::harness::placement::Placement;
    use crate::work::Test;

    fn ping() -> Cell {
        Cell { n: Some(5), ..Cell::new(Test::Ping) }
    }

    fn script(text: &str) -> Vec<String> {
        ["sh", "-c", text, "sh"].map(String::from).to_vec()
    }

    fn measure(server: &str, client: &str) -> Result<Sample, Failure> {
        let peer = Peer {
            name: "p".into(),
            server: script(server),
            client: script(client),
            has_batch: false,
            supports_zstruct: false,
            has_samples: false,
        };
        let (mut children, dir) = (Children::new(), Path::new("/none"));
        let timeout = Duration::from_millis(500);
        peer.measure(&ping(), &mut context(&mut children, dir, timeout))
    }

    fn context<'s>(children: &'s mut Children, dir: &'s Path, timeout: Duration) -> RunContext<'s> {
        RunContext { children, dir, placement: Placement::loopback(), cores: None, timeout, deadline: None }
    }

    fn text(result: Result<Sample, Failure>) -> String {
        result.unwrap_err().to_string()
    }

    const SERVER: &str = "echo hello; echo READY 127.0.0.1:4711; sleep 60";

    #[test]
    fn the_figure_is_that_of_the_clients_last_line() {
        let client = r#"echo noise; echo '{"test":"ping","p50_us":7.5,"more":1}'"#;
        let sample = measure(SERVER, client).unwrap();
        assert_eq!((sample.figure, sample.line["more"].as_u64()), (7.5, Some(1)));
    }

    #[test]
    fn failures_contain_process_status_and_stderr() {
        let dead = text(measure("echo no licence >&2; exit 7", "true"));
        assert_eq!(dead, "the server ended with status 7 before it was ready\n    server: no licence");
        let failed = text(measure("echo odd >&2; echo READY x; sleep 60", "echo TRANSIENT >&2; exit 2"));
        assert_eq!(failed, "the client ended with status 2\n    client: TRANSIENT\n    server: odd");
        let died = text(measure("echo READY x; sleep 0.1; kill -9 $$", "sleep 60"));
        assert_eq!(died, "the server ended with signal 9 during the test");
        assert_eq!(text(measure(SERVER, "sleep 60")), "the client was not done within 0.5 s");
        assert!(text(measure(SERVER, "echo done")).contains("not JSON"));
        assert!(text(measure(SERVER, r#"echo '{"test":"ping"}'"#)).contains("it has no p50_us"));
        assert!(text(measure(SERVER, "true")).contains("not JSON"), "no line at all");
    }

    #[test]
    fn the_batch_option_is_only_passed_to_peers_with_batch_support() {
        let cell = Cell { uses_batch: true, ..ping() };
        let mut peer: Peer = "a=s::c".parse().unwrap();
        let (server, client) = peer.arguments(&cell);
        assert_eq!((server.join(" "), client.join(" ")), (String::new(), "ping --n 5".to_owned()));
        peer.has_batch = true;
        let (server, client) = peer.arguments(&cell);
        assert_eq!(
            (server.join(" "), client.join(" ")),
            ("--batch".to_owned(), "ping --n 5 --batch".to_owned())
        );
    }
}
