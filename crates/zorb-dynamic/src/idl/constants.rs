//! Conversion of IDL constants to values.

use idl_compiler::model::{Const, ConstValue};
use orb_runtime::dynamic::{Decimal, Dynamic, Value, ValueGraph};
use orb_runtime::types::{Char, CreateError, LongDouble, TcKind, TypeCode, WChar};

use super::types::Types;

pub(super) fn constant(types: &mut Types<'_>, constant: &Const) -> Result<Dynamic, CreateError> {
    let code = types.of_type(constant.ty)?;
    let value = value(&constant.value, &code.unaliased());
    Ok(Dynamic { code, value, graph: ValueGraph::default() })
}

/// Converts a value to a type. The value must be within the range of the type.
fn value(value: &ConstValue, code: &TypeCode) -> Value {
    match value {
        ConstValue::Bool(value) => Value::Boolean(*value),
        ConstValue::Integer(value) => integer(*value, code.kind()),
        ConstValue::Float(value) if code.kind() == TcKind::Float => Value::Float(*value as f32),
        ConstValue::Float(value) => Value::Double(*value),
        ConstValue::LongDouble(bits) => Value::LongDouble(LongDouble::from_bits(*bits)),
        ConstValue::Char(octet) => Value::Char(Char(*octet)),
        ConstValue::WChar(unit) => Value::WChar(WChar(*unit)),
        ConstValue::String(text) => Value::String((&**text).into()),
        ConstValue::WString(text) => Value::WString((&**text).into()),
        ConstValue::Fixed { unscaled, scale } => {
            let digits = code.fixed_digits().unwrap_or(31);
            let type_scale = code.fixed_scale().unwrap_or((*scale).into());
            // The scale of the value does not exceed the scale of its type.
            let zeros = u32::try_from(i32::from(type_scale) - i32::from(*scale)).unwrap_or(0);
            let unscaled = unscaled.saturating_mul(10i128.saturating_pow(zeros));
            Value::Fixed(Box::new(Decimal { unscaled, digits, scale: type_scale }))
        }
        ConstValue::Enum { ordinal, .. } => Value::Enum(*ordinal),
    }
}

fn integer(value: i128, kind: TcKind) -> Value {
    match kind {
        TcKind::Short => Value::Short(value as i16),
        TcKind::UShort => Value::UShort(value as u16),
        TcKind::Long => Value::Long(value as i32),
        TcKind::ULong => Value::ULong(value as u32),
        TcKind::LongLong => Value::LongLong(value as i64),
        TcKind::ULongLong => Value::ULongLong(value as u64),
        // `octet`, `uint8` and `int8` have the same type code. An `int8` becomes the byte with its bits.
        _ => Value::Octet(value as u8),
    }
}
