//! The component by which a zorb server announces that its operations may be called by number.

use super::encapsulation::read_list;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The maximum number of interfaces in one component; a component with more is ignored.
pub const MAX_NUMBERED_INTERFACES: usize = 64;

/// The data of a component [`ZORB_OPERATIONS`](super::ComponentTag::ZORB_OPERATIONS): the positions of
/// operations in the server's operation table, for the object's own interface and its bases.
///
/// If client and server have the same definition of an interface, a request may contain the number of an
/// operation, in decimal digits, instead of its name. No name in IDL begins with a digit. Two definitions are
/// the same if the [digests](InterfaceNumbers::digest_of) of their operations are equal.
///
/// The component's data is an encapsulation: an `octet` with the [version](Self::VERSION), then a sequence of
/// [`InterfaceNumbers`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationNumbers {
    /// The interfaces, at most [`MAX_NUMBERED_INTERFACES`].
    pub interfaces: Vec<InterfaceNumbers>,
}

/// The numbers of the operations of one interface: their positions in the server's operation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceNumbers {
    /// The [hash](Self::id_hash_of) of the repository id.
    pub id_hash: u64,
    /// The [digest](Self::digest_of) of the names of the operations.
    pub digest: u64,
    /// The number of the first operation. The others have the numbers that follow it.
    pub first: u32,
}

impl OperationNumbers {
    /// The version of the component.
    pub const VERSION: u8 = 1;

    /// Returns the number of the first operation of the interface with this hash of its repository id.
    /// Returns `None` if the server does not have the interface, or its operations have another digest.
    pub fn first_of(&self, id_hash: u64, digest: u64) -> Option<u32> {
        let numbers = self.interfaces.iter().find(|numbers| numbers.id_hash == id_hash)?;
        (numbers.digest == digest).then_some(numbers.first)
    }
}

impl InterfaceNumbers {
    /// Creates the entry of an interface from its repository id and the names of its operations, in the order
    /// of their numbers.
    pub const fn new(repository_id: &str, operations: &[&str], first: u32) -> Self {
        Self { id_hash: Self::id_hash_of(repository_id), digest: Self::digest_of(operations), first }
    }

    /// Returns the hash of a repository id: 64-bit FNV-1a.
    pub const fn id_hash_of(repository_id: &str) -> u64 {
        hash(FNV_START, repository_id.as_bytes())
    }

    /// Returns the digest of the names of operations: 64-bit FNV-1a of all names, each followed by a NUL.
    pub const fn digest_of(operations: &[&str]) -> u64 {
        let mut state = FNV_START;
        let mut rest = operations;
        while let [name, tail @ ..] = rest {
            state = hash(hash(state, name.as_bytes()), b"\0");
            rest = tail;
        }
        state
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

const fn hash(mut state: u64, bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        state = (state ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        rest = tail;
    }
    state
}

impl CdrEncode for OperationNumbers {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u8(Self::VERSION);
        e.put_len(self.interfaces.len())?;
        for numbers in &self.interfaces {
            e.put_u64(numbers.id_hash);
            e.put_u64(numbers.digest);
            e.put_u32(numbers.first);
        }
        Ok(())
    }
}

impl CdrDecode for OperationNumbers {
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if d.read_u8()? != Self::VERSION {
            return Err(d.error(DecodeErrorKind::Malformed));
        }
        let interfaces = read_list(d, 20, MAX_NUMBERED_INTERFACES, |d| {
            let (id_hash, digest) = (d.read_u64()?, d.read_u64()?);
            Ok(InterfaceNumbers { id_hash, digest, first: d.read_u32()? })
        })?;
        Ok(Self { interfaces })
    }
}
