//! The kinds of the repository's objects.

/// Defines the kinds of objects with their numbers and interfaces.
macro_rules! kinds {
    ($($kind:ident = $number:literal $interface:literal,)+) => {
        /// The kind of a definition: the values of `CORBA::DefinitionKind` that have objects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub(super) enum Kind {
            $($kind = $number,)+
        }

        impl Kind {
            pub(super) const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// Returns the interface of objects of this kind, by its name in the module CORBA.
            pub(super) fn interface(self) -> &'static str {
                match self { $(Kind::$kind => $interface,)+ }
            }
        }
    };
}

kinds! {
    Attribute = 2 "AttributeDef",
    Constant = 3 "ConstantDef",
    Exception = 4 "ExceptionDef",
    Interface = 5 "InterfaceDef",
    Module = 6 "ModuleDef",
    Operation = 7 "OperationDef",
    Alias = 9 "AliasDef",
    Struct = 10 "StructDef",
    Union = 11 "UnionDef",
    Enum = 12 "EnumDef",
    Primitive = 13 "PrimitiveDef",
    String = 14 "StringDef",
    Sequence = 15 "SequenceDef",
    Array = 16 "ArrayDef",
    Repository = 17 "Repository",
    WString = 18 "WstringDef",
    Fixed = 19 "FixedDef",
    Value = 20 "ValueDef",
    ValueBox = 21 "ValueBoxDef",
    ValueMember = 22 "ValueMemberDef",
    Native = 23 "NativeDef",
    AbstractInterface = 24 "AbstractInterfaceDef",
    LocalInterface = 25 "LocalInterfaceDef",
}

/// `dk_all`: all kinds of definitions.
pub(super) const DK_ALL: u32 = 1;
/// `dk_Typedef`: aliases, structs, unions, enums, value boxes and native types.
const DK_TYPEDEF: u32 = 8;

impl Kind {
    /// Returns the interface of the servants for objects of this kind, by its name in the module CORBA. The
    /// `Ext` interfaces also describe the exceptions of attributes and initializers.
    pub(super) fn served_interface(self) -> &'static str {
        match self {
            Kind::Attribute => "ExtAttributeDef",
            Kind::Value => "ExtValueDef",
            Kind::Interface => "ExtInterfaceDef",
            Kind::AbstractInterface => "ExtAbstractInterfaceDef",
            Kind::LocalInterface => "ExtLocalInterfaceDef",
            other => other.interface(),
        }
    }

    /// Returns the struct in the module CORBA that describes definitions of this kind, or an empty name.
    pub(super) fn description_struct(self) -> &'static str {
        match self {
            Kind::Attribute => "AttributeDescription",
            Kind::Constant => "ConstantDescription",
            Kind::Exception => "ExceptionDescription",
            Kind::Interface | Kind::AbstractInterface | Kind::LocalInterface => "InterfaceDescription",
            Kind::Module => "ModuleDescription",
            Kind::Operation => "OperationDescription",
            Kind::Value => "ValueDescription",
            Kind::ValueMember => "ValueMember",
            kind if kind.is_typedef() => "TypeDescription",
            _ => "",
        }
    }

    fn is_typedef(self) -> bool {
        use Kind::{Alias, Enum, Native, Struct, Union, ValueBox};
        matches!(self, Alias | Struct | Union | Enum | ValueBox | Native)
    }

    /// Returns whether a query for `wanted`, a number of `CORBA::DefinitionKind`, includes this kind.
    pub(super) fn is_among(self, wanted: u32) -> bool {
        match wanted {
            DK_ALL => true,
            DK_TYPEDEF => self.is_typedef(),
            wanted => self as u32 == wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_number_and_a_name_of_its_own() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.interface()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(Kind::ALL.windows(2).all(|two| (two[0] as u32) < two[1] as u32));
        assert!(
            Kind::Struct.is_among(DK_TYPEDEF) && Kind::Struct.is_among(DK_ALL) && Kind::Struct.is_among(10)
        );
        assert!(!Kind::Module.is_among(DK_TYPEDEF) && !Kind::Module.is_among(0));
    }
}
