//! Value types and abstract interfaces.
//!
//! A [`Value`] is a graph that is passed by value, and may contain shared values, cycles and nulls. An
//! [`Abstract`] is the content of a handle to an abstract interface: an object or a value. This module also
//! re-exports what generated code and custom value types need.

use core::fmt;

use giop_codec::cdr::Nilable;
pub use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
pub use giop_codec::value::{
    AbstractForm, CustomMarshal, Extends, GraphBuilder, StringValue, Value, ValueBase, ValueForm, ValueRef,
    ValueType, WStringValue,
};
pub use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

use crate::reference::Reference;
use crate::reference::object::ObjectRef;

/// The content of a handle to an abstract interface ("Abstract Interfaces").
///
/// `V` represents the values that support the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abstract<V> {
    /// An object, by reference.
    Object(ObjectRef),
    /// A value.
    Value(Value<V>),
}

impl<V: ValueForm> Abstract<V> {
    /// Converts the content to the content of a handle to a base interface.
    pub fn upcast<B: ValueForm>(self) -> Abstract<B>
    where
        V: Extends<B>,
    {
        match self {
            Abstract::Object(object) => Abstract::Object(object),
            Abstract::Value(value) => Abstract::Value(value.upcast()),
        }
    }
}

/// The methods of every handle to an abstract interface. If an operation of the interface has the same name
/// as a method, the operation takes precedence.
///
/// An operation is called on the object, or on the value. If the value's type does not implement its
/// operations, the call fails with NO_IMPLEMENT, COMPLETED_NO.
#[doc(alias = "CORBA::AbstractBase")]
pub trait AbstractReference: AbstractForm + Clone + fmt::Debug + Send + Sync + 'static {
    /// The repository id of the interface.
    const REPOSITORY_ID: &'static str;

    /// Creates a handle from its content.
    fn from_abstract(content: Abstract<Self::Values>) -> Self;

    /// Returns the content of the handle.
    fn as_abstract(&self) -> &Abstract<Self::Values>;

    /// Creates a handle to an object, without checking the object's interface. If the object has another
    /// interface, calls raise BAD_OPERATION.
    fn from_object(object: impl Reference) -> Self {
        Self::from_abstract(Abstract::Object(object.as_object().clone()))
    }

    /// Returns the object, or `None` if the content is a value.
    #[doc(alias = "_to_object")]
    fn as_object(&self) -> Option<&ObjectRef> {
        match self.as_abstract() {
            Abstract::Object(object) => Some(object),
            Abstract::Value(_) => None,
        }
    }

    /// Returns the value, or `None` if the content is an object.
    #[doc(alias = "_to_value")]
    fn as_value(&self) -> Option<&Value<Self::Values>> {
        match self.as_abstract() {
            Abstract::Value(value) => Some(value),
            Abstract::Object(_) => None,
        }
    }

    /// Returns the value as a `D`, or `None` if the content is an object or a value of another type.
    fn downcast<D: ValueForm>(&self) -> Option<Value<D>> {
        self.as_value()?.downcast()
    }
}

/// The encoding is a boolean, and then a reference (TRUE) or a value (FALSE). Nil is encoded as a null value.
/// A nil reference is decoded as nil too.
impl<V: ValueForm> Nilable for Abstract<V> {
    const MIN_SIZE: usize = 5;

    fn encode_some(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(matches!(self, Abstract::Object(_)));
        match self {
            Abstract::Object(object) => object.encode(e),
            Abstract::Value(value) => value.encode_some(e),
        }
    }

    fn encode_nil(e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(false);
        <Value<V> as Nilable>::encode_nil(e)
    }

    fn decode_nilable(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        if d.read_bool()? {
            return Ok(ObjectRef::decode_nilable(d)?.map(Abstract::Object));
        }
        Ok(<Value<V> as Nilable>::decode_nilable(d)?.map(Abstract::Value))
    }
}

impl<V: ValueForm> CdrEncode for Abstract<V> {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.encode_some(e)
    }
}

/// Decodes a content that must not be nil. Nil is an error, which results in `INV_OBJREF`.
impl<V: ValueForm> CdrDecode for Abstract<V> {
    const MIN_SIZE: usize = <Self as Nilable>::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let at = d.position();
        Self::decode_nilable(d)?.ok_or_else(|| DecodeError::new(DecodeErrorKind::NilReference, at))
    }
}

/// Handles to abstract interfaces, which wrap this type, delegate to this implementation.
impl<V: ValueForm> AbstractForm for Abstract<V> {
    type Values = V;

    fn of_value(value: Value<V>) -> Self {
        Abstract::Value(value)
    }

    fn held_value(&self) -> Option<&Value<V>> {
        match self {
            Abstract::Value(value) => Some(value),
            Abstract::Object(_) => None,
        }
    }

    fn encode_object(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            Abstract::Object(object) => object.encode(e),
            // A value has no reference, so nil is encoded.
            Abstract::Value(_) => <ObjectRef as Nilable>::encode_nil(e),
        }
    }

    fn decode_object(d: &mut Decoder<'_>) -> Result<Option<Self>, DecodeError> {
        Ok(ObjectRef::decode_nilable(d)?.map(Abstract::Object))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use giop_codec::cdr::{CharSet, CodeSets, InvalidText};
    use giop_codec::ior::{IiopProfile, Ior};
    use giop_codec::value::DecodeContext;
    use giop_codec::{ByteOrder, Version};

    use super::*;
    use crate::Orb;

    type AnyAbstract = Abstract<ValueBase>;

    #[tokio::test]
    async fn invalid_text_is_handled_as_the_builder_configures() {
        for (handling, text) in [
            (InvalidText::Refuse, None),
            (InvalidText::Replace, Some("A\u{fffd}(")),
            (InvalidText::Latin1, Some("A\u{c3}(")),
        ] {
            let orb = Orb::builder().invalid_text(handling).build().await.unwrap();
            let core = Arc::clone(orb.core());
            let mut d =
                Decoder::new(b"\0\0\0\x04A\xc3(\0", ByteOrder::Big, Version::V1_2).with_context(&core);
            d.set_code_sets(CodeSets { char: CharSet::Utf8, wchar: None });
            assert_eq!(d.read_string().ok().as_deref(), text);
        }
    }

    #[tokio::test]
    async fn a_boolean_tells_references_from_values() {
        let orb = Orb::builder().build().await.unwrap();
        let core = Arc::clone(orb.core());
        assert!(core.factories().is_some());
        let profile = IiopProfile::new("h", 1, b"key".to_vec().into());
        let ior = Ior::from_profiles("IDL:A:1.0", &[profile]).unwrap();
        let object = ObjectRef::new(&core, ior);
        let value = Some(AnyAbstract::Object(object.clone()));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order, Version::V1_2);
            value.encode(&mut e).unwrap();
            None::<AnyAbstract>.encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let mut d = Decoder::new(&octets, order, Version::V1_2).with_context(&core);
            assert_eq!(Option::<AnyAbstract>::decode(&mut d).unwrap(), value);
            assert_eq!(Option::<AnyAbstract>::decode(&mut d).unwrap(), None);
            assert_eq!(d.remaining(), 0);
        }
        // omniORB encodes nil as a nil reference.
        let mut d =
            Decoder::new(&[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], ByteOrder::Big, Version::V1_2);
        assert_eq!(Option::<AnyAbstract>::decode(&mut d).unwrap(), None);
        let mut d = Decoder::new(&[0; 8], ByteOrder::Big, Version::V1_2);
        assert_eq!(AnyAbstract::decode(&mut d).unwrap_err().kind, DecodeErrorKind::NilReference);
    }
}
