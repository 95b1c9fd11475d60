//! [`TcKind`]: the kinds of types, and other properties in type codes.

use core::fmt;

use crate::exception::{SystemException, SystemExceptionKind};

macro_rules! kinds {
    ($($(#[$attribute:meta])* $variant:ident = $number:literal, $omg:literal, $idl:literal;)*) => {
        /// The kind of a type.
        ///
        /// Source clause: "TypeCodes / The TypeCode Interface" (`CORBA::TCKind`).
        #[doc(alias = "TCKind")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        #[non_exhaustive]
        pub enum TcKind {
            $(#[doc = concat!("`", $omg, "`.")] $(#[$attribute])* $variant = $number,)*
        }

        impl TcKind {
            /// All kinds, in the order of their numbers, which begin at 0 and have no gaps.
            pub const ALL: &'static [TcKind] = &[$(TcKind::$variant),*];

            /// The names of all kinds, in the order of [`ALL`](Self::ALL).
            pub(super) const OMG_NAMES: &'static [&'static str] = &[$($omg),*];

            /// Returns the name in the OMG's specifications, such as `tk_struct`.
            pub const fn omg_name(self) -> &'static str {
                match self { $(TcKind::$variant => $omg,)* }
            }

            /// Returns the IDL keywords or name of the type, such as `unsigned short`.
            pub const fn keyword(self) -> &'static str {
                match self { $(TcKind::$variant => $idl,)* }
            }
        }
    };
}

kinds! {
    #[default] Null = 0, "tk_null", "null";
    Void = 1, "tk_void", "void";
    Short = 2, "tk_short", "short";
    Long = 3, "tk_long", "long";
    UShort = 4, "tk_ushort", "unsigned short";
    ULong = 5, "tk_ulong", "unsigned long";
    Float = 6, "tk_float", "float";
    Double = 7, "tk_double", "double";
    Boolean = 8, "tk_boolean", "boolean";
    Char = 9, "tk_char", "char";
    Octet = 10, "tk_octet", "octet";
    Any = 11, "tk_any", "any";
    TypeCode = 12, "tk_TypeCode", "CORBA::TypeCode";
    Principal = 13, "tk_Principal", "CORBA::Principal";
    ObjRef = 14, "tk_objref", "interface";
    Struct = 15, "tk_struct", "struct";
    Union = 16, "tk_union", "union";
    Enum = 17, "tk_enum", "enum";
    String = 18, "tk_string", "string";
    Sequence = 19, "tk_sequence", "sequence";
    Array = 20, "tk_array", "array";
    Alias = 21, "tk_alias", "typedef";
    Except = 22, "tk_except", "exception";
    LongLong = 23, "tk_longlong", "long long";
    ULongLong = 24, "tk_ulonglong", "unsigned long long";
    LongDouble = 25, "tk_longdouble", "long double";
    WChar = 26, "tk_wchar", "wchar";
    WString = 27, "tk_wstring", "wstring";
    Fixed = 28, "tk_fixed", "fixed";
    Value = 29, "tk_value", "valuetype";
    ValueBox = 30, "tk_value_box", "valuetype";
    Native = 31, "tk_native", "native";
    AbstractInterface = 32, "tk_abstract_interface", "abstract interface";
    LocalInterface = 33, "tk_local_interface", "local interface";
    Component = 34, "tk_component", "component";
    Home = 35, "tk_home", "home";
    Event = 36, "tk_event", "eventtype";
}

impl TcKind {
    /// Returns the kind with this number; `None` if there is none.
    pub fn from_number(number: u32) -> Option<TcKind> {
        TcKind::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number of the kind.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns whether the kind fully describes the type, as for numbers, characters and `any`.
    pub const fn is_basic(self) -> bool {
        matches!(self.number(), 0..=13 | 23..=26)
    }

    /// Returns whether types of this kind have a repository id and a name.
    pub const fn is_named(self) -> bool {
        matches!(self.number(), 14..=17 | 21 | 22 | 29..=36)
    }
}

impl fmt::Display for TcKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.omg_name())
    }
}

/// The modifier in the declaration of a value type ("TypeCodes", `CORBA::ValueModifier`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum ValueModifier {
    /// `VM_NONE`.
    #[default]
    None = 0,
    /// `VM_CUSTOM`: user code encodes and decodes the values.
    Custom = 1,
    /// `VM_ABSTRACT`: the type has no state and no instances.
    Abstract = 2,
    /// `VM_TRUNCATABLE`: a receiver that does not know the type may read its values as values of its base.
    Truncatable = 3,
}

impl ValueModifier {
    pub(super) fn from_number(number: i16) -> Option<ValueModifier> {
        let all = [Self::None, Self::Custom, Self::Abstract, Self::Truncatable];
        all.get(usize::try_from(number).ok()?).copied()
    }
}

/// The visibility of a member of a value type ("TypeCodes", `CORBA::Visibility`).
///
/// The stubs of omniORB swap private and public. Therefore nothing may depend on a received visibility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum Visibility {
    /// `PRIVATE_MEMBER`.
    #[default]
    Private = 0,
    /// `PUBLIC_MEMBER`.
    Public = 1,
}

/// The reason why a query of a type code fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TypeCodeError {
    /// Types of this kind do not have the property (`CORBA::TypeCode::BadKind`).
    #[error("types of this kind do not have the requested property")]
    BadKind,
    /// The type has no member with this index (`CORBA::TypeCode::Bounds`).
    #[error("the type has no member with this index")]
    Bounds,
}

/// [`BadKind`](TypeCodeError::BadKind) becomes `BAD_OPERATION`, and `Bounds` becomes `BAD_PARAM`.
impl From<TypeCodeError> for SystemException {
    #[cold]
    fn from(error: TypeCodeError) -> Self {
        let kind = match error {
            TypeCodeError::BadKind => SystemExceptionKind::BadOperation,
            TypeCodeError::Bounds => SystemExceptionKind::BadParam,
        };
        Self::from(kind).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exception::CompletionStatus;

    #[test]
    fn error_of_a_query_becomes_a_system_exception() {
        for (error, kind) in [
            (TypeCodeError::BadKind, SystemExceptionKind::BadOperation),
            (TypeCodeError::Bounds, SystemExceptionKind::BadParam),
        ] {
            let raised = SystemException::from(error);
            assert_eq!((raised.kind, raised.completed), (kind, CompletionStatus::No));
        }
    }
}
