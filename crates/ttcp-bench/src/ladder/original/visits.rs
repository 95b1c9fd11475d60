//! The visits: the functions that the traversal calls for each value. They encode, decode, copy or free it.

use super::kind::*;
use super::memory::{self, load, store};
use super::traverse::{calc_nested_size_and_alignment, element_size, traverse, typecode_param, ulong_param};
use super::{CallCounter, Cdr, Environment, Fault, Routine, Status, TypeCode};

/// The callback for a value. The arguments are the type, the memory of the value, the memory of its copy
/// (empty except in a deep copy), the stream, and the environment.
pub(crate) type Visit<T> =
    fn(&TypeCode<'_>, &mut [u8], &mut [u8], &mut Cdr<'_, T>, &mut Environment) -> Status;

#[inline(never)]
pub(crate) fn encoder<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Encoder);
    match code.kind {
        NULL | VOID => Ok(()),
        BOOLEAN | CHAR | OCTET => stream.put_octet(u8::from_ne_bytes(load(value, 0)?)),
        SHORT | USHORT => stream.put_short(u16::from_ne_bytes(load(value, 0)?)),
        LONG | ULONG | FLOAT | ENUM => stream.put_long(u32::from_ne_bytes(load(value, 0)?)),
        LONGLONG | ULONGLONG | DOUBLE => stream.put_longlong(u64::from_ne_bytes(load(value, 0)?)),
        SEQUENCE => {
            let (length, _) = memory::load_sequence(value)?;
            stream.put_long(length)?;
            traverse(code, value, target, stream, env, encoder)
        }
        STRUCT | ARRAY => traverse(code, value, target, stream, env, encoder),
        kind => Err(Fault::Kind(kind)),
    }
}

#[inline(never)]
pub(crate) fn decoder<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::Decoder);
    match code.kind {
        NULL | VOID => Ok(()),
        BOOLEAN | CHAR | OCTET => store(value, 0, stream.get_octet()?.to_ne_bytes()),
        SHORT | USHORT => store(value, 0, stream.get_short()?.to_ne_bytes()),
        LONG | ULONG | FLOAT | ENUM => store(value, 0, stream.get_long()?.to_ne_bytes()),
        LONGLONG | ULONGLONG | DOUBLE => store(value, 0, stream.get_longlong()?.to_ne_bytes()),
        TYPE_CODE => {
            let (kind, parameters) = stream.get_type_code()?;
            store(value, 0, kind.to_ne_bytes())?;
            store(value, 4, (stream.position() as u32).to_ne_bytes())?;
            store(value, 8, (parameters.len() as u32).to_ne_bytes())
        }
        SEQUENCE => {
            let length = stream.get_long()?;
            let element = typecode_param::<T>(code, env)?;
            let size = element_size::<T>(&element, env)?;
            let bound = ulong_param::<T>(code)?;
            if bound != 0 && length > bound {
                return Err(Fault::Bound);
            }
            let buffer = env.heap.allocate(size.saturating_mul(length as usize))?;
            memory::store_sequence(value, length, buffer)?;
            traverse(code, value, target, stream, env, decoder)
        }
        STRUCT | ARRAY => traverse(code, value, target, stream, env, decoder),
        kind => Err(Fault::Kind(kind)),
    }
}

#[inline(never)]
pub(crate) fn deep_copy<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    match code.kind {
        SEQUENCE => {
            let (length, _) = memory::load_sequence(value)?;
            let element = typecode_param::<T>(code, env)?;
            let size = element_size::<T>(&element, env)?;
            let buffer = env.heap.allocate(size.saturating_mul(length as usize))?;
            memory::store_sequence(target, length, buffer)?;
            traverse(code, value, target, stream, env, deep_copy)
        }
        STRUCT | ARRAY => traverse(code, value, target, stream, env, deep_copy),
        _ => {
            let (size, _) = calc_nested_size_and_alignment::<T>(code, env)?;
            let (Some(source), Some(target)) = (value.get(..size), target.get_mut(..size)) else {
                return Err(Fault::Memory);
            };
            target.copy_from_slice(source);
            Ok(())
        }
    }
}

#[inline(never)]
pub(crate) fn deep_free<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
) -> Status {
    T::count(Routine::DeepFree);
    match code.counted_kind::<T>() {
        SEQUENCE => {
            traverse(code, value, target, stream, env, deep_free)?;
            let (_, buffer) = memory::load_sequence(value)?;
            env.heap.release(buffer);
            Ok(())
        }
        STRUCT => traverse(code, value, target, stream, env, deep_free),
        // The first number in the parameters is the kind of the elements. Basic elements have no buffers.
        ARRAY => match code.parameters::<T>()?.get_long()? {
            STRUCT | SEQUENCE | ARRAY => traverse(code, value, target, stream, env, deep_free),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
