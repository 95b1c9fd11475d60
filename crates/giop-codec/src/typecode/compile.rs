//! Compilation of types to programs. Every node of an arena is compiled once.

use super::kind::TcKind;
use super::node::{Body, Member, NamedType, Node, Nodes};
use crate::program::{Field, FieldKind, Index, Labels, MAX_FIELDS, NO_PLAN, Op, Plan, Steps, Switch};

/// The maximum memory of all plans of an arena, counted in fields; types beyond it are processed member by
/// member. The budget also depends on the number of nodes and members (`MIN_PLAN_WEIGHT` plus
/// `WEIGHT_OF_PART` for each), so that a type code of a few bytes cannot cause much memory use.
const MAX_PLAN_WEIGHT: usize = 8192;
const MIN_PLAN_WEIGHT: usize = 256;
const WEIGHT_OF_PART: usize = 4;

/// The maximum number of members examined for plans, as a multiple of the plan budget.
const MAX_WORK_FACTOR: usize = 8;

/// The maximum number of fields of an array within a larger type.
const MAX_ARRAY_FIELDS: usize = 64;

/// The maximum number of type levels searched for fixed layouts.
const MAX_LEVELS: usize = 48;

#[derive(Clone, Copy, Debug)]
enum LayoutClass {
    /// Fixed layout, with upper bounds for the number of fields (an empty field counts as one) and nesting
    /// levels, and the minimum size in bytes. There is no plan for more than `MAX_FIELDS` fields.
    Fixed { fields: usize, min_size: u32, levels: usize },
    /// Variable size with a minimum in bytes.
    Variable { min_size: u32 },
}

const EMPTY: LayoutClass = LayoutClass::Fixed { fields: 0, min_size: 0, levels: 0 };

struct Compiler<'a> {
    nodes: &'a Nodes,
    /// `None` until a type is classified.
    classes: Vec<Option<LayoutClass>>,
    /// The remaining budget of all plans, in fields.
    weight: usize,
    /// The remaining number of members to be examined for plans.
    work: usize,
    steps: Steps,
}

impl Steps {
    pub(crate) fn new(nodes: &Nodes) -> Steps {
        let count = nodes.all().len();
        let steps = Steps {
            ops: Vec::with_capacity(count + 8),
            alias: resolve_aliases(nodes),
            entries: vec![0; count].into(),
            plans: Vec::new(),
            plan_of: vec![NO_PLAN; count].into(),
            least: vec![0; count].into(),
            switches: Vec::new(),
            empties: false,
            contents: (0..count).map(|_| Default::default()).collect(),
        };
        let parts: usize = nodes.all().iter().map(|node| 1 + node.members().len()).sum();
        let weight =
            WEIGHT_OF_PART.saturating_mul(parts).saturating_add(MIN_PLAN_WEIGHT).min(MAX_PLAN_WEIGHT);
        let work = weight * MAX_WORK_FACTOR;
        let mut compiler = Compiler { nodes, classes: vec![None; count], weight, work, steps };
        for index in 0..count as Index {
            compiler.classify(index, 0);
        }
        for index in 0..count as Index {
            compiler.compile_node(index);
        }
        compiler.copy_to_aliases();
        let mut steps = compiler.steps;
        steps.ops.shrink_to_fit();
        steps.empties = steps.ops.iter().any(|op| match *op {
            Op::Bulk { plan, .. } => steps.plan(plan).is_some_and(|plan| plan.least() == 0),
            Op::Each { element, .. } => steps.least(element) == 0,
            _ => false,
        });
        steps
    }
}

/// Returns the field of a basic type, by the binary logarithm of its size, if its layout is fixed.
fn basic(kind: TcKind) -> Option<Field> {
    Some(match kind {
        TcKind::Boolean => Field::one(0, FieldKind::Bool),
        TcKind::Char | TcKind::Octet => Field::one(0, FieldKind::Plain),
        TcKind::Short | TcKind::UShort => Field::one(1, FieldKind::Plain),
        TcKind::Long | TcKind::ULong | TcKind::Float => Field::one(2, FieldKind::Plain),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => Field::one(3, FieldKind::Plain),
        TcKind::LongDouble => Field::one(4, FieldKind::Plain),
        _ => return None,
    })
}

impl Compiler<'_> {
    /// Determines the layout class of a type, once.
    fn classify(&mut self, index: Index, level: usize) -> LayoutClass {
        let at = index as usize;
        match self.classes.get(at) {
            Some(None) if level < MAX_LEVELS => {}
            Some(Some(known)) => return *known,
            _ => return LayoutClass::Variable { min_size: 0 },
        }
        // The class of the type where it contains itself.
        self.set_class(at, LayoutClass::Variable { min_size: 0 });
        let nodes = self.nodes;
        let found = match nodes.at(index) {
            Node::Basic(kind) => match basic(*kind) {
                Some(field) => LayoutClass::Fixed { fields: 1, min_size: field.len() as u32, levels: 0 },
                None if matches!(kind, TcKind::Null | TcKind::Void) => EMPTY,
                None => LayoutClass::Variable { min_size: min_size_of_variable(*kind) },
            },
            Node::Text { .. } | Node::Sequence { .. } => LayoutClass::Variable { min_size: 4 },
            Node::Fixed { .. } => LayoutClass::Variable { min_size: 1 },
            Node::Array { element, length } => match self.classify(*element, level + 1) {
                LayoutClass::Fixed { .. } if *length == 0 => EMPTY,
                // Not fixed: the decoder must charge for each element, although it has no bytes.
                LayoutClass::Fixed { fields: 0, .. } => LayoutClass::Variable { min_size: 0 },
                LayoutClass::Fixed { fields, min_size, levels } if levels < MAX_LEVELS => {
                    let all = fields.saturating_mul(*length as usize);
                    let fields = match all {
                        _ if self.is_one_field(*element) => fields,
                        all if all > MAX_ARRAY_FIELDS => usize::MAX,
                        all => all,
                    };
                    let min_size = min_size.saturating_mul(*length);
                    LayoutClass::Fixed { fields, min_size, levels: levels + 1 }
                }
                LayoutClass::Fixed { min_size, .. } | LayoutClass::Variable { min_size } => {
                    LayoutClass::Variable { min_size: min_size.saturating_mul(*length) }
                }
            },
            Node::Named(named) => self.classify_named(named, level),
            Node::Recursive(_) => LayoutClass::Variable { min_size: 0 },
        };
        self.set_class(at, found);
        found
    }

    fn classify_named(&mut self, named: &NamedType, level: usize) -> LayoutClass {
        match (&named.body, named.kind) {
            (Body::Content(content), TcKind::Alias) => self.classify(*content, level + 1),
            (Body::Members(members), kind) => {
                let (mut fields, mut min_size, mut levels) = (0_usize, 0_u32, 0);
                let mut fixed = kind == TcKind::Struct;
                for member in members {
                    let (member_fields, member_size) = match self.classify(member.kind, level + 1) {
                        LayoutClass::Fixed { fields, min_size, levels: of } => {
                            levels = levels.max(of);
                            (fields, min_size)
                        }
                        LayoutClass::Variable { min_size } => {
                            fixed = false;
                            (0, min_size)
                        }
                    };
                    fields = fields.saturating_add(member_fields.max(1));
                    min_size = min_size.saturating_add(member_size);
                }
                levels += 1;
                match fixed && levels < MAX_LEVELS {
                    true => LayoutClass::Fixed { fields, min_size, levels },
                    false => LayoutClass::Variable { min_size },
                }
            }
            (Body::Enumerators(_), _) => LayoutClass::Fixed { fields: 1, min_size: 4, levels: 0 },
            (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => LayoutClass::Variable { min_size: 8 },
            // The size of a null value.
            (_, TcKind::Value | TcKind::Event | TcKind::ValueBox) => LayoutClass::Variable { min_size: 4 },
            _ => LayoutClass::Variable { min_size: 1 },
        }
    }

    fn set_class(&mut self, at: usize, class: LayoutClass) {
        self.classes.get_mut(at).into_iter().for_each(|place| *place = Some(class));
    }

    /// Returns whether an array of this type is one field: the type is a number or an array of numbers.
    fn is_one_field(&self, mut index: Index) -> bool {
        for _ in 0..MAX_LEVELS {
            index = self.steps.unaliased(index);
            match self.nodes.at(index) {
                Node::Array { element, .. } => index = *element,
                Node::Basic(kind) => return basic(*kind).is_some(),
                Node::Named(NamedType { body: Body::Enumerators(_), .. }) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Returns whether a type is fixed, with few enough fields for a plan, and the budget is not exhausted.
    fn is_small(&mut self, index: Index) -> bool {
        let fixed =
            matches!(self.classify(index, 0), LayoutClass::Fixed { fields, .. } if fields <= MAX_FIELDS);
        fixed && self.weight > 0 && self.work > 0
    }

    /// Appends the fields of a fixed type; returns `false` if it is too large.
    fn append_fields(&mut self, index: Index, out: &mut Vec<Field>) -> bool {
        let nodes = self.nodes;
        self.work = self.work.saturating_sub(1);
        match nodes.at(self.steps.unaliased(index)) {
            Node::Basic(kind) => {
                basic(*kind).into_iter().for_each(|field| push(out, field));
                true
            }
            Node::Array { length: 0, .. } => true,
            Node::Array { element, length } => {
                let mut inner = Vec::new();
                if !self.append_fields(*element, &mut inner) {
                    return false;
                }
                match inner.as_mut_slice() {
                    [] => {}
                    [field] => {
                        let Some(count) = field.count.checked_mul(*length) else { return false };
                        field.count = count;
                        field.joined = field.width > 2 && self.is_one_field(*element);
                        push(out, *field);
                    }
                    _ => (0..*length).for_each(|_| inner.iter().for_each(|field| push(out, *field))),
                }
                true
            }
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                push(out, Field::one(2, FieldKind::Enum(names.len() as u32)));
                true
            }
            node => node.members().iter().all(|member| self.append_fields(member.kind, out)),
        }
    }

    /// Adds the plan of these fields. `number`: they are a number or an array of numbers.
    fn add_plan(&mut self, fields: Vec<Field>, number: bool) -> Option<u32> {
        let mut plan = Plan::new(fields)?;
        plan.number = number;
        self.weight = self.weight.saturating_sub(plan.weight());
        self.steps.plans.push(plan);
        Some(self.steps.plans.len() as u32 - 1)
    }

    fn plan_of(&mut self, index: Index) -> Option<u32> {
        let index = self.steps.unaliased(index);
        if let Some(plan) = self.steps.plan_of.get(index as usize)
            && *plan != NO_PLAN
        {
            return Some(*plan);
        }
        let mut fields = Vec::new();
        if !self.is_small(index) || !self.append_fields(index, &mut fields) {
            return None;
        }
        let number = self.is_one_field(index);
        let plan = self.add_plan(fields, number)?;
        self.steps.plan_of.get_mut(index as usize).into_iter().for_each(|place| *place = plan);
        Some(plan)
    }

    fn push_op(&mut self, op: Op) {
        self.steps.ops.push(op);
    }

    fn compile_node(&mut self, index: Index) {
        let at = index as usize;
        let entry = self.steps.ops.len() as u32;
        self.steps.entries.get_mut(at).into_iter().for_each(|place| *place = entry);
        let nodes = self.nodes;
        let plan = self.plan_of(index);
        let class = self.classify(index, 0);
        let min_size = match (plan.and_then(|plan| self.steps.plan(plan)), class) {
            (Some(plan), _) => plan.least() as u32,
            (None, LayoutClass::Variable { min_size } | LayoutClass::Fixed { min_size, .. }) => min_size,
        };
        self.steps.least.get_mut(at).into_iter().for_each(|place| *place = min_size);
        match nodes.at(index) {
            Node::Named(NamedType { kind: TcKind::Alias, .. }) => return,
            Node::Named(NamedType { body: Body::Members(members), kind, .. }) if plan.is_none() => {
                if *kind == TcKind::Except {
                    self.push_op(Op::ExceptId(index));
                }
                self.compile_members(members);
            }
            Node::Named(NamedType { body: Body::Union(union), .. }) => {
                let op = Labels::of_node(nodes, union.discriminator).map_or(Op::Refused, |labels| {
                    self.steps.switches.push(Switch { labels, union: index });
                    Op::Union(self.steps.switches.len() as u32 - 1)
                });
                self.push_op(op);
            }
            _ => self.compile_part(index),
        }
        self.push_op(Op::Return);
    }

    /// Compiles consecutive members: those of fixed layout become one block.
    fn compile_members(&mut self, members: &[Member]) {
        let mut pending = Vec::new();
        for member in members {
            let mut fields = Vec::new();
            if !self.is_small(member.kind) || !self.append_fields(member.kind, &mut fields) {
                self.flush(&mut pending);
                self.compile_part(member.kind);
                continue;
            }
            if pending.len() + fields.len() > MAX_FIELDS {
                self.flush(&mut pending);
            }
            fields.into_iter().for_each(|field| push(&mut pending, field));
        }
        self.flush(&mut pending);
    }

    fn flush(&mut self, pending: &mut Vec<Field>) {
        if pending.is_empty() {
            return;
        }
        let fields = std::mem::take(pending);
        match self.add_plan(fields.clone(), false) {
            Some(plan) => self.push_op(Op::Block(plan)),
            // The fields are too large for one plan.
            None => {
                for field in fields {
                    if let Some(plan) = self.add_plan(vec![Field { count: 1, ..field }], field.joined) {
                        self.push_op(Op::Run { plan, count: field.count });
                    }
                }
            }
        }
    }

    /// Compiles a type as a part of another one: to one step.
    fn compile_part(&mut self, index: Index) {
        let nodes = self.nodes;
        let index = self.steps.unaliased(index);
        if let Some(plan) = self.plan_of(index) {
            return self.push_op(Op::Block(plan));
        }
        let op = match nodes.at(index) {
            Node::Basic(kind) => match kind {
                TcKind::WChar => Op::WChar,
                TcKind::Any => Op::Any,
                TcKind::TypeCode => Op::TypeCode,
                TcKind::Principal => Op::Principal,
                // A type that would have a plan if the budget were not exhausted.
                kind => match basic(*kind) {
                    Some(field) => self.op_without_budget(index, field),
                    None => return,
                },
            },
            Node::Text { wide, bound } => Op::Text { wide: *wide, bound: *bound },
            Node::Fixed { digits, .. } => Op::Decimal { digits: *digits },
            Node::Sequence { element, bound } => match self.plan_of(*element) {
                Some(plan) => Op::Bulk { plan, bound: *bound },
                None => Op::Each { element: self.steps.unaliased(*element), bound: *bound },
            },
            Node::Array { element, length } => match self.plan_of(*element) {
                Some(plan) => Op::Run { plan, count: *length },
                None => Op::Times { element: self.steps.unaliased(*element), count: *length },
            },
            Node::Recursive(_) => Op::Refused,
            Node::Named(named) => match (&named.body, named.kind) {
                (Body::Members(_) | Body::Union(_), _) => Op::Call(index),
                (Body::Enumerators(names), _) => {
                    self.op_without_budget(index, Field::one(2, FieldKind::Enum(names.len() as u32)))
                }
                (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => Op::Object,
                (_, TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface) => {
                    Op::Graph(index)
                }
                _ => Op::Refused,
            },
        };
        self.push_op(op);
    }

    /// Returns the step for a number or ordinal after the plan budget is exhausted.
    fn op_without_budget(&mut self, index: Index, field: Field) -> Op {
        let Some(plan) = self.add_plan(vec![field], true) else { return Op::Refused };
        self.steps.plan_of.get_mut(index as usize).into_iter().for_each(|place| *place = plan);
        Op::Block(plan)
    }

    /// Copies the entries of each alias from its resolved type.
    fn copy_to_aliases(&mut self) {
        for index in 0..self.nodes.all().len() as Index {
            let content = self.steps.unaliased(index);
            if content != index {
                let (from, to) = (content as usize, index as usize);
                let steps = &mut self.steps;
                for table in [&mut steps.entries, &mut steps.least, &mut steps.plan_of] {
                    let value = table.get(from).copied().unwrap_or_default();
                    table.get_mut(to).into_iter().for_each(|place| *place = value);
                }
            }
        }
    }
}

/// Resolves the aliases of all nodes. Each node is visited once.
fn resolve_aliases(nodes: &Nodes) -> Box<[Index]> {
    let mut resolved: Vec<Option<Index>> = vec![None; nodes.all().len()];
    for index in 0..resolved.len() {
        let (mut current, mut chain) = (index as Index, Vec::new());
        let end = loop {
            match (resolved.get(current as usize).copied().flatten(), nodes.at(current)) {
                (Some(end), _) => break end,
                (None, Node::Named(NamedType { kind: TcKind::Alias, body: Body::Content(content), .. }))
                    if chain.len() < resolved.len() =>
                {
                    chain.push(current);
                    current = *content;
                }
                _ => break current,
            }
        };
        for alias in chain.into_iter().chain([current]) {
            resolved.get_mut(alias as usize).into_iter().for_each(|place| *place = Some(end));
        }
    }
    resolved.into_iter().map(|end| end.unwrap_or_default()).collect()
}

fn min_size_of_variable(kind: TcKind) -> u32 {
    match kind {
        TcKind::Any | TcKind::TypeCode | TcKind::Principal => 4,
        // Two bytes. In GIOP 1.2 a length byte precedes them.
        TcKind::WChar => 2,
        _ => 0,
    }
}

/// Appends a field, or extends the last one if both are of the same kind.
fn push(out: &mut Vec<Field>, field: Field) {
    if let Some(last) = out.last_mut()
        && !(last.joined || field.joined)
        && (last.what, last.width) == (field.what, field.width)
        && let Some(count) = last.count.checked_add(field.count)
    {
        last.count = count;
        return;
    }
    out.push(field);
}
