//! One measurement of the ladder, in this process: `ttcp ladder-step`, which prints a JSON object.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::base::{Counted, Routine};
use super::case::{Case, Kind, Order};
use super::size::{Functions, Size};
use super::{Engine, Step};
use crate::work::{parse_bytes, parse_size};

/// Minimum duration of a measured part. The work is repeated until it is reached.
const LEAST: Duration = Duration::from_millis(20);

/// The direction that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Values to bytes
    Sender,
    /// Bytes to values, which are then freed
    Receiver,
}

impl Side {
    /// Both sides.
    pub const ALL: [Side; 2] = [Side::Sender, Side::Receiver];
}

/// Options of `ttcp ladder-step`.
#[derive(Debug, Clone, Args)]
pub struct LadderStepArgs {
    /// The step
    #[arg(long, value_enum)]
    pub step: Step,
    /// Say how much machine code it is, and nothing else
    #[arg(long)]
    pub code: bool,
    /// What the sequences are of
    #[arg(long = "type", value_enum, default_value_t = Kind::Double)]
    pub kind: Kind,
    /// The byte order
    #[arg(long, value_enum, default_value_t = Order::Native)]
    pub order: Order,
    /// What is measured
    #[arg(long, value_enum, default_value_t = Side::Receiver)]
    pub side: Side,
    /// Bytes of a sequence
    #[arg(long, value_parser = parse_size, default_value = "128K")]
    pub size: u64,
    /// Bytes of all
    #[arg(long, value_parser = parse_bytes, default_value = "64M")]
    pub total: u64,
}

/// The result.
#[derive(Debug, Serialize)]
struct Line {
    step: Step,
    #[serde(rename = "type")]
    kind: Kind,
    order: Order,
    side: Side,
    /// Size of a sequence, bytes.
    size: usize,
    /// Number of marshalled bytes.
    bytes: u64,
    /// Duration, seconds.
    secs: f64,
    mbit_s: f64,
    /// Bytes that were compared with the encoding of compiled code, and with the elements in memory.
    checked: usize,
    /// Number of elements of a sequence.
    elements: usize,
    /// Calls of each routine for one sequence, if they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<BTreeMap<&'static str, u64>>,
}

/// The machine code of a step.
#[derive(Debug, Serialize)]
struct CodeLine {
    step: Step,
    #[serde(flatten)]
    size: Size,
}

/// Performs the measurement and prints the line.
///
/// # Errors
/// The engine's result is wrong.
pub fn ladder_step(args: &LadderStepArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.code {
        let size = Functions::of_this_program()?.of(args.step)?;
        serde_json::to_writer(&mut out, &CodeLine { step: args.step, size })?;
    } else {
        serde_json::to_writer(&mut out, &measured(args)?)?;
    }
    Ok(writeln!(out)?)
}

fn measured(args: &LadderStepArgs) -> anyhow::Result<Line> {
    let size = usize::try_from(args.size)?;
    let case = Case::new(args.kind, args.order, size);
    let mut engine = args.step.engine(&case)?;
    let checked = check(engine.as_mut(), &case).with_context(|| format!("step {}", args.step.title()))?;
    let calls = calls(args.step, args.side, &case)?;
    let each = case.bytes() as u64;
    let sequences = args.total.div_ceil(each).max(1);
    let mut work = prepared(engine.as_mut(), args.side, &case)?;
    for _ in 0..sequences.div_ceil(10) {
        work()?;
    }
    let start = Instant::now();
    let mut done = 0;
    while done == 0 || start.elapsed() < LEAST {
        for _ in 0..sequences {
            work()?;
        }
        done += sequences;
    }
    let secs = start.elapsed().as_secs_f64();
    drop(work);
    let bytes = done * each;
    let mbit_s = bytes as f64 * 8.0 / secs / 1e6;
    let Case { kind, order, count: elements, .. } = case;
    let (step, side, size) = (args.step, args.side, case.memory.len());
    Ok(Line { step, kind, order, side, size, bytes, secs, mbit_s, checked, elements, calls })
}

/// Returns the work that is repeated for each sequence.
fn prepared<'a>(
    engine: &'a mut dyn Engine,
    side: Side,
    case: &'a Case,
) -> anyhow::Result<Box<dyn FnMut() -> anyhow::Result<()> + 'a>> {
    Ok(match side {
        Side::Sender => {
            engine.receive(&case.wire)?;
            Box::new(move || engine.send())
        }
        Side::Receiver => Box::new(move || {
            engine.receive(black_box(&case.wire))?;
            engine.release()
        }),
    })
}

/// Receives the encoding of compiled code, copies the value, and writes it. Compares all elements and bytes.
///
/// # Errors
/// They differ.
pub fn check(engine: &mut dyn Engine, case: &Case) -> anyhow::Result<usize> {
    engine.receive(&case.wire)?;
    let same = |elements: Option<Vec<u8>>| elements.is_none_or(|elements| case.is_in(&elements));
    ensure!(same(engine.memory()), "the elements that were read are not those that were written");
    engine.copy()?;
    ensure!(same(engine.memory()), "the elements of the copy are others");
    engine.send()?;
    ensure!(engine.sent() == case.wire, "the octets are not those that compiled code writes");
    engine.release()?;
    Ok(case.wire.len() + case.memory.len())
}

/// Returns the number of calls of each routine for one sequence.
///
/// # Errors
/// The engine does not support the type.
pub fn calls(step: Step, side: Side, case: &Case) -> anyhow::Result<Option<BTreeMap<&'static str, u64>>> {
    let Some(mut engine) = step.counted(case)? else { return Ok(None) };
    let mut work = prepared(engine.as_mut(), side, case)?;
    Counted::take();
    work()?;
    let counts = Counted::take();
    let named = Routine::ALL.iter().zip(counts).filter(|(_, count)| *count > 0);
    Ok(Some(named.map(|(routine, count)| (routine.name(), count)).collect()))
}
