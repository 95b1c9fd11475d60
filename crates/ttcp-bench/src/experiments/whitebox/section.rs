//! The section of the report on `ttcp whitebox`: shares, functions, chains of calls, published figures.

use std::collections::{BTreeMap, BTreeSet};

use super::super::integrity;
use super::super::store::{Outcome, Sample, StoredResults};
use super::measure::{Function, REST};
use super::{CALLGRIND, NAME, PERF, Side};
use crate::figures::{
    Bars, Column, Section, Table, format_bytes, format_figure, format_percent, published_rows,
    published_table,
};
use crate::literature::PublishedTable;
use crate::profiler::groups::Group;

const MIN_SHARE_PERCENT: f64 = 1.0;
const MAX_FUNCTIONS: usize = 10;

/// Parts of the names of those published quantities that stem from profiles.
const PROFILE_QUANTITIES: &[&str] =
    &["calls", "time in", "share in", "per write", "write size", "write buffer", "structs per buffer"];

/// The profile of one side of the floods of a peer: means over the rounds.
#[derive(Default)]
struct SideProfile {
    functions: BTreeMap<String, FunctionCost>,
    all_ms: Option<f64>,
    /// The number of samples that perf took in all rounds.
    sample_count: f64,
    all_instructions: Option<f64>,
    /// The chain of calls to the write or to the servant.
    chain: Option<Vec<String>>,
}

#[derive(Default, Clone)]
struct FunctionCost {
    ms: Option<f64>,
    instructions: Option<f64>,
    /// The number of system calls, which perf counted.
    system_calls: f64,
    /// The number of calls, which callgrind counted.
    calls: f64,
}

impl SideProfile {
    fn of(data: &StoredResults, peer: &str, element: &str, side: Side) -> Option<SideProfile> {
        let mut profile = SideProfile::default();
        for by in [PERF, CALLGRIND] {
            let samples: Vec<&Sample> = data
                .samples_of(NAME)
                .filter(|s| s.peer == peer && s.cell.word("type") == Some(element))
                .filter(|s| s.cell.word("side") == Some(side.name()) && s.cell.word("by") == Some(by))
                .filter(|s| matches!(s.outcome, Outcome::Figures { .. }))
                .collect();
            for sample in &samples {
                profile.add(sample, by, 1.0 / samples.len() as f64);
            }
        }
        (profile.all_ms.is_some() || profile.all_instructions.is_some()).then_some(profile)
    }

    fn add(&mut self, sample: &Sample, by: &str, weight: f64) {
        let Outcome::Figures { line, .. } = &sample.outcome else { return };
        let functions = line.get("functions").cloned().unwrap_or_default();
        for Function { name, own, calls } in
            serde_json::from_value::<Vec<Function>>(functions).unwrap_or_default()
        {
            let row = self.functions.entry(name).or_default();
            if by == PERF {
                *row.ms.get_or_insert(0.0) += own * weight;
                row.system_calls += calls * weight;
            } else {
                *row.instructions.get_or_insert(0.0) += own * weight;
                row.calls += calls * weight;
            }
        }
        let figure = |name| sample.figure(name).map(|figure| figure * weight);
        if let Some(ms) = figure("all_ms") {
            *self.all_ms.get_or_insert(0.0) += ms;
            self.sample_count += sample.figure("samples").unwrap_or_default();
        }
        if let Some(instructions) = figure("all_instructions") {
            *self.all_instructions.get_or_insert(0.0) += instructions;
        }
        if let Some(chain) = line.get("chain").and_then(|chain| serde_json::from_value(chain.clone()).ok()) {
            self.chain = Some(chain);
        }
    }

    /// Returns the percentage of the time by group, or of the instructions if there is no time.
    fn shares(&self) -> BTreeMap<Group, f64> {
        let of = |row: &FunctionCost| if self.all_ms.is_some() { row.ms } else { row.instructions };
        let all: f64 = self.functions.values().filter_map(of).sum();
        let mut shares = BTreeMap::new();
        for (name, row) in &self.functions {
            let share = 100.0 * of(row).unwrap_or_default() / if all > 0.0 { all } else { 1.0 };
            *shares.entry(Group::of(name)).or_default() += share;
        }
        shares
    }

    fn ms_share(&self, row: &FunctionCost) -> Option<f64> {
        Some(100.0 * row.ms? / self.all_ms?.max(f64::MIN_POSITIVE))
    }

    fn instruction_share(&self, row: &FunctionCost) -> Option<f64> {
        Some(100.0 * row.instructions? / self.all_instructions?.max(f64::MIN_POSITIVE))
    }

    fn main_functions(&self) -> Vec<(&str, &FunctionCost)> {
        let weight = |row: &FunctionCost| match self.all_ms {
            Some(_) => self.ms_share(row),
            None => self.instruction_share(row),
        };
        let mut all: Vec<(&str, &FunctionCost)> =
            self.functions.iter().map(|(name, row)| (name.as_str(), row)).collect();
        all.retain(|(name, row)| {
            *name != REST && weight(row).is_some_and(|share| share >= MIN_SHARE_PERCENT)
        });
        all.sort_by(|a, b| weight(b.1).unwrap_or_default().total_cmp(&weight(a.1).unwrap_or_default()));
        all.truncate(MAX_FUNCTIONS);
        all
    }
}

struct ProfileSamples<'d> {
    /// Element types, peers, sides, and their profiles.
    profiles: Vec<(&'d str, &'d str, Side, SideProfile)>,
}

impl<'d> ProfileSamples<'d> {
    fn of(data: &'d StoredResults) -> ProfileSamples<'d> {
        let mut types: Vec<&str> = Vec::new();
        for element in data.samples_of(NAME).filter_map(|sample| sample.cell.word("type")) {
            if !types.contains(&element) {
                types.push(element);
            }
        }
        let mut profiles = Vec::new();
        for element in types {
            for side in Side::ALL {
                for peer in data.peers(NAME) {
                    if let Some(profile) = SideProfile::of(data, peer, element, side) {
                        profiles.push((element, peer, side, profile));
                    }
                }
            }
        }
        ProfileSamples { profiles }
    }

    fn of_side(&self, side: Side) -> impl Iterator<Item = (&'d str, &'d str, &SideProfile)> {
        self.profiles
            .iter()
            .filter(move |(_, _, profile_side, _)| *profile_side == side)
            .map(|(element, peer, _, profile)| (*element, *peer, profile))
    }

    fn any(&self, is_selected: impl Fn(&SideProfile) -> bool) -> bool {
        self.profiles.iter().any(|(_, _, _, profile)| is_selected(profile))
    }
}

pub(super) fn section(data: &StoredResults) -> Section {
    let samples = ProfileSamples::of(data);
    let mut section = Section::new(NAME, "Whitebox: the time of a flood by function");
    let shown = |name| {
        let numbers: BTreeSet<u64> =
            data.samples_of(NAME).filter_map(|sample| sample.cell.number(name)).collect();
        let shown: Vec<String> = numbers.into_iter().map(format_bytes).collect();
        if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
    };
    if samples.profiles.is_empty() {
        section.text("There are no profiles, because no profiler was available.");
    }
    section.text(format!(
        "Elements of {} are sent one way in buffers of {}. Each side is profiled in separate runs. perf takes samples of the program and \
         of the kernel at regular times, from which the milliseconds on a processor (without sleep) are computed, and counts the system \
         calls. callgrind executes the program instruction by instruction, and records the calls of functions, their instructions \
         outside the kernel, and the chains of calls. All figures are for {} of elements. The figures of perf are computed from a longer \
         flood without its start and warm-up; those of callgrind are the difference of a long and a short run.",
        shown("total"),
        shown("bytes"),
        shown("total"),
    ));
    section.text(
        "The time of a system call includes all of the kernel's work in it, also network interrupts: over loopback, the sender's write does \
         most of the receiver's work in TCP. An inlined function is part of its caller and has no calls of its own. This applies to most \
         small functions in Rust, C++ and C, so the chains of calls are those of the machine code, and one function may include many \
         others. Functions are grouped by patterns of their names; a separate column shows the share of functions that match no pattern. \
         JacORB is not measured, because its machine code is generated at run time, and profilers do not know the names of its functions.",
    );
    if !samples.any(|profile| profile.all_ms.is_some()) {
        section.text("perf was not available, so the shares are those of instructions outside the kernel.");
    }
    if !samples.any(|profile| profile.all_instructions.is_some()) {
        section.text("callgrind was not available, so there are no calls of functions and no chains.");
    }
    section.text(integrity::format_checks(data, NAME));
    for side in Side::ALL {
        add_groups(&samples, side, &mut section);
    }
    for side in Side::ALL {
        add_functions(&samples, side, &mut section);
    }
    add_chains(&samples, &mut section);
    add_published(&mut section);
    section
}

fn add_groups(samples: &ProfileSamples<'_>, side: Side, section: &mut Section) {
    let has_time = samples.any(|profile| profile.all_ms.is_some());
    let whole = if has_time { "the time on a processor" } else { "the instructions" };
    let mut columns = vec![Column::words("type"), Column::words("peer")];
    columns.extend(["CPU, ms", "samples"].map(Column::figures));
    columns.extend(Group::DISPLAYED.map(|group| Column::figures(format!("{group}, %"))));
    columns.push(Column::figures("without a pattern, %"));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (element, peer, profile) in samples.of_side(side) {
        let shares = profile.shares();
        let displayed_share = |group: Group| {
            shares
                .iter()
                .filter(|(own, _)| own.displayed_as() == group)
                .map(|(_, share)| share)
                .fold(0.0, |sum, share| sum + share)
        };
        let mut row = vec![element.to_owned(), peer.to_owned()];
        row.push(format_figure(profile.all_ms));
        row.push(profile.all_ms.map_or_else(|| "-".to_owned(), |_| format!("{:.0}", profile.sample_count)));
        row.extend(Group::DISPLAYED.map(|group| format_percent(Some(displayed_share(group)))));
        row.push(format_percent(Some(shares.get(&Group::Unmatched).copied().unwrap_or_default())));
        rows.push(row);
        bars.push((format!("{element}, {peer}"), Group::DISPLAYED.map(displayed_share).to_vec()));
    }
    section.bars(Bars {
        caption: format!("The {}: shares of {whole}.", side.name()),
        label: "percent".into(),
        parts: Group::DISPLAYED.map(|group| group.to_string()).to_vec(),
        bars,
    });
    let caption = format!("The {}: {whole} by purpose.", side.name());
    section.table(Table { caption, columns, rows });
}

fn add_functions(samples: &ProfileSamples<'_>, side: Side, section: &mut Section) {
    let mut columns =
        vec![Column::words("type"), Column::words("peer"), Column::words("function"), Column::words("group")];
    let titles = [
        "CPU, ms (perf)",
        "share, % (perf)",
        "calls",
        "instructions, thousands (callgrind)",
        "share, % (callgrind)",
    ];
    columns.extend(titles.map(Column::figures));
    let mut rows = Vec::new();
    for (element, peer, profile) in samples.of_side(side) {
        for (name, row) in profile.main_functions() {
            let calls = if row.system_calls > 0.0 { row.system_calls } else { row.calls };
            rows.push(vec![
                element.to_owned(),
                peer.to_owned(),
                name.to_owned(),
                Group::of(name).displayed_as().to_string(),
                format_figure(row.ms),
                format_percent(profile.ms_share(row)),
                if calls > 0.0 { format!("{calls:.0}") } else { "-".to_owned() },
                format_figure(row.instructions.map(|instructions| instructions / 1e3)),
                format_percent(profile.instruction_share(row)),
            ]);
        }
    }
    let caption =
        format!("The {}: functions with 1 % or more, at most {MAX_FUNCTIONS} per flood.", side.name());
    section.table(Table { caption, columns, rows });
}

fn add_chains(samples: &ProfileSamples<'_>, section: &mut Section) {
    let columns = vec![
        Column::words("type"),
        Column::words("peer"),
        Column::words("chain"),
        Column::figures("length"),
        Column::words("functions, outermost first"),
    ];
    let mut rows = Vec::new();
    for (side, name) in [(Side::Sender, "stub to write"), (Side::Receiver, "read to servant")] {
        for (element, peer, profile) in samples.of_side(side) {
            let Some(chain) = &profile.chain else { continue };
            let functions = chain.iter().map(|function| short_name(function)).collect::<Vec<_>>().join(" > ");
            rows.push(vec![element.into(), peer.into(), name.into(), chain.len().to_string(), functions]);
        }
    }
    let caption = "The chains of calls in the machine code: from the test program, which is not counted, to the function that writes; and \
                   from the first function that is not also a caller of the read, to the servant. Sockets have no servant."
        .into();
    section.table(Table { caption, columns, rows });
}

/// Returns the last two parts of a function's path.
fn short_name(function: &str) -> String {
    let plain = function.rsplit(" as ").next().unwrap_or(function).replace('>', "");
    let names: Vec<&str> = plain.split("::").filter(|name| *name != "{{closure}}").collect();
    names.split_at(names.len().saturating_sub(2)).1.join("::")
}

fn add_published(section: &mut Section) {
    section.text(
        "The published profiles are from 70 MHz machines. Their profiler also counts sleep in system calls, which is most of the time over \
         a slow network.",
    );
    for (id, caption) in [
        (
            "sigcomm96.t2",
            "Published: senders of C sockets, RPC and two ORBs, 64 MB in buffers of 128 KB over 155 Mbit/s ATM",
        ),
        ("sigcomm96.t3", "Published: receivers of the same floods"),
        ("gigabit97.sii.orbix", "Published: a sender with static stubs, Orbix"),
        ("gigabit97.sii.visibroker", "Published: a sender with static stubs, VisiBroker"),
        ("gigabit97.dii.orbix", "Published: dynamic invocation, Orbix"),
        ("gigabit97.dii.visibroker", "Published: dynamic invocation, VisiBroker"),
    ] {
        section.table(published_table(id, caption));
    }
    let is_of_profile = |published: &PublishedTable, row: &[&'static str]| {
        let quantity = published.text(row, "quantity").unwrap_or_default();
        PROFILE_QUANTITIES.iter().any(|part| quantity.contains(part))
    };
    section.table(published_rows(
        "sigcomm96.text",
        "Published in the text: calls, and shares of functions",
        is_of_profile,
    ));
    section.table(published_table("gigabit97.setup", "Published: the parameters of these floods and calls"));
}
