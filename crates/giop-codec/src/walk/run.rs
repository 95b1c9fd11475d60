//! The loop over the steps of a program. [`StepActions`] performs each step.

use crate::cdr::Decoder;
use crate::program::{EMPTY_VALUE, Index, Labels, Op, Pc, Plan, StepResult, Steps};
use crate::typecode::{Body, NamedType, Node, Nodes};
use crate::{DecodeError, DecodeErrorKind};

/// The actions for the steps of a program.
pub(crate) trait StepActions {
    /// Processes one value of fixed layout.
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> StepResult;
    /// Processes `count` consecutive values of fixed layout.
    fn run(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult;
    /// Is called after the count of a sequence was read.
    fn count(&mut self, d: &mut Decoder<'_>, count: usize) -> StepResult;
    /// Is called after the elements of a sequence, which began at `first`, were read and took no bytes.
    fn nothing(&mut self, _d: &mut Decoder<'_>, _first: usize) -> StepResult {
        Ok(())
    }
    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> StepResult;
    fn wchar(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> StepResult;
    /// Reads a label.
    fn label(&mut self, d: &mut Decoder<'_>, labels: Labels) -> StepResult<i64> {
        labels.read(d, false)
    }
    fn any(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn type_code(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn object(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, place: Index) -> StepResult;
    fn principal(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn except_id(&mut self, d: &mut Decoder<'_>, id: &str) -> StepResult;
    /// Is called after each step.
    fn settle(&mut self, _d: &mut Decoder<'_>) -> StepResult {
        Ok(())
    }
}

/// Runs the steps from `pc` to their end.
pub(crate) fn run(
    body: &Steps,
    nodes: &Nodes,
    act: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    mut pc: Pc,
) -> StepResult {
    while let Some(op) = body.ops.get(pc as usize) {
        pc += 1;
        match *op {
            Op::Block(plan) => {
                if let Some(plan) = body.plan(plan) {
                    act.block(d, plan)?;
                }
            }
            Op::Run { plan, count } => {
                if let Some(plan) = body.plan(plan) {
                    some(act, d, plan, count as usize)?;
                }
            }
            Op::Bulk { plan, bound } => {
                if let Some(plan) = body.plan(plan) {
                    let count = counted(d, plan.least(), bound)?;
                    act.count(d, count)?;
                    some(act, d, plan, count)?;
                    if plan.least() == 0 && count > 0 {
                        act.nothing(d, d.position())?;
                    }
                }
            }
            Op::Each { element, bound } => {
                let count = counted(d, body.least(element), bound)?;
                act.count(d, count)?;
                let first = d.position();
                each(body, nodes, act, d, element, count)?;
                if count != 0 && d.position() == first {
                    act.nothing(d, first)?;
                }
            }
            Op::Times { element, count } => each(body, nodes, act, d, element, count as usize)?,
            Op::Text { wide, bound } => act.text(d, wide, bound)?,
            Op::WChar => act.wchar(d)?,
            Op::Decimal { digits } => act.decimal(d, digits)?,
            Op::Union(switch) => union(body, nodes, act, d, switch)?,
            Op::Call(index) => {
                let start = d.position();
                d.descend()?;
                let done = run(body, nodes, act, d, body.entry(index));
                d.ascend();
                done?;
                if d.position() == start {
                    d.charge(EMPTY_VALUE)?;
                }
            }
            Op::Any => act.any(d)?,
            Op::TypeCode => act.type_code(d)?,
            Op::Object => act.object(d)?,
            Op::Graph(place) => act.graph(d, nodes, place)?,
            Op::Principal => act.principal(d)?,
            Op::ExceptId(index) => {
                if let Node::Named(NamedType { id, .. }) = nodes.at(index) {
                    act.except_id(d, id)?;
                }
            }
            Op::Refused => return Err(d.error(DecodeErrorKind::NotInAny)),
            Op::Return => return Ok(()),
        }
        act.settle(d)?;
    }
    Ok(())
}

/// Reads a length. Not inlined, to keep the code small.
#[inline(never)]
pub(crate) fn length(d: &mut Decoder<'_>, least: usize) -> StepResult<usize> {
    d.read_len(least)
}

/// Reads the count of a sequence.
#[inline]
pub(crate) fn counted(d: &mut Decoder<'_>, least: usize, bound: u32) -> StepResult<usize> {
    let count = length(d, least)?;
    if bound != 0 && count > bound as usize {
        return Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4));
    }
    Ok(count)
}

/// Processes consecutive values of fixed layout.
fn some(act: &mut dyn StepActions, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult {
    match count {
        0 => Ok(()),
        count if plan.least() == 0 => d.charge(count.saturating_mul(EMPTY_VALUE)),
        count => act.run(d, plan, count),
    }
}

fn each(
    body: &Steps,
    nodes: &Nodes,
    act: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    element: Index,
    count: usize,
) -> StepResult {
    let entry = body.entry(element);
    d.descend()?;
    let mut done = Ok(());
    for _ in 0..count {
        let start = d.position();
        done = run(body, nodes, act, d, entry);
        if done.is_ok() && d.position() == start {
            done = d.charge(EMPTY_VALUE);
        }
        if done.is_err() {
            break;
        }
    }
    d.ascend();
    done
}

fn union(
    body: &Steps,
    nodes: &Nodes,
    act: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    switch: u32,
) -> StepResult {
    let Some(switch) = body.switches.get(switch as usize) else { return Ok(()) };
    let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(switch.union) else {
        return Ok(());
    };
    let label = act.label(d, switch.labels)?;
    match union.selected(label) {
        Some(member) => {
            d.descend()?;
            let done = run(body, nodes, act, d, body.entry(member.kind));
            d.ascend();
            done
        }
        None => Ok(()),
    }
}
