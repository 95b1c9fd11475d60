//! Type codes, which are bytes that are parsed whenever they are used.

use super::{CallCounter, Cdr, Fault, Routine};

/// A type code with its own memory.
#[derive(Debug, Clone)]
pub(crate) struct StoredTypeCode {
    kind: u32,
    parameters: Vec<u8>,
}

impl StoredTypeCode {
    pub(crate) fn read<T: CallCounter>(bytes: &[u8]) -> Result<Self, Fault> {
        let (kind, parameters) = Cdr::<T>::reader(bytes, false).get_type_code()?;
        Ok(Self { kind, parameters: parameters.to_vec() })
    }

    pub(crate) fn code(&self) -> TypeCode<'_> {
        TypeCode { kind: self.kind, parameters: &self.parameters }
    }
}

/// A reference to a type code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeCode<'a> {
    pub(crate) kind: u32,
    /// The encoded parameters: an encapsulation, or empty.
    pub(crate) parameters: &'a [u8],
}

impl<'a> TypeCode<'a> {
    /// The IDL type `TypeCode`, whose values are type codes.
    pub(crate) const OF_TYPE_CODE: TypeCode<'static> =
        TypeCode { kind: super::kind::TYPE_CODE, parameters: &[] };

    /// Returns the kind, by a counted call.
    #[inline(never)]
    pub(crate) fn counted_kind<T: CallCounter>(&self) -> u32 {
        T::count(Routine::Kind);
        self.kind
    }

    /// Returns a stream that reads the parameters in their own byte order.
    #[inline(always)]
    pub(crate) fn parameters<T: CallCounter>(&self) -> Result<Cdr<'a, T>, Fault> {
        Cdr::encapsulation(self.parameters)
    }
}
