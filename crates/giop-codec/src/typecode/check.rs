//! Checks of the types that a program creates ("The ORB Interface", "TypeCodes / Creating TypeCodes").

use std::collections::{HashMap, HashSet};

use super::kind::TcKind;
use super::node::{Body, Builder, Index, NamedType, Node};
use super::set::UnionLabel;
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::ior::MAX_REPOSITORY_ID;
use crate::program::Labels;

/// The reason why a type cannot be created.
///
/// Converts to a [`SystemException`] with `COMPLETED_NO`. Members are numbered from zero, and union members
/// once for each label.
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
    /// The name of this member or enumerator is not an identifier, or equals another one except for case
    /// (`BAD_PARAM` minor OMG 17).
    #[error("the name of member {0} is not an IDL identifier, or is used twice")]
    InvalidMember(usize),
    /// The label of this member is also that of another member (`BAD_PARAM` minor OMG 18).
    #[error("the label of member {0} is used twice")]
    DoubledLabel(usize),
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
    /// The base of a value type is not a value type (`BAD_TYPECODE` minor OMG 2).
    #[error("the base of the value type is not a value type")]
    BaseType,
    /// Every value of the type would contain another one (`BAD_TYPECODE` minor OMG 2). Recursion needs a type
    /// with a name, and a sequence, an object or a value type.
    #[error("every value of the type would contain another one")]
    Endless,
    /// A discriminator, base or member of an exception is not defined yet (`BAD_PARAM` minor OMG 13).
    #[error("a complete type is required, but it is not defined yet")]
    Incomplete,
    /// Not 1 to 31 digits, or a scale below -31 or above the number of digits (`BAD_PARAM`).
    #[error("a fixed must have 1 to 31 digits, and a scale of -31 up to the number of digits")]
    Digits,
    /// A type of a [`TypeSet`](super::TypeSet) is already defined (`BAD_PARAM`).
    #[error("the type is already defined")]
    Redefined,
    /// All type codes of a [`TypeSet`](super::TypeSet) would take over 256 MiB together (`IMP_LIMIT`).
    #[error("the type codes, each with all types in it, would take more than 256 MiB")]
    TooLarge,
}

impl CreateError {
    fn exception(self) -> (SystemExceptionKind, MinorCode) {
        use SystemExceptionKind::{BadParam, BadTypecode, ImpLimit};
        match self {
            CreateError::InvalidId => (BadParam, minor::BAD_PARAM_TYPECODE_ID),
            CreateError::InvalidName => (BadParam, minor::BAD_PARAM_TYPECODE_NAME),
            CreateError::InvalidMember(_) => (BadParam, minor::BAD_PARAM_MEMBER_NAME),
            CreateError::DoubledLabel(_) => (BadParam, minor::BAD_PARAM_DUPLICATE_LABEL),
            CreateError::LabelType(_) => (BadParam, minor::BAD_PARAM_LABEL_TYPE),
            CreateError::Discriminator => (BadParam, minor::BAD_PARAM_DISCRIMINATOR),
            CreateError::MemberType(_)
            | CreateError::ContentType
            | CreateError::BaseType
            | CreateError::Endless => (BadTypecode, minor::BAD_TYPECODE_MEMBER),
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

pub(super) fn id_and_name(kind: TcKind, id: &str, name: &str) -> Result<(), CreateError> {
    let optional = matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Alias);
    if !(id.is_empty() && optional || is_repository_id(id)) {
        return Err(CreateError::InvalidId);
    }
    if !(name.is_empty() || is_identifier(name)) {
        return Err(CreateError::InvalidName);
    }
    Ok(())
}

/// Returns whether the id has the form `format:text`.
pub(super) fn is_repository_id(id: &str) -> bool {
    id.len() <= MAX_REPOSITORY_ID
        && id.bytes().all(|c| c.is_ascii_graphic())
        && id.split_once(':').is_some_and(|(format, text)| !format.is_empty() && !text.is_empty())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Rejects invalid names, and equal ones unless `is_same` returns that they are those of one member.
pub(super) fn names<'a>(
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

/// Returns whether the type has values. A type that is not defined yet is assumed to have values.
pub(super) fn has_values(types: &Builder, index: Index) -> bool {
    match types.unaliased(index) {
        None | Some(Node::Recursive(_)) => true,
        Some(node) => !matches!(node.kind(), TcKind::Null | TcKind::Void | TcKind::Except),
    }
}

pub(super) fn discriminator(types: &Builder, discriminator: Index) -> Result<Labels, CreateError> {
    match types.unaliased(discriminator) {
        None | Some(Node::Recursive(_)) => Err(CreateError::Incomplete),
        Some(node) => Labels::of(node).ok_or(CreateError::Discriminator),
    }
}

/// Rejects duplicate labels, and labels that are not values of the discriminator.
pub(super) fn labels(labels: Labels, members: impl Iterator<Item = UnionLabel>) -> Result<(), CreateError> {
    let mut seen = HashSet::new();
    for (index, label) in members.enumerate() {
        if matches!(label, UnionLabel::Case(label) if !labels.has(label)) {
            return Err(CreateError::LabelType(index));
        }
        if !seen.insert(label) {
            return Err(CreateError::DoubledLabel(index));
        }
    }
    Ok(())
}

pub(super) fn base(types: &Builder, index: Index) -> Result<(), CreateError> {
    match types.get(index) {
        Some(Node::Named(NamedType { body: Body::Value(_), .. })) => Ok(()),
        None | Some(Node::Recursive(_)) => Err(CreateError::Incomplete),
        Some(_) => Err(CreateError::BaseType),
    }
}

/// Rejects a type that consists of types with only infinite values.
pub(super) fn finite(types: &Builder, root: Index) -> Result<(), CreateError> {
    let endless = has_cycle(types, root, Edges::Contained) || has_cycle(types, root, Edges::Nameless);
    if endless { Err(CreateError::Endless) } else { Ok(()) }
}

/// The references between types that a search follows.
#[derive(Clone, Copy, PartialEq)]
enum Edges {
    /// To types of which each value of the referring type contains a value.
    Contained,
    /// From types without a name, and from aliases.
    Nameless,
    All,
}

/// Returns whether a cycle of these references is reachable from `root`.
fn has_cycle(types: &Builder, root: Index, edges: Edges) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Open,
        Done,
    }
    let mut states: HashMap<Index, State> = HashMap::new();
    for start in reachable(types, root) {
        // A type is pushed again before the types that it refers to, so that it is done after them.
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

/// Returns all types that a type consists of, itself first.
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
    // A value contains the members of its base. It only refers to a member that is a value.
    let base = match node {
        Node::Named(NamedType { body: Body::Value(value), .. }) => value.base,
        _ => None,
    };
    node.indices(|next| {
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
