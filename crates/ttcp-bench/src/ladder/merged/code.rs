//! Type codes with precomputed layouts.

use super::kind::{ARRAY, SEQUENCE, STRUCT};
use super::memory::{SEQUENCE_SIZE, basic};
use super::{CallCounter, Cdr, Fault, Routine};

/// A stored type code and its layout.
#[derive(Debug, Clone)]
pub struct StoredTypeCode {
    kind: u32,
    parameters: Vec<u8>,
    layout: Layout,
}

/// The precomputed memory layout of a type.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Size of a value in memory, bytes.
    pub size: usize,
    /// Alignment of a value in memory, bytes.
    pub alignment: usize,
    /// For a struct: the offset of each member.
    pub offsets: Vec<usize>,
    /// The layouts of the members, or of the elements.
    pub parts: Vec<Layout>,
}

/// A type code with its layout.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    /// The kind.
    pub kind: u32,
    /// The encoded parameters: an encapsulation, or empty.
    pub parameters: &'a [u8],
    /// The memory layout.
    pub layout: &'a Layout,
}

impl StoredTypeCode {
    /// Reads a type code in this machine's byte order.
    ///
    /// # Errors
    /// The type code is invalid, or its kind is not supported.
    pub fn read<T: CallCounter>(bytes: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(bytes, false).get_type_code()?;
        let layout = Layout::of::<T>(kind, parameters)?;
        Ok(Self { kind, parameters: parameters.to_vec(), layout })
    }

    /// Returns the type code.
    pub fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters, layout: &self.layout }
    }
}

impl Layout {
    fn of<T: CallCounter>(kind: u32, bytes: &[u8]) -> Result<Layout, Fault> {
        let plain = |(size, alignment)| Layout { size, alignment, offsets: Vec::new(), parts: Vec::new() };
        if let Some(basic) = basic(kind) {
            return Ok(plain(basic));
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
                    SEQUENCE_SIZE
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
    /// Returns a stream of the parameters, in their own byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if there are no parameters.
    #[inline(always)]
    pub fn parameters<T: CallCounter>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }

    /// Returns the type and the offset of the member with that index. The caller passes the kind and the
    /// parameters, which it has already read.
    ///
    /// # Errors
    /// [`Fault::End`] if there is no such member.
    #[inline(always)]
    pub fn member(
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

/// Returns the type of the elements.
///
/// # Errors
/// The type code is invalid.
#[inline(never)]
pub fn typecode_param<'a, T: CallCounter>(code: &TypeCode<'a>) -> Result<TypeCode<'a>, Fault> {
    T::call(Routine::TypeCodeParam);
    let (kind, parameters) = code.parameters::<T>()?.get_type_code()?;
    let layout = code.layout.parts.first().ok_or(Fault::End)?;
    Ok(TypeCode { kind, parameters, layout })
}

/// Returns the bound of a sequence, or the length of an array.
///
/// # Errors
/// The type code is invalid.
#[inline(never)]
pub fn ulong_param<T: CallCounter>(code: &TypeCode<'_>) -> Result<u32, Fault> {
    let mut parameters = code.parameters::<T>()?;
    parameters.get_type_code()?;
    parameters.get_long()
}
