//! The results of an abuse test.

use std::collections::BTreeMap;

use serde::Serialize;

use super::attackers::{Attack, AttackCounts};
use super::client::ServiceFigures;
use super::server::ServerCounters;
use crate::figures::Table;
use crate::figures::markdown::format_table;
use crate::harness::environment::Environment;

/// The result, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    pub(super) transport: String,
    pub(super) peers: u32,
    pub(super) addresses: u8,
    /// Rate of each attack per second; 0: unlimited.
    pub(super) rate: u32,
    /// Calls per second of the well-behaved client.
    #[serde(rename = "calls_s")]
    pub(super) calls_per_s: u32,
    /// Maximum number of connections of the server, in total and from one address.
    pub(super) connections: (usize, usize),
    /// Maximum growth of the 99th percentile of the client's call times, as a factor.
    #[serde(rename = "most")]
    pub(super) max_growth: f64,
    pub(super) phases: Vec<Phase>,
    pub(super) interrupted: bool,
    pub(super) violations: Vec<String>,
}

/// A time span with or without attacks.
#[derive(Debug, Serialize)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
    /// The service that the well-behaved client got.
    pub(super) client: ServiceFigures,
    /// The 99th percentile of the client's call times, divided by the 99th percentile of the first phase.
    pub(super) ratio: f64,
    /// The server's counts of this phase.
    pub(super) server: ServerCounters,
    /// The maxima of the server's resources, which are sampled at intervals.
    #[serde(rename = "most")]
    pub(super) max_usage: ResourceUsage,
    /// Processor time of the server in seconds, if the system provides it.
    #[serde(rename = "server_s")]
    pub(super) server_cpu_s: Option<f64>,
    /// Processor time of the attackers in seconds, if the system provides it.
    #[serde(rename = "attackers_s")]
    pub(super) attackers_cpu_s: Option<f64>,
    pub(super) attackers: BTreeMap<Attack, AttackCounts>,
}

/// The resources of a server.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct ResourceUsage {
    pub(super) connections: u64,
    /// Resident memory in bytes.
    pub(super) memory: u64,
    /// Number of open file descriptors.
    pub(super) files: u64,
}

impl ResourceUsage {
    /// Returns the larger value of each resource.
    pub(super) fn max(self, other: ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            connections: self.connections.max(other.connections),
            memory: self.memory.max(other.memory),
            files: self.files.max(other.files),
        }
    }
}

impl Report {
    /// Returns the tables and the verdict as text.
    pub(super) fn text(&self) -> String {
        let Report { transport, peers, addresses, rate, calls_per_s, connections: (all, each), .. } = self;
        let rate = if *rate == 0 { "without a limit".to_owned() } else { format!("{rate} a second each") };
        let mut text = format!(
            "{}\n\n{transport}: {calls_per_s} calls a second; attackers with {addresses} address(es), {peers} slow peers, {rate}; \
             the server accepts {all} connections, {each} from one address; all processes share {} cores, attackers have the lowest priority\n\n",
            self.environment.summary(),
            self.environment.cores,
        );
        for table in [self.client_table(), self.server_table(), self.attackers_table()] {
            text += &format!("{}\n\n", format_table(&table));
        }
        if self.interrupted {
            text += "interrupted: the results are incomplete\n";
        }
        for phase in &self.phases {
            for failure in &phase.client.failures {
                text += &format!("{}: {failure}\n", phase.name);
            }
        }
        for violation in &self.violations {
            text += &format!("VIOLATION: {violation}\n");
        }
        let worst = self.phases.iter().map(|phase| phase.ratio).fold(0.0, f64::max);
        let growth = format!("p99 was at most {worst:.2} times as high as before");
        text += &match self.holds() {
            true => format!("HELD: all calls were answered, {growth}\n"),
            false => format!("NOT HELD: {growth} (allowed: {})\n", self.max_growth),
        };
        text
    }

    fn client_table(&self) -> Table {
        let titles =
            "phase|calls|answered|failed|p50 us|p99 us|p99.9 us|max us|p99 / before|new clients|failed";
        let row = |phase: &Phase| {
            let ServiceFigures { calls, answered, failed, new_clients, failed_new_clients, .. } =
                &phase.client;
            let ServiceFigures { p50_us, p99_us, p999_us, max_us, .. } = &phase.client;
            let mut row = vec![phase.name.to_owned()];
            row.extend([calls, answered, failed].map(u64::to_string));
            row.extend([p50_us, p99_us, p999_us, max_us].map(|time| format!("{time:.0}")));
            row.push(format!("{:.2}", phase.ratio));
            row.extend([new_clients, failed_new_clients].map(u64::to_string));
            row
        };
        Table::of_figures(titles, self.phases.iter().map(row).collect())
    }

    fn server_table(&self) -> Table {
        let titles =
            "server|max connections|max MiB|max descriptors|processor s|messages|MiB in|limits reached";
        let row = |phase: &Phase| {
            let Phase { server, max_usage, .. } = phase;
            let limits = server.limit_hits.iter().map(|(limit, times)| format!("{limit} {times}"));
            let mut row = vec![phase.name.to_owned()];
            let ResourceUsage { connections, memory, files } = max_usage;
            row.extend([*connections, memory >> 20, *files].map(|n| n.to_string()));
            row.push(format_seconds(phase.server_cpu_s));
            row.extend([server.messages, server.received_bytes >> 20].map(|n| n.to_string()));
            row.push(limits.collect::<Vec<_>>().join(", "));
            row
        };
        Table::of_figures(titles, self.phases.iter().map(row).collect())
    }

    fn attackers_table(&self) -> Table {
        let titles = "attackers|processor s|opened|refused|closed by the server|messages|KiB sent";
        let mut rows = Vec::new();
        for phase in &self.phases {
            for (attack, counts) in &phase.attackers {
                let AttackCounts { opened, refused, closed_by_server, messages, sent_bytes } = counts;
                let mut row = vec![match phase.attackers.len() {
                    1 => phase.name.to_owned(),
                    _ => format!("{}: {}", phase.name, attack.name()),
                }];
                row.push(format_seconds(phase.attackers_cpu_s));
                row.extend(
                    [opened, refused, closed_by_server, messages, &(sent_bytes >> 10)].map(u64::to_string),
                );
                rows.push(row);
            }
        }
        Table::of_figures(titles, rows)
    }

    /// Returns whether the server met all criteria in all phases, and the test was not interrupted.
    pub(super) fn holds(&self) -> bool {
        self.violations.is_empty() && !self.interrupted
    }
}

fn format_seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.2}"))
}
