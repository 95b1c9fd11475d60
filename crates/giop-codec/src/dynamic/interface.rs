//! [`Interface`]: the definition of an IDL interface as data.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::typecode::{TcKind, TypeCode, TypeDesc};

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// From the caller to the servant.
    In,
    /// From the servant to the caller.
    Out,
    /// In both directions.
    InOut,
}

impl Mode {
    /// Returns whether the caller sends the parameter.
    pub const fn is_input(self) -> bool {
        !matches!(self, Mode::Out)
    }

    /// Returns whether the servant sends the parameter.
    pub const fn is_output(self) -> bool {
        !matches!(self, Mode::In)
    }
}

/// The definition of an IDL interface as data. It is created from IDL that is read at run time, from an
/// Interface Repository, or from a generated type.
#[derive(Debug)]
pub struct Interface {
    id: Box<str>,
    name: Box<str>,
    kind: TcKind,
    bases: Vec<Arc<Interface>>,
    operations: Vec<Arc<OperationInfo>>,
    attributes: Vec<AttributeInfo>,
    by_wire_name: OnceLock<HashMap<Box<str>, Arc<OperationInfo>>>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationInfo {
    /// The repository id.
    pub id: Box<str>,
    /// The name in messages: `_get_balance` for the attribute `balance`.
    pub name: Box<str>,
    /// Whether the operation has no reply.
    pub oneway: bool,
    /// The result type, or [`TypeCode::VOID`].
    pub result: TypeCode,
    /// The parameters in the order of the IDL.
    pub params: Vec<ParamInfo>,
    /// The exceptions that the operation raises.
    pub raises: Vec<TypeCode>,
    /// The names and patterns of names in the operation's `context` clause.
    pub contexts: Vec<Box<str>>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    /// The name.
    pub name: Box<str>,
    /// The direction.
    pub mode: Mode,
    /// The type.
    pub code: TypeCode,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeInfo {
    /// The repository id.
    pub id: Box<str>,
    /// The name.
    pub name: Box<str>,
    /// Whether the attribute cannot be set.
    pub readonly: bool,
    /// The type.
    pub code: TypeCode,
    /// The exceptions that the getter raises.
    pub get_raises: Vec<TypeCode>,
    /// The exceptions that the setter raises.
    pub set_raises: Vec<TypeCode>,
}

impl Interface {
    /// Creates an interface. `operations` must not include the operations that every object has. `kind` is
    /// [`TcKind::ObjRef`], or the kind of an abstract or local interface, a component or a home.
    pub fn new(
        (kind, id, name): (TcKind, &str, &str),
        bases: Vec<Arc<Interface>>,
        operations: Vec<OperationInfo>,
        attributes: Vec<AttributeInfo>,
    ) -> Interface {
        Interface {
            id: id.into(),
            name: name.into(),
            kind,
            bases,
            operations: operations.into_iter().map(Arc::new).collect(),
            attributes,
            by_wire_name: OnceLock::new(),
        }
    }

    /// Returns the repository id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name without its modules.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of interface.
    pub fn kind(&self) -> TcKind {
        self.kind
    }

    /// Returns the direct bases in the order of the IDL.
    pub fn bases(&self) -> &[Arc<Interface>] {
        &self.bases
    }

    /// Returns the operations that the interface itself defines, in the order of the IDL.
    pub fn operations(&self) -> &[Arc<OperationInfo>] {
        &self.operations
    }

    /// Returns the attributes that the interface itself defines, in the order of the IDL.
    pub fn attributes(&self) -> &[AttributeInfo] {
        &self.attributes
    }

    /// Returns whether this interface is, or is derived from, the interface with this repository id.
    pub fn is_a(&self, id: &str) -> bool {
        id == "IDL:omg.org/CORBA/Object:1.0" || self.lineage().iter().any(|one| *one.id == *id)
    }

    /// Returns this interface, followed by all its direct and indirect bases. Each occurs once.
    pub fn lineage(&self) -> Vec<&Interface> {
        let (mut visited, mut all, mut pending) = (HashSet::new(), Vec::new(), vec![self]);
        while let Some(interface) = pending.pop() {
            if visited.insert(&*interface.id) {
                all.push(interface);
                pending.extend(interface.bases.iter().rev().map(|base| &**base));
            }
        }
        all
    }

    /// Returns the operation with this name in messages. It may be inherited, or read or set an attribute.
    pub fn find(&self, wire_name: &str) -> Option<&Arc<OperationInfo>> {
        self.by_wire_name
            .get_or_init(|| {
                let mut table = HashMap::new();
                for interface in self.lineage() {
                    let accessors = interface.attributes.iter().flat_map(AttributeInfo::accessors);
                    for operation in interface.operations.iter().cloned().chain(accessors.map(Arc::new)) {
                        table.entry(operation.name.clone()).or_insert(operation);
                    }
                }
                table
            })
            .get(wire_name)
    }

    /// Creates the interface of a generated reference type, such as `AccountRef`. Nothing is cached.
    pub fn of<T: Described + ?Sized>() -> Arc<Interface> {
        Interface::of_desc(T::INTERFACE())
    }

    /// Creates the interface of a description, with its bases. Nothing is cached.
    pub fn of_desc(desc: &'static InterfaceDesc) -> Arc<Interface> {
        let mut created = HashMap::new();
        let mut pending = vec![desc];
        while let Some(desc) = pending.pop() {
            let is_created =
                |base: &&InterfaceDesc| created.contains_key(&std::ptr::from_ref::<InterfaceDesc>(*base));
            let bases: Vec<&'static InterfaceDesc> = desc.bases.iter().map(|base| base()).collect();
            let missing: Vec<_> = bases.iter().copied().filter(|base| !is_created(base)).collect();
            if missing.is_empty() {
                let bases = bases.iter().filter_map(|base| created.get(&std::ptr::from_ref(*base)).cloned());
                let interface = Arc::new(Interface::from_desc(desc, bases.collect()));
                created.insert(std::ptr::from_ref(desc), interface);
            } else {
                pending.push(desc);
                pending.extend(missing);
            }
        }
        let own = created.remove(&std::ptr::from_ref(desc));
        own.unwrap_or_else(|| Arc::new(Interface::from_desc(desc, Vec::new())))
    }

    fn from_desc(desc: &'static InterfaceDesc, bases: Vec<Arc<Interface>>) -> Interface {
        let codes = |descs: &[&'static TypeDesc]| descs.iter().map(|desc| TypeCode::of_desc(desc)).collect();
        let param = |&(name, mode, desc): &(&str, Mode, &'static TypeDesc)| ParamInfo {
            name: name.into(),
            mode,
            code: TypeCode::of_desc(desc),
        };
        let operation = |desc: &OperationDesc| OperationInfo {
            id: desc.id.into(),
            name: desc.name.into(),
            oneway: desc.oneway,
            result: TypeCode::of_desc(desc.result),
            params: desc.params.iter().map(param).collect(),
            raises: codes(desc.raises),
            contexts: desc.contexts.iter().map(|&name| name.into()).collect(),
        };
        let attribute = |desc: &AttributeDesc| AttributeInfo {
            id: desc.id.into(),
            name: desc.name.into(),
            readonly: desc.readonly,
            code: TypeCode::of_desc(desc.desc),
            get_raises: codes(desc.get_raises),
            set_raises: codes(desc.set_raises),
        };
        let operations = desc.operations.iter().map(operation).collect();
        let attributes = desc.attributes.iter().map(attribute).collect();
        Interface::new((desc.kind, desc.id, desc.name), bases, operations, attributes)
    }
}

impl AttributeInfo {
    /// Returns the operations that read and set the attribute.
    pub fn accessors(&self) -> impl Iterator<Item = OperationInfo> {
        let operation = |prefix: &str, result, params, raises: &Vec<TypeCode>| OperationInfo {
            id: self.id.clone(),
            name: format!("{prefix}{}", self.name).into(),
            oneway: false,
            result,
            params,
            raises: raises.clone(),
            contexts: Vec::new(),
        };
        let value = ParamInfo { name: "value".into(), mode: Mode::In, code: self.code.clone() };
        let get = operation("_get_", self.code.clone(), Vec::new(), &self.get_raises);
        let set = (!self.readonly).then(|| operation("_set_", TypeCode::VOID, vec![value], &self.set_raises));
        std::iter::once(get).chain(set)
    }
}

/// A reference type in generated code for an IDL interface.
pub trait Described {
    /// Returns the description of the interface, for [`Interface::of`].
    #[doc(hidden)]
    const INTERFACE: fn() -> &'static InterfaceDesc;
}

/// An interface as constant data in generated code.
#[derive(Debug)]
pub struct InterfaceDesc {
    /// The repository id.
    pub id: &'static str,
    /// The name.
    pub name: &'static str,
    /// The kind of interface.
    pub kind: TcKind,
    /// The direct bases.
    pub bases: &'static [fn() -> &'static InterfaceDesc],
    /// The interface's own operations.
    pub operations: &'static [OperationDesc],
    /// The interface's own attributes.
    pub attributes: &'static [AttributeDesc],
}

/// An operation as constant data.
#[derive(Debug)]
pub struct OperationDesc {
    /// The repository id.
    pub id: &'static str,
    /// The name in messages.
    pub name: &'static str,
    /// Whether the operation has no reply.
    pub oneway: bool,
    /// The result type, or [`TypeDesc::VOID`].
    pub result: &'static TypeDesc,
    /// The parameters in the order of the IDL: the name, direction and type of each.
    pub params: &'static [(&'static str, Mode, &'static TypeDesc)],
    /// The exceptions that the operation raises.
    pub raises: &'static [&'static TypeDesc],
    /// The names and patterns of names in the operation's `context` clause.
    pub contexts: &'static [&'static str],
}

/// An attribute as constant data.
#[derive(Debug)]
pub struct AttributeDesc {
    /// The repository id.
    pub id: &'static str,
    /// The name.
    pub name: &'static str,
    /// Whether the attribute cannot be set.
    pub readonly: bool,
    /// The type.
    pub desc: &'static TypeDesc,
    /// The exceptions that the getter raises.
    pub get_raises: &'static [&'static TypeDesc],
    /// The exceptions that the setter raises.
    pub set_raises: &'static [&'static TypeDesc],
}

#[cfg(test)]
mod tests {
    use super::*;

    static BASE: InterfaceDesc = InterfaceDesc {
        id: "IDL:Base:1.0",
        name: "Base",
        kind: TcKind::ObjRef,
        bases: &[],
        operations: &[],
        attributes: &[AttributeDesc {
            id: "IDL:Base/size:1.0",
            name: "size",
            readonly: false,
            desc: TypeDesc::LONG,
            get_raises: &[],
            set_raises: &[],
        }],
    };

    static DERIVED: InterfaceDesc = InterfaceDesc {
        id: "IDL:Derived:1.0",
        name: "Derived",
        kind: TcKind::ObjRef,
        bases: &[|| &BASE],
        operations: &[OperationDesc {
            id: "IDL:Derived/add:1.0",
            name: "add",
            oneway: false,
            result: TypeDesc::VOID,
            params: &[("by", Mode::In, TypeDesc::SHORT), ("now", Mode::Out, TypeDesc::LONG)],
            raises: &[],
            contexts: &[],
        }],
        attributes: &[],
    };

    #[test]
    fn operations_are_found_by_their_names_in_messages() {
        let derived = Interface::of_desc(&DERIVED);
        assert_eq!(derived.find("add").unwrap().params[1].code, TypeCode::LONG);
        assert_eq!(derived.find("_get_size").unwrap().result, TypeCode::LONG);
        assert_eq!(derived.find("_set_size").unwrap().params[0].code, TypeCode::LONG);
        assert!(derived.find("size").is_none());
        assert!(derived.is_a("IDL:Base:1.0") && derived.is_a("IDL:omg.org/CORBA/Object:1.0"));
        assert!(!derived.is_a("IDL:Other:1.0"));
        assert_eq!(derived.lineage().iter().map(|one| one.name()).collect::<Vec<_>>(), ["Derived", "Base"]);
        assert!(Mode::InOut.is_input() && Mode::InOut.is_output() && !Mode::In.is_output());
    }
}
