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

use super::ValueInfo;
use types::Types;

/// IDL that was read at run time: its types as type codes, its interfaces as data, its constants as values.
///
/// What IDL is, and what it means, is what it is for [`idl!`](crate::idl!); the type codes are those of the generated types. All is
/// made when the text is read, and what comes out of it is kept alive by whoever has it, so an `Idl` need not be kept.
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
    included: bool,
    code: Option<TypeCode>,
    interface: Option<Arc<Interface>>,
    value: Option<Arc<ValueInfo>>,
    constant: Option<Dynamic>,
}

/// What a definition of IDL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DefinitionKind {
    /// `module`.
    Module,
    /// An interface of any kind, or a component, home or the like, which are interfaces: see [`Interface::kind`].
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
    /// `valuetype` around another type.
    ValueBox,
    /// `native`.
    Native,
    /// `bitset`.
    Bitset,
    /// `bitmask`.
    Bitmask,
}

impl Idl {
    /// Reads a text, which may include no files. The type codes of all definitions, each with all that it is made of, take 256 MiB at most.
    ///
    /// # Errors
    /// All that is wrong with the text, each with its place.
    pub fn parse(text: &str) -> Result<Idl, IdlError> {
        Idl::options().text("text.idl", text)
    }

    /// How to read files, or texts that include some.
    pub fn options() -> IdlOptions {
        IdlOptions::default()
    }

    /// The type code of a type or exception, of an interface that of references to it. By scoped name, `Bank::Account`, with or without `::` before it.
    pub fn type_code(&self, scoped_name: &str) -> Option<TypeCode> {
        self.find(scoped_name)?.type_code().cloned()
    }

    /// An interface, by scoped name, as [`type_code`](Idl::type_code).
    pub fn interface(&self, scoped_name: &str) -> Option<Arc<Interface>> {
        self.find(scoped_name)?.interface().cloned()
    }

    /// A definition, by scoped name, as [`type_code`](Idl::type_code).
    pub fn find(&self, scoped_name: &str) -> Option<Definition<'_>> {
        let name = scoped_name.strip_prefix("::").unwrap_or(scoped_name);
        self.by_name.get(name).map(|at| Definition { idl: self, at: *at })
    }

    /// A definition, by repository id. Modules have one too. Of several that were given the same one, the first.
    pub fn find_id(&self, id: &str) -> Option<Definition<'_>> {
        self.by_id.get(id).map(|at| Definition { idl: self, at: *at })
    }

    /// All definitions, those of included files among them, each behind what it stands in.
    pub fn definitions(&self) -> impl Iterator<Item = Definition<'_>> {
        (0..self.entries.len()).map(|at| Definition { idl: self, at })
    }

    /// The definitions that stand in no other.
    pub fn roots(&self) -> impl Iterator<Item = Definition<'_>> {
        self.definitions().filter(|definition| definition.parent().is_none())
    }

    /// Its value types and boxes, for [`Orb::add_value_types`](crate::Orb::add_value_types).
    pub fn value_types(&self) -> ValueTypes {
        let values = self
            .definitions()
            .filter(|one| matches!(one.kind(), DefinitionKind::Value | DefinitionKind::ValueBox));
        values.filter_map(|one| one.type_code().cloned()).collect()
    }

    /// What is worth saying of the text though it is no error, for people; empty if there is nothing.
    pub fn warnings(&self) -> &str {
        &self.warnings
    }

    fn of_model(model: &Model) -> Result<Idl, IdlError> {
        let mut types = Types::new(model);
        let fault = |id: DefId, error| IdlError::of_type(model, id, error);
        let interfaces = interfaces::all(model, &mut types).map_err(|(id, error)| fault(id, error))?;
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
                included: model.is_included(def.id),
                code: types.of_definition(def.id).map_err(|error| fault(def.id, error))?,
                interface: interfaces.get(&def.id).cloned(),
                value,
                constant,
            });
        }
        let index = |key: fn(&Entry) -> &str| {
            // Of several with one key the first is the last to be put in.
            entries.iter().enumerate().rev().map(|(at, entry)| (key(entry).into(), at)).collect()
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
    at: usize,
}

impl<'a> Definition<'a> {
    fn entry(self) -> &'a Entry {
        &self.idl.entries[self.at]
    }

    /// What it is.
    pub fn kind(self) -> DefinitionKind {
        self.entry().kind
    }

    /// Its name, without the scope, and without the underscore of an escaped identifier.
    pub fn name(self) -> &'a str {
        &self.entry().name
    }

    /// Its name with its scopes, such as `Bank::Account`.
    pub fn scoped_name(self) -> &'a str {
        &self.entry().scoped_name
    }

    /// Its repository id.
    pub fn id(self) -> &'a str {
        &self.entry().id
    }

    /// The comments before it that are documentation, without their marks; empty if there are none.
    pub fn docs(self) -> &'a str {
        &self.entry().docs
    }

    /// Whether it stands in a file that was included, and not in one that was given.
    pub fn is_included(self) -> bool {
        self.entry().included
    }

    /// What it stands in; `None` at file level.
    pub fn parent(self) -> Option<Definition<'a>> {
        self.entry().parent.map(|at| Definition { idl: self.idl, at })
    }

    /// What stands in it, in order.
    pub fn contents(self) -> impl Iterator<Item = Definition<'a>> {
        self.entry().contents.iter().map(move |at| Definition { idl: self.idl, at: *at })
    }

    /// The type code of a type or exception, and of an interface that of references to it.
    pub fn type_code(self) -> Option<&'a TypeCode> {
        self.entry().code.as_ref()
    }

    /// The interface, if it is one.
    pub fn interface(self) -> Option<&'a Arc<Interface>> {
        self.entry().interface.as_ref()
    }

    /// The value type, if it is one.
    pub fn value(self) -> Option<&'a Arc<ValueInfo>> {
        self.entry().value.as_ref()
    }

    /// Type and value, if it is a constant.
    pub fn constant(self) -> Option<&'a Dynamic> {
        self.entry().constant.as_ref()
    }
}

impl fmt::Debug for Definition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind(), self.scoped_name())
    }
}

fn kind(of: &DefKind) -> DefinitionKind {
    match of {
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
