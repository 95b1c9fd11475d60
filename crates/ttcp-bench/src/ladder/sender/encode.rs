//! The encoding of values, with a routine for each kind of constructed type.

use super::code::{typecode_param, ulong_param};
use super::kind::*;
use super::memory::{self, basic_layout, load};
use super::{CallCounter, Cdr, Environment, Fault, Routine, Status, TypeCode, encode_scalars, raise};

#[inline(never)]
pub(crate) fn encode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    _: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    match code.kind {
        SEQUENCE => encode_sequence(code, value, stream, env),
        STRUCT => encode_struct(code, value, stream, env),
        ARRAY => encode_array(code, &typecode_param::<T>(code)?, value, stream, env),
        kind => scalar(kind, value, stream),
    }
}

#[inline(never)]
fn encode_sequence<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Encoder);
    let element = typecode_param::<T>(code)?;
    let (length, buffer) = memory::load_sequence(value)?;
    stream.put_long(length)?;
    let mut block = env.heap.take_block(buffer);
    let status = elements(&element, length as usize, &mut block, stream, env);
    env.heap.return_block(buffer, block);
    status
}

#[inline(never)]
fn encode_struct<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Encoder);
    let mut parameters = code.parameters::<T>()?;
    // These are the repository id and the name.
    parameters.skip_string()?;
    parameters.skip_string()?;
    for index in 0..parameters.get_long()? as usize {
        parameters.skip_string()?;
        let (member, offset) = code.member(index, parameters.get_type_code()?)?;
        let value = memory::tail(value, offset);
        match member.kind {
            SEQUENCE => encode_sequence(&member, value, stream, env)?,
            STRUCT => encode_struct(&member, value, stream, env)?,
            ARRAY => encode_array(&member, &typecode_param::<T>(&member)?, value, stream, env)?,
            kind => scalar(kind, value, stream)?,
        }
    }
    Ok(())
}

#[inline(never)]
fn encode_array<T: CallCounter>(
    code: &TypeCode<'_>,
    element: &TypeCode<'_>,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Encoder);
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
        return encode_scalars(element.kind, count, value, stream);
    }
    let size = element.layout.size;
    for i in 0..count {
        let value = memory::tail(value, i * size);
        match element.kind {
            STRUCT => encode_struct(element, value, stream, env)?,
            SEQUENCE => encode_sequence(element, value, stream, env)?,
            _ => encode_array(element, &typecode_param::<T>(element)?, value, stream, env)?,
        }
    }
    Ok(())
}

/// Encodes consecutive numbers one by one.
#[inline(always)]
pub(crate) fn encode_one_by_one<T: CallCounter>(
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
        BOOLEAN | CHAR | OCTET => stream.put_octet(u8::from_ne_bytes(load(value, 0)?)),
        SHORT | USHORT => stream.put_short(u16::from_ne_bytes(load(value, 0)?)),
        LONG | ULONG | FLOAT | ENUM => stream.put_long(u32::from_ne_bytes(load(value, 0)?)),
        LONGLONG | ULONGLONG | DOUBLE => stream.put_longlong(u64::from_ne_bytes(load(value, 0)?)),
        kind => Err(raise(Fault::Kind(kind))),
    }
}
