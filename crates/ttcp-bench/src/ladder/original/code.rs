//! Type codes: octets that are parsed where they are needed.

use super::{Cdr, Fault, Routine, Tally};

/// A type code that is kept.
#[derive(Debug, Clone)]
pub struct Known {
    kind: u32,
    parameters: Vec<u8>,
}

impl Known {
    /// A type code in the byte order of this machine.
    ///
    /// # Errors
    /// It is none, or of a kind that this engine does not know.
    pub fn read<T: Tally>(octets: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(octets, false).get_type_code()?;
        Ok(Self { kind, parameters: parameters.to_vec() })
    }

    /// The type code.
    pub fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters }
    }
}

/// A kind and the octets of its parameters: an encapsulation, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    /// Its kind.
    pub kind: u32,
    /// Its parameters.
    pub parameters: &'a [u8],
}

impl<'a> TypeCode<'a> {
    /// That of type codes, which are values as well.
    pub const OF_TYPE_CODE: TypeCode<'static> = TypeCode { kind: super::kind::TYPE_CODE, parameters: &[] };

    /// Its kind, for who may not look into it.
    #[inline(never)]
    pub fn kind<T: Tally>(&self) -> u32 {
        T::call(Routine::Kind);
        self.kind
    }

    /// A stream of the parameters, in their own byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if there are none.
    #[inline(always)]
    pub fn parameters<T: Tally>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }
}
