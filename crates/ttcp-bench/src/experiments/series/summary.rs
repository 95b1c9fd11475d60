//! The samples of `ttcp series`, grouped by their time frame, load and priority.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{NAME, SOCKET_PEERS, times};
use crate::experiments::store::{Outcome, Sample, StoredResults};
use crate::statistics::{Line, median, outliers};
use crate::work::{CallMode, MessageKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting<'d> {
    pub(super) frame_ms: u64,
    pub(super) load: &'d str,
    pub(super) priority: &'d str,
}

/// The samples with one [`Setting`].
pub(super) struct SettingSummary<'d> {
    pub(super) setting: Setting<'d>,
    pub(super) peers: Vec<&'d str>,
    /// The kinds of messages, except the plain bytes that sockets send.
    pub(super) kinds: Vec<MessageKind>,
    pub(super) units: Vec<u64>,
    samples: BTreeMap<SampleKey<'d>, Vec<&'d Sample>>,
}

/// The key of samples: peer, kind and mode of the messages, and number of units in a message.
type SampleKey<'d> = (&'d str, &'d str, &'d str, u64);

/// A message whose time differs much from the times of other messages of the same kind and size.
pub(super) struct Outlier<'d> {
    pub(super) sample: &'d Sample,
    /// The number of the message in its series, from 1.
    pub(super) message_number: usize,
    pub(super) time_us: f64,
    pub(super) series_median_us: f64,
}

impl<'d> SettingSummary<'d> {
    pub(super) fn all(data: &'d StoredResults) -> Vec<SettingSummary<'d>> {
        let mut all: Vec<SettingSummary<'d>> = Vec::new();
        for sample in data.samples_of(NAME) {
            let (Some(setting), Some(key)) = (Setting::of(sample), sample_key(sample)) else { continue };
            let position = match all.iter().position(|summary| summary.setting == setting) {
                Some(position) => position,
                None => {
                    all.push(SettingSummary {
                        setting,
                        peers: Vec::new(),
                        kinds: Vec::new(),
                        units: Vec::new(),
                        samples: BTreeMap::new(),
                    });
                    all.len() - 1
                }
            };
            if let Some(summary) = all.get_mut(position) {
                summary.add(key, sample);
            }
        }
        for summary in &mut all {
            summary.units.sort_unstable();
            summary.peers.sort_by_key(|peer| {
                SOCKET_PEERS.iter().position(|socket| socket == peer).unwrap_or(SOCKET_PEERS.len())
            });
        }
        all
    }

    fn add(&mut self, key: SampleKey<'d>, sample: &'d Sample) {
        let (peer, kind, _, units) = key;
        if !self.peers.contains(&peer) {
            self.peers.push(peer);
        }
        if !self.units.contains(&units) {
            self.units.push(units);
        }
        let kind = MessageKind::TYPED.into_iter().find(|known| known.name() == kind);
        self.kinds.extend(kind.filter(|kind| !self.kinds.contains(kind)));
        self.samples.entry(key).or_default().push(sample);
    }

    /// Returns the median of a figure over the rounds. Sockets send plain bytes for every `kind`.
    pub(super) fn figure(
        &self,
        peer: &str,
        kind: MessageKind,
        mode: CallMode,
        units: u64,
        name: &str,
    ) -> Option<f64> {
        let kind = if SOCKET_PEERS.contains(&peer) { MessageKind::Octets } else { kind };
        let samples = self.samples.get(&(peer, kind.name(), mode.name(), units))?;
        median(&samples.iter().filter_map(|sample| sample.figure(name)).collect::<Vec<_>>())
    }

    pub(super) fn points(
        &self,
        peer: &str,
        kind: MessageKind,
        mode: CallMode,
        name: &str,
    ) -> Vec<(f64, f64)> {
        let figure = |units: &u64| self.figure(peer, kind, mode, *units, name);
        self.units.iter().filter_map(|units| Some((message_bytes(*units) as f64, figure(units)?))).collect()
    }

    /// Returns the regression line of a figure by the size of messages in bytes.
    pub(super) fn trend(&self, peer: &str, kind: MessageKind, mode: CallMode, name: &str) -> Option<Line> {
        Line::through(&self.points(peer, kind, mode, name))
    }

    /// Returns how many messages a peer sent in a mode, and the outliers among them.
    pub(super) fn outliers(&self, peer: &str, mode: CallMode) -> (usize, Vec<Outlier<'d>>) {
        let (mut messages, mut found) = (0, Vec::new());
        let is_selected = |key: &SampleKey<'_>| key.0 == peer && key.2 == mode.name();
        let selected = self.samples.iter().filter(|(key, _)| is_selected(key));
        for sample in selected.flat_map(|(_, samples)| samples) {
            let Some(times) = client_line(sample).and_then(|l| times(l, "time_ns").ok()) else { continue };
            messages += times.len();
            let Some(series_median_us) = median(&times) else { continue };
            let outlier = |index: usize| {
                let time_us = *times.get(index)?;
                Some(Outlier { sample, message_number: index + 1, time_us, series_median_us })
            };
            found.extend(outliers(&times).into_iter().filter_map(outlier));
        }
        (messages, found)
    }
}

impl<'d> Setting<'d> {
    fn of(sample: &'d Sample) -> Option<Setting<'d>> {
        let word = |name| sample.cell.word(name);
        Some(Setting {
            frame_ms: sample.cell.number("frame_ms")?,
            load: word("load")?,
            priority: word("priority")?,
        })
    }
}

/// Returns the size of a message with a number of 32-byte units.
pub(super) fn message_bytes(units: u64) -> u64 {
    16 + 32 * units
}

fn client_line(sample: &Sample) -> Option<&Value> {
    match &sample.outcome {
        Outcome::Figures { line, .. } => Some(line),
        Outcome::Failure { .. } => None,
    }
}

fn sample_key(sample: &Sample) -> Option<SampleKey<'_>> {
    // Failed measurements have keys too, so that the tables have their cells.
    let cell = &sample.cell;
    Some((&sample.peer, cell.word("kind")?, cell.word("mode")?, cell.number("units")?))
}
