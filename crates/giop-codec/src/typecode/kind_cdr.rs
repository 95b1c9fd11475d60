//! [`TcKind`] in CDR: IDL may declare members of type `CORBA::TCKind`.

use super::desc::{Definition, Shape, TypeDesc};
use super::kind::TcKind;
use super::typed::Typed;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, FixedLayout, FixedReader, FixedWriter, Layout};
use crate::error::{DecodeError, EncodeError};

impl FixedLayout for TcKind {
    const LAYOUT: Layout = Layout::primitive(4, 4);

    #[inline(always)]
    fn put(&self, writer: &mut FixedWriter<'_>) {
        writer.put_u32(self.number());
    }

    #[inline(always)]
    fn get(reader: &mut FixedReader<'_>) -> Self {
        match TcKind::from_number(reader.read_u32()) {
            Some(kind) => kind,
            None => {
                reader.fail();
                TcKind::Null
            }
        }
    }
}

impl CdrEncode for TcKind {
    #[inline]
    fn encode(&self, encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.put_fixed(self);
        Ok(())
    }

    #[inline]
    fn encode_slice(items: &[Self], encoder: &mut Encoder) -> Result<(), EncodeError> {
        encoder.put_fixed_slice(items);
        Ok(())
    }
}

impl CdrDecode for TcKind {
    const MIN_SIZE: usize = <Self as FixedLayout>::LAYOUT.min_size();

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.read_fixed()
    }

    #[inline]
    fn decode_vec(decoder: &mut Decoder<'_>, n: usize) -> Result<Vec<Self>, DecodeError> {
        decoder.read_fixed_vec(n)
    }

    #[inline]
    fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        decoder.read_fixed()
    }
}

impl Typed for TcKind {
    const DESC: &'static TypeDesc = &TypeDesc::Defined(|| {
        static DEFINITION: Definition =
            Definition::new("IDL:omg.org/CORBA/TCKind:1.0", "TCKind", Shape::Enum(TcKind::OMG_NAMES));
        &DEFINITION
    });
}

#[cfg(test)]
mod tests {
    use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
    use crate::typecode::{TcKind, TypeCode, Typed};
    use crate::{ByteOrder, Version};

    #[test]
    fn kinds_travel_as_their_numbers_in_both_orders() {
        for (order, expected) in [
            (ByteOrder::Big, [0, 0, 0, 2, 0, 0, 0, 36, 0, 0, 0, 14]),
            (ByteOrder::Little, [2, 0, 0, 0, 36, 0, 0, 0, 14, 0, 0, 0]),
        ] {
            let kinds = [TcKind::Short, TcKind::Event, TcKind::ObjRef];
            let mut encoder = Encoder::new(order, Version::V1_2);
            TcKind::encode_slice(&kinds, &mut encoder).unwrap();
            let bytes = encoder.into_bytes();
            assert_eq!(bytes[..], expected);
            let read = TcKind::decode_vec(&mut Decoder::new(&bytes, order, Version::V1_2), 3).unwrap();
            assert_eq!(read, kinds);
        }
        let unknown = [0, 0, 0, 37];
        assert!(TcKind::decode(&mut Decoder::new(&unknown, ByteOrder::Big, Version::V1_2)).is_err());
    }

    #[test]
    fn the_type_code_is_that_of_the_enum_of_the_standard() {
        let code = TcKind::type_code();
        assert_eq!((code.kind(), code.id().unwrap()), (TcKind::Enum, "IDL:omg.org/CORBA/TCKind:1.0"));
        assert_eq!(code.member_count().unwrap(), 37);
        assert_eq!(code.member_name(12).unwrap(), "tk_TypeCode");
        assert_eq!(code, TypeCode::of_desc(TcKind::DESC));
    }
}
