//! The resolved model of an IDL text: every name is bound, every constant evaluated and every rule checked.
//!
//! STABLE: fields and variants may be added, but are never renamed or removed.
//!
//! A [`Model`] contains definitions ([`Def`], identified by [`DefId`]) and interned types ([`Type`],
//! identified by [`TypeId`]). Equal type ids mean structurally equal types. A typedef is never resolved
//! implicitly: a use of it is [`Type::Named`] with the typedef's `DefId`, and [`Model::strip`] follows the
//! chain. A model is only returned if no error was found. Therefore each id in it refers to a complete
//! definition, except that an interface may be declared and never defined ([`Interface::only_declared`]).

mod annotated;
mod layout;
mod query;
mod reach;
mod types;

pub use annotated::Bounds;
pub use layout::{ZeroCopyField, ZeroCopyLayout, ZeroCopyProblem};
pub use types::{ConstValue, Primitive, Type};

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::diagnostic::Diagnostics;
use crate::source::{Sources, Span};

use layout::Layouts;
use reach::Reach;

/// The id of one definition of a [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub(crate) u32);

impl DefId {
    /// Returns the position in [`Model::defs`], counted from zero.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The id of a type in a [`Model`]. Ids in one model are equal exactly if the types are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

impl TypeId {
    /// Returns the position in the model's list of types, counted from zero.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A whole IDL text, resolved and checked.
#[derive(Debug)]
pub struct Model {
    pub(crate) sources: Rc<Sources>,
    pub(crate) defs: Vec<Def>,
    pub(crate) types: Vec<Type>,
    pub(crate) interned: HashMap<Type, TypeId>,
    pub(crate) roots: Vec<DefId>,
    pub(crate) docs: Docs,
    /// For each definition, whether it contains itself.
    pub(crate) recursive: Vec<bool>,
    pub(crate) warnings: Diagnostics,
    pub(crate) pragmas: Vec<VendorPragma>,
    pub(crate) annotation_types: Vec<AnnotationType>,
    /// Properties of all types, computed on first use.
    reach: RefCell<Reach>,
    /// Layouts of structs, computed on first use.
    layouts: RefCell<Layouts>,
}

/// A `#pragma` that IDL does not define, kept for tools that know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorPragma {
    /// The text after `#pragma`, with continued lines joined.
    pub text: String,
    /// Location of the line.
    pub span: Span,
}

impl Model {
    pub(crate) fn new(sources: Rc<Sources>, docs: Docs) -> Model {
        Model {
            warnings: Diagnostics::new(Vec::new(), Rc::clone(&sources)),
            sources,
            defs: Vec::new(),
            types: Vec::new(),
            interned: HashMap::new(),
            roots: Vec::new(),
            docs,
            recursive: Vec::new(),
            pragmas: Vec::new(),
            annotation_types: Vec::new(),
            reach: RefCell::default(),
            layouts: RefCell::default(),
        }
    }
}

/// One named definition: everything that has a scoped name and a repository id.
#[derive(Clone, Debug)]
pub struct Def {
    /// This definition's own id.
    pub id: DefId,
    /// IDL name, spelled as defined, without the underscore of an escaped identifier.
    pub name: String,
    /// The definition whose scope this one is declared in; `None` at file level.
    pub parent: Option<DefId>,
    /// Repository id with prefix and version applied, e.g. `IDL:acme.com/M/I:1.0`.
    pub repository_id: String,
    /// Documentation comments before the declaration and `//!` comments in it; for a module, of all openings.
    pub docs: Docs,
    /// Annotations before the declaration.
    pub annotations: Annotations,
    /// Location of the name in the definition. For a module, it is in the first opening.
    pub span: Span,
    /// The kind of definition.
    pub kind: DefKind,
}

/// The kind of a [`Def`].
#[derive(Clone, Debug)]
pub enum DefKind {
    /// `module`, with the content of all its openings.
    Module(Module),
    /// `interface`.
    Interface(Interface),
    /// An operation; its parent is an interface or value type.
    Operation(Operation),
    /// An attribute; its parent is an interface or value type. `attribute long a, b;` gives two.
    Attribute(Attribute),
    /// `struct`.
    Struct(Struct),
    /// `exception`; same shape as a struct, but never a member or parameter type.
    Exception(Struct),
    /// `union`.
    Union(Union),
    /// `enum`.
    Enum(Enum),
    /// `typedef`; `typedef long a, b[2];` gives two.
    Typedef(Typedef),
    /// `const`.
    Const(Const),
    /// `valuetype` or `eventtype`, except a value box.
    Value(Value),
    /// `valuetype V T;`: a value that holds one `T`.
    ValueBox(ValueBox),
    /// `native`: a type that the language mapping defines and that is never marshalled.
    Native,
    /// `bitset`.
    Bitset(Bitset),
    /// `bitmask`.
    Bitmask(Bitmask),
}

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Definitions inside all openings, in source order.
    pub members: Vec<DefId>,
    /// Scoped name of the template module of which this module is an instance; `None` for an ordinary module.
    pub template: Option<String>,
}

/// An interface. [`Model::all_members`] also returns inherited members.
#[derive(Clone, Debug, Default)]
pub struct Interface {
    /// Plain, `abstract` or `local`.
    pub flavour: Flavour,
    /// The construct that declares it.
    pub construct: Construct,
    /// Whether the text declares the interface without defining it, so that its content is unknown.
    pub only_declared: bool,
    /// Direct bases as listed.
    pub bases: Vec<DefId>,
    /// Operations, attributes, types, constants and exceptions declared inside, in source order.
    pub members: Vec<DefId>,
}

/// The construct that declares an interface: `interface`, or one that the component model maps to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Construct {
    /// `interface`.
    #[default]
    Interface,
    /// `component`.
    Component,
    /// `connector`.
    Connector,
    /// `home H`: the interface `H`, which inherits from `HExplicit` and `HImplicit`.
    Home,
    /// `home H`: the interface `HExplicit`, with the declarations of the home's body.
    HomeExplicit,
    /// `home H`: the interface `HImplicit`, with the operations that every home has.
    HomeImplicit,
    /// `eventtype E`: the interface `EConsumer`, which receives events of this type.
    EventConsumer,
}

/// The kind of an interface, which determines what its references can refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// An object, in this or another process.
    #[default]
    Plain,
    /// `abstract`: an object, or a value of a type that supports the interface.
    Abstract,
    /// `local`: an object of this process. Its references never leave the process.
    Local,
}

/// A value type. [`Model::all_bases`] returns the definitions from which it inherits.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// Plain, `abstract` or `custom`.
    pub modifier: ValueModifier,
    /// Whether it is declared as `eventtype`.
    pub is_event: bool,
    /// Whether the first base is `truncatable`: a receiver that knows only the base can read the base's part.
    pub truncatable: bool,
    /// Direct base value types as listed. The one that is not abstract, if there is one, is the first.
    pub bases: Vec<DefId>,
    /// Supported interfaces as listed. The one that is not abstract, if there is one, is the first.
    pub supports: Vec<DefId>,
    /// State members in order, without inherited ones. `public long a, b;` gives two.
    pub state: Vec<StateMember>,
    /// Factories in order. Factories are not inherited.
    pub factories: Vec<Factory>,
    /// Operations, attributes, types, constants and exceptions declared inside, in source order.
    pub members: Vec<DefId>,
}

/// The modifier of a value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueModifier {
    /// No modifier.
    #[default]
    Plain,
    /// `abstract`: no state, never instantiated.
    Abstract,
    /// `custom`: the program marshals its state.
    Custom,
}

/// A state member of a value type.
#[derive(Clone, Debug)]
pub struct StateMember {
    /// The visibility.
    pub visibility: Visibility,
    /// The member.
    pub member: Member,
}

/// The visibility of a state member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// `private`: visible to the implementation of the value type.
    Private,
    /// `public`: visible everywhere.
    Public,
}

/// A factory of a value type.
#[derive(Clone, Debug)]
pub struct Factory {
    /// IDL name, unescaped.
    pub name: String,
    /// Parameters in order, all `in`.
    pub params: Vec<Param>,
    /// Exceptions listed under `raises`, in order, without repetition.
    pub raises: Vec<DefId>,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name.
    pub span: Span,
}

/// A value box.
#[derive(Clone, Debug)]
pub struct ValueBox {
    /// The boxed type. It is not a value type.
    pub ty: TypeId,
}

/// A bitset: an integer whose bits are divided into fields, starting at the least significant bit.
#[derive(Clone, Debug, Default)]
pub struct Bitset {
    /// The base bitset, whose fields come first.
    pub base: Option<DefId>,
    /// Fields in order, without inherited ones. `bitfield<3> a, b;` gives two.
    pub fields: Vec<BitField>,
}

/// A field of a bitset.
#[derive(Clone, Debug)]
pub struct BitField {
    /// IDL name, unescaped; `None` for padding bits.
    pub name: Option<String>,
    /// Number of bits, 1 to 64.
    pub width: u8,
    /// Type of the value in the field.
    pub ty: Primitive,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name, or of the keyword `bitfield` if there is no name.
    pub span: Span,
}

/// A bitmask: a set of flags.
#[derive(Clone, Debug)]
pub struct Bitmask {
    /// Number of bits, 1 to 64, by default 32. It is encoded as the smallest sufficient unsigned integer.
    pub bit_bound: u8,
    /// Flags in order.
    pub flags: Vec<Flag>,
}

/// A flag of a bitmask.
#[derive(Clone, Debug)]
pub struct Flag {
    /// IDL name, unescaped.
    pub name: String,
    /// The number of the flag's bit, counted from 0 for the least significant; less than `bit_bound`.
    pub position: u8,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name.
    pub span: Span,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Whether it has no reply. Then it has no result, no `out`, no `inout` and no `raises`.
    pub oneway: bool,
    /// Result type, `None` for `void`.
    pub result: Option<TypeId>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Exceptions listed under `raises`, in order, without repetition.
    pub raises: Vec<DefId>,
    /// Whether a native type is listed under `raises`, which means that any user exception can be raised.
    pub raises_any: bool,
    /// Patterns listed under `context`, in order: names of properties, optionally ending in `*`.
    pub context: Vec<String>,
}

/// A parameter of an operation or factory.
#[derive(Clone, Debug)]
pub struct Param {
    /// IDL name, unescaped.
    pub name: String,
    /// The direction.
    pub direction: Direction,
    /// Type.
    pub ty: TypeId,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name.
    pub span: Span,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to servant.
    In,
    /// Servant to client.
    Out,
    /// Both ways.
    InOut,
}

impl Direction {
    /// Returns the IDL keyword.
    pub fn keyword(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::InOut => "inout",
        }
    }
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Whether there is no set operation.
    pub readonly: bool,
    /// Type.
    pub ty: TypeId,
    /// Exceptions of the get operation: `raises` of a readonly attribute, `getraises` of another attribute.
    pub get_raises: Vec<DefId>,
    /// Exceptions of the set operation.
    pub set_raises: Vec<DefId>,
}

/// A struct, or the body of an exception.
#[derive(Clone, Debug, Default)]
pub struct Struct {
    /// The base struct, whose members come first.
    pub base: Option<DefId>,
    /// Members in order, without inherited ones. `long a, b;` gives two.
    pub members: Vec<Member>,
    /// Types declared inside (`struct S { enum E { A } kind; };`), in source order.
    pub nested: Vec<DefId>,
}

/// A member of a struct, exception or union.
#[derive(Clone, Debug)]
pub struct Member {
    /// IDL name, unescaped.
    pub name: String,
    /// Type; an array declarator gives [`Type::Array`].
    pub ty: TypeId,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name.
    pub span: Span,
}

/// A union.
#[derive(Clone, Debug)]
pub struct Union {
    /// Discriminator type, possibly a typedef: an integer, character, `boolean`, `octet` or enum.
    pub discriminator: TypeId,
    /// Annotations of the discriminator.
    pub discriminator_annotations: Annotations,
    /// Cases in order.
    pub cases: Vec<Case>,
    /// In a union without `default`, the discriminator value that selects no case: the least value from zero
    /// up that is not a label or, if there is none, the greatest such value below zero. `None` if the union
    /// has `default`, or if every value is a label.
    pub implicit_default: Option<ConstValue>,
    /// In a union with `default`, the discriminator value that selects it, chosen like
    /// [`implicit_default`](Union::implicit_default). `None` in a union without `default`.
    pub default_value: Option<ConstValue>,
    /// Types declared inside, in source order.
    pub nested: Vec<DefId>,
}

/// One member of a union with all labels that select it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Explicit labels in order, all distinct within the union. Empty for a bare `default:`.
    pub labels: Vec<Label>,
    /// Whether `default:` is among the labels.
    pub is_default: bool,
    /// The member.
    pub member: Member,
}

/// One `case` label, evaluated.
#[derive(Clone, Debug)]
pub struct Label {
    /// Value in the discriminator's type: `Integer` (also for `octet`), `Bool`, `Char`, `WChar` or `Enum`.
    pub value: ConstValue,
    /// Location of the label's expression.
    pub span: Span,
}

/// An enum.
#[derive(Clone, Debug, Default)]
pub struct Enum {
    /// Enumerators. The ordinal is the position.
    pub enumerators: Vec<Enumerator>,
}

/// An enumerator. Its IDL name belongs to the scope that contains the enum.
#[derive(Clone, Debug)]
pub struct Enumerator {
    /// IDL name, unescaped.
    pub name: String,
    /// Documentation comments.
    pub docs: Docs,
    /// Annotations.
    pub annotations: Annotations,
    /// Location of the name.
    pub span: Span,
}

/// A typedef.
#[derive(Clone, Debug)]
pub struct Typedef {
    /// The aliased type. An array declarator gives [`Type::Array`].
    pub ty: TypeId,
}

/// A constant.
#[derive(Clone, Debug)]
pub struct Const {
    /// Type as written, possibly a typedef.
    pub ty: TypeId,
    /// Value, within the range of its type.
    pub value: ConstValue,
}

/// Documentation: the text of documentation comments, line by line, without comment markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docs {
    /// The lines without line ends, without the leading `*` of block comments, and without one leading space.
    pub lines: Vec<String>,
}

impl Docs {
    /// Returns whether there is no documentation.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns all lines joined by `\n`.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// The annotations of one declaration, in order.
#[derive(Clone, Debug, Default)]
pub struct Annotations(pub Vec<Annotation>);

impl Annotations {
    /// Returns whether an annotation of this name (without `@`) is present.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the first annotation of this name (without `@`).
    pub fn get(&self, name: &str) -> Option<&Annotation> {
        self.0.iter().find(|a| a.name == name)
    }
}

/// One annotation, e.g. `@zero_copy` or `@range(min = 1, max = 9)`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Name without `@`; scopes joined by `::`.
    pub name: String,
    /// Arguments in order.
    pub args: Vec<AnnotationArg>,
    /// Location of `@` and the name.
    pub span: Span,
}

/// One argument of an annotation.
#[derive(Clone, Debug)]
pub struct AnnotationArg {
    /// Name of a named argument.
    pub name: Option<String>,
    /// Value.
    pub value: AnnotationValue,
    /// Location of the value.
    pub span: Span,
}

/// An annotation that the text declares: `@annotation limit { long most default 9; };`.
#[derive(Clone, Debug)]
pub struct AnnotationType {
    /// Scoped name without leading `::` and without `@`.
    pub name: String,
    /// Documentation comments.
    pub docs: Docs,
    /// Members in order.
    pub members: Vec<AnnotationMember>,
    /// Location of the name.
    pub span: Span,
}

/// A member of a declared annotation.
#[derive(Clone, Debug)]
pub struct AnnotationMember {
    /// IDL name, unescaped.
    pub name: String,
    /// Type, which is one that constants can have. `None` for `any`.
    pub ty: Option<TypeId>,
    /// Default value. `None` if each use of the annotation must give a value.
    pub default: Option<ConstValue>,
    /// Location of the name.
    pub span: Span,
}

/// Value of an annotation's argument.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationValue {
    /// An evaluated constant expression. If the parameter has no type, a text is wide if its literal is.
    Const(ConstValue),
    /// A name as written, which is not resolved: a word that the annotation defines
    /// (`@extensibility(FINAL)`), or several such words joined by ` | `, or a name whose type is not known.
    Name(String),
}
