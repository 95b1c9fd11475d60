//! The values that are encoded and decoded: sequences of six element types.

use clap::ValueEnum;
use serde::Serialize;
use zorb::__private::v1::{CdrEncode, Encoder};
use zorb::wire::{ByteOrder, Version};
use zorb::{Bytes, Char, Seq, Typed};

/// The struct of the literature.
#[allow(missing_docs, reason = "generated")]
pub mod idl {
    zorb::idl! {
        /// Padded to 32 bytes, a power of two.
        struct BinStruct { short s; char c; long l; octet o; double d; octet pad[8]; };
    }
}

pub use idl::BinStruct;

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// 2-byte integer
    Short,
    /// 1 byte of text
    Char,
    /// 4-byte integer
    Long,
    /// 1 byte, opaque
    Octet,
    /// 8-byte floating-point number
    Double,
    /// `struct { short s; char c; long l; octet o; double d; octet pad[8]; }`, 32 bytes
    #[value(name = "binstruct")]
    BinStruct,
}

/// The byte order of encoded values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The byte order of this machine
    Native,
    /// The opposite byte order
    Foreign,
}

/// A sequence, with its encoding and its elements in memory.
#[derive(Debug, Clone)]
pub struct Case {
    pub(crate) kind: ElementType,
    pub(crate) order: Order,
    pub(crate) count: usize,
    /// The type code of the sequence, encoded in this machine's byte order.
    pub(crate) code: Bytes,
    /// The encoding of the sequence, which compiled code wrote.
    pub(crate) wire: Bytes,
    /// The elements in C's memory layout.
    pub(crate) memory: Vec<u8>,
}

impl ElementType {
    /// All types, in the order of the literature.
    pub const ALL: [ElementType; 6] =
        [Self::Short, Self::Char, Self::Long, Self::Octet, Self::Double, Self::BinStruct];

    pub(crate) fn bytes(self) -> usize {
        match self {
            ElementType::Char | ElementType::Octet => 1,
            ElementType::Short => 2,
            ElementType::Long => 4,
            ElementType::Double => 8,
            ElementType::BinStruct => 32,
        }
    }

    /// Returns the name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::Short => "short",
            ElementType::Char => "char",
            ElementType::Long => "long",
            ElementType::Octet => "octet",
            ElementType::Double => "double",
            ElementType::BinStruct => "BinStruct",
        }
    }

    /// Returns whether the byte at `index` of an element in memory is padding.
    fn is_padding(self, index: usize) -> bool {
        self == ElementType::BinStruct && matches!(index, 3 | 9..16)
    }
}

impl Order {
    /// Both orders.
    pub const ALL: [Order; 2] = [Order::Native, Order::Foreign];

    pub(crate) fn byte_order(self) -> ByteOrder {
        match (self, ByteOrder::NATIVE) {
            (Order::Native, native) => native,
            (Order::Foreign, ByteOrder::Big) => ByteOrder::Little,
            (Order::Foreign, ByteOrder::Little) => ByteOrder::Big,
        }
    }
}

impl Case {
    /// Returns a sequence with as many elements as fit into `bytes` bytes, but at least one element.
    pub fn new(kind: ElementType, order: Order, bytes: usize) -> Case {
        let count = (bytes / kind.bytes()).max(1);
        let (code, wire) = match kind {
            ElementType::Short => code_and_wire(&shorts(count), order),
            ElementType::Char => code_and_wire(&chars(count), order),
            ElementType::Long => code_and_wire(&longs(count), order),
            ElementType::Octet => code_and_wire(&octets(count), order),
            ElementType::Double => code_and_wire(&doubles(count), order),
            ElementType::BinStruct => code_and_wire(&structs(count), order),
        };
        let memory = match kind {
            ElementType::Short => shorts(count).iter().flat_map(|x| x.to_ne_bytes()).collect(),
            ElementType::Char => chars(count).iter().map(|x| x.0).collect(),
            ElementType::Long => longs(count).iter().flat_map(|x| x.to_ne_bytes()).collect(),
            ElementType::Octet => octets(count).to_vec(),
            ElementType::Double => doubles(count).iter().flat_map(|x| x.to_ne_bytes()).collect(),
            ElementType::BinStruct => structs(count).iter().flat_map(memory_layout).collect(),
        };
        Case { kind, order, count, code, wire, memory }
    }

    pub(crate) fn swaps_bytes(&self) -> bool {
        self.order == Order::Foreign
    }

    pub(crate) fn bytes(&self) -> usize {
        self.count * self.kind.bytes()
    }

    /// Returns the FNV-1a hash of the encoding, for comparison with the encodings of other ORBs.
    pub fn digest(&self) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.wire.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// Returns whether `memory` contains the elements. Padding is ignored.
    pub(crate) fn matches_memory(&self, memory: &[u8]) -> bool {
        let size = self.kind.bytes();
        memory.len() >= self.memory.len()
            && memory
                .iter()
                .zip(&self.memory)
                .enumerate()
                .all(|(index, (a, b))| a == b || self.kind.is_padding(index % size))
    }
}

pub(super) fn shorts(count: usize) -> Seq<i16> {
    (0..count).map(|i| i as i16).collect()
}

pub(super) fn chars(count: usize) -> Seq<Char> {
    (0..count).map(|i| Char(crate::test_loops::pattern(i))).collect()
}

pub(super) fn longs(count: usize) -> Seq<i32> {
    (0..count).map(|i| (i as i32).wrapping_mul(7919)).collect()
}

pub(super) fn octets(count: usize) -> Bytes {
    (0..count).map(|i| i as u8).collect()
}

pub(super) fn doubles(count: usize) -> Seq<f64> {
    (0..count).map(|i| i as f64 / 3.0).collect()
}

pub(super) fn structs(count: usize) -> Vec<BinStruct> {
    let one = |i: usize| BinStruct {
        s: i as i16,
        c: Char(crate::test_loops::pattern(i)),
        l: (i as i32).wrapping_mul(7919),
        o: i as u8,
        d: i as f64 / 3.0,
        pad: [i as u8; 8],
    };
    (0..count).map(one).collect()
}

/// Returns the struct in C's memory layout.
pub(super) fn memory_layout(x: &BinStruct) -> [u8; 32] {
    let mut memory = [0; 32];
    memory[..2].copy_from_slice(&x.s.to_ne_bytes());
    memory[2] = x.c.0;
    memory[4..8].copy_from_slice(&x.l.to_ne_bytes());
    memory[8] = x.o;
    memory[16..24].copy_from_slice(&x.d.to_ne_bytes());
    memory[24..].copy_from_slice(&x.pad);
    memory
}

/// Returns the encodings of the value's type code and of the value.
fn code_and_wire<T: Typed + CdrEncode>(value: &T, order: Order) -> (Bytes, Bytes) {
    (encoded(&T::type_code(), ByteOrder::NATIVE), encoded(value, order.byte_order()))
}

/// Encodes a value by compiled code, which cannot fail for the types in this file.
fn encoded<T: CdrEncode>(value: &T, order: ByteOrder) -> Bytes {
    let mut encoder = Encoder::new(order, Version::V1_2);
    match value.encode(&mut encoder) {
        Ok(()) => encoder.into_bytes(),
        Err(_) => Bytes::new(),
    }
}
