//! The target of a name, and its encoding in stores.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use zorb::cos_naming::BindingType;

use super::ContextId;

/// The target of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object: the CDR encapsulation of its IOR, or no bytes for a nil reference.
    Object(Bytes),
    /// A context of this service.
    Context(ContextId),
    /// A context of another service: the CDR encapsulation of its IOR.
    Foreign(Bytes),
    /// Several objects, of which each caller gets one.
    Group(Group),
}

/// Several objects under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// How the member for a caller is selected.
    pub strategy: Strategy,
    /// The objects with their names.
    pub members: Vec<Member>,
}

impl Group {
    /// The maximum number of members of a group.
    pub const MAX_MEMBERS: usize = 1000;

    /// The maximum total size of the names and references of all members.
    pub const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// Creates a group without members.
    #[must_use]
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, members: Vec::new() }
    }
}

/// An object of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name of the object within the group.
    pub name: String,
    /// The CDR encapsulation of its IOR.
    pub object: Bytes,
}

/// How the member of a group for a caller is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The members in turn.
    RoundRobin,
    /// The member that reports the least load.
    LeastLoaded,
    /// The same member for all calls from one IP address, until the member leaves the group.
    ByClient,
}

impl Strategy {
    const ALL: [Self; 3] = [Self::RoundRobin, Self::LeastLoaded, Self::ByClient];
}

impl Member {
    pub(super) fn byte_size(&self) -> usize {
        self.name.len() + self.object.len()
    }
}

impl Target {
    pub(super) fn byte_size(&self) -> usize {
        match self {
            Self::Object(object) | Self::Foreign(object) => object.len(),
            Self::Context(_) => 8,
            Self::Group(group) => group.members.iter().map(Member::byte_size).sum(),
        }
    }

    /// Returns the type that `list` reports.
    #[must_use]
    pub fn binding_type(&self) -> BindingType {
        match self {
            Self::Object(_) | Self::Group(_) => BindingType::Nobject,
            Self::Context(_) | Self::Foreign(_) => BindingType::Ncontext,
        }
    }

    /// Encodes the target for a store: a byte for its kind, followed by its contents.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Object(reference) => {
                out.put_u8(0);
                out.put_slice(reference);
            }
            Self::Context(ContextId(id)) => {
                out.put_u8(1);
                out.put_u64(*id);
            }
            Self::Foreign(reference) => {
                out.put_u8(2);
                out.put_slice(reference);
            }
            Self::Group(Group { strategy, members }) => {
                out.put_u8(3);
                out.put_u8(*strategy as u8);
                for member in members {
                    put_bytes(&mut out, member.name.as_bytes());
                    put_bytes(&mut out, &member.object);
                }
            }
        }
        out.freeze()
    }

    /// Decodes a target. Returns `None` if the bytes are invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        Some(match kind {
            0 => Self::Object(Bytes::copy_from_slice(rest)),
            1 => Self::Context(ContextId(u64::from_be_bytes(rest.try_into().ok()?))),
            2 => Self::Foreign(Bytes::copy_from_slice(rest)),
            3 => {
                let strategy = *Strategy::ALL.get(usize::from(rest.try_get_u8().ok()?))?;
                let mut members = Vec::new();
                while !rest.is_empty() {
                    let name = String::from_utf8(take_bytes(&mut rest)?.to_vec()).ok()?;
                    members.push(Member { name, object: Bytes::copy_from_slice(take_bytes(&mut rest)?) });
                }
                Self::Group(Group { strategy, members })
            }
            _ => return None,
        })
    }
}

/// Returns one checksum of a context's id, a name in it, and the stored bytes of its target.
pub(super) fn checksum(context: u64, key: &str, bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&context.to_be_bytes());
    sum.update(key.as_bytes());
    sum.update(bytes);
    sum.finalize()
}

pub(super) fn put_bytes(out: &mut impl BufMut, bytes: &[u8]) {
    // Cannot fail: names and references come from messages, which are much shorter.
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

pub(super) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    let (bytes, remaining) = rest.split_at_checked(len)?;
    *rest = remaining;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_targets_are_decoded_and_truncated_ones_are_rejected() {
        let member =
            |name: &str| Member { name: name.to_owned(), object: Bytes::from_static(b"\x01 reference") };
        let group = Group { strategy: Strategy::ByClient, members: vec![member("a"), member("ö")] };
        let targets = [
            Target::Object(Bytes::new()),
            Target::Object(Bytes::from_static(b"\x01\x02")),
            Target::Context(ContextId(7)),
            Target::Foreign(Bytes::from_static(b"\x01")),
            Target::Group(Group::new(Strategy::RoundRobin)),
            Target::Group(group),
        ];
        for target in &targets {
            assert_eq!(Target::decode(&target.encode()).as_ref(), Some(target));
        }
        let whole = targets[5].encode();
        let cut: Vec<_> = (2..whole.len()).filter(|end| Target::decode(&whole[..*end]).is_some()).collect();
        // The end after the strategy, and the end between two members, cannot be detected here.
        assert_eq!(cut, [2, 2 + 4 + 1 + 4 + 11]);
        assert_eq!(Target::decode(&Target::Context(ContextId(1)).encode()[..8]), None);
        assert_eq!((Target::decode(&[]), Target::decode(&[9]), Target::decode(&[3, 9])), (None, None, None));
    }
}
