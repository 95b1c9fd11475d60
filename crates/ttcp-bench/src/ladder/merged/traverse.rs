//! The traversal of values, which also decodes, encodes, copies or frees them.

use super::code::{typecode_param, ulong_param};
use super::kind::*;
use super::memory::{self, basic_layout, load, store};
use super::{
    CallCounter, Cdr, Environment, Fault, Routine, Status, TRAVERSAL_DECODES, TRAVERSAL_ENCODES, TypeCode,
};

/// The operation that a traversal performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Encode,
    Decode,
    Copy,
    Free,
}

#[inline(never)]
pub(crate) fn encode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Operation::Encode, value, target, stream, env, None)
}

#[inline(never)]
pub(crate) fn decode<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Operation::Decode, value, target, stream, env, None)
}

#[inline(never)]
pub(crate) fn copy<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    traverse(code, Operation::Copy, value, target, stream, env, None)
}

/// Frees the buffers of a value. A sequence of numbers has a single buffer, and is not traversed.
#[inline(never)]
pub(crate) fn free<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::DeepFree);
    if code.kind != SEQUENCE {
        return traverse(code, Operation::Free, value, target, stream, env, None);
    }
    let element = typecode_param::<T>(code)?;
    if basic_layout(element.kind).is_some() {
        let (_, buffer) = memory::load_sequence(value)?;
        env.heap.release(buffer);
        return Ok(());
    }
    traverse(code, Operation::Free, value, target, stream, env, Some(&element))
}

/// Performs the operation on a value and its parts. `target` is the memory of the copy, and used only
/// for copying. `element` is the type of the elements, if the caller knows it.
#[inline(never)]
pub(crate) fn traverse<T: CallCounter>(
    code: &TypeCode<'_>,
    operation: Operation,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
    element: Option<&TypeCode<'_>>,
) -> Status {
    T::count(Routine::Traverse);
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
            let mut target_buffer = None;
            let (length, buffer) = match operation {
                Operation::Decode if TRAVERSAL_DECODES => {
                    let length = stream.get_long()?;
                    let bound = ulong_param::<T>(code)?;
                    if bound != 0 && length > bound {
                        return Err(Fault::Bound);
                    }
                    let buffer = env.heap.allocate(element.layout.size.saturating_mul(length as usize))?;
                    memory::store_sequence(value, length, buffer)?;
                    (length, buffer)
                }
                Operation::Encode if TRAVERSAL_ENCODES => {
                    let (length, buffer) = memory::load_sequence(value)?;
                    stream.put_long(length)?;
                    (length, buffer)
                }
                Operation::Copy => {
                    let (length, buffer) = memory::load_sequence(value)?;
                    let copy = env.heap.allocate(element.layout.size.saturating_mul(length as usize))?;
                    memory::store_sequence(target, length, copy)?;
                    target_buffer = Some(copy);
                    (length, buffer)
                }
                _ => memory::load_sequence(value)?,
            };
            let mut block = env.heap.take_block(buffer);
            let mut target_block = target_buffer.map(|copy| env.heap.take_block(copy)).unwrap_or_default();
            let status = elements(element, length, operation, &mut block, &mut target_block, stream, env);
            env.heap.return_block(buffer, block);
            if let Some(buffer) = target_buffer {
                env.heap.return_block(buffer, target_block);
            }
            if operation == Operation::Free {
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
            elements(element, ulong_param::<T>(code)?, operation, value, target, stream, env)
        }
        STRUCT => {
            let mut parameters = code.parameters::<T>()?;
            // These are the repository id and the name.
            parameters.skip_string()?;
            parameters.skip_string()?;
            for index in 0..parameters.get_long()? as usize {
                parameters.skip_string()?;
                let (member, offset) = code.member(index, parameters.get_type_code()?)?;
                let (value, target) = (memory::tail(value, offset), memory::tail(target, offset));
                match member.kind {
                    ARRAY => {
                        let element = typecode_param::<T>(&member)?;
                        if basic_layout(element.kind).is_none() {
                            traverse(&member, operation, value, target, stream, env, Some(&element))?;
                        } else if operation != Operation::Free {
                            let count = ulong_param::<T>(&member)?;
                            elements(&element, count, operation, value, target, stream, env)?;
                        }
                    }
                    SEQUENCE | STRUCT => traverse(&member, operation, value, target, stream, env, None)?,
                    kind => scalar(kind, operation, value, target, stream)?,
                }
            }
            Ok(())
        }
        kind => scalar(kind, operation, value, target, stream),
    }
}

/// Performs the operation on consecutive elements. Only constructed elements need a call.
#[inline(always)]
fn elements<T: CallCounter>(
    element: &TypeCode<'_>,
    count: u32,
    operation: Operation,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    let size = element.layout.size;
    if basic_layout(element.kind).is_some() {
        for i in 0..count as usize {
            scalar(
                element.kind,
                operation,
                memory::tail(value, i * size),
                memory::tail(target, i * size),
                stream,
            )?;
        }
    } else {
        for i in 0..count as usize {
            let (value, target) = (memory::tail(value, i * size), memory::tail(target, i * size));
            traverse(element, operation, value, target, stream, env, None)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn scalar<T: CallCounter>(
    kind: u32,
    operation: Operation,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    match operation {
        Operation::Encode if TRAVERSAL_ENCODES => match kind {
            NULL | VOID => Ok(()),
            BOOLEAN | CHAR | OCTET => stream.put_octet(u8::from_ne_bytes(load(value, 0)?)),
            SHORT | USHORT => stream.put_short(u16::from_ne_bytes(load(value, 0)?)),
            LONG | ULONG | FLOAT | ENUM => stream.put_long(u32::from_ne_bytes(load(value, 0)?)),
            LONGLONG | ULONGLONG | DOUBLE => stream.put_longlong(u64::from_ne_bytes(load(value, 0)?)),
            kind => Err(Fault::Kind(kind)),
        },
        Operation::Decode if TRAVERSAL_DECODES => match kind {
            NULL | VOID => Ok(()),
            BOOLEAN | CHAR | OCTET => store(value, 0, stream.get_octet()?.to_ne_bytes()),
            SHORT | USHORT => store(value, 0, stream.get_short()?.to_ne_bytes()),
            LONG | ULONG | FLOAT | ENUM => store(value, 0, stream.get_long()?.to_ne_bytes()),
            LONGLONG | ULONGLONG | DOUBLE => store(value, 0, stream.get_longlong()?.to_ne_bytes()),
            kind => Err(Fault::Kind(kind)),
        },
        Operation::Copy => match basic_layout(kind) {
            Some((size, _)) => match (value.get(..size), target.get_mut(..size)) {
                (Some(source), Some(target)) => {
                    target.copy_from_slice(source);
                    Ok(())
                }
                _ => Err(Fault::Memory),
            },
            None => Err(Fault::Kind(kind)),
        },
        Operation::Free => Ok(()),
        // In later steps, this routine neither encodes nor decodes.
        _ => Err(Fault::Kind(kind)),
    }
}
