//! The report's section about the ladder.

use super::{CODE, NAME, SEQUENCE_BYTES, cell, published_tables, word};
use crate::experiments::store::{Cell, Sample, StoredResults};
use crate::figures::{
    Axis, Chart, Column, Scale, Section, Series, Table, format_bytes, format_figure, published_table,
};
use crate::ladder::Step;
use crate::ladder::base::Routine;
use crate::ladder::case::{ElementType, Order};
use crate::ladder::measurement::Side;
use crate::literature::PublishedTable;
use crate::statistics::median;

pub(super) fn section(data: &StoredResults) -> Section {
    let samples = LadderSamples::of(data);
    let mut section =
        Section::new(NAME, "The optimisation ladder: from an interpreter of type codes to stubs");
    section.text(format!(
        "Sequences of {} are marshalled within one process: the sender encodes values into memory, and the receiver decodes them \
         and frees the decoded values. Step 0 has the control flow of the first IIOP engine. Each of the steps 1 to 5 adds published changes. \
         Step 6 is zorb's engine for types that are known at run time; step 7 is its stubs. All have the same compiler and flags. \
         Before each measurement, the encoded bytes are compared with those of the stubs, and all decoded elements with the expected ones. \
         Native is the byte order of this machine; the published runs were between two machines of the same order. In native order, \
         steps 6 and 7 borrow the numbers and copy nothing, so their figures are the cost of a reference. raw is one copy of the bytes. \
         omniORB's stubs write the same bytes to a stream in memory and read them from it.",
        format_bytes(SEQUENCE_BYTES)
    ));
    for side in Side::ALL {
        for order in Order::ALL {
            samples.add_rates(&mut section, side, order);
        }
    }
    samples.add_factors(&mut section);
    samples.add_code_sizes(&mut section);
    for side in Side::ALL {
        samples.add_call_counts(&mut section, side);
    }
    published_tables::add_published(&mut section);
    section
}

struct LadderSamples<'d> {
    data: &'d StoredResults,
    steps: Vec<Step>,
    others: Vec<&'d str>,
    kinds: Vec<ElementType>,
}

impl<'d> LadderSamples<'d> {
    fn of(data: &'d StoredResults) -> LadderSamples<'d> {
        let peers = data.peers(NAME);
        let steps = [Step::Raw].into_iter().chain(Step::ALL);
        let has = |kind: &ElementType| {
            data.samples_of(NAME).any(|sample| sample.cell.word("type") == Some(&word(kind)))
        };
        LadderSamples {
            data,
            others: peers
                .iter()
                .copied()
                .filter(|peer| steps.clone().all(|step| step.title() != *peer))
                .collect(),
            steps: steps.filter(|step| peers.contains(&step.title())).collect(),
            kinds: ElementType::ALL.into_iter().filter(has).collect(),
        }
    }

    fn figure(&self, step: Step, kind: ElementType, side: Side, order: Order, name: &str) -> Option<f64> {
        self.figure_of_peer(step.title(), kind, side, order, name)
    }

    fn figure_of_peer(
        &self,
        peer: &str,
        kind: ElementType,
        side: Side,
        order: Order,
        name: &str,
    ) -> Option<f64> {
        let cell = cell(&word(&kind), &word(&side), &word(&order));
        median(&self.data.figures(NAME, peer, &cell, name))
    }

    /// Returns the speed-up of a step over the original: the median of the ratios in each round.
    fn factor(&self, step: Step, kind: ElementType, side: Side, order: Order) -> Option<f64> {
        let cell = cell(&word(&kind), &word(&side), &word(&order));
        let rates = |step: Step| -> Vec<(u32, f64)> {
            let is_selected = |sample: &&Sample| sample.peer == step.title() && sample.cell == cell;
            let rate = |sample: &Sample| Some((sample.round, sample.figure("mbit_s")?));
            self.data.samples_of(NAME).filter(is_selected).filter_map(rate).collect()
        };
        let first = rates(Step::Original);
        let ratio = |(round, rate): &(u32, f64)| {
            first.iter().find(|(other, _)| other == round).map(|(_, original)| rate / original)
        };
        median(&rates(step).iter().filter_map(ratio).collect::<Vec<_>>())
    }

    fn add_rates(&self, section: &mut Section, side: Side, order: Order) {
        let (side_word, order_word) = (word(&side), word(&order));
        let line = |kind: &ElementType| {
            let points = Step::ALL.iter().filter_map(|step| {
                Some((step.number() as f64, self.figure(*step, *kind, side, order, "mbit_s")?))
            });
            Series::measured(kind.name(), points.collect())
        };
        section.chart(Chart {
            caption: format!("Marshalling by step, {side_word}, {order_word} byte order."),
            x: Axis::new("step", Scale::Linear),
            y: Axis::new("Mbit/s", Scale::PowersOfTen),
            series: self.kinds.iter().map(line).collect(),
        });
        let mut columns = vec![Column::words("step")];
        columns.extend(self.kinds.iter().map(|kind| Column::figures(format!("{}, Mbit/s", kind.name()))));
        let row = |peer: &str| {
            let figures = self
                .kinds
                .iter()
                .map(|kind| format_figure(self.figure_of_peer(peer, *kind, side, order, "mbit_s")));
            std::iter::once(peer.to_owned()).chain(figures).collect()
        };
        let peers = self.steps.iter().map(|step| step.title()).chain(self.others.iter().copied());
        section.table(Table {
            caption: format!("The {side_word}, {order_word} byte order: medians of the rounds."),
            columns,
            rows: peers.map(row).collect(),
        });
    }

    fn add_factors(&self, section: &mut Section) {
        let measured_steps: Vec<Step> =
            Step::ALL.into_iter().skip(1).filter(|step| self.steps.contains(step)).collect();
        let published = PublishedTable::of("iiop98.speedup");
        let mut columns = vec![Column::words("type"), Column::words("side"), Column::words("byte order")];
        columns.push(Column::published("after step 2 and at the end"));
        columns.extend(measured_steps.iter().map(|step| Column::figures(step.title())));
        let mut rows = Vec::new();
        for kind in &self.kinds {
            let factor = published.as_ref().and_then(|table| {
                let row = table.row(&[("data_type", kind.name())])?;
                table.text(row, "factor")
            });
            for side in Side::ALL {
                for order in Order::ALL {
                    let mut row = vec![kind.name().to_owned(), word(&side), word(&order)];
                    // The published figure is the throughput of receivers that throttled their senders. All
                    // machines had the same byte order.
                    let is_published = side == Side::Receiver && order == Order::Native;
                    row.push(factor.filter(|_| is_published).unwrap_or("-").to_owned());
                    row.extend(
                        measured_steps
                            .iter()
                            .map(|step| format_figure(self.factor(*step, *kind, side, order))),
                    );
                    rows.push(row);
                }
            }
        }
        let caption = "Speed-up over step 0: medians of the ratios within the rounds. The published factors (iiop98, abstract and section \
                       3.2.4) are of the throughput over 155 Mbit/s ATM, which also depends on system calls and the network."
            .into();
        section.table(Table { caption, columns, rows });
    }

    fn add_code_sizes(&self, section: &mut Section) {
        let cell = Cell::default().with("figure", CODE);
        let figure = |step: Step, name: &str| median(&self.data.figures(NAME, step.title(), &cell, name));
        let points = Step::ALL
            .iter()
            .filter_map(|step| Some((step.number() as f64, figure(*step, "code_bytes")?)))
            .collect();
        section.chart(Chart {
            caption: "Machine code by step.".into(),
            x: Axis::new("step", Scale::Linear),
            y: Axis::new("bytes", Scale::Linear),
            series: vec![Series::measured("machine code", points)],
        });
        let columns = vec![
            Column::words("step"),
            Column::figures("machine code, bytes"),
            Column::figures("functions"),
            Column::published("memory footprint, bytes"),
        ];
        let footprint = PublishedTable::of("iiop98.text")
            .and_then(|table| table.number(table.row(&[("quantity", "memory footprint")])?, "value"));
        let row = |step: &Step| {
            let footprint = footprint.filter(|_| *step == Step::Original);
            let count =
                |name| figure(*step, name).map_or_else(|| "-".to_owned(), |count| format!("{count:.0}"));
            let footprint = footprint.map_or_else(|| "-".to_owned(), |kib| format!("< {kib:.0} KB"));
            vec![step.title().to_owned(), count("code_bytes"), count("functions"), footprint]
        };
        let steps = self.steps.iter().filter(|step| **step != Step::Raw);
        let caption = "Machine code of each step. Steps 0 to 5: the routines of the engine for basic types, enums, structs, sequences and \
                       arrays. Step 6: the engine for all IDL types, as far as it is in this program, without the parts that stubs also \
                       use. Step 7: the stubs of the six types and the parts of the codec that they call. Published: the whole original \
                       with its transport (iiop98, running text)."
            .into();
        section.table(Table { caption, columns, rows: steps.map(row).collect() });
    }

    fn add_call_counts(&self, section: &mut Section, side: Side) {
        let counted_steps: Vec<Step> = self
            .steps
            .iter()
            .copied()
            .filter(|step| !matches!(step, Step::Raw | Step::Program | Step::Compiled))
            .collect();
        let published = |id: &str, kind: ElementType, routine: &str| {
            let table = PublishedTable::of(id).filter(|_| side == Side::Receiver)?;
            let keys = [("data_type", kind.name()), ("function", routine)];
            table.text(table.row(&keys)?, "calls_per_element")
        };
        let mut columns = vec![Column::words("type"), Column::words("routine")];
        for step in &counted_steps {
            columns.push(Column::figures(step.title()));
            match (side, step) {
                (Side::Receiver, Step::Inlined) => columns.push(Column::published("after step 1")),
                (Side::Receiver, Step::Merged) => columns.push(Column::published("after step 2")),
                _ => {}
            }
        }
        let mut rows = Vec::new();
        for kind in &self.kinds {
            let each = |step: Step, name: &str| self.figure(step, *kind, side, Order::Native, name);
            for routine in Routine::NAMES {
                let name = format!("calls_{routine}");
                if counted_steps.iter().all(|step| each(*step, &name).is_none()) {
                    continue;
                }
                let mut row = vec![kind.name().to_owned(), routine.to_owned()];
                for step in &counted_steps {
                    // A counted step that does not list the routine does not call it.
                    let figure = each(*step, &name).or_else(|| each(*step, "calls").map(|_| 0.0));
                    row.push(format_count(figure));
                    match (side, step) {
                        (Side::Receiver, Step::Inlined) => {
                            row.push(published("iiop98.t2", *kind, routine).unwrap_or("-").to_owned());
                        }
                        (Side::Receiver, Step::Merged) => {
                            row.push(published("iiop98.t3", *kind, routine).unwrap_or("-").to_owned());
                        }
                        _ => {}
                    }
                }
                rows.push(row);
            }
            let mut row = vec![kind.name().to_owned(), "Total".to_owned()];
            for step in &counted_steps {
                row.push(format_count(each(*step, "calls")));
                if side == Side::Receiver && matches!(step, Step::Inlined | Step::Merged) {
                    row.push("-".to_owned());
                }
            }
            rows.push(row);
        }
        let caption = format!(
            "Counted calls per element, the {}, native byte order. Inlined routines have no calls. Steps 6 and 7 have no \
             counters.{}",
            word(&side),
            if side == Side::Receiver { " Published: iiop98, tables 2 and 3." } else { "" }
        );
        section.table(Table { caption, columns, rows });
    }
}

/// Formats a count with four decimal places, as published, so that a few calls per sequence are not shown as
/// zero.
fn format_count(figure: Option<f64>) -> String {
    match figure {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(figure) => format!("{figure:.4}"),
    }
}

pub(super) fn add_literature(section: &mut Section) {
    for (id, caption) in [
        ("iiop98.ladder", "The steps as they were published"),
        ("iiop98.t1", "The principles that the steps follow"),
        ("iiop98.t4", "Published findings and changes"),
        ("iiop98.speedup", "Published speed-up of the original"),
        ("iiop98.t2", "Published times of the original after step 1, two 168 MHz workstations over ATM"),
        ("iiop98.t3", "Published times after step 2"),
        ("iiop98.pies", "Published shares of the time by stage"),
        ("iiop98.text", "Other published figures of the original"),
    ] {
        section.table(published_table(id, caption));
    }
}
