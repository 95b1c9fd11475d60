//! [`Idl`]: IDL that is read at run time.

mod constants;
mod interfaces;
mod options;
mod types;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use idl_compiler::model::{DefId, DefKind, Model};
use orb_runtime::dynamic::ValueTypes;
use orb_runtime::dynamic::{Dynamic, Interface};
use orb_runtime::types::TypeCode;

pub use options::{IdlError, IdlFinding, IdlOptions};

use crate::value_info::ValueInfo;

use types::Types;

/// IDL that was read at run time: type codes, descriptions of interfaces ([`Interface`]), and constants.
///
/// The syntax and meaning of IDL are the same as for `zorb::idl!`. The type codes equal the type codes of
/// generated types. The results are reference counted and remain valid after the `Idl` is dropped.
///
/// ```
/// use zorb::dynamic::{Idl, Mode};
///
/// let idl = Idl::parse("module Bank {
///     exception Overdrawn { double missing; };
///     interface Account {
///         readonly attribute double balance;
///         double withdraw(in double amount) raises (Overdrawn);
///     };
/// };")?;
/// let account = idl.interface("Bank::Account").ok_or("no such interface")?;
/// let withdraw = account.find("withdraw").ok_or("no such operation")?;
/// assert_eq!(withdraw.params[0].mode, Mode::In);
/// assert_eq!(withdraw.raises[0], idl.type_code("Bank::Overdrawn").ok_or("no such type")?);
/// assert_eq!(account.find("_get_balance").map(|get| get.result.to_string()).as_deref(), Some("double"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Idl {
    entries: Arc<[Entry]>,
    by_name: Arc<HashMap<Box<str>, usize>>,
    by_id: Arc<HashMap<Box<str>, usize>>,
    warnings: Arc<str>,
}

#[derive(Debug)]
struct Entry {
    kind: DefinitionKind,
    name: Box<str>,
    scoped_name: Box<str>,
    id: Box<str>,
    parent: Option<usize>,
    contents: Vec<usize>,
    docs: Box<str>,
    is_included: bool,
    code: Option<TypeCode>,
    interface: Option<Arc<Interface>>,
    value: Option<Arc<ValueInfo>>,
    constant: Option<Dynamic>,
}

/// The kind of an IDL definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefinitionKind {
    /// `module`.
    Module,
    /// An interface, or a construct that becomes an interface, such as a component or home.
    Interface,
    /// An operation of an interface or value type.
    Operation,
    /// An attribute of an interface or value type.
    Attribute,
    /// `struct`.
    Struct,
    /// `exception`.
    Exception,
    /// `union`.
    Union,
    /// `enum`.
    Enum,
    /// `typedef`.
    Typedef,
    /// `const`.
    Const,
    /// `valuetype` or `eventtype`.
    Value,
    /// A value box.
    ValueBox,
    /// `native`.
    Native,
    /// `bitset`.
    Bitset,
    /// `bitmask`.
    Bitmask,
}

impl Idl {
    /// Parses a text. It must not include files. All type codes together may occupy up to 256 MiB.
    ///
    /// # Errors
    /// The text has errors. The result contains all of them, each with its position.
    pub fn parse(text: &str) -> Result<Idl, IdlError> {
        Idl::options().text("text.idl", text)
    }

    /// Returns options for reading files, and texts that include files.
    pub fn options() -> IdlOptions {
        IdlOptions::default()
    }

    /// Returns the type code of a type or exception. For an interface, this is the type of references to it.
    /// The scoped name, such as `Bank::Account`, may start with `::`.
    pub fn type_code(&self, scoped_name: &str) -> Option<TypeCode> {
        self.find(scoped_name)?.type_code().cloned()
    }

    /// Returns an interface by its scoped name, in the format of [`type_code`](Idl::type_code).
    pub fn interface(&self, scoped_name: &str) -> Option<Arc<Interface>> {
        self.find(scoped_name)?.interface().cloned()
    }

    /// Returns a definition by its scoped name, in the format of [`type_code`](Idl::type_code).
    pub fn find(&self, scoped_name: &str) -> Option<Definition<'_>> {
        let name = scoped_name.strip_prefix("::").unwrap_or(scoped_name);
        self.by_name.get(name).map(|index| Definition { idl: self, index: *index })
    }

    /// Returns a definition by its repository id. If several definitions have this id, returns the first one.
    pub fn find_id(&self, id: &str) -> Option<Definition<'_>> {
        self.by_id.get(id).map(|index| Definition { idl: self, index: *index })
    }

    /// Returns all definitions, including those of included files, each after its enclosing definition.
    pub fn definitions(&self) -> impl Iterator<Item = Definition<'_>> {
        (0..self.entries.len()).map(|index| Definition { idl: self, index })
    }

    /// Returns the definitions at file level.
    pub fn roots(&self) -> impl Iterator<Item = Definition<'_>> {
        self.definitions().filter(|definition| definition.parent().is_none())
    }

    /// Returns the value types and value boxes, for
    /// [`Orb::add_value_types`](orb_runtime::Orb::add_value_types).
    pub fn value_types(&self) -> ValueTypes {
        let values = self
            .definitions()
            .filter(|one| matches!(one.kind(), DefinitionKind::Value | DefinitionKind::ValueBox));
        values.filter_map(|one| one.type_code().cloned()).collect()
    }

    /// Returns the warnings, formatted for display. Empty if there are none.
    pub fn warnings(&self) -> &str {
        &self.warnings
    }

    fn of_model(model: &Model) -> Result<Idl, IdlError> {
        let mut types = Types::new(model);
        let fault = |id: DefId, error| IdlError::without_type_code(model, id, error);
        let interfaces =
            interfaces::convert_interfaces(model, &mut types).map_err(|(id, error)| fault(id, error))?;
        let mut entries = Vec::with_capacity(model.defs().len());
        for def in model.defs() {
            let constant = match &def.kind {
                DefKind::Const(body) => Some(constants::constant(&mut types, body)),
                _ => None,
            };
            let constant = constant.transpose().map_err(|error| fault(def.id, error))?;
            let value = values::value(model, &mut types, def.id).map_err(|error| fault(def.id, error))?;
            entries.push(Entry {
                kind: kind(&def.kind),
                name: (&*def.name).into(),
                scoped_name: model.scoped_name(def.id).into(),
                id: (&*def.repository_id).into(),
                parent: def.parent.map(DefId::index),
                contents: model.children(def.id).iter().map(|id| id.index()).collect(),
                docs: def.docs.text().into(),
                is_included: model.is_included(def.id),
                code: types.of_definition(def.id).map_err(|error| fault(def.id, error))?,
                interface: interfaces.get(&def.id).cloned(),
                value,
                constant,
            });
        }
        let index = |key: fn(&Entry) -> &str| {
            // The order is reversed, so that the first of several entries with one key replaces the others.
            entries.iter().enumerate().rev().map(|(index, entry)| (key(entry).into(), index)).collect()
        };
        let (by_name, by_id) = (index(|entry| &entry.scoped_name), index(|entry| &entry.id));
        Ok(Idl {
            entries: entries.into(),
            by_name: Arc::new(by_name),
            by_id: Arc::new(by_id),
            warnings: model.warnings().to_string().into(),
        })
    }
}

/// A definition of an [`Idl`].
#[derive(Clone, Copy)]
pub struct Definition<'a> {
    idl: &'a Idl,
    index: usize,
}

impl<'a> Definition<'a> {
    fn entry(self) -> &'a Entry {
        &self.idl.entries[self.index]
    }

    /// Returns the kind of the definition.
    pub fn kind(self) -> DefinitionKind {
        self.entry().kind
    }

    /// Returns the name, without the scope and the underscore of an escaped identifier.
    pub fn name(self) -> &'a str {
        &self.entry().name
    }

    /// Returns the scoped name, such as `Bank::Account`.
    pub fn scoped_name(self) -> &'a str {
        &self.entry().scoped_name
    }

    /// Returns the repository id.
    pub fn id(self) -> &'a str {
        &self.entry().id
    }

    /// Returns the text of the documentation comments. Empty if there are none.
    pub fn docs(self) -> &'a str {
        &self.entry().docs
    }

    /// Returns whether the definition is in an included file.
    pub fn is_included(self) -> bool {
        self.entry().is_included
    }

    /// Returns the enclosing definition, or `None` at file level.
    pub fn parent(self) -> Option<Definition<'a>> {
        self.entry().parent.map(|index| Definition { idl: self.idl, index })
    }

    /// Returns the contained definitions, in the order of the text.
    pub fn contents(self) -> impl Iterator<Item = Definition<'a>> {
        self.entry().contents.iter().map(move |index| Definition { idl: self.idl, index: *index })
    }

    /// Returns the type code of a type or exception. For an interface, this is the type of references to it.
    pub fn type_code(self) -> Option<&'a TypeCode> {
        self.entry().code.as_ref()
    }

    /// Returns the interface, if the definition is one.
    pub fn interface(self) -> Option<&'a Arc<Interface>> {
        self.entry().interface.as_ref()
    }

    /// Returns the value type, if the definition is one.
    pub fn value(self) -> Option<&'a Arc<ValueInfo>> {
        self.entry().value.as_ref()
    }

    /// Returns the type and value, if the definition is a constant.
    pub fn constant(self) -> Option<&'a Dynamic> {
        self.entry().constant.as_ref()
    }
}

impl fmt::Debug for Definition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind(), self.scoped_name())
    }
}

fn kind(def_kind: &DefKind) -> DefinitionKind {
    match def_kind {
        DefKind::Module(_) => DefinitionKind::Module,
        DefKind::Interface(_) => DefinitionKind::Interface,
        DefKind::Operation(_) => DefinitionKind::Operation,
        DefKind::Attribute(_) => DefinitionKind::Attribute,
        DefKind::Struct(_) => DefinitionKind::Struct,
        DefKind::Exception(_) => DefinitionKind::Exception,
        DefKind::Union(_) => DefinitionKind::Union,
        DefKind::Enum(_) => DefinitionKind::Enum,
        DefKind::Typedef(_) => DefinitionKind::Typedef,
        DefKind::Const(_) => DefinitionKind::Const,
        DefKind::Value(_) => DefinitionKind::Value,
        DefKind::ValueBox(_) => DefinitionKind::ValueBox,
        DefKind::Native => DefinitionKind::Native,
        DefKind::Bitset(_) => DefinitionKind::Bitset,
        DefKind::Bitmask(_) => DefinitionKind::Bitmask,
    }
}
