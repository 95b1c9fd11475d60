//! Checks of the types that a program creates ("The ORB Interface", "TypeCodes / Creating TypeCodes").

use core::fmt;
use std::collections::HashMap;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateError {
    /// The repository id is invalid: not `format:text` in printable ASCII of at most 1024 bytes, or empty
    /// where the type requires one (`BAD_PARAM` minor OMG 16).
    InvalidId,
    /// The name is not an identifier of IDL; it may be empty (`BAD_PARAM` minor OMG 15).
    InvalidName,
    /// The name of this member or enumerator is not an identifier, or equals another one except for case
    /// (`BAD_PARAM` minor OMG 17).
    InvalidMember(usize),
    /// The label of this member is also that of another member (`BAD_PARAM` minor OMG 18).
    DoubledLabel(usize),
    /// The label of this member is not a value of the discriminator's type (`BAD_PARAM` minor OMG 19).
    LabelType(usize),
    /// The type cannot be the discriminator of a union (`BAD_PARAM` minor OMG 20).
    Discriminator,
    /// The type of this member has no values: it is `null`, `void` or an exception (`BAD_TYPECODE` minor OMG
    /// 2).
    MemberType(usize),
    /// The element type, or the content type of an alias or value box, has no values (`BAD_TYPECODE` minor
    /// OMG 2).
    ContentType,
    /// The base of a value type is not a value type (`BAD_TYPECODE` minor OMG 2).
    BaseType,
    /// A value of the type would contain another value of the same type, without end (`BAD_TYPECODE` minor
    /// OMG 2). Recursion is allowed only through a sequence, an object or a value type, and only through a
    /// type with a name.
    Endless,
    /// A type is not defined yet where a complete one is required: as a discriminator, a base, or in an
    /// exception (`BAD_PARAM` minor OMG 13).
    Incomplete,
    /// Invalid digits of a `fixed`. It has 1 to 31 digits, of which at most all are after the decimal point,
    /// and at most 31 zeros before the point (`BAD_PARAM`).
    Digits,
    /// A type of a [`TypeSet`](super::TypeSet) is already defined (`BAD_PARAM`).
    Redefined,
    /// All type codes taken from a [`TypeSet`](super::TypeSet), each with all the types that it consists of,
    /// would take over 256 MiB (`IMP_LIMIT`).
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

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::InvalidId => f.write_str("the repository id of a type is none"),
            CreateError::InvalidName => f.write_str("the name of a type is no identifier of IDL"),
            CreateError::InvalidMember(at) => {
                write!(f, "the name of member {at} is no identifier of IDL, or another member has it too")
            }
            CreateError::DoubledLabel(at) => write!(f, "the label of member {at} is another member's"),
            CreateError::LabelType(at) => {
                write!(f, "the label of member {at} is no value of the discriminator's type")
            }
            CreateError::Discriminator => f.write_str("no union has a discriminator of this type"),
            CreateError::MemberType(at) => write!(f, "nothing is of the type of member {at}"),
            CreateError::ContentType => f.write_str("nothing is of the type inside of the type"),
            CreateError::BaseType => f.write_str("the base of a value type is no value type"),
            CreateError::Endless => f.write_str("a value of the type would contain others without an end"),
            CreateError::Incomplete => f.write_str("a type is needed whole that is not made yet"),
            CreateError::Digits => f.write_str("a fixed has 1 to 31 digits, and no more behind its point"),
            CreateError::Redefined => f.write_str("the type was defined before"),
            CreateError::TooLarge => {
                f.write_str("all type codes, each with all that it is made of, would take over 256 MiB")
            }
        }
    }
}

impl std::error::Error for CreateError {}

/// Rejects an invalid id or name for a type of this kind.
pub(super) fn id_and_name(kind: TcKind, id: &str, name: &str) -> Result<(), CreateError> {
    let optional = matches!(kind, TcKind::Struct | TcKind::Union | TcKind::Enum | TcKind::Alias);
    if !(id.is_empty() && optional || repository_id(id)) {
        return Err(CreateError::InvalidId);
    }
    if !(name.is_empty() || identifier(name)) {
        return Err(CreateError::InvalidName);
    }
    Ok(())
}

/// Returns whether the id has the form `format:text`.
pub(super) fn repository_id(id: &str) -> bool {
    id.len() <= MAX_REPOSITORY_ID
        && id.bytes().all(|c| c.is_ascii_graphic())
        && id.split_once(':').is_some_and(|(format, text)| !format.is_empty() && !text.is_empty())
}

fn identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Rejects names that are not identifiers, and names used twice unless `same` returns that both are one
/// member with two labels. Empty names are allowed.
pub(super) fn names<'a>(
    names: impl Iterator<Item = &'a str>,
    same: impl Fn(usize, usize) -> bool,
) -> Result<(), CreateError> {
    let mut met = HashMap::new();
    for (at, name) in names.enumerate() {
        if name.is_empty() {
            continue;
        }
        let first = *met.entry(name.to_ascii_lowercase()).or_insert(at);
        if !identifier(name) || first != at && !same(first, at) {
            return Err(CreateError::InvalidMember(at));
        }
    }
    Ok(())
}

/// Resolves all aliases and returns the type, if it is known.
fn behind(types: &Builder, mut index: Index) -> Option<&Node> {
    // The loop is bounded, because an alias may be an alias of itself.
    for _ in 0..=types.len() {
        match types.get(index)? {
            Node::Named(NamedType { kind: TcKind::Alias, body: Body::Content(content), .. }) => {
                index = *content
            }
            node => return Some(node),
        }
    }
    None
}

/// Returns whether the type has values. A type that is not known yet is assumed to have values.
pub(super) fn has_values(types: &Builder, index: Index) -> bool {
    let kind = behind(types, index).map(Node::kind);
    let recursive = matches!(behind(types, index), Some(Node::Recursive(_)));
    recursive || !matches!(kind, Some(TcKind::Null | TcKind::Void | TcKind::Except))
}

/// Returns the labels that unions with this discriminator have.
pub(super) fn labels(types: &Builder, discriminator: Index) -> Result<Labels, CreateError> {
    match behind(types, discriminator).ok_or(CreateError::Incomplete)? {
        Node::Basic(kind) => Labels::of_basic(*kind).ok_or(CreateError::Discriminator),
        Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
            Ok(Labels::Enum(u32::try_from(names.len()).unwrap_or(u32::MAX)))
        }
        Node::Recursive(_) => Err(CreateError::Incomplete),
        _ => Err(CreateError::Discriminator),
    }
}

/// Rejects duplicate labels, and labels that are not values of the discriminator.
pub(super) fn distinct(labels: Labels, members: impl Iterator<Item = UnionLabel>) -> Result<(), CreateError> {
    let mut met = HashMap::new();
    for (at, label) in members.enumerate() {
        if let UnionLabel::Case(label) = label
            && !labels.has(label)
        {
            return Err(CreateError::LabelType(at));
        }
        if met.insert(label, at).is_some() {
            return Err(CreateError::DoubledLabel(at));
        }
    }
    Ok(())
}

/// Rejects a base that is not a value type, or not known yet.
pub(super) fn base(types: &Builder, index: Index) -> Result<(), CreateError> {
    match types.get(index) {
        Some(Node::Named(NamedType { body: Body::Value(_), .. })) => Ok(()),
        None | Some(Node::Recursive(_)) => Err(CreateError::Incomplete),
        Some(_) => Err(CreateError::BaseType),
    }
}

/// Rejects a type that consists of types whose values are infinite.
pub(super) fn ends(types: &Builder, root: Index) -> Result<(), CreateError> {
    let circle = circular(types, root, Walk::Contained) || circular(types, root, Walk::Nameless);
    if circle { Err(CreateError::Endless) } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq)]
enum Walk {
    /// Follows types of which each value contains a value.
    Contained,
    /// Follows types until one that has a name, other than an alias.
    Nameless,
    /// Follows all types.
    All,
}

/// Returns whether a cycle is reachable from `root`.
fn circular(types: &Builder, root: Index, walk: Walk) -> bool {
    /// The progress of the search in a type.
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Open,
        Done,
    }
    let mut states: HashMap<Index, State> = HashMap::new();
    for start in reachable(types, root) {
        // A type is pushed again before the types that it refers to, and so is finished after them.
        let mut waiting = vec![(start, false)];
        while let Some((index, back)) = waiting.pop() {
            if back {
                states.insert(index, State::Done);
                continue;
            }
            match states.get(&index) {
                Some(State::Done) => continue,
                Some(State::Open) => return true,
                None => {}
            }
            states.insert(index, State::Open);
            waiting.push((index, true));
            for next in next(types, index, walk) {
                match states.get(&next) {
                    Some(State::Open) => return true,
                    Some(State::Done) => {}
                    None => waiting.push((next, false)),
                }
            }
        }
    }
    false
}

/// Returns all types that a type consists of, itself first.
pub(super) fn reachable(types: &Builder, root: Index) -> Vec<Index> {
    let mut met = std::collections::HashSet::from([root]);
    let mut found = vec![root];
    let mut at = 0;
    while let Some(index) = found.get(at).copied() {
        found.extend(next(types, index, Walk::All).into_iter().filter(|next| met.insert(*next)));
        at += 1;
    }
    found
}

fn next(types: &Builder, index: Index, walk: Walk) -> Vec<Index> {
    let Some(node) = types.get(index) else { return Vec::new() };
    let mut found = Vec::new();
    let named = matches!(node, Node::Named(NamedType { kind, .. }) if *kind != TcKind::Alias);
    if walk == Walk::Nameless && named || walk == Walk::Contained && matches!(node, Node::Sequence { .. }) {
        return found;
    }
    // The base of a value is a part of it. A member that is a value is stored separately.
    let base = match node {
        Node::Named(NamedType { body: Body::Value(value), .. }) => value.base,
        _ => None,
    };
    node.indices(|next| {
        let shared = match types.get(next) {
            Some(Node::Named(named)) => {
                matches!(named.body, Body::Value(_)) || named.kind == TcKind::ValueBox
            }
            _ => false,
        };
        if walk != Walk::Contained || !shared {
            found.push(next);
        }
    });
    found.extend(base.filter(|_| walk == Walk::Contained));
    found
}
