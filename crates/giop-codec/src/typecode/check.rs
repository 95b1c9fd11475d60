//! What a program may not make type codes of ("The ORB Interface", "TypeCodes / Creating TypeCodes").

use core::fmt;
use std::collections::HashMap;

use super::decode::Labels;
use super::kind::TcKind;
use super::node::{Body, Builder, Index, Named, Node};
use super::set::UnionLabel;
use crate::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use crate::ior::MAX_REPOSITORY_ID;

/// Why there is no such type.
///
/// Becomes a [`SystemException`], completed `COMPLETED_NO`. Numbers of members count from zero, and union members once for
/// each label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateError {
    /// The repository id is none: not `format:text` in printable ASCII of at most 1024 octets, or empty where the type needs one (`BAD_PARAM`
    /// minor OMG 16).
    InvalidId,
    /// The name is no identifier of IDL; it may be empty (`BAD_PARAM` minor OMG 15).
    InvalidName,
    /// The name of this member or enumerator is no identifier, or another has it too, but for case (`BAD_PARAM` minor OMG 17).
    InvalidMember(usize),
    /// The label of this member is another's (`BAD_PARAM` minor OMG 18).
    DoubledLabel(usize),
    /// The label of this member is no value of the discriminator's type (`BAD_PARAM` minor OMG 19).
    LabelType(usize),
    /// No union has a discriminator of this type (`BAD_PARAM` minor OMG 20).
    Discriminator,
    /// Nothing is of the type of this member: it is `null`, `void` or an exception (`BAD_TYPECODE` minor OMG 2).
    MemberType(usize),
    /// Nothing is of the type of the elements, or of what an alias stands for or a value box holds (`BAD_TYPECODE` minor OMG
    /// 2).
    ContentType,
    /// The base of a value type is no value type (`BAD_TYPECODE` minor OMG 2).
    BaseType,
    /// A value of the type would contain another of the same type, and so on: not through a sequence, an object or a value
    /// type, or through nothing that has a name (`BAD_TYPECODE` minor OMG 2).
    Endless,
    /// A type is needed whole that is not made yet: of a discriminator, a base, or in an exception (`BAD_PARAM` minor OMG 13).
    Incomplete,
    /// A `fixed` has 1 to 31 digits, of which at most all are behind the point, and at most 31 zeros before it (`BAD_PARAM`).
    Digits,
    /// A type of a [`TypeSet`](super::TypeSet) was defined before (`BAD_PARAM`).
    Redefined,
    /// All type codes that were taken out of a [`TypeSet`](super::TypeSet), each with all that it is made of, would take over 256 MiB (`IMP_LIMIT`).
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

/// Refuses what is no id and no name of a type of this kind.
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

/// Whether it is `format:text`.
pub(super) fn repository_id(id: &str) -> bool {
    id.len() <= MAX_REPOSITORY_ID
        && id.bytes().all(|c| c.is_ascii_graphic())
        && id.split_once(':').is_some_and(|(format, text)| !format.is_empty() && !text.is_empty())
}

fn identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Refuses names that are no identifiers, and names that two have, of which `same` does not say that they are one member
/// for two labels. Names that are empty are none.
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

/// The type behind all aliases, if it is known.
fn behind(types: &Builder, mut index: Index) -> Option<&Node> {
    // One that is its own is behind none.
    for _ in 0..=types.len() {
        match types.get(index)? {
            Node::Named(Named { kind: TcKind::Alias, body: Body::Content(content), .. }) => index = *content,
            node => return Some(node),
        }
    }
    None
}

/// Whether there are values of the type. Of one that is not known yet there are.
pub(super) fn has_values(types: &Builder, index: Index) -> bool {
    let kind = behind(types, index).map(Node::kind);
    let recursive = matches!(behind(types, index), Some(Node::Recursive(_)));
    recursive || !matches!(kind, Some(TcKind::Null | TcKind::Void | TcKind::Except))
}

/// The labels that unions with this discriminator have.
pub(super) fn labels(types: &Builder, discriminator: Index) -> Result<Labels, CreateError> {
    match behind(types, discriminator).ok_or(CreateError::Incomplete)? {
        Node::Basic(kind) => Labels::of_basic(*kind).ok_or(CreateError::Discriminator),
        Node::Named(Named { body: Body::Enumerators(names), .. }) => {
            Ok(Labels::Enum(u32::try_from(names.len()).unwrap_or(u32::MAX)))
        }
        Node::Recursive(_) => Err(CreateError::Incomplete),
        _ => Err(CreateError::Discriminator),
    }
}

/// Refuses labels that are no values of the discriminator, and that come twice.
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

/// Refuses a base that is no value type, or not known yet.
pub(super) fn base(types: &Builder, index: Index) -> Result<(), CreateError> {
    match types.get(index) {
        Some(Node::Named(Named { body: Body::Value(_), .. })) => Ok(()),
        None | Some(Node::Recursive(_)) => Err(CreateError::Incomplete),
        Some(_) => Err(CreateError::BaseType),
    }
}

/// Refuses a type of which, or inside of which, are types whose values have no end.
pub(super) fn ends(types: &Builder, root: Index) -> Result<(), CreateError> {
    let circle = circular(types, root, Walk::Contained) || circular(types, root, Walk::Nameless);
    if circle { Err(CreateError::Endless) } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq)]
enum Walk {
    /// To types of which there is one value in each value.
    Contained,
    /// To types that are named by nothing on the way but aliases.
    Nameless,
    /// To all that there are.
    All,
}

/// Whether a way from a type that is reached leads back to it.
fn circular(types: &Builder, root: Index, walk: Walk) -> bool {
    /// How far a type is looked at.
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Open,
        Done,
    }
    let mut states: HashMap<Index, State> = HashMap::new();
    for start in reachable(types, root) {
        // A type comes back behind those that it leads to.
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

/// All types that a type is made of, itself first.
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
    let named = matches!(node, Node::Named(Named { kind, .. }) if *kind != TcKind::Alias);
    if walk == Walk::Nameless && named || walk == Walk::Contained && matches!(node, Node::Sequence { .. }) {
        return found;
    }
    // The base of a value is a part of it; a member that is a value is somewhere else.
    let base = match node {
        Node::Named(Named { body: Body::Value(value), .. }) => value.base,
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
