//! The results of a soak.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::Counts;
use super::state::State;
use crate::figures::Table;
use crate::figures::markdown::format_table;

/// The result of a soak, which the option `--json` writes to a file.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) transport: String,
    pub(super) seed: u64,
    pub(super) clients: u16,
    pub(super) seconds: f64,
    pub(super) rounds: u64,
    pub(super) interrupted: bool,
    /// Number of connections that used epoll, because io_uring was not available.
    pub(super) fallbacks: u64,
    pub(super) total: Counts,
    pub(super) kinds: BTreeMap<&'static str, Counts>,
    pub(super) faults: BTreeMap<String, u64>,
    #[serde(rename = "longest_end")]
    pub(super) longest_shutdown_seconds: f64,
    pub(super) orbs: u64,
    /// Number of CancelRequests that clients sent.
    pub(super) cancels: u64,
    /// Number of messages that clients received for calls that had already ended.
    pub(super) strays: u64,
    // The resources of the server and of a client without traffic, after the first and after the last round.
    pub(super) server_start: State,
    pub(super) server_end: State,
    pub(super) client_start: State,
    pub(super) client_end: State,
    #[serde(rename = "most_memory")]
    pub(super) max_memory_bytes: u64,
    pub(super) violations: Vec<String>,
}

impl Report {
    pub(super) fn text(&self) -> String {
        let titles = "calls|started|answered|COMPLETED_NO|MAYBE|unknown|executed";
        let kinds = self.kinds.iter().map(|(kind, counts)| (*kind, counts)).chain([("all", &self.total)]);
        let rows = kinds.map(|(kind, counts)| {
            let Counts { calls, answered, not_executed, maybe, unknown, executions } = counts;
            let numbers = [calls, answered, not_executed, maybe, unknown, executions].map(u64::to_string);
            std::iter::once(kind.to_owned()).chain(numbers).collect()
        });
        let calls = format_table(&Table::of_figures(titles, rows.collect()));
        let titles = "without calls|MiB|pooled MiB|descriptors|tasks|threads|connections";
        let states = [
            ("server, first round", &self.server_start),
            ("server, last round", &self.server_end),
            ("client, first round", &self.client_start),
            ("client, last round", &self.client_end),
        ];
        let rows = states.map(|(name, state)| {
            let State { memory, pooled, files, tasks, threads, connections, .. } = state;
            let numbers = [memory >> 20, pooled >> 20, *files, *tasks, *threads, *connections];
            std::iter::once(name.to_owned()).chain(numbers.map(|n| n.to_string())).collect()
        });
        let resources = format_table(&Table::of_figures(titles, rows.to_vec()));
        let faults: Vec<_> = self.faults.iter().map(|(fault, times)| format!("{fault} {times}")).collect();
        let shutdowns = if self.longest_shutdown_seconds > 0.0 {
            format!("\norderly shutdowns took up to {:.1} s", self.longest_shutdown_seconds)
        } else {
            String::new()
        };
        let mut text = format!(
            "{calls}\n\nfaults: {}{shutdowns}\nORBs of clients {}, CancelRequests {}, late messages {}\n\n{resources}\n\n",
            faults.join(", "),
            self.orbs,
            self.cancels,
            self.strays
        );
        let Report { transport, seed, rounds, seconds, .. } = self;
        text += &format!("{transport}, seed {seed}: {rounds} rounds in {seconds:.0} s");
        if self.interrupted {
            text += ", interrupted";
        }
        if self.fallbacks > 0 {
            text += ", over epoll because io_uring is not available";
        }
        text += &format!(", {} violations\n", self.violations.len());
        for violation in &self.violations {
            text += &format!("VIOLATION: {violation}\n");
        }
        text
    }
}
