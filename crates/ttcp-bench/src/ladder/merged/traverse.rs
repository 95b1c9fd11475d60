//! The traversal of values, which also reads, writes, copies or frees them.

use super::code::{typecode_param, ulong_param};
use super::kind::*;
use super::memory::{self, basic, load, store};
use super::{CallCounter, Cdr, DECODES, ENCODES, Environment, Fault, Routine, Status, TypeCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Encode,
    Decode,
    Copy,
    Free,
}

#[inline(never)]
pub(crate) fn encode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Visit::Encode, value, other, stream, env, None)
}

#[inline(never)]
pub(crate) fn decode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Visit::Decode, value, other, stream, env, None)
}

#[inline(never)]
pub(crate) fn copy<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Visit::Copy, value, other, stream, env, None)
}

/// Frees the buffers of a value. A sequence of numbers has a single buffer, and is not traversed.
#[inline(never)]
pub(crate) fn free<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::call(Routine::DeepFree);
    if code.kind != SEQUENCE {
        return traverse(code, Visit::Free, value, other, stream, env, None);
    }
    let element = typecode_param::<T>(code)?;
    if basic(element.kind).is_some() {
        let (_, buffer) = memory::sequence(value)?;
        env.heap.release(buffer);
        return Ok(());
    }
    traverse(code, Visit::Free, value, other, stream, env, Some(&element))
}

/// Applies the operation to a value and its parts. `element` is the type of the elements, if the caller knows
/// it.
#[inline(never)]
pub(crate) fn traverse<T: CallCounter>(
    code: &TypeCode<'_>,
    visit: Visit,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
    element: Option<&TypeCode<'_>>,
) -> Status {
    T::call(Routine::Traverse);
    match code.kind {
        SEQUENCE => {
            let own;
            let element = match element {
                Some(element) => element,
                None => {
                    own = typecode_param::<T>(code)?;
                    &own
                }
            };
            let mut copied = None;
            let (length, buffer) = match visit {
                Visit::Decode if DECODES => {
                    let length = stream.get_long()?;
                    let bound = ulong_param::<T>(code)?;
                    if bound != 0 && length > bound {
                        return Err(Fault::Bound);
                    }
                    let buffer = env.heap.allocate(element.layout.size.saturating_mul(length as usize))?;
                    memory::store_sequence(value, length, buffer)?;
                    (length, buffer)
                }
                Visit::Encode if ENCODES => {
                    let (length, buffer) = memory::sequence(value)?;
                    stream.put_long(length)?;
                    (length, buffer)
                }
                Visit::Copy => {
                    let (length, buffer) = memory::sequence(value)?;
                    let target = env.heap.allocate(element.layout.size.saturating_mul(length as usize))?;
                    memory::store_sequence(other, length, target)?;
                    copied = Some(target);
                    (length, buffer)
                }
                _ => memory::sequence(value)?,
            };
            let mut block = env.heap.take_block(buffer);
            let mut copy = copied.map(|copy| env.heap.take_block(copy)).unwrap_or_default();
            let status = elements(element, length, visit, &mut block, &mut copy, stream, env);
            env.heap.return_block(buffer, block);
            if let Some(copied) = copied {
                env.heap.return_block(copied, copy);
            }
            if visit == Visit::Free {
                env.heap.release(buffer);
            }
            status
        }
        ARRAY => {
            let own;
            let element = match element {
                Some(element) => element,
                None => {
                    own = typecode_param::<T>(code)?;
                    &own
                }
            };
            elements(element, ulong_param::<T>(code)?, visit, value, other, stream, env)
        }
        STRUCT => {
            let mut parameters = code.parameters::<T>()?;
            // Repository id and name.
            parameters.skip_string()?;
            parameters.skip_string()?;
            for index in 0..parameters.get_long()? as usize {
                parameters.skip_string()?;
                let (member, offset) = code.member(index, parameters.get_type_code()?)?;
                let (value, other) = (memory::at(value, offset), memory::at(other, offset));
                match member.kind {
                    ARRAY => {
                        let element = typecode_param::<T>(&member)?;
                        if basic(element.kind).is_none() {
                            traverse(&member, visit, value, other, stream, env, Some(&element))?;
                        } else if visit != Visit::Free {
                            let count = ulong_param::<T>(&member)?;
                            elements(&element, count, visit, value, other, stream, env)?;
                        }
                    }
                    SEQUENCE | STRUCT => traverse(&member, visit, value, other, stream, env, None)?,
                    kind => scalar(kind, visit, value, other, stream)?,
                }
            }
            Ok(())
        }
        kind => scalar(kind, visit, value, other, stream),
    }
}

/// Applies the operation to consecutive elements. Only constructed elements need a call.
#[inline(always)]
fn elements<T: CallCounter>(
    element: &TypeCode<'_>,
    count: u32,
    visit: Visit,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    let size = element.layout.size;
    if basic(element.kind).is_some() {
        for i in 0..count as usize {
            scalar(element.kind, visit, memory::at(value, i * size), memory::at(other, i * size), stream)?;
        }
    } else {
        for i in 0..count as usize {
            let (value, other) = (memory::at(value, i * size), memory::at(other, i * size));
            traverse(element, visit, value, other, stream, env, None)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn scalar<T: CallCounter>(
    kind: u32,
    visit: Visit,
    value: &mut [u8],
    other: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    match visit {
        Visit::Encode if ENCODES => match kind {
            NULL | VOID => Ok(()),
            BOOLEAN | CHAR | OCTET => stream.put_octet(u8::from_ne_bytes(load(value, 0)?)),
            SHORT | USHORT => stream.put_short(u16::from_ne_bytes(load(value, 0)?)),
            LONG | ULONG | FLOAT | ENUM => stream.put_long(u32::from_ne_bytes(load(value, 0)?)),
            LONGLONG | ULONGLONG | DOUBLE => stream.put_longlong(u64::from_ne_bytes(load(value, 0)?)),
            kind => Err(Fault::Kind(kind)),
        },
        Visit::Decode if DECODES => match kind {
            NULL | VOID => Ok(()),
            BOOLEAN | CHAR | OCTET => store(value, 0, stream.get_octet()?.to_ne_bytes()),
            SHORT | USHORT => store(value, 0, stream.get_short()?.to_ne_bytes()),
            LONG | ULONG | FLOAT | ENUM => store(value, 0, stream.get_long()?.to_ne_bytes()),
            LONGLONG | ULONGLONG | DOUBLE => store(value, 0, stream.get_longlong()?.to_ne_bytes()),
            kind => Err(Fault::Kind(kind)),
        },
        Visit::Copy => match basic(kind) {
            Some((size, _)) => match (value.get(..size), other.get_mut(..size)) {
                (Some(source), Some(target)) => {
                    target.copy_from_slice(source);
                    Ok(())
                }
                _ => Err(Fault::Memory),
            },
            None => Err(Fault::Kind(kind)),
        },
        Visit::Free => Ok(()),
        // Later steps have other routines for reading and writing.
        _ => Err(Fault::Kind(kind)),
    }
}
