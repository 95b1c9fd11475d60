//! Checks of types that are created at run time ("The ORB Interface", "TypeCodes / Creating TypeCodes").

use std::collections::{HashMap, HashSet};

use super::kind::TcKind;
use super::node::{Body, Builder, Index, NamedType, Node};
use super::set::UnionLabel;
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::ior::MAX_REPOSITORY_ID_BYTES;
use crate::program::LabelEncoding;

/// The reason why a type cannot be created.
///
/// Becomes a [`SystemException`] with `COMPLETED_NO`. Members are counted from 0, union members per label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The repository id is not `format:text` in printable ASCII of at most 1024 bytes, or it is empty
    /// although the type requires one (`BAD_PARAM` minor OMG 16).
    #[error("the repository id of the type is invalid")]
    InvalidId,
    /// The name is neither empty nor an identifier of IDL (`BAD_PARAM` minor OMG 15).
    #[error("the name of the type is not an IDL identifier")]
    InvalidName,
    /// The name of this member or enumerator is not an identifier, or equals another one if case is ignored
    /// (`BAD_PARAM` minor OMG 17).
    #[error("the name of member {0} is not an IDL identifier, or is used twice")]
    InvalidMember(usize),
    /// A member before this one has the same label (`BAD_PARAM` minor OMG 18).
    #[error("the label of member {0} is used twice")]
    DuplicateLabel(usize),
    /// The label of this member is not a value of the discriminator's type (`BAD_PARAM` minor OMG 19).
    #[error("the label of member {0} is not a value of the discriminator's type")]
    LabelType(usize),
    /// The type cannot be the discriminator of a union (`BAD_PARAM` minor OMG 20).
    #[error("the type cannot be the discriminator of a union")]
    Discriminator,
    /// The type of this member, such as `void`, has no values (`BAD_TYPECODE` minor OMG 2).
    #[error("the type of member {0} has no values")]
    MemberType(usize),
    /// The element type or content type has no values (`BAD_TYPECODE` minor OMG 2).
    #[error("the element type or content type has no values")]
    ContentType,
    /// A value, or its base, is neither a value type nor an event type (`BAD_TYPECODE` minor OMG 2).
    #[error("the value or its base is neither a value type nor an event type")]
    BaseType,
    /// The type contains itself in a way that no finite value could have (`BAD_TYPECODE` minor OMG 2).
    /// Recursion must pass through a type with a name, and through a sequence or a value type.
    #[error("the type contains itself without a sequence or value type in between, or without a named type")]
    InfiniteType,
    /// The type, or a part of it that must be complete, is not defined yet (`BAD_PARAM` minor OMG 13).
    #[error("a complete type is required, but a part of it is not defined yet")]
    Incomplete,
    /// The `fixed` must have 1 to 31 digits, and a scale from -31 to that number (`BAD_PARAM`).
    #[error("a fixed must have 1 to 31 digits, and a scale from -31 to the number of digits")]
    Digits,
    /// The type of a [`TypeSet`](super::TypeSet) is already defined (`BAD_PARAM`).
    #[error("the type is already defined")]
    Redefined,
    /// The type codes of a [`TypeSet`](super::TypeSet) would take more than 256 MiB together (`IMP_LIMIT`).
    #[error("the type codes requested from this set of types would take more than 256 MiB together")]
    TooLarge,
}

impl CreateError {
    fn exception(self) -> (SystemExceptionKind, MinorCode) {
        use SystemExceptionKind::{BadParam, BadTypecode, ImpLimit};
        match self {
            CreateError::InvalidId => (BadParam, minor::BAD_PARAM_TYPECODE_ID),
            CreateError::InvalidName => (BadParam, minor::BAD_PARAM_TYPECODE_NAME),
            CreateError::InvalidMember(_) => (BadParam, minor::BAD_PARAM_MEMBER_NAME),
            CreateError::DuplicateLabel(_) => (BadParam, minor::BAD_PARAM_DUPLICATE_LABEL),
            CreateError::LabelType(_) => (BadParam, minor::BAD_PARAM_LABEL_TYPE),
            CreateError::Discriminator => (BadParam, minor::BAD_PARAM_DISCRIMINATOR),
            CreateError::MemberType(_)
            | CreateError::ContentType
            | CreateError::BaseType
            | CreateError::InfiniteType => (BadTypecode, minor::BAD_TYPECODE_MEMBER),
            CreateError::Incomplete => (BadParam, minor::BAD_PARAM_INCOMPLETE_TYPECODE),
            CreateError::Digits | CreateError::Redefined => (BadParam, MinorCode::NONE),
            CreateError::TooLarge => (ImpLimit, MinorCode::NONE),
        }
    }
}

impl From<CreateError> for SystemException {
    fn from(error: CreateError) -> SystemException {
        let (kind, minor) = error.exception();
        SystemException::new(kind, minor, CompletionStatus::No).with_source(error)
    }
}

pub(super) fn check_id_and_name(kind: TcKind, id: &str, name: &str) -> Result<(), CreateError> {
    let is_id_optional = matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Alias);
    if !(id.is_empty() && is_id_optional || is_repository_id(id)) {
        return Err(CreateError::InvalidId);
    }
    if !(name.is_empty() || is_identifier(name)) {
        return Err(CreateError::InvalidName);
    }
    Ok(())
}

/// Returns whether the id has the form `format:text`, in printable ASCII without spaces, and is not too long.
pub(super) fn is_repository_id(id: &str) -> bool {
    id.len() <= MAX_REPOSITORY_ID_BYTES
        && id.bytes().all(|c| c.is_ascii_graphic())
        && id.split_once(':').is_some_and(|(format, text)| !format.is_empty() && !text.is_empty())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Rejects invalid names, and equal names unless `is_same` returns true for the indices of their members.
pub(super) fn check_names<'a>(
    names: impl Iterator<Item = &'a str>,
    is_same: impl Fn(usize, usize) -> bool,
) -> Result<(), CreateError> {
    let mut seen = HashMap::new();
    for (index, name) in names.enumerate().filter(|(_, name)| !name.is_empty()) {
        let first = *seen.entry(name.to_ascii_lowercase()).or_insert(index);
        if !is_identifier(name) || first != index && !is_same(first, index) {
            return Err(CreateError::InvalidMember(index));
        }
    }
    Ok(())
}

/// Returns whether the type has values. A type that is not defined yet counts as a type with values.
pub(super) fn has_values(types: &Builder, index: Index) -> bool {
    match types.unaliased(index) {
        None | Some(Node::Placeholder(_)) => true,
        Some(node) => !matches!(node.kind(), TcKind::Null | TcKind::Void | TcKind::Except),
    }
}

pub(super) fn check_discriminator(
    types: &Builder,
    discriminator: Index,
) -> Result<LabelEncoding, CreateError> {
    match types.unaliased(discriminator) {
        None | Some(Node::Placeholder(_)) => Err(CreateError::Incomplete),
        Some(node) => LabelEncoding::of(node).ok_or(CreateError::Discriminator),
    }
}

/// Rejects duplicate labels, and labels that are not values of the discriminator's type.
pub(super) fn check_labels(
    labels: LabelEncoding,
    members: impl Iterator<Item = UnionLabel>,
) -> Result<(), CreateError> {
    let mut seen = HashSet::new();
    for (index, label) in members.enumerate() {
        if matches!(label, UnionLabel::Case(label) if !labels.is_valid(label)) {
            return Err(CreateError::LabelType(index));
        }
        if !seen.insert(label) {
            return Err(CreateError::DuplicateLabel(index));
        }
    }
    Ok(())
}

pub(super) fn check_base(types: &Builder, index: Index) -> Result<(), CreateError> {
    match types.get(index) {
        Some(Node::Named(NamedType { body: Body::Value(_), .. })) => Ok(()),
        None | Some(Node::Placeholder(_)) => Err(CreateError::Incomplete),
        Some(_) => Err(CreateError::BaseType),
    }
}

/// Rejects a type that contains itself in such a way that it has no finite value or no finite description.
pub(super) fn check_finite(types: &Builder, root: Index) -> Result<(), CreateError> {
    let is_infinite = has_cycle(types, root, Edges::Contained) || has_cycle(types, root, Edges::Nameless);
    if is_infinite { Err(CreateError::InfiniteType) } else { Ok(()) }
}

/// Which references between types a search follows.
#[derive(Clone, Copy, PartialEq)]
enum Edges {
    /// References to types whose values are a part of the values of the referring type.
    Contained,
    /// References from types without a name, and from aliases.
    Nameless,
    All,
}

fn has_cycle(types: &Builder, root: Index, edges: Edges) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Open,
        Done,
    }
    let mut states: HashMap<Index, State> = HashMap::new();
    for start in reachable(types, root) {
        // Each type is pushed again before the types that it refers to, so it is done at its second pop.
        let mut pending = vec![(start, false)];
        while let Some((index, is_second)) = pending.pop() {
            if is_second {
                states.insert(index, State::Done);
                continue;
            }
            match states.get(&index) {
                Some(State::Done) => continue,
                Some(State::Open) => return true,
                None => {}
            }
            states.insert(index, State::Open);
            pending.push((index, true));
            for next in successors(types, index, edges) {
                match states.get(&next) {
                    Some(State::Open) => return true,
                    Some(State::Done) => {}
                    None => pending.push((next, false)),
                }
            }
        }
    }
    false
}

/// Returns the type at `root` and all types that it consists of.
pub(super) fn reachable(types: &Builder, root: Index) -> Vec<Index> {
    let mut seen = HashSet::from([root]);
    let mut found = vec![root];
    let mut visited = 0;
    while let Some(index) = found.get(visited).copied() {
        found.extend(successors(types, index, Edges::All).into_iter().filter(|next| seen.insert(*next)));
        visited += 1;
    }
    found
}

fn successors(types: &Builder, index: Index, edges: Edges) -> Vec<Index> {
    let Some(node) = types.get(index) else { return Vec::new() };
    let mut found = Vec::new();
    let is_named = matches!(node, Node::Named(NamedType { kind, .. }) if *kind != TcKind::Alias);
    let is_sequence = matches!(node, Node::Sequence { .. });
    if edges == Edges::Nameless && is_named || edges == Edges::Contained && is_sequence {
        return found;
    }
    // A value type contains the members of its base, but only refers to members that are value types.
    let base = match node {
        Node::Named(NamedType { body: Body::Value(value), .. }) => value.base,
        _ => None,
    };
    node.for_each_index(|next| {
        let is_value = match types.get(next) {
            Some(Node::Named(named)) => {
                matches!(named.body, Body::Value(_)) || named.kind == TcKind::ValueBox
            }
            _ => false,
        };
        if edges != Edges::Contained || !is_value {
            found.push(next);
        }
    });
    found.extend(base.filter(|_| edges == Edges::Contained));
    found
}
