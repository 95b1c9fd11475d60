//! Value types: graphs that travel by value, with sharing, cycles and null.
//!
//! See [`Value`]. What generated code and custom value types need besides is here too.

pub use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
pub use giop_codec::value::{
    CustomMarshal, Extends, GraphBuilder, Value, ValueBase, ValueForm, ValueRef, ValueType,
};
pub use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

use giop_codec::cdr::Nilable;

use crate::reference::Reference;

/// What is passed where IDL names an abstract interface ("Abstract Interfaces"): a reference to an object that has it, or a value
/// that supports it.
///
/// `R` is the reference of the interface, `V` stands for the values that support it.
#[derive(Clone, Debug, PartialEq)]
pub enum Abstract<R, V> {
    /// An object, by reference.
    Object(R),
    /// A value.
    Value(Value<V>),
}

impl<R, V> Abstract<R, V> {
    /// The reference, if it is one.
    pub fn object(&self) -> Option<&R> {
        match self {
            Abstract::Object(object) => Some(object),
            Abstract::Value(_) => None,
        }
    }

    /// The value, if it is one.
    pub fn value(&self) -> Option<&Value<V>> {
        match self {
            Abstract::Value(value) => Some(value),
            Abstract::Object(_) => None,
        }
    }
}

impl<R: Reference, V> From<R> for Abstract<R, V> {
    fn from(object: R) -> Self {
        Abstract::Object(object)
    }
}

impl<R: Reference, V: ValueForm, W: Extends<V>> From<Value<W>> for Abstract<R, V> {
    fn from(value: Value<W>) -> Self {
        Abstract::Value(value.upcast())
    }
}

/// A boolean that tells which of the two follows; nil is a null value, as which a nil reference is taken too.
impl<R: Reference, V: ValueForm> Nilable for Abstract<R, V> {
    const MIN_SIZE: usize = 5;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(self.object().is_some());
        match self {
            Abstract::Object(object) => object.as_object().encode(e),
            Abstract::Value(value) => value.encode_some(e),
        }
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(false);
        <Value<V> as Nilable>::encode_nil(e)
    }

    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        if d.read_bool()? {
            let object = crate::ObjectRef::decode_nilable(d)?;
            return Ok(object.map(|object| Abstract::Object(R::from_object(object))));
        }
        Ok(<Value<V> as Nilable>::decode_nilable(d)?.map(Abstract::Value))
    }
}

impl<R: Reference, V: ValueForm> CdrEncode for Abstract<R, V> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.encode_some(e)
    }
}

/// Of places where nil is no value: `INV_OBJREF`.
impl<R: Reference, V: ValueForm> CdrDecode for Abstract<R, V> {
    const MIN_SIZE: usize = <Self as Nilable>::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let at = d.position();
        Self::decode_nilable(d)?.ok_or_else(|| DecodeError::new(DecodeErrorKind::NilReference, at))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use giop_codec::cdr::DecodeContext;
    use giop_codec::ior::{IiopProfile, Ior};
    use giop_codec::{ByteOrder, Version};

    use super::*;
    use crate::{ObjectRef, Orb};

    type Any = Abstract<ObjectRef, ValueBase>;

    #[tokio::test]
    async fn a_boolean_tells_references_from_values() {
        let orb = Orb::builder().build().await.unwrap();
        let core = Arc::clone(orb.core());
        assert!(core.factories().is_some());
        let profile = IiopProfile::new("h", 1, b"key".to_vec().into());
        let ior = Ior::from_profiles("IDL:A:1.0", &[profile]).unwrap();
        let object = ObjectRef::new(&core, ior);
        let value = Some(Any::from(object.clone()));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order, Version::V1_2);
            value.encode(&mut e).unwrap();
            None::<Any>.encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let mut d = Decoder::new(&octets, order, Version::V1_2).with_context(&core);
            assert_eq!(Option::<Any>::decode(&mut d).unwrap(), value);
            assert_eq!(Option::<Any>::decode(&mut d).unwrap(), None);
            assert_eq!(d.remaining(), 0);
        }
        // omniORB says nil by a nil reference.
        let mut d =
            Decoder::new(&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], ByteOrder::Big, Version::V1_2);
        assert_eq!(Option::<Any>::decode(&mut d).unwrap(), None);
        let mut d = Decoder::new(&[0; 8], ByteOrder::Big, Version::V1_2);
        assert_eq!(Any::decode(&mut d).unwrap_err().kind, DecodeErrorKind::NilReference);
    }
}
