//! The traversal of values, and the queries of type codes.

use super::kind::{ARRAY, SEQUENCE, STRUCT};
use super::memory::{self, SEQUENCE_SIZE_AND_ALIGNMENT, TYPE_CODE_SIZE_AND_ALIGNMENT, basic_layout};
use super::visits::{Visit, decoder};
use super::{CallCounter, Cdr, Environment, Fault, Routine, Status, TypeCode};

/// Calls `visit` for each element or member of a value, or for the value itself if it is not constructed.
/// `target` is the memory of the copy in a deep copy, and empty for other visits.
#[inline(never)]
pub(crate) fn traverse<T: CallCounter>(
    code: &TypeCode<'_>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
    visit: Visit<T>,
) -> Status {
    T::count(Routine::Traverse);
    match code.kind {
        SEQUENCE => {
            let (length, buffer) = memory::load_sequence(value)?;
            let target_buffer = memory::load_sequence(target).ok().map(|(_, buffer)| buffer);
            let mut block = env.heap.take_block(buffer);
            let mut target_block =
                target_buffer.map(|buffer| env.heap.take_block(buffer)).unwrap_or_default();
            let status = elements(code, length, &mut block, &mut target_block, stream, env, visit);
            env.heap.return_block(buffer, block);
            if let Some(buffer) = target_buffer {
                env.heap.return_block(buffer, target_block);
            }
            status
        }
        ARRAY => {
            let length = ulong_param::<T>(code)?;
            elements(code, length, value, target, stream, env, visit)
        }
        STRUCT => {
            let mut parameters = code.parameters::<T>()?;
            struct_traverse(&mut parameters, value, target, stream, env, Some(visit)).map(drop)
        }
        _ => visit(code, value, target, stream, env),
    }
}

/// Calls `visit` for each element, with the memory of the element in `value` and in `target`.
#[inline(always)]
fn elements<T: CallCounter>(
    code: &TypeCode<'_>,
    count: u32,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
    visit: Visit<T>,
) -> Status {
    let element = typecode_param::<T>(code, env)?;
    let size = element_size::<T>(&element, env)?;
    for i in 0..count as usize {
        visit(&element, memory::tail(value, i * size), memory::tail(target, i * size), stream, env)?;
    }
    Ok(())
}

/// Calls `visit`, if given, for each member. Returns the struct's size and alignment in memory, in bytes.
#[inline(never)]
pub(crate) fn struct_traverse<T: CallCounter>(
    parameters: &mut Cdr<'_, T>,
    value: &mut [u8],
    target: &mut [u8],
    stream: &mut Cdr<'_, T>,
    env: &mut Environment,
    visit: Option<Visit<T>>,
) -> Result<(usize, usize), Fault> {
    T::count(Routine::StructTraverse);
    // These are the repository id and the name.
    parameters.skip_string()?;
    parameters.skip_string()?;
    let (mut at, mut max_alignment) = (0, 1);
    for _ in 0..parameters.get_long()? {
        parameters.skip_string()?;
        let (kind, bytes) = parameters.get_type_code()?;
        let member = TypeCode { kind, parameters: bytes };
        let (size, alignment) = calc_nested_size_and_alignment::<T>(&member, env)?;
        at = aligned(at, alignment);
        max_alignment = max_alignment.max(alignment);
        if let Some(visit) = visit {
            visit(&member, memory::tail(value, at), memory::tail(target, at), stream, env)?;
        }
        at += size;
    }
    Ok((aligned(at, max_alignment), max_alignment))
}

/// Returns the size and the alignment, in bytes, of a value in memory.
#[inline(never)]
pub(crate) fn calc_nested_size_and_alignment<T: CallCounter>(
    code: &TypeCode<'_>,
    env: &mut Environment,
) -> Result<(usize, usize), Fault> {
    T::count(Routine::SizeAndAlignment);
    let kind = code.kind;
    if let Some(layout) = basic_layout(kind) {
        return Ok(layout);
    }
    Ok(match kind {
        SEQUENCE => SEQUENCE_SIZE_AND_ALIGNMENT,
        STRUCT => {
            let mut no_stream = Cdr::<T>::reader(&[], false);
            struct_traverse(&mut code.parameters()?, &mut [], &mut [], &mut no_stream, env, None)?
        }
        ARRAY => {
            let mut parameters = code.parameters::<T>()?;
            let (kind, bytes) = parameters.get_type_code()?;
            let element = TypeCode { kind, parameters: bytes };
            let (size, alignment) = calc_nested_size_and_alignment::<T>(&element, env)?;
            (size.saturating_mul(parameters.get_long()? as usize), alignment)
        }
        _ => return Err(Fault::Kind(kind)),
    })
}

/// Returns the size of an element in memory, in bytes.
#[inline(always)]
pub(crate) fn element_size<T: CallCounter>(
    element: &TypeCode<'_>,
    env: &mut Environment,
) -> Result<usize, Fault> {
    match basic_layout(element.kind) {
        Some((size, _)) => Ok(size),
        None => Ok(calc_nested_size_and_alignment::<T>(element, env)?.0),
    }
}

/// Returns the number of parameters of a sequence's or array's type code.
#[inline(never)]
fn param_count<T: CallCounter>(code: &TypeCode<'_>) -> usize {
    T::count(Routine::ParamCount);
    if matches!(code.kind, SEQUENCE | ARRAY) { 2 } else { 0 }
}

/// Returns the type of the elements, which is decoded like a value of the IDL type `TypeCode`.
#[inline(never)]
pub(crate) fn typecode_param<'a, T: CallCounter>(
    code: &TypeCode<'a>,
    env: &mut Environment,
) -> Result<TypeCode<'a>, Fault> {
    T::count(Routine::TypeCodeParam);
    if param_count::<T>(code) < 1 {
        return Err(Fault::Kind(code.kind));
    }
    let mut parameters = code.parameters::<T>()?;
    let mut decoded = [0; TYPE_CODE_SIZE_AND_ALIGNMENT.0];
    decoder(&TypeCode::OF_TYPE_CODE, &mut decoded, &mut [], &mut parameters, env)?;
    let [kind, end, length] = [0, 4, 8].map(|at| memory::load(&decoded, at).map(u32::from_ne_bytes));
    let (end, length) = (end? as usize, length? as usize);
    let bytes = end.checked_sub(length).and_then(|start| code.parameters.get(start..end));
    Ok(TypeCode { kind: kind?, parameters: bytes.ok_or(Fault::End)? })
}

/// Returns the bound of a sequence, or the length of an array.
#[inline(never)]
pub(crate) fn ulong_param<T: CallCounter>(code: &TypeCode<'_>) -> Result<u32, Fault> {
    if param_count::<T>(code) < 2 {
        return Err(Fault::Kind(code.kind));
    }
    let mut parameters = code.parameters::<T>()?;
    parameters.get_type_code()?;
    parameters.get_long()
}

#[inline(always)]
fn aligned(at: usize, alignment: usize) -> usize {
    at.next_multiple_of(alignment)
}
