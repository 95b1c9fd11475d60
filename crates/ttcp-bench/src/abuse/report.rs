//! The results of an abuse test.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::attackers::{Attack, AttackCounts};
use super::client::ServiceFigures;
use super::server::ServerCounters;
use crate::harness::environment::Environment;

/// The result, as `--json` writes it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The machine and the configuration.
    pub(super) environment: Environment,
    /// Transport of the connections.
    pub(super) transport: String,
    /// Slow peers.
    pub(super) peers: u32,
    /// Number of addresses that attackers used.
    pub(super) addresses: u8,
    /// Rate of each attack a second; 0: unlimited.
    pub(super) rate: u32,
    /// Calls a second of the well-behaved client.
    pub(super) calls_s: u32,
    /// Connections that the server accepts in all, and from one address.
    pub(super) connections: (usize, usize),
    /// Largest allowed growth of the 99th percentile, as a factor.
    pub(super) most: f64,
    /// The phases, in order.
    pub(super) phases: Vec<Phase>,
    /// Whether the user interrupted it.
    pub(super) interrupted: bool,
    /// The violated criteria.
    pub(super) violations: Vec<String>,
}

/// A time span with or without attacks.
#[derive(Debug, Serialize)]
pub(super) struct Phase {
    /// Its name.
    pub(super) name: &'static str,
    /// How long the client called.
    pub(super) seconds: f64,
    /// The service that the well-behaved client got.
    pub(super) client: ServiceFigures,
    /// The 99th percentile, as a multiple of that before all attacks.
    pub(super) ratio: f64,
    /// What the server counted in this phase.
    pub(super) server: ServerCounters,
    /// The server's largest sampled use of resources.
    pub(super) most: ResourceUsage,
    /// Processor time of the server, seconds, if the system provides it.
    pub(super) server_s: Option<f64>,
    /// Processor time of the attackers, likewise.
    pub(super) attackers_s: Option<f64>,
    /// What the attackers did and how the server reacted.
    pub(super) attackers: BTreeMap<Attack, AttackCounts>,
}

/// The resources of a server.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct ResourceUsage {
    /// Connections.
    pub(super) connections: u64,
    /// Resident memory in bytes.
    pub(super) memory: u64,
    /// File descriptors.
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
        let mut client = table(&[
            "phase",
            "calls",
            "answered",
            "failed",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "max us",
            "p99 x before",
            "newcomers",
            "turned away",
        ]);
        let mut server = table(&[
            "server",
            "most connections",
            "MiB",
            "descriptors",
            "processor s",
            "messages",
            "MiB in",
            "limits hit",
        ]);
        let mut attackers = table(&[
            "attackers",
            "processor s",
            "opened",
            "refused",
            "closed by the server",
            "messages",
            "KiB sent",
        ]);
        for phase in &self.phases {
            let ServiceFigures { calls, answered, failed, newcomers, turned_away, .. } = &phase.client;
            let ServiceFigures { p50_us, p99_us, p999_us, max_us, .. } = &phase.client;
            let us = |time: &f64| format!("{time:.0}");
            let seconds =
                |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.2}"));
            client.add_row([
                phase.name.to_owned(),
                calls.to_string(),
                answered.to_string(),
                failed.to_string(),
                us(p50_us),
                us(p99_us),
                us(p999_us),
                us(max_us),
                format!("{:.2}", phase.ratio),
                newcomers.to_string(),
                turned_away.to_string(),
            ]);
            let hits = phase.server.limits.iter().map(|(limit, times)| format!("{limit} {times}"));
            server.add_row([
                phase.name.to_owned(),
                phase.most.connections.to_string(),
                (phase.most.memory >> 20).to_string(),
                phase.most.files.to_string(),
                seconds(phase.server_s),
                phase.server.messages.to_string(),
                (phase.server.octets >> 20).to_string(),
                hits.collect::<Vec<_>>().join(", "),
            ]);
            for (attack, counts) in &phase.attackers {
                let AttackCounts { opened, refused, cut, messages, octets } = counts;
                let name = if phase.attackers.len() == 1 {
                    phase.name.to_owned()
                } else {
                    format!("{}: {}", phase.name, attack.name())
                };
                attackers.add_row([
                    name,
                    seconds(phase.attackers_s),
                    opened.to_string(),
                    refused.to_string(),
                    cut.to_string(),
                    messages.to_string(),
                    (octets >> 10).to_string(),
                ]);
            }
        }
        for table in [&mut client, &mut server, &mut attackers] {
            right(table);
        }
        let Report { transport, peers, addresses, rate, calls_s, connections: (all, each), .. } = self;
        let pace =
            if *rate == 0 { "as much as they can".to_owned() } else { format!("{rate} a second each") };
        let mut text = format!(
            "{}\n\n{transport}: {calls_s} calls a second; attackers from {addresses} address(es), {peers} of them slow, {pace}; \
             the server takes {all} connections, {each} from one address; all share {} cores, the attackers at the lowest priority\n\n\
             {client}\n\n{server}\n\n{attackers}\n\n",
            self.environment.summary(),
            self.environment.cores,
        );
        if self.interrupted {
            text += "interrupted: this is not all of it\n";
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
        text += &match self.holds() {
            true => {
                format!("HELD: all calls were answered, p99 was {worst:.2} times that before at the most\n")
            }
            false => {
                format!("NOT HELD: p99 was {worst:.2} times that before at the most ({} may be)\n", self.most)
            }
        };
        text
    }

    /// Returns whether the server meets all criteria in all phases.
    pub(super) fn holds(&self) -> bool {
        self.violations.is_empty() && !self.interrupted
    }
}

fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(heads.to_vec());
    table
}

/// Aligns figures to the right.
fn right(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
