//! Checks that a tree is a value of its type.

use bytes::Bytes;

use super::build::MAX_DEPTH;
use super::{DynError, DynErrorKind, Dynamic, Items, Step, Value, ValueGraph};
use crate::cdr::BoundedContent;
use crate::typecode::{Body, Index, Labels, NamedType, Node, Nodes, TcKind, TypeCode, Typed, ValueModifier};
use crate::value::{BYTES, ValueBase, ValueForm};

impl Dynamic {
    /// Checks that the value is a value of its type.
    ///
    /// # Errors
    /// The fault and its path: [`TypeMismatch`](DynErrorKind::TypeMismatch),
    /// [`Bounds`](DynErrorKind::Bounds), [`InvalidValue`](DynErrorKind::InvalidValue),
    /// [`Limit`](DynErrorKind::Limit) for more than 64 levels.
    pub fn check(&self) -> Result<(), DynError> {
        let check = Check { graph: &self.graph };
        check.value(&self.code.nodes, self.code.root, &self.value, 0)?;
        for (at, node) in self.graph.nodes.iter().enumerate() {
            check
                .node(node)
                .map_err(|error| error.inside(Step::Node(u32::try_from(at).unwrap_or(u32::MAX))))?;
        }
        Ok(())
    }
}

/// Checks that the value is a value of the type.
pub(super) fn check_value(
    code: &TypeCode,
    value: &Value,
    graph: &ValueGraph,
    depth: usize,
) -> Result<(), DynError> {
    Check { graph }.value(&code.nodes, code.root, value, depth)
}

struct Check<'a> {
    graph: &'a ValueGraph,
}

/// The reason why a custom value cannot be created from a tree.
pub(super) const CUSTOM: &str = "what is in values of `custom` types only their authors know";

/// Returns whether these are the members of a custom value, which are the bytes of its state.
pub(super) fn is_custom(members: &[(TypeCode, Box<str>)]) -> bool {
    matches!(members, [(_, name)] if &**name == BYTES)
}

/// Returns the members of a value of a value type, those of its bases first: type and name of each.
///
/// # Errors
/// [`Inconsistent`](DynErrorKind::Inconsistent): no value has exactly this type.
pub(super) fn state(code: &TypeCode) -> Result<Vec<(TypeCode, Box<str>)>, DynError> {
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
            return Ok(vec![(Bytes::type_code(), BYTES.into())]);
        }
        let base = match at.concrete_base_type() {
            Ok(base) => base.map(|base| base.unaliased()),
            Err(_) => {
                return Err(DynErrorKind::Inconsistent("a node of the graph is of no value type").into());
            }
        };
        bases.push(at);
        if bases.len() > MAX_DEPTH {
            return Err(DynErrorKind::Limit("bases of a value type are nested over 64 deep").into());
        }
        match base {
            Some(base) => at = base,
            None => break,
        }
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

/// Returns whether values of the type `code` are also values of `from`.
pub(super) fn derives(code: &TypeCode, from: &TypeCode) -> bool {
    let from = from.unaliased();
    let mut at = code.unaliased();
    for _ in 0..=MAX_DEPTH {
        if at.equivalent(&from) {
            return true;
        }
        match at.concrete_base_type() {
            Ok(Some(base)) => at = base.unaliased(),
            _ => break,
        }
    }
    // Abstract bases are not part of type codes, so any value type may have this one as a base.
    from.type_modifier() == Ok(ValueModifier::Abstract)
        || from.kind() == TcKind::AbstractInterface
        || is_value_base(&from)
}

fn is_value_base(code: &TypeCode) -> bool {
    code.kind() == TcKind::Value && code.id() == Ok(ValueBase::REPOSITORY_ID)
}

impl Check<'_> {
    fn node(&self, node: &super::ValueNode) -> Result<(), DynError> {
        let state = state(&node.code)?;
        if state.len() != node.members.len() {
            return Err(DynErrorKind::Bounds { index: node.members.len(), len: state.len() }.into());
        }
        for ((code, name), value) in state.into_iter().zip(&node.members) {
            let done = self.value(&code.nodes, code.root, value, 0);
            done.map_err(|error| error.inside(Step::Member(name)))?;
        }
        Ok(())
    }

    fn value(&self, nodes: &Nodes, index: Index, value: &Value, depth: usize) -> Result<(), DynError> {
        if depth > MAX_DEPTH {
            return Err(DynErrorKind::Limit("values are nested over 64 deep").into());
        }
        let mismatch = || {
            let wanted = TypeCode { nodes: nodes.clone(), root: index };
            DynError::new(DynErrorKind::TypeMismatch { wanted, found: value.kind_name().into() })
        };
        let within = |len: usize, bound: u32| match bound {
            0 => Ok(()),
            bound if len <= bound as usize => Ok(()),
            bound => Err(DynError::new(DynErrorKind::Bounds { index: len, len: bound as usize })),
        };
        let unaliased = nodes.unaliased(index);
        match (nodes.at(unaliased), value) {
            (Node::Basic(kind), value) if value.basic_kind() == Some(*kind) => Ok(()),
            (Node::Basic(TcKind::Null), Value::Void) => Ok(()),
            (Node::Text { wide: false, bound }, Value::String(text)) => {
                if text.contains('\0') {
                    return Err(DynErrorKind::InvalidValue("a string contains a NUL character").into());
                }
                within(text.bounded_len(), *bound)
            }
            (Node::Text { wide: true, bound }, Value::WString(text)) => {
                if text.as_wstr().has_nul() {
                    return Err(DynErrorKind::InvalidValue("a wstring contains a NUL character").into());
                }
                within(text.bounded_len(), *bound)
            }
            (Node::Fixed { digits, scale }, Value::Fixed(number)) => {
                if (number.digits, number.scale) != (*digits, *scale) {
                    return Err(mismatch());
                }
                let most = 10_u128.checked_pow(u32::from(*digits)).unwrap_or(u128::MAX);
                if number.unscaled.unsigned_abs() < most {
                    Ok(())
                } else {
                    Err(DynErrorKind::InvalidValue("the number has more digits than its type").into())
                }
            }
            (Node::Sequence { element, bound }, Value::Items(items)) => {
                within(items.len(), *bound)?;
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
                    let done = self.value(nodes, member.kind, value, depth + 1);
                    done.map_err(|error| error.inside(Step::Member((*member.name).into())))?;
                }
                Ok(())
            }
            (Body::Union(union), Value::Union(value)) => {
                let labels = Labels::of_node(nodes, union.discriminator);
                if !labels.is_some_and(|labels| labels.has(value.discriminator)) {
                    return Err(
                        DynErrorKind::InvalidValue("the union's discriminator is none of its type").into()
                    );
                }
                match (union.selected(value.discriminator), &value.value) {
                    (Some(member), Some(value)) => {
                        let done = self.value(nodes, member.kind, value, depth + 1);
                        done.map_err(|error| error.inside(Step::Member((*member.name).into())))
                    }
                    (None, None) => Ok(()),
                    (Some(_), None) => Err(DynErrorKind::InvalidValue(
                        "the union's discriminator selects a member, and there is none",
                    )
                    .into()),
                    (None, Some(_)) => Err(DynErrorKind::InvalidValue(
                        "the union's discriminator selects no member, and there is one",
                    )
                    .into()),
                }
            }
            (Body::Enumerators(names), Value::Enum(ordinal)) => {
                if (*ordinal as usize) < names.len() {
                    Ok(())
                } else {
                    Err(DynErrorKind::Bounds { index: *ordinal as usize, len: names.len() }.into())
                }
            }
            (Body::Value(_) | Body::Content(_), Value::Node(None)) => Ok(()),
            (Body::Value(_) | Body::Content(_), Value::Node(Some(node))) => {
                let Some(found) = self.graph.nodes.get(*node as usize) else {
                    let len = self.graph.nodes.len();
                    return Err(DynErrorKind::Bounds { index: *node as usize, len }.into());
                };
                let place = TypeCode { nodes: nodes.clone(), root: index };
                if derives(&found.code, &place) { Ok(()) } else { Err(mismatch()) }
            }
            (Body::Opaque, value) => match (named.kind, value) {
                (TcKind::Native | TcKind::LocalInterface, _) => {
                    Err(DynErrorKind::Inconsistent("the type has no values outside of its process").into())
                }
                (TcKind::AbstractInterface, Value::Node(None)) => Ok(()),
                (TcKind::AbstractInterface, Value::Node(Some(node))) => {
                    let len = self.graph.nodes.len();
                    let index = *node as usize;
                    if index < len { Ok(()) } else { Err(DynErrorKind::Bounds { index, len }.into()) }
                }
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
            let done = self.value(nodes, element, value, depth + 1);
            done.map_err(|error| error.inside(Step::Index(at)))?;
        }
        Ok(())
    }
}

impl Items {
    /// Returns the element kind of contiguous elements.
    pub(super) fn element_kind(&self) -> Option<TcKind> {
        Some(match self {
            Items::Octets(_) => TcKind::Octet,
            Items::Chars(_) => TcKind::Char,
            Items::Shorts(_) => TcKind::Short,
            Items::UShorts(_) => TcKind::UShort,
            Items::Longs(_) => TcKind::Long,
            Items::ULongs(_) => TcKind::ULong,
            Items::LongLongs(_) => TcKind::LongLong,
            Items::ULongLongs(_) => TcKind::ULongLong,
            Items::Floats(_) => TcKind::Float,
            Items::Doubles(_) => TcKind::Double,
            _ => return None,
        })
    }

    /// Converts to separate values and calls `f` to change them.
    pub(super) fn edit<R>(&mut self, f: impl FnOnce(&mut Vec<Value>) -> R) -> R {
        let mut values = std::mem::replace(self, Items::Values(Vec::new())).into_values();
        let done = f(&mut values);
        *self = Items::Values(values);
        done
    }
}

impl Value {
    /// Returns the kind of a value if the kind fully describes its type.
    pub(super) fn basic_kind(&self) -> Option<TcKind> {
        Some(match self {
            Value::Void => TcKind::Void,
            Value::Boolean(_) => TcKind::Boolean,
            Value::Octet(_) => TcKind::Octet,
            Value::Short(_) => TcKind::Short,
            Value::UShort(_) => TcKind::UShort,
            Value::Long(_) => TcKind::Long,
            Value::ULong(_) => TcKind::ULong,
            Value::LongLong(_) => TcKind::LongLong,
            Value::ULongLong(_) => TcKind::ULongLong,
            Value::Float(_) => TcKind::Float,
            Value::Double(_) => TcKind::Double,
            Value::LongDouble(_) => TcKind::LongDouble,
            Value::Char(_) => TcKind::Char,
            Value::WChar(_) => TcKind::WChar,
            Value::Any(_) => TcKind::Any,
            Value::TypeCode(_) => TcKind::TypeCode,
            Value::Principal(_) => TcKind::Principal,
            _ => return None,
        })
    }

    /// Returns a description of the value's kind for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Value::Void => "nothing",
            Value::Boolean(_) => "a boolean",
            Value::Octet(_) => "an octet",
            Value::Short(_) => "a short",
            Value::UShort(_) => "an unsigned short",
            Value::Long(_) => "a long",
            Value::ULong(_) => "an unsigned long",
            Value::LongLong(_) => "a long long",
            Value::ULongLong(_) => "an unsigned long long",
            Value::Float(_) => "a float",
            Value::Double(_) => "a double",
            Value::LongDouble(_) => "a long double",
            Value::Char(_) => "a char",
            Value::WChar(_) => "a wchar",
            Value::String(_) => "a string",
            Value::WString(_) => "a wstring",
            Value::Enum(_) => "an enumerator",
            Value::Fixed(_) => "a fixed-point number",
            Value::Any(_) => "an any",
            Value::TypeCode(_) => "a type code",
            Value::Object(_) => "an object reference",
            Value::Struct(_) => "a struct",
            Value::Union(_) => "a union",
            Value::Items(_) => "a sequence or array",
            Value::Node(_) => "a value of a value type",
            Value::Principal(_) => "a principal",
        }
    }
}
