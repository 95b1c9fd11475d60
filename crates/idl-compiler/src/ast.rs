//! The syntax tree that the parser produces. Names in it are not bound to definitions yet.

use std::rc::Rc;

use crate::model::{Direction, Docs, Flavour, Primitive, ValueModifier, Visibility};
use crate::source::Span;
use crate::token::Wideness;

#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// A scoped name: `A::B` or `::A::B`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    /// True if the name starts with `::`.
    pub(crate) absolute: bool,
    /// The identifiers of the name, at least one.
    pub(crate) parts: Vec<Ident>,
    pub(crate) span: Span,
}

impl Name {
    pub(crate) fn text(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.text.as_str()).collect();
        format!("{}{}", if self.absolute { "::" } else { "" }, parts.join("::"))
    }
}

/// The documentation and annotations before a declaration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preamble {
    pub(crate) docs: Docs,
    pub(crate) annotations: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(crate) name: String,
    /// The arguments, each with its name if it is given.
    pub(crate) args: Vec<(Option<Ident>, Expr)>,
    pub(crate) span: Span,
}

/// A definition, or a declaration in the body of an interface, value type, component, home or port type.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) preamble: Preamble,
    pub(crate) kind: ItemKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    Module {
        name: Ident,
        items: Vec<Item>,
    },
    Interface {
        flavour: Flavour,
        name: Ident,
        bases: Vec<Name>,
        items: Vec<Item>,
    },
    ForwardInterface {
        flavour: Flavour,
        name: Ident,
    },
    /// A `valuetype` or `eventtype` with a body.
    Value(Box<Value>),
    ForwardValue {
        is_abstract: bool,
        is_event: bool,
        name: Ident,
    },
    ValueBox {
        name: Ident,
        ty: TypeSpec,
    },
    /// State members of a value type: `public long a, b[2];`.
    State(State),
    /// A factory of a value type or home: `factory make(in long a) raises (E);`.
    Factory(Factory),
    Native(Ident),
    /// A struct, union or enum.
    Type(TypeSpec),
    ForwardStruct(Ident),
    ForwardUnion(Ident),
    Typedef {
        ty: TypeSpec,
        declarators: Vec<Declarator>,
    },
    Const {
        ty: TypeSpec,
        name: Ident,
        value: Expr,
    },
    Exception {
        name: Ident,
        members: Vec<Member>,
    },
    Operation(Operation),
    Attribute(Attribute),
    TypeId {
        name: Name,
        id: StringArg,
    },
    TypePrefix {
        name: Name,
        prefix: StringArg,
    },
    Pragma(Pragma),
    Import(Import),
    Bitset(Bitset),
    Bitmask(Bitmask),
    /// `@annotation name { ... };`
    AnnotationDef(AnnotationDef),
    Component(Component),
    ForwardComponent(Ident),
    Home(Box<Home>),
    PortType {
        name: Ident,
        items: Vec<Item>,
    },
    ForwardPortType(Ident),
    Connector {
        name: Ident,
        base: Option<Name>,
        items: Vec<Item>,
    },
    /// `module M<typename T> { ... };`
    Template(Rc<Template>),
    Instance(Box<Instance>),
    /// A port of a component, port type or connector.
    Port(Port),
    /// A finder of a home: `finder find(in long a) raises (E);`.
    Finder(Factory),
}

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: Ident,
    pub(crate) params: Vec<TemplateParam>,
    pub(crate) items: Vec<Item>,
    /// The number of tokens of the body.
    pub(crate) token_count: usize,
    /// The number of nesting levels of the body, including the body itself.
    pub(crate) height: usize,
}

/// A parameter of a template module.
#[derive(Debug)]
pub(crate) struct TemplateParam {
    pub(crate) kind: TemplateParamKind,
    pub(crate) name: Ident,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum TemplateParamKind {
    Type,
    Interface,
    Value,
    Event,
    Struct,
    Union,
    Exception,
    Enum,
    /// `sequence S`.
    AnySequence,
    /// `sequence<T> S`.
    Sequence(TypeSpec),
    Const(TypeSpec),
}

/// An instance of a template module: `module M<long> N;`, or `alias M<T> N;` in another template module.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) template: Name,
    pub(crate) args: Vec<TemplateArg>,
    pub(crate) name: Ident,
    pub(crate) is_alias: bool,
}

/// An argument of an instance. A name alone is always parsed as an expression, even if it names a type.
#[derive(Clone, Debug)]
pub(crate) enum TemplateArg {
    Type(TypeSpec),
    Expr(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) modifier: ValueModifier,
    /// The location of the modifier's keyword.
    pub(crate) modifier_span: Option<Span>,
    pub(crate) is_event: bool,
    pub(crate) name: Ident,
    /// The location of `truncatable`, which precedes the first base.
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<Name>,
    pub(crate) supports: Vec<Name>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) visibility: Visibility,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

/// A `factory` or `finder` declaration.
#[derive(Clone, Debug)]
pub(crate) struct Factory {
    pub(crate) name: Ident,
    pub(crate) params: Vec<Param>,
    pub(crate) raises: Option<Raises>,
}

#[derive(Clone, Debug)]
pub(crate) enum Import {
    Name(Name),
    /// A file name, or the repository id of a scope.
    Text(StringArg),
}

#[derive(Clone, Debug)]
pub(crate) struct Bitset {
    pub(crate) name: Ident,
    pub(crate) base: Option<Name>,
    pub(crate) fields: Vec<BitField>,
}

/// `bitfield<width, type> a, b;`
#[derive(Clone, Debug)]
pub(crate) struct BitField {
    pub(crate) preamble: Preamble,
    pub(crate) width: Expr,
    pub(crate) ty: Option<TypeSpec>,
    /// Empty for padding bits.
    pub(crate) names: Vec<Ident>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Bitmask {
    pub(crate) name: Ident,
    pub(crate) flags: Vec<Enumerator>,
}

#[derive(Clone, Debug)]
pub(crate) struct AnnotationDef {
    pub(crate) name: Ident,
    pub(crate) members: Vec<AnnotationMember>,
    /// The enums, constants and typedefs that the annotation declares.
    pub(crate) items: Vec<Item>,
}

/// A member of an `@annotation`: `long a default 5;`.
#[derive(Clone, Debug)]
pub(crate) struct AnnotationMember {
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub(crate) name: Ident,
    pub(crate) base: Option<Name>,
    pub(crate) supports: Vec<Name>,
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) name: Ident,
    pub(crate) base: Option<Name>,
    pub(crate) supports: Vec<Name>,
    pub(crate) manages: Name,
    pub(crate) primary_key: Option<Name>,
    /// Operations, attributes, types, constants, exceptions, factories and finders.
    pub(crate) items: Vec<Item>,
}

#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) kind: PortKind,
    /// `Object` if the interface is not given.
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortKind {
    Provides,
    Uses,
    UsesMultiple,
    Emits,
    Publishes,
    Consumes,
    Port,
    MirrorPort,
}

/// A string literal in a declaration or pragma.
#[derive(Clone, Debug)]
pub(crate) struct StringArg {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Pragma {
    Prefix(StringArg),
    Id {
        name: Name,
        id: StringArg,
    },
    /// The version is stored as it is written, and not validated yet.
    Version {
        name: Name,
        version: StringArg,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum TypeKind {
    Primitive(Primitive),
    String(Option<Expr>),
    WString(Option<Expr>),
    Sequence {
        element: Box<TypeSpec>,
        bound: Option<Expr>,
    },
    Name(Name),
    Object,
    Any,
    ValueBase,
    /// `fixed<digits, scale>`. `fixed` alone is the type of a constant.
    Fixed(Option<Box<(Expr, Expr)>>),
    Map {
        key: Box<TypeSpec>,
        value: Box<TypeSpec>,
        bound: Option<Expr>,
    },
    Void,
    /// A struct declared in place.
    Struct {
        name: Ident,
        base: Option<Name>,
        members: Vec<Member>,
    },
    Union(Box<Union>),
    Enum {
        name: Ident,
        enumerators: Vec<Enumerator>,
    },
    /// A type with an error that has already been reported.
    Bad,
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    /// The sizes of an array, the outermost first. Empty if the declarator is not an array.
    pub(crate) dims: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) preamble: Preamble,
    pub(crate) kind: MemberKind,
}

#[derive(Clone, Debug)]
pub(crate) enum MemberKind {
    Data { ty: TypeSpec, declarators: Vec<Declarator> },
    Pragma(Pragma),
}

#[derive(Clone, Debug)]
pub(crate) struct Enumerator {
    pub(crate) preamble: Preamble,
    pub(crate) name: Ident,
}

#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) name: Ident,
    /// The annotations of the discriminator.
    pub(crate) preamble: Preamble,
    pub(crate) discriminator: TypeSpec,
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The expression of each label (`None` for `default`) and its location.
    pub(crate) labels: Vec<(Option<Expr>, Span)>,
    pub(crate) preamble: Preamble,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The location of the keyword `oneway`.
    pub(crate) oneway: Option<Span>,
    pub(crate) result: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) params: Vec<Param>,
    pub(crate) raises: Option<Raises>,
    /// The strings of the `context` clause, in order.
    pub(crate) context: Vec<StringArg>,
}

/// A `raises`, `getraises` or `setraises` clause.
#[derive(Clone, Debug)]
pub(crate) struct Raises {
    pub(crate) names: Vec<Name>,
    /// The location of the keyword.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) preamble: Preamble,
    pub(crate) direction: Direction,
    /// The location of the direction's keyword.
    pub(crate) direction_span: Span,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Ident>,
    pub(crate) get_raises: Option<Raises>,
    pub(crate) set_raises: Option<Raises>,
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Integer(u64),
    Float(String),
    /// The digits as written, without the `d`.
    Fixed(String),
    Char {
        code: u32,
        wide: Wideness,
    },
    Text {
        text: String,
        wide: Wideness,
    },
    Bool(bool),
    Name(Name),
    Unary(Unary, Box<Expr>),
    /// The first operand, and the operators of the same precedence with their right operands, from left to
    /// right. In a binary tree, a long sum would be deeply nested.
    Binary(Box<Expr>, Vec<(Binary, Expr)>),
    /// An expression with an error that has already been reported.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Plus,
    Minus,
    Complement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    Xor,
    And,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::And => "&",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }
}
