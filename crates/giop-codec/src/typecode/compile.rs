//! Compilation of types to programs. Every node of an arena is compiled once.

use super::kind::TcKind;
use super::node::{Body, Member, NamedType, Node, Nodes};
use crate::program::{
    Field, FieldKind, Index, LabelEncoding, MAX_FIELDS, NO_PLAN, Op, Plan, Steps, UnionSwitch,
};

/// The maximum budget for the memory of all plans of an arena, in units of one field. A plan describes a type
/// of fixed layout. Types for which no budget is left are processed member by member.
///
/// The budget grows with the number of nodes and members, so that a small type code costs little memory.
const MAX_PLAN_WEIGHT: usize = 8192;
const MIN_PLAN_WEIGHT: usize = 256;
const PLAN_WEIGHT_PER_PART: usize = 4;

/// The maximum number of members that are examined to create plans, as a multiple of the plan budget.
const MAX_WORK_FACTOR: usize = 8;

/// The maximum number of fields of an array within a larger type.
const MAX_ARRAY_FIELDS: usize = 64;

/// The maximum number of levels of nested types that are searched for fixed layouts.
const MAX_LEVELS: usize = 48;

#[derive(Clone, Copy, Debug)]
enum LayoutClass {
    /// A fixed layout. `fields` is an upper bound of the number of fields; an empty member counts as one.
    /// `min_size` is in bytes. A type with more than `MAX_FIELDS` fields has no plan.
    Fixed { fields: usize, min_size: u32, levels: usize },
    /// A variable size, with a minimum in bytes.
    Variable { min_size: u32 },
}

const EMPTY: LayoutClass = LayoutClass::Fixed { fields: 0, min_size: 0, levels: 0 };

struct Compiler<'a> {
    nodes: &'a Nodes,
    /// The class of each node; `None` until it is determined.
    classes: Vec<Option<LayoutClass>>,
    /// The remaining budget of all plans, in units of one field.
    weight_left: usize,
    /// The remaining number of members that may be examined for plans.
    work_left: usize,
    steps: Steps,
}

impl Steps {
    pub(crate) fn new(nodes: &Nodes) -> Steps {
        let count = nodes.all().len();
        let steps = Steps {
            ops: Vec::with_capacity(count + 8),
            alias_targets: resolve_aliases(nodes),
            entries: vec![0; count].into(),
            plans: Vec::new(),
            plan_of: vec![NO_PLAN; count].into(),
            min_size: vec![0; count].into(),
            switches: Vec::new(),
            may_have_empty_elements: false,
            contents: (0..count).map(|_| Default::default()).collect(),
        };
        let parts: usize = nodes.all().iter().map(|node| 1 + node.members().len()).sum();
        let weight_left =
            PLAN_WEIGHT_PER_PART.saturating_mul(parts).saturating_add(MIN_PLAN_WEIGHT).min(MAX_PLAN_WEIGHT);
        let work_left = weight_left * MAX_WORK_FACTOR;
        let mut compiler = Compiler { nodes, classes: vec![None; count], weight_left, work_left, steps };
        for index in 0..count as Index {
            compiler.classify(index, 0);
        }
        for index in 0..count as Index {
            compiler.compile_node(index);
        }
        compiler.copy_to_aliases();
        let mut steps = compiler.steps;
        steps.ops.shrink_to_fit();
        steps.may_have_empty_elements = steps.ops.iter().any(|op| match *op {
            Op::FixedSequence { plan, .. } => steps.plan(plan).is_some_and(|plan| plan.min_size() == 0),
            Op::Sequence { element, .. } => steps.min_size(element) == 0,
            _ => false,
        });
        steps
    }
}

/// Returns the field for a basic type; `None` if its layout is not fixed or its values take no bytes.
fn basic_field(kind: TcKind) -> Option<Field> {
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
    /// Determines the layout class of a type, unless that has been done before.
    fn classify(&mut self, index: Index, level: usize) -> LayoutClass {
        let at = index as usize;
        match self.classes.get(at) {
            Some(None) if level < MAX_LEVELS => {}
            Some(Some(known)) => return *known,
            _ => return LayoutClass::Variable { min_size: 0 },
        }
        // This is the class of the type wherever it contains itself.
        self.set_class(at, LayoutClass::Variable { min_size: 0 });
        let nodes = self.nodes;
        let found = match nodes.at(index) {
            Node::Basic(kind) => match basic_field(*kind) {
                Some(field) => LayoutClass::Fixed { fields: 1, min_size: field.len() as u32, levels: 0 },
                None if matches!(kind, TcKind::Null | TcKind::Void) => EMPTY,
                None => LayoutClass::Variable { min_size: min_size_of_variable(*kind) },
            },
            Node::Text { .. } | Node::Sequence { .. } => LayoutClass::Variable { min_size: 4 },
            Node::Fixed { .. } => LayoutClass::Variable { min_size: 1 },
            Node::Array { element, length } => match self.classify(*element, level + 1) {
                LayoutClass::Fixed { .. } if *length == 0 => EMPTY,
                // An array of empty elements is not fixed, because the decoder must charge for each element.
                LayoutClass::Fixed { fields: 0, .. } => LayoutClass::Variable { min_size: 0 },
                LayoutClass::Fixed { fields, min_size, levels } if levels < MAX_LEVELS => {
                    let all_fields = fields.saturating_mul(*length as usize);
                    let fields = match all_fields {
                        _ if self.is_one_field(*element) => fields,
                        _ if all_fields > MAX_ARRAY_FIELDS => usize::MAX,
                        _ => all_fields,
                    };
                    let min_size = min_size.saturating_mul(*length);
                    LayoutClass::Fixed { fields, min_size, levels: levels + 1 }
                }
                LayoutClass::Fixed { min_size, .. } | LayoutClass::Variable { min_size } => {
                    LayoutClass::Variable { min_size: min_size.saturating_mul(*length) }
                }
            },
            Node::Named(named) => self.classify_named(named, level),
            Node::Placeholder(_) => LayoutClass::Variable { min_size: 0 },
        };
        self.set_class(at, found);
        found
    }

    fn classify_named(&mut self, named: &NamedType, level: usize) -> LayoutClass {
        match (&named.body, named.kind) {
            (Body::Content(content), TcKind::Alias) => self.classify(*content, level + 1),
            (Body::Members(members), kind) => {
                let (mut fields, mut min_size, mut levels) = (0_usize, 0_u32, 0);
                let mut has_fixed_layout = kind == TcKind::Struct;
                for member in members {
                    let (member_fields, member_size) = match self.classify(member.ty, level + 1) {
                        LayoutClass::Fixed { fields, min_size, levels: member_levels } => {
                            levels = levels.max(member_levels);
                            (fields, min_size)
                        }
                        LayoutClass::Variable { min_size } => {
                            has_fixed_layout = false;
                            (0, min_size)
                        }
                    };
                    fields = fields.saturating_add(member_fields.max(1));
                    min_size = min_size.saturating_add(member_size);
                }
                levels += 1;
                match has_fixed_layout && levels < MAX_LEVELS {
                    true => LayoutClass::Fixed { fields, min_size, levels },
                    false => LayoutClass::Variable { min_size },
                }
            }
            (Body::Enumerators(_), _) => LayoutClass::Fixed { fields: 1, min_size: 4, levels: 0 },
            (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => LayoutClass::Variable { min_size: 8 },
            // A null value takes 4 bytes.
            (_, TcKind::Value | TcKind::Event | TcKind::ValueBox) => LayoutClass::Variable { min_size: 4 },
            _ => LayoutClass::Variable { min_size: 1 },
        }
    }

    fn set_class(&mut self, at: usize, class: LayoutClass) {
        self.classes.get_mut(at).into_iter().for_each(|place| *place = Some(class));
    }

    /// Returns whether an array of this type is one field: it is a number, an enum, or an array of either.
    fn is_one_field(&self, mut index: Index) -> bool {
        for _ in 0..MAX_LEVELS {
            index = self.steps.unaliased(index);
            match self.nodes.at(index) {
                Node::Array { element, .. } => index = *element,
                Node::Basic(kind) => return basic_field(*kind).is_some(),
                Node::Named(NamedType { body: Body::Enumerators(_), .. }) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Returns whether a type has a fixed layout with few enough fields, and the budget is not exhausted.
    fn may_have_plan(&mut self, index: Index) -> bool {
        let has_few_fields =
            matches!(self.classify(index, 0), LayoutClass::Fixed { fields, .. } if fields <= MAX_FIELDS);
        has_few_fields && self.weight_left > 0 && self.work_left > 0
    }

    /// Appends the fields of a type of fixed layout; returns `false` if it is too large.
    fn append_fields(&mut self, index: Index, out: &mut Vec<Field>) -> bool {
        let nodes = self.nodes;
        self.work_left = self.work_left.saturating_sub(1);
        match nodes.at(self.steps.unaliased(index)) {
            Node::Basic(kind) => {
                basic_field(*kind).into_iter().for_each(|field| push_field(out, field));
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
                        field.is_array = field.size_log2 > 2 && self.is_one_field(*element);
                        push_field(out, *field);
                    }
                    _ => (0..*length).for_each(|_| inner.iter().for_each(|field| push_field(out, *field))),
                }
                true
            }
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                push_field(out, Field::one(2, FieldKind::Enum(names.len() as u32)));
                true
            }
            node => node.members().iter().all(|member| self.append_fields(member.ty, out)),
        }
    }

    /// Adds the plan of these fields and returns its index. Returns `None` if they are too large for a plan.
    fn add_plan(&mut self, fields: Vec<Field>, is_number_array: bool) -> Option<u32> {
        let mut plan = Plan::new(fields)?;
        plan.is_number_array = is_number_array;
        self.weight_left = self.weight_left.saturating_sub(plan.weight());
        self.steps.plans.push(plan);
        Some(self.steps.plans.len() as u32 - 1)
    }

    /// Returns the index of the plan of a type, which is created at the first call. `None` if it has no plan.
    fn plan_of(&mut self, index: Index) -> Option<u32> {
        let index = self.steps.unaliased(index);
        if let Some(plan) = self.steps.plan_of.get(index as usize)
            && *plan != NO_PLAN
        {
            return Some(*plan);
        }
        let mut fields = Vec::new();
        if !self.may_have_plan(index) || !self.append_fields(index, &mut fields) {
            return None;
        }
        let is_number_array = self.is_one_field(index);
        let plan = self.add_plan(fields, is_number_array)?;
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
            (Some(plan), _) => plan.min_size() as u32,
            (None, LayoutClass::Variable { min_size } | LayoutClass::Fixed { min_size, .. }) => min_size,
        };
        self.steps.min_size.get_mut(at).into_iter().for_each(|place| *place = min_size);
        match nodes.at(index) {
            Node::Named(NamedType { kind: TcKind::Alias, .. }) => return,
            Node::Named(NamedType { body: Body::Members(members), kind, .. }) if plan.is_none() => {
                if *kind == TcKind::Except {
                    self.push_op(Op::ExceptionId(index));
                }
                self.compile_members(members);
            }
            Node::Named(NamedType { body: Body::Union(union), .. }) => {
                let op = LabelEncoding::of_node(nodes, union.discriminator).map_or(Op::NoValues, |labels| {
                    self.steps.switches.push(UnionSwitch { labels, union: index });
                    Op::Union(self.steps.switches.len() as u32 - 1)
                });
                self.push_op(op);
            }
            _ => self.compile_part(index),
        }
        self.push_op(Op::Return);
    }

    /// Compiles the members of a struct or exception. Consecutive members of fixed layout become one block.
    fn compile_members(&mut self, members: &[Member]) {
        let mut pending = Vec::new();
        for member in members {
            let mut fields = Vec::new();
            if !self.may_have_plan(member.ty) || !self.append_fields(member.ty, &mut fields) {
                self.flush_fields(&mut pending);
                self.compile_part(member.ty);
                continue;
            }
            if pending.len() + fields.len() > MAX_FIELDS {
                self.flush_fields(&mut pending);
            }
            fields.into_iter().for_each(|field| push_field(&mut pending, field));
        }
        self.flush_fields(&mut pending);
    }

    /// Compiles the pending fields to one block, or to a step for each if they are too large for a plan.
    fn flush_fields(&mut self, pending: &mut Vec<Field>) {
        if pending.is_empty() {
            return;
        }
        let fields = std::mem::take(pending);
        match self.add_plan(fields.clone(), false) {
            Some(plan) => self.push_op(Op::Block(plan)),
            None => {
                for field in fields {
                    if let Some(plan) = self.add_plan(vec![Field { count: 1, ..field }], field.is_array) {
                        self.push_op(Op::FixedArray { plan, count: field.count });
                    }
                }
            }
        }
    }

    /// Compiles a type that is a part of another one to a single step.
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
                // The type has no plan, because the budget is exhausted.
                kind => match basic_field(*kind) {
                    Some(field) => self.op_without_budget(index, field),
                    None => return,
                },
            },
            Node::Text { wide, bound } => Op::Text { wide: *wide, bound: *bound },
            Node::Fixed { digits, .. } => Op::Decimal { digits: *digits },
            Node::Sequence { element, bound } => match self.plan_of(*element) {
                Some(plan) => Op::FixedSequence { plan, bound: *bound },
                None => Op::Sequence { element: self.steps.unaliased(*element), bound: *bound },
            },
            Node::Array { element, length } => match self.plan_of(*element) {
                Some(plan) => Op::FixedArray { plan, count: *length },
                None => Op::Array { element: self.steps.unaliased(*element), count: *length },
            },
            Node::Placeholder(_) => Op::NoValues,
            Node::Named(named) => match (&named.body, named.kind) {
                (Body::Members(_) | Body::Union(_), _) => Op::Struct(index),
                (Body::Enumerators(names), _) => {
                    self.op_without_budget(index, Field::one(2, FieldKind::Enum(names.len() as u32)))
                }
                (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => Op::Object,
                (_, TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface) => {
                    Op::Graph(index)
                }
                _ => Op::NoValues,
            },
        };
        self.push_op(op);
    }

    /// Returns the step for a number or ordinal, with a plan of one field, although the budget is exhausted.
    fn op_without_budget(&mut self, index: Index, field: Field) -> Op {
        let Some(plan) = self.add_plan(vec![field], true) else { return Op::NoValues };
        self.steps.plan_of.get_mut(index as usize).into_iter().for_each(|place| *place = plan);
        Op::Block(plan)
    }

    fn copy_to_aliases(&mut self) {
        for index in 0..self.nodes.all().len() as Index {
            let content = self.steps.unaliased(index);
            if content != index {
                let (from, to) = (content as usize, index as usize);
                let steps = &mut self.steps;
                for table in [&mut steps.entries, &mut steps.min_size, &mut steps.plan_of] {
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
        // A character takes two bytes in GIOP 1.1. In GIOP 1.2, a length byte precedes it.
        TcKind::WChar => 2,
        _ => 0,
    }
}

/// Appends a field, or extends the last one if both have the same kind and size and neither is an array.
fn push_field(out: &mut Vec<Field>, field: Field) {
    if let Some(last) = out.last_mut()
        && !(last.is_array || field.is_array)
        && (last.kind, last.size_log2) == (field.kind, field.size_log2)
        && let Some(count) = last.count.checked_add(field.count)
    {
        last.count = count;
        return;
    }
    out.push(field);
}
