//! The target of a name, and its encoding in a file.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use zorb::cos_naming::BindingType;

use super::ContextId;

/// The target of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object: its IOR as an encapsulation, or empty for nil.
    Object(Bytes),
    /// A context of this service.
    Context(ContextId),
    /// A context of another service: its IOR as an encapsulation.
    Foreign(Bytes),
    /// Several objects, of which each caller gets one.
    Group(Group),
}

/// Several objects under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The selection of the member for a caller.
    pub strategy: Strategy,
    /// The objects, by their names.
    pub members: Vec<Member>,
}

impl Group {
    /// The maximum number of members of a group.
    pub const MAX_MEMBERS: usize = 1000;

    /// The maximum number of bytes of the names and references of all members.
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
    /// Its name within the group.
    pub name: String,
    /// Its IOR as an encapsulation.
    pub object: Bytes,
}

/// The selection of the member of a group for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The members in turn.
    RoundRobin,
    /// The member that reports the least load.
    LeastLoaded,
    /// The same member for all calls from one address, while it is in the group.
    ByClient,
}

impl Strategy {
    const ALL: [Self; 3] = [Self::RoundRobin, Self::LeastLoaded, Self::ByClient];
}

impl Member {
    /// Returns the number of bytes of its name and its reference.
    pub(super) fn size(&self) -> usize {
        self.name.len() + self.object.len()
    }
}

impl Target {
    /// Returns the number of bytes of its names and references.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Object(object) | Self::Foreign(object) => object.len(),
            Self::Context(_) => 8,
            Self::Group(group) => group.members.iter().map(Member::size).sum(),
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

    /// Encodes it for a file: a kind, then its contents.
    pub(super) fn write(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Object(octets) => {
                out.put_u8(0);
                out.put_slice(octets);
            }
            Self::Context(ContextId(id)) => {
                out.put_u8(1);
                out.put_u64(*id);
            }
            Self::Foreign(octets) => {
                out.put_u8(2);
                out.put_slice(octets);
            }
            Self::Group(Group { strategy, members }) => {
                out.put_u8(3);
                out.put_u8(*strategy as u8);
                for member in members {
                    put(&mut out, member.name.as_bytes());
                    put(&mut out, &member.object);
                }
            }
        }
        out.freeze()
    }

    /// Decodes a target.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (kind, mut rest) = octets.split_first()?;
        Some(match kind {
            0 => Self::Object(Bytes::copy_from_slice(rest)),
            1 => Self::Context(ContextId(u64::from_be_bytes(rest.try_into().ok()?))),
            2 => Self::Foreign(Bytes::copy_from_slice(rest)),
            3 => {
                let strategy = *Strategy::ALL.get(usize::from(rest.try_get_u8().ok()?))?;
                let mut members = Vec::new();
                while !rest.is_empty() {
                    let name = String::from_utf8(take(&mut rest)?.to_vec()).ok()?;
                    members.push(Member { name, object: Bytes::copy_from_slice(take(&mut rest)?) });
                }
                Self::Group(Group { strategy, members })
            }
            _ => return None,
        })
    }
}

/// Returns the checksum of a stored binding and of its name.
pub(super) fn checksum(context: u64, key: &str, octets: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&context.to_be_bytes());
    sum.update(key.as_bytes());
    sum.update(octets);
    sum.finalize()
}

/// Writes a length, then the bytes.
pub(super) fn put(out: &mut impl BufMut, octets: &[u8]) {
    // Names and references come from messages, which are far shorter.
    out.put_u32(u32::try_from(octets.len()).unwrap_or(u32::MAX));
    out.put_slice(octets);
}

pub(super) fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(rest.try_get_u32().ok()?).ok()?;
    let (octets, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_back_from_their_octets_and_cut_ones_do_not() {
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
            assert_eq!(Target::read(&target.write()).as_ref(), Some(target));
        }
        let whole = targets[5].write();
        let cut: Vec<_> = (2..whole.len()).filter(|end| Target::read(&whole[..*end]).is_some()).collect();
        // After the strategy, and between two members.
        assert_eq!(cut, [2, 2 + 4 + 1 + 4 + 11]);
        assert_eq!(Target::read(&Target::Context(ContextId(1)).write()[..8]), None);
        assert_eq!((Target::read(&[]), Target::read(&[9]), Target::read(&[3, 9])), (None, None, None));
    }
}
