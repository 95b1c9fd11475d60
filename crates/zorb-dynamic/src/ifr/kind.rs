//! The kinds of the repository's objects.

/// The kind of a definition: `CORBA::DefinitionKind`, as far as objects of it exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(super) enum Kind {
    Attribute = 2,
    Constant = 3,
    Exception = 4,
    Interface = 5,
    Module = 6,
    Operation = 7,
    Alias = 9,
    Struct = 10,
    Union = 11,
    Enum = 12,
    Primitive = 13,
    String = 14,
    Sequence = 15,
    Array = 16,
    Repository = 17,
    WString = 18,
    Fixed = 19,
    Value = 20,
    ValueBox = 21,
    ValueMember = 22,
    Native = 23,
    AbstractInterface = 24,
    LocalInterface = 25,
}

/// `dk_all`.
pub(super) const ALL: u32 = 1;
/// `dk_Typedef`: aliases, structs, unions, enums, value boxes and native types.
pub(super) const TYPEDEF: u32 = 8;

impl Kind {
    pub(super) const EACH: [Kind; 23] = [
        Kind::Attribute,
        Kind::Constant,
        Kind::Exception,
        Kind::Interface,
        Kind::Module,
        Kind::Operation,
        Kind::Alias,
        Kind::Struct,
        Kind::Union,
        Kind::Enum,
        Kind::Primitive,
        Kind::String,
        Kind::Sequence,
        Kind::Array,
        Kind::Repository,
        Kind::WString,
        Kind::Fixed,
        Kind::Value,
        Kind::ValueBox,
        Kind::ValueMember,
        Kind::Native,
        Kind::AbstractInterface,
        Kind::LocalInterface,
    ];

    /// Returns the name of the interface of such objects, in the module CORBA.
    pub(super) fn interface(self) -> &'static str {
        match self {
            Kind::Attribute => "AttributeDef",
            Kind::Constant => "ConstantDef",
            Kind::Exception => "ExceptionDef",
            Kind::Interface => "InterfaceDef",
            Kind::Module => "ModuleDef",
            Kind::Operation => "OperationDef",
            Kind::Alias => "AliasDef",
            Kind::Struct => "StructDef",
            Kind::Union => "UnionDef",
            Kind::Enum => "EnumDef",
            Kind::Primitive => "PrimitiveDef",
            Kind::String => "StringDef",
            Kind::Sequence => "SequenceDef",
            Kind::Array => "ArrayDef",
            Kind::Repository => "Repository",
            Kind::WString => "WstringDef",
            Kind::Fixed => "FixedDef",
            Kind::Value => "ValueDef",
            Kind::ValueBox => "ValueBoxDef",
            Kind::ValueMember => "ValueMemberDef",
            Kind::Native => "NativeDef",
            Kind::AbstractInterface => "AbstractInterfaceDef",
            Kind::LocalInterface => "LocalInterfaceDef",
        }
    }

    /// Returns the name of the interface by which such objects are served. Those of attributes, interfaces
    /// and value types also describe the exceptions of attributes and initializers.
    pub(super) fn served(self) -> &'static str {
        match self {
            Kind::Attribute => "ExtAttributeDef",
            Kind::Value => "ExtValueDef",
            Kind::Interface => "ExtInterfaceDef",
            Kind::AbstractInterface => "ExtAbstractInterfaceDef",
            Kind::LocalInterface => "ExtLocalInterfaceDef",
            other => other.interface(),
        }
    }

    /// Returns the name of the struct that describes such definitions, in the module CORBA. Empty if they
    /// have no description.
    pub(super) fn described_by(self) -> &'static str {
        match self {
            Kind::Attribute => "AttributeDescription",
            Kind::Constant => "ConstantDescription",
            Kind::Exception => "ExceptionDescription",
            Kind::Interface | Kind::AbstractInterface | Kind::LocalInterface => "InterfaceDescription",
            Kind::Module => "ModuleDescription",
            Kind::Operation => "OperationDescription",
            Kind::Value => "ValueDescription",
            Kind::ValueMember => "ValueMember",
            Kind::Alias | Kind::Struct | Kind::Union | Kind::Enum | Kind::ValueBox | Kind::Native => {
                "TypeDescription"
            }
            Kind::Primitive | Kind::String | Kind::WString | Kind::Fixed => "",
            Kind::Sequence | Kind::Array | Kind::Repository => "",
        }
    }

    /// Returns whether a query for `wanted` definitions includes this kind.
    pub(super) fn is_among(self, wanted: u32) -> bool {
        match wanted {
            ALL => true,
            TYPEDEF => {
                matches!(
                    self,
                    Kind::Alias | Kind::Struct | Kind::Union | Kind::Enum | Kind::ValueBox | Kind::Native
                )
            }
            wanted => self as u32 == wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_place_and_a_name_of_its_own() {
        let mut names: Vec<_> = Kind::EACH.iter().map(|kind| kind.interface()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::EACH.len());
        assert!(Kind::EACH.windows(2).all(|two| (two[0] as u32) < two[1] as u32));
        assert!(Kind::Struct.is_among(TYPEDEF) && Kind::Struct.is_among(ALL) && Kind::Struct.is_among(10));
        assert!(!Kind::Module.is_among(TYPEDEF) && !Kind::Module.is_among(0));
    }
}
