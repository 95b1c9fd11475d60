//! Compilation of types to programs: every node of an arena once, however often it is used.

use super::kind::TcKind;
use super::node::{Body as Shape, Member, NamedType, Node, Nodes};
use crate::program::{Field, FieldKind, Index, Labels, MAX_FIELDS, NO_PLAN, Op, Plan, Steps, Switch};

/// The maximum memory of all plans of an arena, counted in fields; types beyond it are processed member by
/// member. The budget also depends on the number of nodes and members (`LEAST_WEIGHT` plus `WEIGHT_EACH` for
/// each), so that a type code of a few bytes cannot cause much memory use.
const MAX_WEIGHT: usize = 8192;
const LEAST_WEIGHT: usize = 256;
const WEIGHT_EACH: usize = 4;

/// The maximum number of members examined, for each field of the plan budget.
const MAX_WORK: usize = 8;

/// The maximum number of fields of an array within a larger type.
const MAX_UNROLLED: usize = 64;

/// The maximum number of type levels searched for fixed layouts.
const MAX_LEVELS: usize = 48;

/// The result of the analysis of a node.
#[derive(Clone, Copy, Debug)]
enum LayoutClass {
    Unknown,
    /// The analysis is in progress: the type contains itself.
    InProgress,
    /// Fixed layout, with upper bounds for the number of fields (an empty field counts as one) and nesting
    /// levels. There is no plan for more than `MAX_FIELDS` fields.
    Fixed {
        fields: usize,
        least: u32,
        levels: usize,
    },
    /// Variable size with a minimum in bytes.
    Varies {
        least: u32,
    },
}

const EMPTY: LayoutClass = LayoutClass::Fixed { fields: 0, least: 0, levels: 0 };

struct Compiler<'a> {
    nodes: &'a Nodes,
    classes: Vec<LayoutClass>,
    /// The remaining budget of all plans.
    weight: usize,
    work: usize,
    body: Steps,
}

impl Steps {
    /// Compiles the program for values of all types of an arena.
    pub(crate) fn new(nodes: &Nodes) -> Steps {
        let count = nodes.all().len();
        let body = Steps {
            ops: Vec::with_capacity(count + 8),
            alias: aliases(nodes),
            entries: vec![0; count].into(),
            plans: Vec::new(),
            plan_of: vec![NO_PLAN; count].into(),
            least: vec![0; count].into(),
            switches: Vec::new(),
            empties: false,
            contents: (0..count).map(|_| Default::default()).collect(),
        };
        let parts: usize = nodes.all().iter().map(|node| 1 + node.members().len()).sum();
        let weight = WEIGHT_EACH.saturating_mul(parts).saturating_add(LEAST_WEIGHT).min(MAX_WEIGHT);
        let work = weight * MAX_WORK;
        let mut compiler = Compiler { nodes, classes: vec![LayoutClass::Unknown; count], weight, work, body };
        for index in 0..count as Index {
            compiler.look(index, 0);
        }
        for index in 0..count as Index {
            compiler.node(index);
        }
        compiler.aliases();
        let mut body = compiler.body;
        body.ops.shrink_to_fit();
        body.empties = body.ops.iter().any(|op| match *op {
            Op::Bulk { plan, .. } => body.plan(plan).is_some_and(|plan| plan.least() == 0),
            Op::Each { element, .. } => body.least(element) == 0,
            _ => false,
        });
        body
    }
}

/// Returns the field of a basic type, whose width is the binary logarithm of its size; `None` if its encoding
/// is not of fixed layout.
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
    /// Determines whether a type is of fixed layout, and its minimum size.
    fn look(&mut self, index: Index, level: usize) -> LayoutClass {
        let at = index as usize;
        match self.classes.get(at) {
            Some(LayoutClass::Unknown) if level < MAX_LEVELS => {}
            Some(known @ (LayoutClass::Fixed { .. } | LayoutClass::Varies { .. })) => return *known,
            _ => return LayoutClass::Varies { least: 0 },
        }
        self.set(at, LayoutClass::InProgress);
        let nodes = self.nodes;
        let found = match nodes.at(index) {
            Node::Basic(kind) => match basic(*kind) {
                Some(field) => LayoutClass::Fixed { fields: 1, least: field.len() as u32, levels: 0 },
                None if matches!(kind, TcKind::Null | TcKind::Void) => EMPTY,
                None => LayoutClass::Varies { least: least_of(*kind) },
            },
            Node::Text { .. } | Node::Sequence { .. } => LayoutClass::Varies { least: 4 },
            Node::Fixed { .. } => LayoutClass::Varies { least: 1 },
            Node::Array { element, length } => match self.look(*element, level + 1) {
                LayoutClass::Fixed { .. } if *length == 0 => EMPTY,
                // Not fixed, because the decoder is charged for each element.
                LayoutClass::Fixed { fields: 0, .. } => LayoutClass::Varies { least: 0 },
                LayoutClass::Fixed { fields, least, levels } if levels < MAX_LEVELS => {
                    let all = fields.saturating_mul(*length as usize);
                    let fields = match all {
                        _ if self.is_one_field(*element) => fields,
                        all if all > MAX_UNROLLED => usize::MAX,
                        all => all,
                    };
                    LayoutClass::Fixed { fields, least: least.saturating_mul(*length), levels: levels + 1 }
                }
                LayoutClass::Fixed { least, .. } => {
                    LayoutClass::Varies { least: least.saturating_mul(*length) }
                }
                LayoutClass::Varies { least } => LayoutClass::Varies { least: least.saturating_mul(*length) },
                LayoutClass::Unknown | LayoutClass::InProgress => LayoutClass::Varies { least: 0 },
            },
            Node::Named(named) => self.look_named(named, level),
            Node::Recursive(_) => LayoutClass::Varies { least: 0 },
        };
        self.set(at, found);
        found
    }

    fn look_named(&mut self, named: &NamedType, level: usize) -> LayoutClass {
        match (&named.body, named.kind) {
            (Shape::Content(content), TcKind::Alias) => self.look(*content, level + 1),
            (Shape::Members(members), kind) => {
                let (mut fields, mut least, mut levels) = (0_usize, 0_u32, 0);
                let mut fixed = kind == TcKind::Struct;
                for member in members {
                    let (more, least_of) = match self.look(member.kind, level + 1) {
                        LayoutClass::Fixed { fields, least, levels: of } => {
                            levels = levels.max(of);
                            (fields, least)
                        }
                        LayoutClass::Varies { least } => {
                            fixed = false;
                            (0, least)
                        }
                        LayoutClass::Unknown | LayoutClass::InProgress => {
                            fixed = false;
                            (0, 0)
                        }
                    };
                    fields = fields.saturating_add(more.max(1));
                    least = least.saturating_add(least_of);
                }
                levels += 1;
                if fixed && levels < MAX_LEVELS {
                    LayoutClass::Fixed { fields, least, levels }
                } else {
                    LayoutClass::Varies { least }
                }
            }
            (Shape::Enumerators(_), _) => LayoutClass::Fixed { fields: 1, least: 4, levels: 0 },
            (Shape::Union(_), _) => LayoutClass::Varies { least: 1 },
            (Shape::Opaque, TcKind::AbstractInterface) => LayoutClass::Varies { least: 1 },
            (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => LayoutClass::Varies { least: 8 },
            // The size of a null value.
            (_, TcKind::Value | TcKind::Event | TcKind::ValueBox) => LayoutClass::Varies { least: 4 },
            _ => LayoutClass::Varies { least: 1 },
        }
    }

    fn set(&mut self, at: usize, known: LayoutClass) {
        self.classes.get_mut(at).into_iter().for_each(|place| *place = known);
    }

    /// Returns whether an array of this type is one field, because the type is a number or an array of
    /// numbers.
    fn is_one_field(&self, mut index: Index) -> bool {
        for _ in 0..MAX_LEVELS {
            index = self.body.unaliased(index);
            match self.nodes.at(index) {
                Node::Array { element, .. } => index = *element,
                Node::Basic(kind) => return basic(*kind).is_some(),
                Node::Named(NamedType { body: Shape::Enumerators(_), .. }) => return true,
                _ => return false,
            }
        }
        false
    }

    /// Returns whether a type is fixed, and of few enough fields to be a part of a plan.
    fn is_small(&mut self, index: Index) -> bool {
        let fixed = matches!(self.look(index, 0), LayoutClass::Fixed { fields, .. } if fields <= MAX_FIELDS);
        fixed && self.weight > 0 && self.work > 0
    }

    /// Appends the fields of a fixed type; returns `false` if it is too large.
    fn fields(&mut self, index: Index, out: &mut Vec<Field>) -> bool {
        let nodes = self.nodes;
        self.work = self.work.saturating_sub(1);
        match nodes.at(self.body.unaliased(index)) {
            Node::Basic(kind) => {
                basic(*kind).into_iter().for_each(|field| push(out, field));
                true
            }
            Node::Array { element, length } => {
                let mut inner = Vec::new();
                if *length == 0 {
                    return true;
                }
                if !self.fields(*element, &mut inner) {
                    return false;
                }
                if inner.is_empty() {
                    return true;
                }
                if let [field] = inner.as_mut_slice() {
                    let Some(count) = field.count.checked_mul(*length) else { return false };
                    field.count = count;
                    field.joined = field.width > 2 && self.is_one_field(*element);
                    push(out, *field);
                } else {
                    (0..*length).for_each(|_| inner.iter().for_each(|field| push(out, *field)));
                }
                true
            }
            Node::Named(NamedType { body: Shape::Enumerators(names), .. }) => {
                push(out, Field::one(2, FieldKind::Enum(names.len() as u32)));
                true
            }
            node => node.members().iter().all(|member| self.fields(member.kind, out)),
        }
    }

    /// Adds the plan of these fields; `number` tells whether they are a number or an array of numbers.
    fn plan(&mut self, fields: Vec<Field>, number: bool) -> Option<u32> {
        let mut plan = Plan::new(fields)?;
        plan.number = number;
        self.weight = self.weight.saturating_sub(plan.weight());
        self.body.plans.push(plan);
        Some(self.body.plans.len() as u32 - 1)
    }

    /// Returns the plan of a type, if it has one.
    fn plan_of(&mut self, index: Index) -> Option<u32> {
        let index = self.body.unaliased(index);
        if let Some(plan) = self.body.plan_of.get(index as usize)
            && *plan != NO_PLAN
        {
            return Some(*plan);
        }
        if !self.is_small(index) {
            return None;
        }
        let mut fields = Vec::new();
        if !self.fields(index, &mut fields) {
            return None;
        }
        let number = self.is_one_field(index);
        let plan = self.plan(fields, number)?;
        self.body.plan_of.get_mut(index as usize).into_iter().for_each(|place| *place = plan);
        Some(plan)
    }

    fn op(&mut self, op: Op) {
        self.body.ops.push(op);
    }

    /// Compiles the program of a type.
    fn node(&mut self, index: Index) {
        let at = index as usize;
        let entry = self.body.ops.len() as u32;
        self.body.entries.get_mut(at).into_iter().for_each(|place| *place = entry);
        let nodes = self.nodes;
        let plan = self.plan_of(index);
        let looked = self.look(index, 0);
        let least = match (plan.and_then(|plan| self.body.plan(plan)), looked) {
            (Some(plan), _) => plan.least() as u32,
            (None, LayoutClass::Varies { least } | LayoutClass::Fixed { least, .. }) => least,
            (None, LayoutClass::Unknown | LayoutClass::InProgress) => 0,
        };
        self.body.least.get_mut(at).into_iter().for_each(|place| *place = least);
        match nodes.at(index) {
            Node::Named(NamedType { kind: TcKind::Alias, .. }) => return,
            Node::Named(NamedType { body: Shape::Members(members), kind, .. }) if plan.is_none() => {
                if *kind == TcKind::Except {
                    self.op(Op::ExceptId(index));
                }
                self.members(members);
            }
            Node::Named(NamedType { body: Shape::Union(union), .. }) => {
                let op = match Labels::of_node(nodes, union.discriminator) {
                    Some(labels) => Op::Union(self.switch(labels, index)),
                    None => Op::Refused,
                };
                self.op(op);
            }
            _ => self.part(index),
        }
        self.op(Op::Return);
    }

    /// Compiles consecutive members: those of fixed layout become one block.
    fn members(&mut self, members: &[Member]) {
        let mut pending = Vec::new();
        for member in members {
            let mut fields = Vec::new();
            if !self.is_small(member.kind) || !self.fields(member.kind, &mut fields) {
                self.flush(&mut pending);
                self.part(member.kind);
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
        match self.plan(fields.clone(), false) {
            Some(plan) => self.op(Op::Block(plan)),
            // The fields are too large for one plan.
            None => {
                for field in fields {
                    if let Some(plan) = self.plan(vec![Field { count: 1, ..field }], field.joined) {
                        self.op(Op::Run { plan, count: field.count });
                    }
                }
            }
        }
    }

    /// Compiles a type as a part of another one: one step.
    fn part(&mut self, index: Index) {
        let nodes = self.nodes;
        let index = self.body.unaliased(index);
        if let Some(plan) = self.plan_of(index) {
            return self.op(Op::Block(plan));
        }
        let op = match nodes.at(index) {
            Node::Basic(kind) => match kind {
                TcKind::WChar => Op::WChar,
                TcKind::Any => Op::Any,
                TcKind::TypeCode => Op::TypeCode,
                TcKind::Principal => Op::Principal,
                // A type that would have a plan if the budget were not exhausted.
                kind => match basic(*kind) {
                    Some(field) => self.field(index, field),
                    None => return,
                },
            },
            Node::Text { wide, bound } => Op::Text { wide: *wide, bound: *bound },
            Node::Fixed { digits, .. } => Op::Decimal { digits: *digits },
            Node::Sequence { element, bound } => match self.plan_of(*element) {
                Some(plan) => Op::Bulk { plan, bound: *bound },
                None => Op::Each { element: self.body.unaliased(*element), bound: *bound },
            },
            Node::Array { element, length } => match self.plan_of(*element) {
                Some(plan) => Op::Run { plan, count: *length },
                None => Op::Times { element: self.body.unaliased(*element), count: *length },
            },
            Node::Recursive(_) => Op::Refused,
            Node::Named(named) => match (&named.body, named.kind) {
                (Shape::Members(_) | Shape::Union(_), _) => Op::Call(index),
                (Shape::Enumerators(names), _) => {
                    self.field(index, Field::one(2, FieldKind::Enum(names.len() as u32)))
                }
                (_, TcKind::ObjRef | TcKind::Component | TcKind::Home) => Op::Object,
                (_, TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface) => {
                    Op::Graph(index)
                }
                _ => Op::Refused,
            },
        };
        self.op(op);
    }

    /// Returns the step for a number or ordinal after the plan budget is exhausted.
    fn field(&mut self, index: Index, field: Field) -> Op {
        let Some(plan) = self.plan(vec![field], true) else { return Op::Refused };
        self.body.plan_of.get_mut(index as usize).into_iter().for_each(|place| *place = plan);
        Op::Block(plan)
    }

    fn switch(&mut self, labels: Labels, union: Index) -> u32 {
        self.body.switches.push(Switch { labels, union });
        self.body.switches.len() as u32 - 1
    }

    /// Copies the entries of each alias from its resolved type.
    fn aliases(&mut self) {
        for index in 0..self.nodes.all().len() as Index {
            let content = self.body.unaliased(index);
            if content != index {
                let (from, to) = (content as usize, index as usize);
                let body = &mut self.body;
                for table in [&mut body.entries, &mut body.least, &mut body.plan_of] {
                    let value = table.get(from).copied().unwrap_or_default();
                    table.get_mut(to).into_iter().for_each(|place| *place = value);
                }
            }
        }
    }
}

/// Resolves the aliases of all nodes, and visits each node once.
fn aliases(nodes: &Nodes) -> Box<[Index]> {
    let mut found: Vec<Option<Index>> = vec![None; nodes.all().len()];
    for index in 0..found.len() {
        let (mut at, mut way) = (index as Index, Vec::new());
        let end = loop {
            match (found.get(at as usize).copied().flatten(), nodes.at(at)) {
                (Some(end), _) => break end,
                (None, Node::Named(NamedType { kind: TcKind::Alias, body: Shape::Content(content), .. }))
                    if way.len() < found.len() =>
                {
                    way.push(at);
                    at = *content;
                }
                _ => break at,
            }
        };
        for passed in way.into_iter().chain([at]) {
            found.get_mut(passed as usize).into_iter().for_each(|place| *place = Some(end));
        }
    }
    found.into_iter().map(|end| end.unwrap_or_default()).collect()
}

/// Returns the minimum size in bytes of a basic type that is not of fixed layout.
fn least_of(kind: TcKind) -> u32 {
    match kind {
        TcKind::Any | TcKind::TypeCode | TcKind::Principal => 4,
        // A length byte and two bytes, or only two bytes.
        TcKind::WChar => 2,
        _ => 0,
    }
}

/// Appends a field; extends the last field if both are of the same kind.
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
