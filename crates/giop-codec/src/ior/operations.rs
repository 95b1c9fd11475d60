//! The component by which a zorb server announces that its operations may be called by number.

use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The maximum number of interfaces in one component; a component with more is not read.
pub const MAX_NUMBERED_INTERFACES: usize = 64;

/// The data of a component [`ZORB_OPERATIONS`](super::ComponentTag::ZORB_OPERATIONS). For the object's own
/// interface and its bases, it gives the position of their operations in the server's operation table.
///
/// If client and server have the same definition of an interface, a request may contain the number of an
/// operation, in decimal digits, instead of its name. No name in IDL begins with a digit. The definitions are
/// the same if the [digests](InterfaceNumbers::digest_of) of their operations are equal.
///
/// The component's data is an encapsulation: an `octet` with the [version](Self::VERSION), then a sequence of
/// [`InterfaceNumbers`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperationNumbers {
    /// The interfaces, at most [`MAX_NUMBERED_INTERFACES`].
    pub interfaces: Vec<InterfaceNumbers>,
}

/// The operations of one interface and their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceNumbers {
    /// [Hash](Self::interface_of) of the repository id.
    pub interface: u64,
    /// [Digest](Self::digest_of) of the names of the operations.
    pub digest: u64,
    /// The number of the first operation; the others follow in order.
    pub first: u32,
}

impl OperationNumbers {
    /// The version of the component.
    pub const VERSION: u8 = 1;

    /// Returns the number of the first operation of an interface. Returns `None` if the server does not have
    /// the interface, or not with these operations.
    pub fn first_of(&self, interface: u64, digest: u64) -> Option<u32> {
        let numbers = self.interfaces.iter().find(|numbers| numbers.interface == interface)?;
        (numbers.digest == digest).then_some(numbers.first)
    }
}

impl InterfaceNumbers {
    /// Creates the entry of an interface from its repository id and the names of its operations, in the order
    /// of their numbers.
    pub const fn new(repository_id: &str, operations: &[&str], first: u32) -> Self {
        Self { interface: Self::interface_of(repository_id), digest: Self::digest_of(operations), first }
    }

    /// Returns the hash of a repository id: 64-bit FNV-1a.
    pub const fn interface_of(repository_id: &str) -> u64 {
        hash(FNV_START, repository_id.as_bytes())
    }

    /// Returns the digest of the names of operations: 64-bit FNV-1a of each name followed by a NUL.
    pub const fn digest_of(operations: &[&str]) -> u64 {
        let mut state = FNV_START;
        let mut rest = operations;
        while let [name, behind @ ..] = rest {
            state = hash(hash(state, name.as_bytes()), b"\0");
            rest = behind;
        }
        state
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

const fn hash(mut state: u64, octets: &[u8]) -> u64 {
    let mut rest = octets;
    while let [octet, behind @ ..] = rest {
        state = (state ^ *octet as u64).wrapping_mul(0x0000_0100_0000_01b3);
        rest = behind;
    }
    state
}

impl CdrEncode for OperationNumbers {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u8(Self::VERSION);
        e.put_len(self.interfaces.len())?;
        for numbers in &self.interfaces {
            e.put_u64(numbers.interface);
            e.put_u64(numbers.digest);
            e.put_u32(numbers.first);
        }
        Ok(())
    }
}

impl CdrDecode for OperationNumbers {
    /// Version and count.
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if d.read_u8()? != Self::VERSION {
            return Err(d.error(DecodeErrorKind::Malformed));
        }
        let at = d.position();
        let count = d.read_len(20)?;
        if count > MAX_NUMBERED_INTERFACES {
            return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
        }
        let mut interfaces = Vec::with_capacity(count);
        for _ in 0..count {
            let (interface, digest) = (d.read_u64()?, d.read_u64()?);
            interfaces.push(InterfaceNumbers { interface, digest, first: d.read_u32()? });
        }
        Ok(Self { interfaces })
    }
}
