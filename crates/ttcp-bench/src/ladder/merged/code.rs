//! Type codes with precomputed layouts.

use super::kind::{ARRAY, SEQUENCE, STRUCT};
use super::memory::{SEQUENCE_SIZE, basic};
use super::{Cdr, Fault, Routine, Tally};

/// A stored type code and its layout.
#[derive(Debug, Clone)]
pub struct StoredTypeCode {
    kind: u32,
    parameters: Vec<u8>,
    layout: Layout,
}

/// The layout of a type, computed once.
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

/// A type code during a traversal: its bytes and its layout.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    /// Its kind.
    pub kind: u32,
    /// Its parameters.
    pub parameters: &'a [u8],
    /// Its layout.
    pub layout: &'a Layout,
}

impl StoredTypeCode {
    /// Reads a type code in this machine's byte order.
    ///
    /// # Errors
    /// It is invalid, or of a kind that this engine does not support.
    pub fn read<T: Tally>(octets: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(octets, false).get_type_code()?;
        let layout = Layout::of::<T>(kind, parameters)?;
        Ok(Self { kind, parameters: parameters.to_vec(), layout })
    }

    /// Returns the type code.
    pub fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters, layout: &self.layout }
    }
}

impl Layout {
    fn of<T: Tally>(kind: u32, octets: &[u8]) -> Result<Layout, Fault> {
        let plain = |(size, alignment)| Layout { size, alignment, offsets: Vec::new(), parts: Vec::new() };
        if let Some(basic) = basic(kind) {
            return Ok(plain(basic));
        }
        let mut parameters = Cdr::<T>::encapsulation(octets)?;
        match kind {
            STRUCT => {
                let mut layout = plain((0, 1));
                parameters.skip_string()?;
                parameters.skip_string()?;
                for _ in 0..parameters.get_long()? {
                    parameters.skip_string()?;
                    let (kind, octets) = parameters.get_type_code()?;
                    let member = Layout::of::<T>(kind, octets)?;
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
                let (element, octets) = parameters.get_type_code()?;
                let element = Layout::of::<T>(element, octets)?;
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
    /// [`Fault::End`] if there are none.
    #[inline(always)]
    pub fn parameters<T: Tally>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }

    /// Returns the type of a member, whose parameters the traversal has read, and the member's offset.
    ///
    /// # Errors
    /// [`Fault::End`] if there is no such member.
    #[inline(always)]
    pub fn member(
        &self,
        place: usize,
        (kind, parameters): (u32, &'a [u8]),
    ) -> Result<(TypeCode<'a>, usize), Fault> {
        match (self.layout.parts.get(place), self.layout.offsets.get(place)) {
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
pub fn typecode_param<'a, T: Tally>(code: &TypeCode<'a>) -> Result<TypeCode<'a>, Fault> {
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
pub fn ulong_param<T: Tally>(code: &TypeCode<'_>) -> Result<u32, Fault> {
    let mut parameters = code.parameters::<T>()?;
    parameters.get_type_code()?;
    parameters.get_long()
}
