//! `ttcp ladder-step`: one measurement of a step of the ladder. Its result is printed as a JSON object.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::base::{CallCounts, Routine};
use super::case::{Case, ElementType, Order};
use super::size::{CodeSize, Functions};
use super::{Engine, Step};
use crate::report::print_line;
use crate::work::{parse_bytes, parse_size};

/// Minimum duration of a measurement, for which the work is repeated.
const MIN_DURATION: Duration = Duration::from_millis(20);

/// The measured side of a communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Encodes values
    Sender,
    /// Decodes values, and then frees them
    Receiver,
}

impl Side {
    pub(crate) const ALL: [Side; 2] = [Side::Sender, Side::Receiver];
}

/// Options of `ttcp ladder-step`.
#[derive(Debug, Clone, Args)]
pub struct LadderStepArgs {
    /// The step
    #[arg(long, value_enum)]
    pub step: Step,
    /// Print only the size of the machine code
    #[arg(long = "code")]
    pub prints_code_size: bool,
    /// The element type
    #[arg(long = "type", value_enum, default_value_t = ElementType::Double)]
    pub kind: ElementType,
    /// The byte order of the encoding
    #[arg(long, value_enum, default_value_t = Order::Native)]
    pub order: Order,
    /// The measured side
    #[arg(long, value_enum, default_value_t = Side::Receiver)]
    pub side: Side,
    /// Bytes of elements in a sequence
    #[arg(long, value_parser = parse_size, default_value = "128K")]
    pub size: u64,
    /// Bytes of elements in all sequences together
    #[arg(long, value_parser = parse_bytes, default_value = "64M")]
    pub total: u64,
}

#[derive(Debug, Serialize)]
struct Line {
    step: Step,
    #[serde(rename = "type")]
    kind: ElementType,
    order: Order,
    side: Side,
    /// Bytes of elements in a sequence.
    size: usize,
    /// Bytes of elements in all sequences that were encoded or decoded.
    bytes: u64,
    secs: f64,
    mbit_s: f64,
    /// Number of bytes, in the encoding and in memory, that were compared with the result of compiled code.
    checked: usize,
    elements: usize,
    /// Number of calls of each routine for one sequence, if they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Serialize)]
struct CodeLine {
    step: Step,
    #[serde(flatten)]
    size: CodeSize,
}

/// Performs the measurement, and prints the result.
pub fn ladder_step(args: &LadderStepArgs) -> anyhow::Result<()> {
    if args.prints_code_size {
        let size = Functions::of_this_program()?.size_of_step(args.step)?;
        return Ok(print_line(&CodeLine { step: args.step, size })?);
    }
    Ok(print_line(&measure(args)?)?)
}

fn measure(args: &LadderStepArgs) -> anyhow::Result<Line> {
    let size = usize::try_from(args.size)?;
    let case = Case::new(args.kind, args.order, size);
    let mut engine = args.step.engine(&case)?;
    let checked = check(engine.as_mut(), &case).with_context(|| format!("step {}", args.step.title()))?;
    let calls = count_calls(args.step, args.side, &case)?;
    let sequence_size = case.bytes() as u64;
    let sequences = args.total.div_ceil(sequence_size).max(1);
    let mut work = repeated_work(engine.as_mut(), args.side, &case)?;
    for _ in 0..sequences.div_ceil(10) {
        work()?;
    }
    let start = Instant::now();
    let mut done = 0;
    while done == 0 || start.elapsed() < MIN_DURATION {
        for _ in 0..sequences {
            work()?;
        }
        done += sequences;
    }
    let secs = start.elapsed().as_secs_f64();
    drop(work);
    let bytes = done * sequence_size;
    let mbit_s = bytes as f64 * 8.0 / secs / 1e6;
    let Case { kind, order, count: elements, .. } = case;
    let (step, side, size) = (args.step, args.side, case.memory.len());
    Ok(Line { step, kind, order, side, size, bytes, secs, mbit_s, checked, elements, calls })
}

/// Returns the work that is repeated for each sequence.
fn repeated_work<'a>(
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

/// Decodes the encoding that compiled code wrote, copies the value, and encodes it again. Compares elements
/// and encoding with the results of compiled code, and returns the number of compared bytes.
pub(crate) fn check(engine: &mut dyn Engine, case: &Case) -> anyhow::Result<usize> {
    engine.receive(&case.wire)?;
    let is_right = |elements: Option<Vec<u8>>| elements.is_none_or(|elements| case.matches_memory(&elements));
    ensure!(is_right(engine.memory()), "the decoded elements are wrong");
    engine.copy()?;
    ensure!(is_right(engine.memory()), "the elements of the copy are wrong");
    engine.send()?;
    ensure!(engine.sent_bytes() == case.wire, "the encoding differs from the encoding of compiled code");
    engine.release()?;
    Ok(case.wire.len() + case.memory.len())
}

/// Returns the number of calls of each routine for one sequence; `None` if they cannot be counted.
pub(crate) fn count_calls(
    step: Step,
    side: Side,
    case: &Case,
) -> anyhow::Result<Option<BTreeMap<&'static str, u64>>> {
    let Some(mut engine) = step.counting_engine(case)? else { return Ok(None) };
    let mut work = repeated_work(engine.as_mut(), side, case)?;
    CallCounts::take();
    work()?;
    let counts = CallCounts::take();
    let named = Routine::NAMES.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    Ok(Some(named.collect()))
}
