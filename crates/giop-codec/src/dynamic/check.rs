//! The check whether a tree of values matches its type.

use bytes::Bytes;

use super::build::MAX_DEPTH;
use super::{DynError, DynErrorKind, Dynamic, Items, Step, Value, ValueGraph, ValueNode};
use crate::cdr::BoundedContent;
use crate::typecode::{
    Body, Index, LabelEncoding, NamedType, Node, Nodes, TcKind, TypeCode, Typed, ValueModifier,
};
use crate::value::{CUSTOM_STATE_MEMBER, ValueBase, ValueForm};

impl Dynamic {
    /// Checks that the value matches its type.
    ///
    /// # Errors
    /// [`TypeMismatch`](DynErrorKind::TypeMismatch), [`Bounds`](DynErrorKind::Bounds),
    /// [`Length`](DynErrorKind::Length), [`InvalidValue`](DynErrorKind::InvalidValue),
    /// [`Inconsistent`](DynErrorKind::Inconsistent) or, for more than 64 levels,
    /// [`Limit`](DynErrorKind::Limit), with the path to the fault.
    pub fn check(&self) -> Result<(), DynError> {
        let checker = Checker { graph: &self.graph };
        checker.value(&self.code.nodes, self.code.root, &self.value, 0)?;
        for (index, node) in (0..).zip(&self.graph.nodes) {
            checker.node(node).map_err(|error| error.inside(Step::Node(index)))?;
        }
        Ok(())
    }
}

pub(super) fn check_value(
    code: &TypeCode,
    value: &Value,
    graph: &ValueGraph,
    depth: usize,
) -> Result<(), DynError> {
    Checker { graph }.value(&code.nodes, code.root, value, depth)
}

struct Checker<'a> {
    graph: &'a ValueGraph,
}

pub(super) const NO_DISCRIMINATOR: &str = "the discriminator of the union is not a value of its type";

pub(super) const CUSTOM_STATE_UNKNOWN: &str =
    "the members of a `custom` value are known only to the implementation of its type";

/// Returns whether these are the members of a custom value, which has only the bytes of its state.
pub(super) fn is_custom(members: &[(TypeCode, Box<str>)]) -> bool {
    matches!(members, [(_, name)] if &**name == CUSTOM_STATE_MEMBER)
}

/// Returns the type and name of each member of a value type, beginning with the members of its bases.
///
/// # Errors
/// [`Inconsistent`](DynErrorKind::Inconsistent) if no value can have exactly this type.
/// [`Limit`](DynErrorKind::Limit) if it has more than 64 levels of bases.
pub(super) fn value_members(code: &TypeCode) -> Result<Vec<(TypeCode, Box<str>)>, DynError> {
    let mut bases = Vec::new();
    let mut at = code.unaliased();
    if at.kind() == TcKind::ValueBox {
        return Ok(vec![(at.content_type().unwrap_or_default(), "value".into())]);
    }
    if at.type_modifier() == Ok(ValueModifier::Abstract) || is_value_base(&at) {
        return Err(DynErrorKind::Inconsistent("an abstract value type has no values").into());
    }
    loop {
        if at.type_modifier() == Ok(ValueModifier::Custom) {
            // Only the implementation of a custom type knows the members of its values.
            return Ok(vec![(Bytes::type_code(), CUSTOM_STATE_MEMBER.into())]);
        }
        let base = at
            .concrete_base_type()
            .map_err(|_| DynErrorKind::Inconsistent("the type of a node of the graph is not a value type"))?;
        bases.push(at);
        if bases.len() > MAX_DEPTH {
            return Err(DynErrorKind::Limit("a value type has more than 64 levels of bases").into());
        }
        let Some(base) = base else { break };
        at = base.unaliased();
    }
    let mut all = Vec::new();
    for base in bases.iter().rev() {
        for index in 0..base.member_count().unwrap_or(0) {
            let (Ok(code), Ok(name)) = (base.member_type(index), base.member_name(index)) else { continue };
            all.push((code, name.into()));
        }
    }
    Ok(all)
}

/// Returns whether a value of type `code` may be used where type `expected` is expected.
pub(super) fn is_usable_as(code: &TypeCode, expected: &TypeCode) -> bool {
    let expected = expected.unaliased();
    let mut at = code.unaliased();
    for _ in 0..=MAX_DEPTH {
        if at.equivalent(&expected) {
            return true;
        }
        match at.concrete_base_type() {
            Ok(Some(base)) => at = base.unaliased(),
            _ => break,
        }
    }
    // Type codes do not contain abstract bases, so any value type may have this type as a base.
    expected.type_modifier() == Ok(ValueModifier::Abstract)
        || expected.kind() == TcKind::AbstractInterface
        || is_value_base(&expected)
}

fn is_value_base(code: &TypeCode) -> bool {
    code.kind() == TcKind::Value && code.id() == Ok(ValueBase::REPOSITORY_ID)
}

impl Checker<'_> {
    fn graph_node(&self, node: u32) -> Result<&ValueNode, DynError> {
        let (index, len) = (node as usize, self.graph.nodes.len());
        self.graph.nodes.get(index).ok_or_else(|| DynErrorKind::Bounds { index, len }.into())
    }

    fn node(&self, node: &ValueNode) -> Result<(), DynError> {
        let members = value_members(&node.code)?;
        if members.len() != node.members.len() {
            return Err(DynErrorKind::Bounds { index: node.members.len(), len: members.len() }.into());
        }
        for ((code, name), value) in members.into_iter().zip(&node.members) {
            let result = self.value(&code.nodes, code.root, value, 0);
            result.map_err(|error| error.inside(Step::Member(name)))?;
        }
        Ok(())
    }

    fn value(&self, nodes: &Nodes, index: Index, value: &Value, depth: usize) -> Result<(), DynError> {
        if depth > MAX_DEPTH {
            return Err(DynErrorKind::Limit("values are nested more than 64 levels deep").into());
        }
        let mismatch = || {
            let wanted = TypeCode { nodes: nodes.clone(), root: index };
            DynError::new(DynErrorKind::TypeMismatch { wanted, found: value.kind_name().into() })
        };
        let check_bound = |len: usize, bound: u32| match bound as usize {
            bound if bound != 0 && len > bound => {
                Err(DynError::new(DynErrorKind::Bounds { index: len, len: bound }))
            }
            _ => Ok(()),
        };
        let unaliased = nodes.unaliased(index);
        match (nodes.at(unaliased), value) {
            (Node::Basic(kind), value) if value.basic_kind() == Some(*kind) => Ok(()),
            (Node::Basic(TcKind::Null), Value::Void) => Ok(()),
            (Node::Text { wide: false, bound }, Value::String(text)) => {
                if text.contains('\0') {
                    return Err(DynErrorKind::InvalidValue("a string contains a NUL character").into());
                }
                check_bound(text.bounded_len(), *bound)
            }
            (Node::Text { wide: true, bound }, Value::WString(text)) => {
                if text.as_wstr().has_nul() {
                    return Err(DynErrorKind::InvalidValue("a wstring contains a NUL character").into());
                }
                check_bound(text.bounded_len(), *bound)
            }
            (Node::Fixed { digits, scale }, Value::Fixed(number)) => {
                if (number.digits, number.scale) != (*digits, *scale) {
                    return Err(mismatch());
                }
                let limit = 10_u128.checked_pow(u32::from(*digits)).unwrap_or(u128::MAX);
                if number.unscaled.unsigned_abs() >= limit {
                    return Err(
                        DynErrorKind::InvalidValue("the number has too many digits for its type").into()
                    );
                }
                Ok(())
            }
            (Node::Sequence { element, bound }, Value::Items(items)) => {
                check_bound(items.len(), *bound)?;
                self.items(nodes, *element, items, depth, &mismatch)
            }
            (Node::Array { element, length }, Value::Items(items)) => {
                if items.len() != *length as usize {
                    let (wanted, found) = (*length as usize, items.len());
                    return Err(DynErrorKind::Length { wanted, found }.into());
                }
                self.items(nodes, *element, items, depth, &mismatch)
            }
            (Node::Named(named), value) => self.named(nodes, (unaliased, named), value, depth, &mismatch),
            _ => Err(mismatch()),
        }
    }

    fn named(
        &self,
        nodes: &Nodes,
        (index, named): (Index, &NamedType),
        value: &Value,
        depth: usize,
        mismatch: &dyn Fn() -> DynError,
    ) -> Result<(), DynError> {
        match (&named.body, value) {
            (Body::Members(members), Value::Struct(values)) => {
                if members.len() != values.len() {
                    return Err(mismatch());
                }
                for (member, value) in members.iter().zip(values) {
                    let result = self.value(nodes, member.ty, value, depth + 1);
                    result.map_err(|error| error.inside(Step::Member((*member.name).into())))?;
                }
                Ok(())
            }
            (Body::Union(union), Value::Union(value)) => {
                let labels = LabelEncoding::of_node(nodes, union.discriminator);
                if !labels.is_some_and(|labels| labels.is_valid(value.discriminator)) {
                    return Err(DynErrorKind::InvalidValue(NO_DISCRIMINATOR).into());
                }
                match (union.selected(value.discriminator), &value.value) {
                    (Some(member), Some(value)) => {
                        let result = self.value(nodes, member.ty, value, depth + 1);
                        result.map_err(|error| error.inside(Step::Member((*member.name).into())))
                    }
                    (None, None) => Ok(()),
                    (Some(_), None) => {
                        Err(DynErrorKind::InvalidValue("the selected member of the union is missing").into())
                    }
                    (None, Some(_)) => {
                        Err(DynErrorKind::InvalidValue("the member of the union is set, but not selected")
                            .into())
                    }
                }
            }
            (Body::Enumerators(names), Value::Enum(ordinal)) => {
                let (index, len) = (*ordinal as usize, names.len());
                if index < len { Ok(()) } else { Err(DynErrorKind::Bounds { index, len }.into()) }
            }
            (Body::Value(_) | Body::Content(_), Value::Node(None)) => Ok(()),
            (Body::Value(_) | Body::Content(_), Value::Node(Some(node))) => {
                let found = self.graph_node(*node)?;
                let expected = TypeCode { nodes: nodes.clone(), root: index };
                if is_usable_as(&found.code, &expected) { Ok(()) } else { Err(mismatch()) }
            }
            (Body::Opaque, value) => match (named.kind, value) {
                (TcKind::Native | TcKind::LocalInterface, _) => {
                    Err(DynErrorKind::Inconsistent("values of local and native types cannot be sent").into())
                }
                (TcKind::AbstractInterface, Value::Node(None)) => Ok(()),
                (TcKind::AbstractInterface, Value::Node(Some(node))) => self.graph_node(*node).map(drop),
                (_, Value::Object(_)) => Ok(()),
                _ => Err(mismatch()),
            },
            _ => Err(mismatch()),
        }
    }

    fn items(
        &self,
        nodes: &Nodes,
        element: Index,
        items: &Items,
        depth: usize,
        mismatch: &dyn Fn() -> DynError,
    ) -> Result<(), DynError> {
        let Items::Values(values) = items else {
            let kind = nodes.at(nodes.unaliased(element)).kind();
            return if items.element_kind() == Some(kind) { Ok(()) } else { Err(mismatch()) };
        };
        for (at, value) in values.iter().enumerate() {
            let result = self.value(nodes, element, value, depth + 1);
            result.map_err(|error| error.inside(Step::Index(at)))?;
        }
        Ok(())
    }
}

impl Items {
    /// Calls `f` with the elements as separate values.
    pub(super) fn edit<R>(&mut self, f: impl FnOnce(&mut Vec<Value>) -> R) -> R {
        let mut values = std::mem::replace(self, Items::Values(Vec::new())).into_values();
        let result = f(&mut values);
        *self = Items::Values(values);
        result
    }
}

impl Value {
    /// Returns a description of the value's kind for error messages.
    pub(super) fn kind_name(&self) -> String {
        let name = match self {
            Value::Void => "nothing",
            Value::String(_) => "a string",
            Value::WString(_) => "a wstring",
            Value::Enum(_) => "an enumerator",
            Value::Fixed(_) => "a fixed-point number",
            Value::Object(_) => "an object reference",
            Value::Struct(_) => "a struct",
            Value::Union(_) => "a union",
            Value::Items(_) => "a sequence or array",
            Value::Node(_) => "a value of a value type",
            basic => {
                let keyword = basic.basic_kind().map_or("value", TcKind::keyword);
                let article = if keyword.starts_with(['a', 'o', 'u']) { "an" } else { "a" };
                return format!("{article} {keyword}");
            }
        };
        name.to_owned()
    }
}
