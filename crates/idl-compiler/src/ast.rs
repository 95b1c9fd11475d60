//! The syntax tree: what the parser saw, names not yet bound.

use crate::model::{Direction, Docs, Primitive};
use crate::source::Span;
use crate::token::Wideness;

#[derive(Clone, Debug)]
pub(crate) struct Ident {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// `A::B` or `::A::B`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) absolute: bool,
    /// At least one.
    pub(crate) parts: Vec<Ident>,
    pub(crate) span: Span,
}

impl Name {
    /// As written.
    pub(crate) fn text(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.text.as_str()).collect();
        format!("{}{}", if self.absolute { "::" } else { "" }, parts.join("::"))
    }
}

/// What stands before any declaration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    pub(crate) docs: Docs,
    pub(crate) annotations: Vec<Annotation>,
}

#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    pub(crate) name: String,
    pub(crate) args: Vec<(Option<Ident>, Expr)>,
    pub(crate) span: Span,
}

/// One definition or export, in source order.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) head: Head,
    pub(crate) kind: ItemKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ItemKind {
    Module {
        name: Ident,
        items: Vec<Item>,
    },
    Interface {
        name: Ident,
        bases: Vec<Name>,
        items: Vec<Item>,
    },
    ForwardInterface(Ident),
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
    /// A construct that has been reported as not supported; a name it would have declared is known, so that uses of it
    /// are not reported as well.
    Unsupported(Option<Ident>),
}

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
    /// The version as written, not yet checked.
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
    Void,
    /// Declared in place.
    Struct {
        name: Ident,
        members: Vec<Member>,
    },
    Union(Box<Union>),
    Enum {
        name: Ident,
        enumerators: Vec<Enumerator>,
    },
    /// Reported already.
    Bad,
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    /// Sizes of an array, outermost first.
    pub(crate) dims: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) head: Head,
    pub(crate) kind: MemberKind,
}

#[derive(Clone, Debug)]
pub(crate) enum MemberKind {
    Data { ty: TypeSpec, declarators: Vec<Declarator> },
    Pragma(Pragma),
}

#[derive(Clone, Debug)]
pub(crate) struct Enumerator {
    pub(crate) head: Head,
    pub(crate) name: Ident,
}

#[derive(Clone, Debug)]
pub(crate) struct Union {
    pub(crate) name: Ident,
    pub(crate) discriminator: TypeSpec,
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// `None` is `default`.
    pub(crate) labels: Vec<(Option<Expr>, Span)>,
    pub(crate) head: Head,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) oneway: Option<Span>,
    pub(crate) result: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) params: Vec<Param>,
    pub(crate) raises: Option<Raises>,
}

/// A `raises`, `getraises` or `setraises` clause.
#[derive(Clone, Debug)]
pub(crate) struct Raises {
    pub(crate) names: Vec<Name>,
    /// The keyword.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) head: Head,
    pub(crate) direction: Direction,
    /// The word that says the direction.
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
    /// Operators of one precedence applied from left to right. A list, not a tree: a long sum must not make a deep tree.
    Binary(Box<Expr>, Vec<(Binary, Expr)>),
    /// Reported already.
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
