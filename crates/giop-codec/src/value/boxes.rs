//! [`StringValue`] and [`WStringValue`]: the value boxes of text in the standard module `CORBA`.

use super::header::STRING_VALUE;
use super::{Casts, Flow, Progress, Value, ValueType};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, WString};
use crate::typecode::{Definition, Shape, TypeDesc, Typed, WSTRING_VALUE};
use crate::{DecodeError, EncodeError};

/// `CORBA::StringValue`: a value box of a `string`.
#[doc(alias = "CORBA::StringValue")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringValue(pub String);

/// `CORBA::WStringValue`: a value box of a `wstring`, to which a Java `String` is mapped.
#[doc(alias = "CORBA::WStringValue")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WStringValue(pub WString);

macro_rules! value_box {
    ($name:ident, $content:ty, $id:expr, $short:literal) => {
        impl Typed for $name {
            const DESC: &'static TypeDesc = &TypeDesc::Defined(|| {
                static DEFINITION: Definition =
                    Definition::new($id, $short, Shape::ValueBox(<$content as Typed>::DESC));
                &DEFINITION
            });
        }

        impl ValueType for $name {
            const REPOSITORY_ID: &'static str = $id;
            const TYPE: Option<&'static TypeDesc> = Some(<$name as Typed>::DESC);
            const PART_COUNT: u32 = 1;

            fn casts(to: &mut Casts<'_>) {
                to.offer::<Self>(|value| value.downcast_ref());
            }

            fn encode_part(&self, _: u32, e: &mut Encoder, _: &mut Progress) -> Result<Flow, EncodeError> {
                self.0.encode(e).map(|()| Flow::Next)
            }

            fn decode_part(
                &mut self,
                _: u32,
                d: &mut Decoder<'_>,
                _: &mut Progress,
            ) -> Result<Flow, DecodeError> {
                self.0 = CdrDecode::decode(d)?;
                Ok(Flow::Next)
            }
        }

        impl From<$content> for $name {
            fn from(content: $content) -> $name {
                $name(content)
            }
        }

        impl From<$name> for Option<Value<$name>> {
            fn from(content: $name) -> Option<Value<$name>> {
                Some(Value::new(content))
            }
        }
    };
}

value_box!(StringValue, String, STRING_VALUE, "StringValue");
value_box!(WStringValue, WString, WSTRING_VALUE, "WStringValue");
