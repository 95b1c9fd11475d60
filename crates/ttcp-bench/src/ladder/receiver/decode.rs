//! The decoding of values, with a routine for each kind of constructed type.

use super::code::{typecode_param, ulong_param};
use super::kind::*;
use super::memory::{self, basic_layout, store};
use super::{CallCounter, Cdr, Environment, Fault, Routine, Status, TypeCode, decode_scalars, raise};

#[inline(never)]
pub(crate) fn decode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    _: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    match code.kind {
        SEQUENCE => decode_sequence(code, value, stream, env),
        STRUCT => decode_struct(code, value, stream, env),
        ARRAY => decode_array(code, &typecode_param::<T>(code)?, value, stream, env),
        kind => scalar(kind, value, stream),
    }
}

#[inline(never)]
fn decode_sequence<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Decoder);
    let element = typecode_param::<T>(code)?;
    let length = stream.get_long()?;
    let bound = ulong_param::<T>(code)?;
    if bound != 0 && length > bound {
        return Err(raise(Fault::Bound));
    }
    let buffer = env.heap.allocate(element.layout.size.saturating_mul(length as usize))?;
    memory::store_sequence(value, length, buffer)?;
    let mut block = env.heap.take_block(buffer);
    let status = elements(&element, length as usize, &mut block, stream, env);
    env.heap.return_block(buffer, block);
    status
}

#[inline(never)]
fn decode_struct<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Decoder);
    let mut parameters = code.parameters::<T>()?;
    // These are the repository id and the name.
    parameters.skip_string()?;
    parameters.skip_string()?;
    for index in 0..parameters.get_long()? as usize {
        parameters.skip_string()?;
        let (member, offset) = code.member(index, parameters.get_type_code()?)?;
        let value = memory::tail(value, offset);
        match member.kind {
            SEQUENCE => decode_sequence(&member, value, stream, env)?,
            STRUCT => decode_struct(&member, value, stream, env)?,
            ARRAY => decode_array(&member, &typecode_param::<T>(&member)?, value, stream, env)?,
            kind => scalar(kind, value, stream)?,
        }
    }
    Ok(())
}

#[inline(never)]
fn decode_array<T: CallCounter>(
    code: &TypeCode<'_>,
    element: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Decoder);
    let count = ulong_param::<T>(code)? as usize;
    elements(element, count, value, stream, env)
}

#[inline(always)]
fn elements<T: CallCounter>(
    element: &TypeCode<'_>,
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    if basic_layout(element.kind).is_some() {
        return decode_scalars(element.kind, count, value, stream);
    }
    let size = element.layout.size;
    for i in 0..count {
        let value = memory::tail(value, i * size);
        match element.kind {
            STRUCT => decode_struct(element, value, stream, env)?,
            SEQUENCE => decode_sequence(element, value, stream, env)?,
            _ => decode_array(element, &typecode_param::<T>(element)?, value, stream, env)?,
        }
    }
    Ok(())
}

/// Decodes consecutive numbers one by one.
#[inline(always)]
pub(crate) fn decode_one_by_one<T: CallCounter>(
    kind: u32,
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    let size = basic_layout(kind).map_or(0, |(size, _)| size);
    for i in 0..count {
        scalar(kind, memory::tail(value, i * size), stream)?;
    }
    Ok(())
}

#[inline(always)]
fn scalar<T: CallCounter>(kind: u32, value: &mut [u8], stream: &mut Cdr<'_, T>) -> Status {
    match kind {
        NULL | VOID => Ok(()),
        BOOLEAN | CHAR | OCTET => store(value, 0, stream.get_octet()?.to_ne_bytes()),
        SHORT | USHORT => store(value, 0, stream.get_short()?.to_ne_bytes()),
        LONG | ULONG | FLOAT | ENUM => store(value, 0, stream.get_long()?.to_ne_bytes()),
        LONGLONG | ULONGLONG | DOUBLE => store(value, 0, stream.get_longlong()?.to_ne_bytes()),
        kind => Err(raise(Fault::Kind(kind))),
    }
}
