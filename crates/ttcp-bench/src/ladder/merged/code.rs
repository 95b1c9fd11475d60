//! Type codes with precomputed layouts.

use super::kind::{ARRAY, SEQUENCE, STRUCT};
use super::memory::{SEQUENCE_SIZE_AND_ALIGNMENT, basic_layout};
use super::{CallCounter, Cdr, Fault, Routine};

/// A type code with its own memory.
#[derive(Debug, Clone)]
pub(crate) struct StoredTypeCode {
    kind: u32,
    parameters: Vec<u8>,
    layout: Layout,
}

/// The precomputed memory layout of a type.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Size of a value in memory, in bytes.
    pub(crate) size: usize,
    /// Alignment of a value in memory, in bytes.
    pub(crate) alignment: usize,
    /// The offset of each member of a struct. It is empty for other types.
    pub(crate) offsets: Vec<usize>,
    /// The layouts of the members of a struct, or of the elements of a sequence or array.
    pub(crate) parts: Vec<Layout>,
}

/// A reference to a type code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeCode<'a> {
    pub(crate) kind: u32,
    /// The encoded parameters: an encapsulation, or empty.
    pub(crate) parameters: &'a [u8],
    pub(crate) layout: &'a Layout,
}

impl StoredTypeCode {
    pub(crate) fn read<T: CallCounter>(bytes: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(bytes, false).get_type_code()?;
        let layout = Layout::of::<T>(kind, parameters)?;
        Ok(Self { kind, parameters: parameters.to_vec(), layout })
    }

    pub(crate) fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters, layout: &self.layout }
    }
}

impl Layout {
    fn of<T: CallCounter>(kind: u32, bytes: &[u8]) -> Result<Layout, Fault> {
        let plain = |(size, alignment)| Layout { size, alignment, offsets: Vec::new(), parts: Vec::new() };
        if let Some(size_and_alignment) = basic_layout(kind) {
            return Ok(plain(size_and_alignment));
        }
        let mut parameters = Cdr::<T>::encapsulation(bytes)?;
        match kind {
            STRUCT => {
                let mut layout = plain((0, 1));
                parameters.skip_string()?;
                parameters.skip_string()?;
                for _ in 0..parameters.get_long()? {
                    parameters.skip_string()?;
                    let (kind, bytes) = parameters.get_type_code()?;
                    let member = Layout::of::<T>(kind, bytes)?;
                    let offset = layout.size.next_multiple_of(member.alignment);
                    layout.size = offset.checked_add(member.size).ok_or(Fault::Memory)?;
                    layout.alignment = layout.alignment.max(member.alignment);
                    layout.offsets.push(offset);
                    layout.parts.push(member);
                }
                layout.size = layout.size.next_multiple_of(layout.alignment);
                Ok(layout)
            }
            SEQUENCE | ARRAY => {
                let (element, bytes) = parameters.get_type_code()?;
                let element = Layout::of::<T>(element, bytes)?;
                let (size, alignment) = if kind == SEQUENCE {
                    SEQUENCE_SIZE_AND_ALIGNMENT
                } else {
                    let count = parameters.get_long()? as usize;
                    (element.size.checked_mul(count).ok_or(Fault::Memory)?, element.alignment)
                };
                Ok(Layout { parts: vec![element], ..plain((size, alignment)) })
            }
            _ => Err(Fault::Kind(kind)),
        }
    }
}

impl<'a> TypeCode<'a> {
    /// Returns a stream that reads the parameters in their own byte order.
    #[inline(always)]
    pub(crate) fn parameters<T: CallCounter>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }

    /// Returns the type and the offset of the member at `index`. The caller has already read the kind and the
    /// parameters of the member's type code, and passes them.
    #[inline(always)]
    pub(crate) fn member(
        &self,
        index: usize,
        (kind, parameters): (u32, &'a [u8]),
    ) -> Result<(TypeCode<'a>, usize), Fault> {
        match (self.layout.parts.get(index), self.layout.offsets.get(index)) {
            (Some(layout), Some(offset)) => Ok((TypeCode { kind, parameters, layout }, *offset)),
            _ => Err(Fault::End),
        }
    }
}

#[inline(never)]
pub(crate) fn typecode_param<'a, T: CallCounter>(code: &TypeCode<'a>) -> Result<TypeCode<'a>, Fault> {
    T::count(Routine::TypeCodeParam);
    let (kind, parameters) = code.parameters::<T>()?.get_type_code()?;
    let layout = code.layout.parts.first().ok_or(Fault::End)?;
    Ok(TypeCode { kind, parameters, layout })
}

/// Returns the bound of a sequence, or the length of an array.
#[inline(never)]
pub(crate) fn ulong_param<T: CallCounter>(code: &TypeCode<'_>) -> Result<u32, Fault> {
    let mut parameters = code.parameters::<T>()?;
    parameters.get_type_code()?;
    parameters.get_long()
}
