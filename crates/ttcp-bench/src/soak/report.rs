//! The results of a soak.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::check::Counts;
use super::state::State;

/// The result, as `--json` writes it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// Transport of the connections.
    pub(super) transport: String,
    /// Seed of the random choices.
    pub(super) seed: u64,
    /// Client processes at a time.
    pub(super) clients: u16,
    /// Duration, seconds.
    pub(super) seconds: f64,
    /// Rounds, each with checks at its end.
    pub(super) rounds: u64,
    /// Whether the user interrupted it.
    pub(super) interrupted: bool,
    /// Connections that fell back from io_uring to epoll.
    pub(super) fallbacks: u64,
    /// All calls.
    pub(super) total: Counts,
    /// Calls by kind.
    pub(super) kinds: BTreeMap<&'static str, Counts>,
    /// The injected faults, and how often each was injected.
    pub(super) faults: BTreeMap<String, u64>,
    /// The longest orderly shutdown of a server, seconds.
    pub(super) longest_end: f64,
    /// ORBs of clients, each with a connection.
    pub(super) orbs: u64,
    /// CancelRequests sent.
    pub(super) cancels: u64,
    /// Replies and cancels that arrived for calls that had ended.
    pub(super) strays: u64,
    /// The server's resources after the first calls, when quiet.
    pub(super) server_start: State,
    /// The server's resources at the end of the last round.
    pub(super) server_end: State,
    /// A client's resources after the first calls, when quiet.
    pub(super) client_start: State,
    /// A client's resources at the end of the last round.
    pub(super) client_end: State,
    /// The largest memory of any process when it was quiet, bytes.
    pub(super) most_memory: u64,
    /// The violations.
    pub(super) violations: Vec<String>,
}

impl Report {
    /// Returns the tables and the violations as text.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let heads = ["calls", "begun", "answered", "COMPLETED_NO", "MAYBE", "unknown", "executed"];
        table.set_header(heads);
        let rows = self.kinds.iter().map(|(kind, counts)| (*kind, counts));
        for (kind, counts) in rows.chain([("all", &self.total)]) {
            let Counts { calls, answered, not_executed, maybe, unknown, executions } = counts;
            let numbers = [calls, answered, not_executed, maybe, unknown, executions].map(u64::to_string);
            table.add_row(std::iter::once(kind.to_owned()).chain(numbers));
        }
        right(&mut table, heads.len());
        let mut held = Table::new();
        held.load_style(presets::ASCII_MARKDOWN);
        let heads = ["quiet", "MiB", "pooled MiB", "descriptors", "tasks", "threads", "connections"];
        held.set_header(heads);
        for (who, state) in [
            ("server, at first", &self.server_start),
            ("server, in the end", &self.server_end),
            ("client, at first", &self.client_start),
            ("client, in the end", &self.client_end),
        ] {
            let State { memory, pooled, files, tasks, threads, connections, .. } = state;
            let numbers = [memory >> 20, pooled >> 20, *files, *tasks, *threads, *connections];
            held.add_row(std::iter::once(who.to_owned()).chain(numbers.map(|n| n.to_string())));
        }
        right(&mut held, heads.len());
        let faults: Vec<_> = self.faults.iter().map(|(what, times)| format!("{what} {times}")).collect();
        let ends = if self.longest_end > 0.0 {
            format!("\nends in order took up to {:.1} s", self.longest_end)
        } else {
            String::new()
        };
        let mut text = format!(
            "{table}\n\nfaults: {}{ends}\nORBs of clients {}, CancelRequests {}, strays {}\n\n{held}\n\n",
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
            text += ", over epoll: there is no io_uring";
        }
        text += &format!(", {} violations\n", self.violations.len());
        for violation in &self.violations {
            text += &format!("VIOLATION: {violation}\n");
        }
        text
    }
}

fn right(table: &mut Table, columns: usize) {
    for column in 1..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
