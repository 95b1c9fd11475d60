//! The loop over the steps of a program. [`StepActions`] performs each step.

use crate::cdr::Decoder;
use crate::program::{EMPTY_VALUE_CHARGE_BYTES, Index, LabelEncoding, Op, Pc, Plan, StepResult, Steps};
use crate::typecode::{Body, NamedType, Node, Nodes};
use crate::{DecodeError, DecodeErrorKind};

/// What is done with each part of a value. The methods are named after the steps ([`Op`]).
pub(crate) trait StepActions {
    fn block(&mut self, d: &mut Decoder<'_>, plan: &Plan) -> StepResult;
    fn fixed_elements(&mut self, d: &mut Decoder<'_>, plan: &Plan, count: usize) -> StepResult;
    fn on_count(&mut self, d: &mut Decoder<'_>, count: usize) -> StepResult;
    /// Called after a sequence whose elements took no bytes. `first` is the position of the first one.
    fn on_empty_elements(&mut self, _d: &mut Decoder<'_>, _first: usize) -> StepResult {
        Ok(())
    }
    fn text(&mut self, d: &mut Decoder<'_>, wide: bool, bound: u32) -> StepResult;
    fn wchar(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn decimal(&mut self, d: &mut Decoder<'_>, digits: u16) -> StepResult;
    fn label(&mut self, d: &mut Decoder<'_>, labels: LabelEncoding) -> StepResult<i64> {
        labels.read(d)
    }
    fn any(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn type_code(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn object(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn graph(&mut self, d: &mut Decoder<'_>, nodes: &Nodes, declared: Index) -> StepResult;
    fn principal(&mut self, d: &mut Decoder<'_>) -> StepResult;
    fn exception_id(&mut self, d: &mut Decoder<'_>, id: &str) -> StepResult;
    fn after_step(&mut self, _d: &mut Decoder<'_>) -> StepResult {
        Ok(())
    }
}

/// Runs the steps from `pc` to the next [`Op::Return`].
pub(crate) fn run_steps(
    steps: &Steps,
    nodes: &Nodes,
    actions: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    mut pc: Pc,
) -> StepResult {
    while let Some(op) = steps.ops.get(pc as usize) {
        pc += 1;
        match *op {
            Op::Block(plan) => {
                if let Some(plan) = steps.plan(plan) {
                    actions.block(d, plan)?;
                }
            }
            Op::FixedArray { plan, count } => {
                if let Some(plan) = steps.plan(plan) {
                    run_fixed_elements(actions, d, plan, count as usize)?;
                }
            }
            Op::FixedSequence { plan, bound } => {
                if let Some(plan) = steps.plan(plan) {
                    let count = read_count(d, plan.min_size(), bound)?;
                    actions.on_count(d, count)?;
                    run_fixed_elements(actions, d, plan, count)?;
                    if plan.min_size() == 0 && count > 0 {
                        actions.on_empty_elements(d, d.position())?;
                    }
                }
            }
            Op::Sequence { element, bound } => {
                let count = read_count(d, steps.min_size(element), bound)?;
                actions.on_count(d, count)?;
                let first = d.position();
                run_elements(steps, nodes, actions, d, element, count)?;
                if count != 0 && d.position() == first {
                    actions.on_empty_elements(d, first)?;
                }
            }
            Op::Array { element, count } => run_elements(steps, nodes, actions, d, element, count as usize)?,
            Op::Text { wide, bound } => actions.text(d, wide, bound)?,
            Op::WChar => actions.wchar(d)?,
            Op::Decimal { digits } => actions.decimal(d, digits)?,
            Op::Union(switch) => run_union(steps, nodes, actions, d, switch)?,
            Op::Struct(index) => {
                let start = d.position();
                d.descend()?;
                let result = run_steps(steps, nodes, actions, d, steps.entry(index));
                d.ascend();
                result?;
                if d.position() == start {
                    d.charge(EMPTY_VALUE_CHARGE_BYTES)?;
                }
            }
            Op::Any => actions.any(d)?,
            Op::TypeCode => actions.type_code(d)?,
            Op::Object => actions.object(d)?,
            Op::Graph(declared) => actions.graph(d, nodes, declared)?,
            Op::Principal => actions.principal(d)?,
            Op::ExceptionId(index) => {
                if let Node::Named(NamedType { id, .. }) = nodes.at(index) {
                    actions.exception_id(d, id)?;
                }
            }
            Op::NoValues => return Err(d.error(DecodeErrorKind::NotInAny)),
            Op::Return => return Ok(()),
        }
        actions.after_step(d)?;
    }
    Ok(())
}

/// Reads the length of a sequence of elements of at least `min_size` bytes. Not inlined, to save code.
#[inline(never)]
pub(crate) fn read_length(d: &mut Decoder<'_>, min_size: usize) -> StepResult<usize> {
    d.read_len(min_size)
}

/// Reads the length of a sequence as [`read_length`] does, and checks the bound, unless that is 0.
#[inline]
pub(crate) fn read_count(d: &mut Decoder<'_>, min_size: usize, bound: u32) -> StepResult<usize> {
    let count = read_length(d, min_size)?;
    if bound != 0 && count > bound as usize {
        return Err(DecodeError::new(DecodeErrorKind::BoundExceeded, d.position() - 4));
    }
    Ok(count)
}

fn run_fixed_elements(
    actions: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    plan: &Plan,
    count: usize,
) -> StepResult {
    match count {
        0 => Ok(()),
        count if plan.min_size() == 0 => d.charge(count.saturating_mul(EMPTY_VALUE_CHARGE_BYTES)),
        count => actions.fixed_elements(d, plan, count),
    }
}

fn run_elements(
    steps: &Steps,
    nodes: &Nodes,
    actions: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    element: Index,
    count: usize,
) -> StepResult {
    let entry = steps.entry(element);
    d.descend()?;
    let mut result = Ok(());
    for _ in 0..count {
        let start = d.position();
        result = run_steps(steps, nodes, actions, d, entry);
        if result.is_ok() && d.position() == start {
            result = d.charge(EMPTY_VALUE_CHARGE_BYTES);
        }
        if result.is_err() {
            break;
        }
    }
    d.ascend();
    result
}

fn run_union(
    steps: &Steps,
    nodes: &Nodes,
    actions: &mut dyn StepActions,
    d: &mut Decoder<'_>,
    switch: u32,
) -> StepResult {
    let Some(switch) = steps.switches.get(switch as usize) else { return Ok(()) };
    let Node::Named(NamedType { body: Body::Union(union), .. }) = nodes.at(switch.union) else {
        return Ok(());
    };
    let label = actions.label(d, switch.labels)?;
    let Some(member) = union.selected(label) else { return Ok(()) };
    d.descend()?;
    let result = run_steps(steps, nodes, actions, d, steps.entry(member.ty));
    d.ascend();
    result
}

/// Returns an error unless the bound is 0, which means unbounded, or `fits` returns true.
pub(crate) fn check_fits(d: &Decoder<'_>, bound: u32, fits: impl FnOnce() -> bool) -> StepResult {
    if bound == 0 || fits() { Ok(()) } else { Err(d.error(DecodeErrorKind::BoundExceeded)) }
}
