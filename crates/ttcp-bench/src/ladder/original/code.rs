//! Type codes: bytes that are parsed where they are needed.

use super::{Cdr, Fault, Routine, Tally};

/// A stored type code.
#[derive(Debug, Clone)]
pub struct StoredTypeCode {
    kind: u32,
    parameters: Vec<u8>,
}

impl StoredTypeCode {
    /// Reads a type code in this machine's byte order.
    ///
    /// # Errors
    /// It is invalid, or of a kind that this engine does not support.
    pub fn read<T: Tally>(octets: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(octets, false).get_type_code()?;
        Ok(Self { kind, parameters: parameters.to_vec() })
    }

    /// Returns the type code.
    pub fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters }
    }
}

/// A kind and the bytes of its parameters: an encapsulation, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    /// Its kind.
    pub kind: u32,
    /// Its parameters.
    pub parameters: &'a [u8],
}

impl<'a> TypeCode<'a> {
    /// The type code of type codes, which are values as well.
    pub const OF_TYPE_CODE: TypeCode<'static> = TypeCode { kind: super::kind::TYPE_CODE, parameters: &[] };

    /// Returns its kind, by a counted call.
    #[inline(never)]
    pub fn kind<T: Tally>(&self) -> u32 {
        T::call(Routine::Kind);
        self.kind
    }

    /// Returns a stream of the parameters, in their own byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if there are none.
    #[inline(always)]
    pub fn parameters<T: Tally>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }
}
