//! Access to the content of a `DynAny` by methods for each basic type.

use bytes::Bytes;

use super::super::check::check_value;
use super::super::{DynError, Items, Value};
use super::{DynAny, mismatch};
use crate::any::Any;
use crate::cdr::{Char, LongDouble, Seq, WChar, WString};
use crate::ior::Ior;
use crate::typecode::TypeCode;

macro_rules! basic_accessors {
    ($($get:ident $insert:ident $rust:ty, $what:literal, $found:pat => $out:expr, $value:ident => $in:expr;)*) => {
        /// Access to values of one type. The methods apply to the value itself, or to its current component
        /// if its type has components.
        impl DynAny {
            $(
                #[doc = concat!("Returns the value, if it is of type ", $what, ".")]
                ///
                /// # Errors
                /// [`TypeMismatch`](super::DynErrorKind::TypeMismatch), or
                /// [`InvalidValue`](super::DynErrorKind::InvalidValue) if the position is -1.
                pub fn $get(&self) -> Result<$rust, DynError> {
                    let target = self.target()?;
                    let root = target.lock();
                    let (code, value) = target.part(&root)?;
                    match &*value {
                        $found => Ok($out),
                        _ => Err(mismatch(&code, concat!("access as ", $what))),
                    }
                }

                #[doc = concat!("Sets the value, if it is of type ", $what, ".")]
                ///
                /// # Errors
                /// [`TypeMismatch`](super::DynErrorKind::TypeMismatch);
                /// [`InvalidValue`](super::DynErrorKind::InvalidValue) if the position is -1;
                /// [`Bounds`](super::DynErrorKind::Bounds).
                pub fn $insert(&self, $value: $rust) -> Result<(), DynError> {
                    self.target()?.set($in)
                }
            )*
        }
    };
}

basic_accessors! {
    get_boolean insert_boolean bool, "boolean", Value::Boolean(v) => *v, v => Value::Boolean(v);
    get_octet insert_octet u8, "octet", Value::Octet(v) => *v, v => Value::Octet(v);
    get_char insert_char Char, "char", Value::Char(v) => *v, v => Value::Char(v);
    get_wchar insert_wchar WChar, "wchar", Value::WChar(v) => *v, v => Value::WChar(v);
    get_short insert_short i16, "short", Value::Short(v) => *v, v => Value::Short(v);
    get_ushort insert_ushort u16, "unsigned short", Value::UShort(v) => *v, v => Value::UShort(v);
    get_long insert_long i32, "long", Value::Long(v) => *v, v => Value::Long(v);
    get_ulong insert_ulong u32, "unsigned long", Value::ULong(v) => *v, v => Value::ULong(v);
    get_longlong insert_longlong i64, "long long", Value::LongLong(v) => *v, v => Value::LongLong(v);
    get_ulonglong insert_ulonglong u64, "unsigned long long", Value::ULongLong(v) => *v, v => Value::ULongLong(v);
    get_float insert_float f32, "float", Value::Float(v) => *v, v => Value::Float(v);
    get_double insert_double f64, "double", Value::Double(v) => *v, v => Value::Double(v);
    get_longdouble insert_longdouble LongDouble, "long double", Value::LongDouble(v) => *v, v => Value::LongDouble(v);
    get_string insert_string String, "string", Value::String(v) => v.to_string(), v => Value::String(v.into());
    get_wstring insert_wstring WString, "wstring", Value::WString(v) => v.clone(), v => Value::WString(v);
    get_reference insert_reference Ior, "reference", Value::Object(v) => (**v).clone(), v => Value::Object(Box::new(v));
    get_typecode insert_typecode TypeCode, "CORBA::TypeCode", Value::TypeCode(v) => (**v).clone(), v => Value::TypeCode(Box::new(v));
    get_any insert_any Any, "any", Value::Any(v) => (**v).clone(), v => Value::Any(Box::new(v));
}

macro_rules! sequence_accessors {
    ($($get:ident $insert:ident $items:ident $item:ident $rust:ty, $what:literal;)*) => {
        /// Access to sequences and arrays of numbers and characters. The methods apply to the value itself if
        /// it is such a sequence or array, and otherwise to its current component.
        impl DynAny {
            $(
                #[doc = concat!("Returns the elements, if they are of type ", $what, ".")]
                ///
                /// # Errors
                /// [`TypeMismatch`](super::DynErrorKind::TypeMismatch), or
                /// [`InvalidValue`](super::DynErrorKind::InvalidValue) if the position is -1.
                pub fn $get(&self) -> Result<$rust, DynError> {
                    let target = self.sequence_target()?;
                    let root = target.lock();
                    let (code, value) = target.part(&root)?;
                    let items = if let Value::Items(items) = &*value { Some(&**items) } else { None };
                    match items {
                        Some(Items::$items(items)) => Ok(items.clone()),
                        Some(Items::Values(values)) => {
                            let item = |value: &Value| if let Value::$item(item) = value { Some(*item) } else { None };
                            let all: Option<Vec<_>> = values.iter().map(item).collect();
                            all.map(Into::into).ok_or_else(|| mismatch(&code, concat!("access as a sequence of ", $what)))
                        }
                        _ => Err(mismatch(&code, concat!("access as a sequence of ", $what))),
                    }
                }

                #[doc = concat!("Sets the elements, if they are of type ", $what, ".")]
                ///
                /// # Errors
                /// [`TypeMismatch`](super::DynErrorKind::TypeMismatch);
                /// [`InvalidValue`](super::DynErrorKind::InvalidValue) if the position is -1;
                /// [`Bounds`](super::DynErrorKind::Bounds).
                pub fn $insert(&self, items: impl Into<$rust>) -> Result<(), DynError> {
                    let target = self.sequence_target()?;
                    target.set(Value::Items(Box::new(Items::$items(items.into()))))?;
                    target.forget_positions();
                    Ok(())
                }
            )*
        }
    };
}

sequence_accessors! {
    get_octet_seq insert_octet_seq Octets Octet Bytes, "octet";
    get_char_seq insert_char_seq Chars Char Seq<Char>, "char";
    get_short_seq insert_short_seq Shorts Short Seq<i16>, "short";
    get_ushort_seq insert_ushort_seq UShorts UShort Seq<u16>, "unsigned short";
    get_long_seq insert_long_seq Longs Long Seq<i32>, "long";
    get_ulong_seq insert_ulong_seq ULongs ULong Seq<u32>, "unsigned long";
    get_longlong_seq insert_longlong_seq LongLongs LongLong Seq<i64>, "long long";
    get_ulonglong_seq insert_ulonglong_seq ULongLongs ULongLong Seq<u64>, "unsigned long long";
    get_float_seq insert_float_seq Floats Float Seq<f32>, "float";
    get_double_seq insert_double_seq Doubles Double Seq<f64>, "double";
}

impl DynAny {
    /// Returns the content of the any that is the value itself or its current component.
    ///
    /// # Errors
    /// The errors of [`get_any`](Self::get_any) and [`from_any`](Self::from_any).
    pub fn get_dyn_any(&self) -> Result<DynAny, DynError> {
        DynAny::from_any(&self.get_any()?)
    }

    /// Sets the content of the any that is the value itself or its current component.
    ///
    /// # Errors
    /// The errors of [`insert_any`](Self::insert_any) and [`to_any`](Self::to_any).
    pub fn insert_dyn_any(&self, value: &DynAny) -> Result<(), DynError> {
        self.insert_any(value.to_any()?)
    }

    pub(super) fn set(&self, value: Value) -> Result<(), DynError> {
        let mut value = Some(value);
        self.change(&mut |code, part, graph| {
            if let Some(value) = value.take() {
                check_value(code, &value, graph, 0)?;
                *part = value;
            }
            Ok(())
        })?;
        self.prune_if_needed();
        Ok(())
    }

    /// Returns the part to which the methods for sequences apply: the value itself if it is a sequence or
    /// array whose elements have no components, and otherwise the [`target`](Self::target).
    fn sequence_target(&self) -> Result<DynAny, DynError> {
        use crate::typecode::TcKind::{Array, Sequence};
        let code = self.type_code()?.unaliased();
        if !matches!(code.kind(), Sequence | Array)
            || code.content_type().is_ok_and(|element| super::has_components(&element))
        {
            return self.target();
        }
        Ok(self.clone())
    }
}
