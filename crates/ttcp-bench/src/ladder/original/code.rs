//! Type codes: bytes that are parsed whenever they are used.

use super::{CallCounter, Cdr, Fault, Routine};

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
    /// The type code is invalid, or its kind is not supported.
    pub fn read<T: CallCounter>(bytes: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(bytes, false).get_type_code()?;
        Ok(Self { kind, parameters: parameters.to_vec() })
    }

    /// Returns the type code.
    pub fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters }
    }
}

/// A type code.
#[derive(Debug, Clone, Copy)]
pub struct TypeCode<'a> {
    /// The kind.
    pub kind: u32,
    /// The encoded parameters: an encapsulation, or empty.
    pub parameters: &'a [u8],
}

impl<'a> TypeCode<'a> {
    /// The type of values that are type codes themselves.
    pub const OF_TYPE_CODE: TypeCode<'static> = TypeCode { kind: super::kind::TYPE_CODE, parameters: &[] };

    /// Returns the kind, by a counted call.
    #[inline(never)]
    pub fn kind<T: CallCounter>(&self) -> u32 {
        T::call(Routine::Kind);
        self.kind
    }

    /// Returns a stream of the parameters, in their own byte order.
    ///
    /// # Errors
    /// [`Fault::End`] if there are no parameters.
    #[inline(always)]
    pub fn parameters<T: CallCounter>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }
}
