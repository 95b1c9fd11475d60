//! Conversion of values of generated types to bytes and back.
#![allow(dead_code, reason = "helpers of tests; not every one needs all of them")]

use std::fmt::Debug;

use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};

/// Encodes and decodes in both byte orders, at each possible phase, and cut after each of the first bytes.
pub(crate) fn round_trip<T: CdrEncode + CdrDecode + PartialEq + Debug>(value: &T) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for phase in 0..8 {
            let mut e = Encoder::new(order, Version::V1_2);
            e.put_raw(&[7; 8][..phase]);
            value.encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).at(phase);
            assert_eq!(&T::decode(&mut d).unwrap(), value);
            assert_eq!(d.remaining(), 0);
            for cut in phase..octets.len().min(1_000) {
                let cut = octets.slice(..cut);
                assert!(T::decode(&mut Decoder::from_bytes(&cut, order, Version::V1_2).at(phase)).is_err());
            }
        }
    }
}

pub(crate) fn encoded(value: &impl CdrEncode) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    value.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

pub(crate) fn decoded<T: CdrDecode>(octets: &[u8]) -> Result<T, DecodeErrorKind> {
    T::decode(&mut Decoder::new(octets, ByteOrder::Big, Version::V1_2)).map_err(|error| error.kind)
}
