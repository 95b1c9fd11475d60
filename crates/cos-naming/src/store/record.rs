//! [`Target`], to which a name is bound, and its encoding in stores.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use zorb::cos_naming::BindingType;

use super::ContextId;

/// The target to which a name is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object: the CDR encapsulation of its IOR, or no bytes for a nil reference.
    Object(Bytes),
    /// A context of this service.
    Context(ContextId),
    /// A context of another naming service: the CDR encapsulation of its IOR.
    RemoteContext(Bytes),
    /// Several objects, of which each client that resolves the name gets one.
    Group(Group),
}

/// Several objects that are bound to one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// How a member is selected for each client.
    pub strategy: Strategy,
    /// The objects with their names.
    pub members: Vec<Member>,
}

impl Group {
    /// The maximum number of members of a group.
    pub const MAX_MEMBERS: usize = 1000;

    /// The maximum total size, in bytes, of the names and references of all members.
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
    /// The CDR encapsulation of the object's IOR.
    pub object: Bytes,
}

/// How a member of a group is selected for each client that resolves its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The members are selected in turn.
    RoundRobin,
    /// The member with the least reported load is selected.
    LeastLoaded,
    /// All calls from one IP address get the same member, unless members join or leave the group.
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
            Self::Object(object) | Self::RemoteContext(object) => object.len(),
            Self::Context(_) => 8,
            Self::Group(group) => group.members.iter().map(Member::byte_size).sum(),
        }
    }

    /// Returns the binding type that the operation `list` returns.
    #[must_use]
    pub fn binding_type(&self) -> BindingType {
        match self {
            Self::Object(_) | Self::Group(_) => BindingType::Nobject,
            Self::Context(_) | Self::RemoteContext(_) => BindingType::Ncontext,
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
            Self::RemoteContext(reference) => {
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
            2 => Self::RemoteContext(Bytes::copy_from_slice(rest)),
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
    // Cannot fail: names, references and groups are much shorter than 4 GiB.
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
            Target::RemoteContext(Bytes::from_static(b"\x01")),
            Target::Group(Group::new(Strategy::RoundRobin)),
            Target::Group(group),
        ];
        for target in &targets {
            assert_eq!(Target::decode(&target.encode()).as_ref(), Some(target));
        }
        let whole = targets[5].encode();
        let cut: Vec<_> = (2..whole.len()).filter(|end| Target::decode(&whole[..*end]).is_some()).collect();
        // A group that ends after its strategy or between two members is valid.
        assert_eq!(cut, [2, 2 + 4 + 1 + 4 + 11]);
        assert_eq!(Target::decode(&Target::Context(ContextId(1)).encode()[..8]), None);
        assert_eq!((Target::decode(&[]), Target::decode(&[9]), Target::decode(&[3, 9])), (None, None, None));
    }
}
