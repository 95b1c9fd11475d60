//! The samples of this experiment, grouped and indexed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{NAME, SOCKETS, times};
use crate::experiments::store::{Data, Outcome, Sample};
use crate::statistics::{Line, median, outliers};
use crate::work::{CallMode, MessageKind};

/// The conditions of a series: frame in milliseconds, load, priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting<'d> {
    pub(super) frame: u64,
    pub(super) load: &'d str,
    pub(super) priority: &'d str,
}

/// The samples of one setting.
pub(super) struct SettingSummary<'d> {
    pub(super) setting: Setting<'d>,
    /// The peers in the order of the tables: sockets first.
    pub(super) peers: Vec<&'d str>,
    /// The kinds of typed peers.
    pub(super) kinds: Vec<MessageKind>,
    pub(super) units: Vec<u64>,
    samples: BTreeMap<SampleKey<'d>, Vec<&'d Sample>>,
}

/// Key of a sample: peer, kind, mode, units.
type SampleKey<'d> = (&'d str, &'d str, &'d str, u64);

/// A message that took much longer or shorter than the others of its kind and size.
pub(super) struct Outlier<'d> {
    pub(super) sample: &'d Sample,
    /// Number of the message, from 1.
    pub(super) number: usize,
    pub(super) took: f64,
    pub(super) median: f64,
}

impl<'d> SettingSummary<'d> {
    /// Returns all settings, in order of appearance.
    pub(super) fn all(data: &'d Data) -> Vec<SettingSummary<'d>> {
        let mut all: Vec<SettingSummary<'d>> = Vec::new();
        for sample in data.of(NAME) {
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
                SOCKETS.iter().position(|socket| socket == peer).unwrap_or(SOCKETS.len())
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

    /// Returns the median of that figure over the rounds. Sockets have the same figure for each kind.
    pub(super) fn figure(
        &self,
        peer: &str,
        kind: MessageKind,
        mode: CallMode,
        units: u64,
        name: &str,
    ) -> Option<f64> {
        let kind = if SOCKETS.contains(&peer) { MessageKind::Octets } else { kind };
        let samples = self.samples.get(&(peer, kind.name(), mode.name(), units))?;
        median(&samples.iter().filter_map(|sample| sample.figure(name)).collect::<Vec<_>>())
    }

    /// Returns that figure by the size of the messages.
    pub(super) fn points(
        &self,
        peer: &str,
        kind: MessageKind,
        mode: CallMode,
        name: &str,
    ) -> Vec<(f64, f64)> {
        let point = |units: &u64| Some((size(*units) as f64, self.figure(peer, kind, mode, *units, name)?));
        self.units.iter().filter_map(point).collect()
    }

    /// Returns the straight line through that figure over all sizes: microseconds by bytes.
    pub(super) fn trend(&self, peer: &str, kind: MessageKind, mode: CallMode, name: &str) -> Option<Line> {
        Line::through(&self.points(peer, kind, mode, name))
    }

    /// Returns how many messages a peer sent in that mode, and the outliers among them.
    pub(super) fn outliers(&self, peer: &str, mode: CallMode) -> (usize, Vec<Outlier<'d>>) {
        let (mut messages, mut far) = (0, Vec::new());
        let of_peer = self.samples.iter().filter(|((name, _, of, _), _)| *name == peer && *of == mode.name());
        for sample in of_peer.flat_map(|(_, samples)| samples) {
            let Some(took) = line(sample).and_then(|line| times(line, "time_ns").ok()) else { continue };
            messages += took.len();
            let Some(median) = median(&took) else { continue };
            let outlier =
                |index: usize| Some(Outlier { sample, number: index + 1, took: *took.get(index)?, median });
            far.extend(outliers(&took).into_iter().filter_map(outlier));
        }
        (messages, far)
    }
}

impl<'d> Setting<'d> {
    fn of(sample: &'d Sample) -> Option<Setting<'d>> {
        let word = |name| sample.cell.word(name);
        Some(Setting {
            frame: sample.cell.number("frame_ms")?,
            load: word("load")?,
            priority: word("priority")?,
        })
    }
}

/// Returns the size of a message with `units` units, bytes.
pub(super) fn size(units: u64) -> u64 {
    16 + 32 * units
}

/// Returns the client's line of a sample.
fn line(sample: &Sample) -> Option<&Value> {
    match &sample.outcome {
        Outcome::Figures { line, .. } => Some(line),
        Outcome::Failure { .. } => None,
    }
}

fn sample_key(sample: &Sample) -> Option<SampleKey<'_>> {
    // For a failure only the key is known. Its cell is shown as absent.
    let cell = &sample.cell;
    Some((&sample.peer, cell.word("kind")?, cell.word("mode")?, cell.number("units")?))
}
