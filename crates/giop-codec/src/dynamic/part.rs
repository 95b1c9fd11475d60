//! Access to parts of a tree of values, by path or index.

use std::borrow::Cow;

use super::build::{default_value, discriminator_for, discriminator_value, label_of};
use super::check::{NO_DISCRIMINATOR, check_value, value_members};
use super::{DynError, DynErrorKind, Dynamic, Path, Step, Value, ValueGraph};
use crate::typecode::{Body, LabelEncoding, Member, NamedType, Node, Nodes, TypeCode};

/// A function that changes a part. It gets the part's type, the part, and the graph of the whole value.
pub(super) type Change<'f, R> =
    &'f mut dyn FnMut(&TypeCode, &mut Value, &mut ValueGraph) -> Result<R, DynError>;

impl Dynamic {
    /// Returns the type and value of a part. The path has the same form as in errors, such as
    /// `payload.frames[3].width`. The empty path stands for the value itself.
    ///
    /// # Errors
    /// [`Syntax`](DynErrorKind::Syntax) if the path is invalid. [`NoSuchMember`](DynErrorKind::NoSuchMember),
    /// [`Bounds`](DynErrorKind::Bounds), or [`InvalidValue`](DynErrorKind::InvalidValue) for a union's member
    /// that is not selected; these errors have the path to the last part that exists.
    pub fn at(&self, path: &str) -> Result<(TypeCode, Value), DynError> {
        let mut code = self.code.clone();
        let mut value = Cow::Borrowed(&self.value);
        let mut found_path = Path::ROOT;
        for step in path.parse::<Path>()?.steps() {
            let with_path = |error: DynError| DynError::at(error.kind().clone(), found_path.clone());
            let index = component_index(&code, &value, &self.graph, step).map_err(with_path)?;
            let found = component(&code, value, &self.graph, index);
            (code, value) = found.ok_or_else(|| with_path(no_component(step)))?;
            found_path = found_path.then(step.clone());
        }
        Ok((code, value.into_owned()))
    }

    /// Sets a part of the value. If the part is in a member of a union, that member becomes the selected one.
    ///
    /// # Errors
    /// The errors of [`at`](Self::at) and [`check`](Self::check). The value is unchanged after an error.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> Result<(), DynError> {
        let path = path.parse::<Path>()?;
        let mut value = Some(value.into());
        let Dynamic { code, value: root, graph } = self;
        let mut change = |code: &TypeCode, part: &mut Value, graph: &mut ValueGraph| {
            if let Some(value) = value.take() {
                check_value(code, &value, graph, 0)?;
                *part = value;
            }
            Ok(())
        };
        let steps = path.steps();
        let index = |at: usize, code: &TypeCode, value: &Value| {
            component_index(code, value, graph, steps.get(at)?).ok()
        };
        let Some((at, code, node)) = last_node(code, root, graph, steps.len(), &index) else {
            return set_at(code, root, graph, steps, &mut change);
        };
        let (before, rest) = steps.split_at(at);
        set_at(&code, &mut Value::Node(Some(node)), graph, rest, &mut change)
            .map_err(|error| before.iter().rev().fold(error, |error, step| error.inside(step.clone())))
    }
}

/// Finds the last instance of a value type on a path of `steps` steps. Returns the number of steps before it,
/// its declared type, and the index of its node. `index` returns the component's index for a step.
///
/// A change starts from that node, because [`edit_component`] takes members out of their nodes. A path that
/// leads through a cycle would not find them.
pub(super) fn last_node(
    code: &TypeCode,
    value: &Value,
    graph: &ValueGraph,
    steps: usize,
    index: &dyn Fn(usize, &TypeCode, &Value) -> Option<usize>,
) -> Option<(usize, TypeCode, u32)> {
    let (mut code, mut value) = (code.clone(), Cow::Borrowed(value));
    let mut last = None;
    for step in 0..if graph.nodes.is_empty() { 0 } else { steps } {
        if let Value::Node(Some(node)) = &*value {
            last = Some((step, code.clone(), *node));
        }
        let found = index(step, &code, &value).and_then(|index| component(&code, value, graph, index));
        match found {
            Some(found) => (code, value) = found,
            None => break,
        }
    }
    last
}

fn no_component(step: &Step) -> DynError {
    match step {
        Step::Member(name) => DynErrorKind::NoSuchMember(name.clone()).into(),
        Step::Index(index) => DynErrorKind::Bounds { index: *index, len: 0 }.into(),
        Step::Content | Step::Node(_) => DynErrorKind::InvalidValue("the value has no components").into(),
    }
}

fn component_index(
    code: &TypeCode,
    value: &Value,
    graph: &ValueGraph,
    step: &Step,
) -> Result<usize, DynError> {
    match (step, value) {
        (Step::Index(index), Value::Items(items)) if *index < items.len() => Ok(*index),
        (Step::Index(index), Value::Items(items)) => {
            Err(DynErrorKind::Bounds { index: *index, len: items.len() }.into())
        }
        (Step::Member(name), Value::Node(Some(node))) => {
            // The type of the value may be derived from the declared type.
            let found = graph.nodes.get(*node as usize).ok_or_else(|| no_component(step))?;
            let names = value_members(&found.code)?;
            let at = names.iter().position(|(_, member)| member == name);
            at.ok_or_else(|| DynErrorKind::NoSuchMember(name.clone()).into())
        }
        (Step::Member(name), Value::Union(union)) => match member_index(code, name)? {
            member if is_selected(code, union.discriminator, member) => Ok(1),
            _ => Err(DynErrorKind::InvalidValue("another member of the union is selected").into()),
        },
        (Step::Member(name), Value::Struct(_)) => member_index(code, name),
        _ => Err(no_component(step)),
    }
}

fn member_index(code: &TypeCode, name: &str) -> Result<usize, DynError> {
    let code = code.unaliased();
    let count = code.member_count().unwrap_or(0);
    let found = (0..count).find(|index| code.member_name(*index) == Ok(name));
    found.ok_or_else(|| DynErrorKind::NoSuchMember(name.into()).into())
}

/// Returns whether the discriminator selects this member by any of its labels.
fn is_selected(code: &TypeCode, discriminator: i64, member: usize) -> bool {
    let code = code.unaliased();
    let Ok(union) = code.union() else { return false };
    let wanted = union.members.get(member);
    union.selected(discriminator).zip(wanted).is_some_and(|(found, wanted)| found.name == wanted.name)
}

/// Returns whether two entries of a union, each for one label, are the same member in IDL. The types are
/// compared because a type without a name is repeated for each label.
pub(super) fn is_same_member(nodes: &Nodes, one: &Member, other: &Member) -> bool {
    let code = |member: &Member| TypeCode::new(nodes.clone(), member.ty);
    one.name == other.name && (one.ty == other.ty || code(one).equal(&code(other)))
}

/// Returns the number of components: members, elements, or a union's discriminator and selected member.
pub(super) fn component_count(value: &Value, graph: &ValueGraph) -> usize {
    match value {
        Value::Struct(members) => members.len(),
        Value::Items(items) => items.len(),
        Value::Union(union) => 1 + usize::from(union.value.is_some()),
        Value::Node(Some(node)) => graph.nodes.get(*node as usize).map_or(0, |node| node.members.len()),
        _ => 0,
    }
}

fn component_type(code: &TypeCode, value: &Value, graph: &ValueGraph, index: usize) -> Option<TypeCode> {
    if let Value::Node(node) = value {
        let node = graph.nodes.get((*node)? as usize)?;
        return value_members(&node.code).ok()?.into_iter().nth(index).map(|(code, _)| code);
    }
    let code = code.unaliased();
    match (code.nodes.at(code.root), value) {
        (Node::Sequence { element, .. } | Node::Array { element, .. }, _) => Some(code.with_root(*element)),
        (Node::Named(NamedType { body: Body::Members(members), .. }), _) => {
            members.get(index).map(|member| code.with_root(member.ty))
        }
        (Node::Named(NamedType { body: Body::Union(union), .. }), Value::Union(value)) => match index {
            0 => Some(code.with_root(union.discriminator)),
            1 => union.selected(value.discriminator).map(|member| code.with_root(member.ty)),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn component<'v>(
    code: &TypeCode,
    value: Cow<'v, Value>,
    graph: &'v ValueGraph,
    index: usize,
) -> Option<(TypeCode, Cow<'v, Value>)> {
    let kind = component_type(code, &value, graph, index)?;
    let part = match value {
        Cow::Borrowed(Value::Struct(members)) => Cow::Borrowed(members.get(index)?),
        Cow::Owned(Value::Struct(members)) => Cow::Owned(members.into_iter().nth(index)?),
        Cow::Borrowed(Value::Union(union)) if index == 1 => Cow::Borrowed(union.value.as_ref()?),
        Cow::Owned(Value::Union(union)) if index == 1 => Cow::Owned(union.value?),
        Cow::Borrowed(Value::Items(items)) => match &**items {
            super::Items::Values(values) => Cow::Borrowed(values.get(index)?),
            items => Cow::Owned(items.get(index)?),
        },
        value => Cow::Owned(match &*value {
            Value::Items(items) => items.get(index)?,
            Value::Union(union) => discriminator_value(&kind.nodes, kind.root, union.discriminator),
            Value::Node(node) => {
                return Some((kind, Cow::Borrowed(graph.nodes.get((*node)? as usize)?.members.get(index)?)));
            }
            _ => return None,
        }),
    };
    Some((kind, part))
}

/// Calls `f` with the type of a component and the component, so that it can be changed.
pub(super) fn edit_component<R>(
    code: &TypeCode,
    value: &mut Value,
    graph: &mut ValueGraph,
    index: usize,
    f: Change<'_, R>,
) -> Result<R, DynError> {
    let len = component_count(value, graph);
    let out_of_bounds = || DynError::new(DynErrorKind::Bounds { index, len });
    let kind = component_type(code, value, graph, index).ok_or_else(out_of_bounds)?;
    match value {
        Value::Struct(members) => f(&kind, members.get_mut(index).ok_or_else(out_of_bounds)?, graph),
        Value::Items(items) => {
            items.edit(|values| f(&kind, values.get_mut(index).ok_or_else(out_of_bounds)?, graph))
        }
        Value::Union(union) if index == 1 => f(&kind, union.value.as_mut().ok_or_else(out_of_bounds)?, graph),
        Value::Union(union) => {
            let mut part = discriminator_value(&kind.nodes, kind.root, union.discriminator);
            let result = f(&kind, &mut part, graph)?;
            let label = label_of(&part).ok_or_else(out_of_bounds)?;
            select(code, value, label)?;
            Ok(result)
        }
        Value::Node(Some(node)) => {
            // Take the member out of the graph for the change, because `f` receives the graph too.
            let node = *node as usize;
            let replace_member = |graph: &mut ValueGraph, part: Value| {
                let member = graph.nodes.get_mut(node).and_then(|node| node.members.get_mut(index));
                member.map(|member| std::mem::replace(member, part))
            };
            let mut part = replace_member(graph, Value::Void).ok_or_else(out_of_bounds)?;
            let result = f(&kind, &mut part, graph);
            replace_member(graph, part);
            result
        }
        _ => Err(out_of_bounds()),
    }
}

/// Sets a union's discriminator. If this selects another member, that gets its default value.
pub(super) fn select(code: &TypeCode, value: &mut Value, label: i64) -> Result<(), DynError> {
    let code = code.unaliased();
    let (Ok(definition), Value::Union(union)) = (code.union(), value) else {
        return Err(DynErrorKind::InvalidValue("the value is not a union").into());
    };
    if !LabelEncoding::of_node(&code.nodes, definition.discriminator)
        .is_some_and(|labels| labels.is_valid(label))
    {
        return Err(DynErrorKind::InvalidValue(NO_DISCRIMINATOR).into());
    }
    let (old, new) = (definition.selected(union.discriminator), definition.selected(label));
    let is_same = old.zip(new).is_some_and(|(old, new)| is_same_member(&code.nodes, old, new));
    if !is_same || union.value.is_none() {
        union.value = new.map(|member| default_value(&code.nodes, member.ty)).transpose()?;
    }
    union.discriminator = label;
    Ok(())
}

/// Sets a union's discriminator so that it selects the member with this name.
fn select_member(code: &TypeCode, value: &mut Value, name: &str) -> Result<(), DynError> {
    let member = member_index(code, name)?;
    let code = code.unaliased();
    let Ok(union) = code.union() else { return Ok(()) };
    let label = discriminator_for(&code.nodes, union, member);
    select(&code, value, label.ok_or(DynErrorKind::InvalidValue("no discriminator selects the member"))?)
}

/// Calls `f` with the part at the end of the path. Each union on the path then selects the member to which
/// the path leads, but is unchanged if `f` fails.
fn set_at(
    code: &TypeCode,
    value: &mut Value,
    graph: &mut ValueGraph,
    steps: &[Step],
    f: Change<'_, ()>,
) -> Result<(), DynError> {
    let Some((step, rest)) = steps.split_first() else { return f(code, value, graph) };
    let original = match (step, &*value) {
        (Step::Member(name), Value::Union(union))
            if !is_selected(code, union.discriminator, member_index(code, name)?) =>
        {
            let original = value.clone();
            select_member(code, value, name)?;
            Some(original)
        }
        _ => None,
    };
    let result = component_index(code, value, graph, step).and_then(|index| {
        edit_component(code, value, graph, index, &mut |code, part, graph| {
            set_at(code, part, graph, rest, f).map_err(|error| error.inside(step.clone()))
        })
    });
    if let (Err(_), Some(original)) = (&result, original) {
        *value = original;
    }
    result
}

impl std::str::FromStr for Path {
    type Err = DynError;

    /// # Errors
    /// [`Syntax`](DynErrorKind::Syntax) if the text is not a path.
    fn from_str(text: &str) -> Result<Path, DynError> {
        let invalid = |reason: &str| {
            DynError::new(DynErrorKind::Syntax(format!("`{text}` is not a path: {reason}").into()))
        };
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after_bracket) = rest.strip_prefix('[') {
                let (index, following) =
                    after_bracket.split_once(']').ok_or_else(|| invalid("a `]` is missing"))?;
                steps.push(Step::Index(index.parse().map_err(|_| invalid("an index is not a number"))?));
                rest = following;
                continue;
            }
            if !steps.is_empty() {
                rest = rest.strip_prefix('.').ok_or_else(|| invalid("a `.` is missing"))?;
            }
            let (name, following) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
            if name.is_empty() {
                return Err(invalid("a name is missing"));
            }
            steps.push(Step::Member(name.into()));
            rest = following;
        }
        Ok(steps.into_iter().collect())
    }
}
