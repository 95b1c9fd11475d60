//! The text form of type codes: IDL. Only the outermost type is written out. Others appear as their names.

use core::fmt::{self, Display, Formatter, Write as _};

use super::TypeCode;
use super::kind::{TcKind, ValueModifier};
use super::node::{Body, Index, Member, NamedType, Node, Nodes, Union, Value};
use crate::Printable;

/// The maximum number of nested sequences, and of dimensions of an array, that are shown.
const MAX_SHOWN_LEVELS: usize = 16;

impl Display for TypeCode {
    /// Formats the type as IDL on one line, such as `struct S { long a; sequence<M::T> b; }`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.node() {
            Node::Named(named) => write_definition(&self.nodes, named, f),
            _ => write_use(&self.nodes, self.root, MAX_SHOWN_LEVELS, f),
        }
    }
}

impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "TypeCode({self})")
    }
}

/// The displayed name of a type: the scoped name that its repository id contains. If the id has another form,
/// the name without a scope is shown, or the id if there is no name.
struct ScopedName<'a>(&'a NamedType);

impl Display for ScopedName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ScopedName(NamedType { id, name, .. }) = self;
        match idl_path(id) {
            Some(path) => {
                let mut scopes = path.split('/').filter(|scope| !scope.contains('.'));
                Printable::new(scopes.next().unwrap_or(path)).fmt(f)?;
                scopes.try_for_each(|scope| write!(f, "::{}", Printable::new(scope)))
            }
            None if name.is_empty() => Printable::new(if id.is_empty() { "_" } else { id }).fmt(f),
            None => Printable::new(name).fmt(f),
        }
    }
}

/// Returns the text between `IDL:` and the version; `None` if the id has another form.
fn idl_path(id: &str) -> Option<&str> {
    let (path, _) = id.strip_prefix("IDL:")?.rsplit_once(':')?;
    let last = path.rsplit('/').next()?;
    (!last.is_empty() && !last.contains('.')).then_some(path)
}

/// Writes a type as it appears in the definition of another one.
fn write_use(nodes: &Nodes, index: Index, levels_left: usize, f: &mut Formatter<'_>) -> fmt::Result {
    let Some(levels_left) = levels_left.checked_sub(1) else { return f.write_str("...") };
    match nodes.at(index) {
        Node::Basic(kind) => f.write_str(kind.keyword()),
        Node::Text { wide, bound } => {
            f.write_str(if *wide { "wstring" } else { "string" })?;
            if *bound == 0 { Ok(()) } else { write!(f, "<{bound}>") }
        }
        Node::Fixed { digits, scale } => write!(f, "fixed<{digits}, {scale}>"),
        Node::Sequence { element, bound } => {
            f.write_str("sequence<")?;
            write_use(nodes, *element, levels_left, f)?;
            if *bound == 0 { f.write_char('>') } else { write!(f, ", {bound}>") }
        }
        Node::Array { .. } => {
            let (mut element, mut lengths) = (index, Vec::new());
            // The dimensions are collected in a loop: `levels_left` limits only the nesting of sequences.
            while let (Node::Array { element: next, length }, true) =
                (nodes.at(element), lengths.len() < MAX_SHOWN_LEVELS)
            {
                lengths.push(*length);
                element = *next;
            }
            write_use(nodes, element, levels_left, f)?;
            lengths.iter().try_for_each(|length| write!(f, "[{length}]"))
        }
        Node::Named(named) => ScopedName(named).fmt(f),
        Node::Placeholder(id) => Printable::new(id).fmt(f),
    }
}

fn write_definition(nodes: &Nodes, named: &NamedType, f: &mut Formatter<'_>) -> fmt::Result {
    if let Body::Value(value) = &named.body {
        f.write_str(match value.modifier {
            ValueModifier::Custom => "custom ",
            ValueModifier::Abstract => "abstract ",
            ValueModifier::None | ValueModifier::Truncatable => "",
        })?;
    }
    write!(f, "{} ", named.kind.keyword())?;
    if let (TcKind::Alias, Body::Content(content)) = (named.kind, &named.body) {
        write_use(nodes, *content, MAX_SHOWN_LEVELS, f)?;
        return write!(f, " {}", ScopedName(named));
    }
    ScopedName(named).fmt(f)?;
    match &named.body {
        Body::Opaque => Ok(()),
        Body::Content(content) => {
            f.write_char(' ')?;
            write_use(nodes, *content, MAX_SHOWN_LEVELS, f)
        }
        Body::Members(members) => {
            f.write_str(" { ")?;
            members.iter().try_for_each(|member| write_member(nodes, member, f))?;
            f.write_char('}')
        }
        Body::Enumerators(names) => {
            f.write_str(" { ")?;
            for (index, name) in names.iter().enumerate() {
                write!(f, "{}{}", if index == 0 { "" } else { ", " }, Printable::new(name))?;
            }
            f.write_str(" }")
        }
        Body::Union(union) => {
            f.write_str(" switch (")?;
            write_use(nodes, union.discriminator, MAX_SHOWN_LEVELS, f)?;
            f.write_str(") { ")?;
            write_cases(nodes, union, f)?;
            f.write_char('}')
        }
        Body::Value(value) => {
            f.write_char(' ')?;
            write_state(nodes, value, f)
        }
    }
}

fn write_member(nodes: &Nodes, member: &Member, f: &mut Formatter<'_>) -> fmt::Result {
    write_use(nodes, member.ty, MAX_SHOWN_LEVELS, f)?;
    write!(f, " {}; ", Printable::new(&member.name))
}

fn write_cases(nodes: &Nodes, union: &Union, f: &mut Formatter<'_>) -> fmt::Result {
    for (index, member) in union.members.iter().enumerate() {
        if union.default.map(|default| default as usize) == Some(index) {
            f.write_str("default: ")?;
        } else {
            f.write_str("case ")?;
            write_label(nodes, union.discriminator, member.label_or_visibility, f)?;
            f.write_str(": ")?;
        }
        write_member(nodes, member, f)?;
    }
    Ok(())
}

fn write_label(nodes: &Nodes, discriminator: Index, label: i64, f: &mut Formatter<'_>) -> fmt::Result {
    match nodes.at(nodes.unaliased(discriminator)) {
        Node::Basic(TcKind::Boolean) => f.write_str(if label == 0 { "FALSE" } else { "TRUE" }),
        Node::Basic(TcKind::Char | TcKind::WChar) => match u32::try_from(label).ok().and_then(char::from_u32)
        {
            Some(c) => write!(f, "{c:?}"),
            None => write!(f, "{label:#x}"),
        },
        Node::Basic(TcKind::ULongLong) => write!(f, "{}", label.cast_unsigned()),
        Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
            match usize::try_from(label).ok().and_then(|label| names.get(label)) {
                Some(name) => Printable::new(name).fmt(f),
                None => write!(f, "{label}"),
            }
        }
        _ => write!(f, "{label}"),
    }
}

fn write_state(nodes: &Nodes, value: &Value, f: &mut Formatter<'_>) -> fmt::Result {
    if let Some(base) = value.base {
        f.write_str(if value.modifier == ValueModifier::Truncatable { ": truncatable " } else { ": " })?;
        write_use(nodes, base, MAX_SHOWN_LEVELS, f)?;
        f.write_char(' ')?;
    }
    f.write_str("{ ")?;
    for member in &value.members {
        f.write_str(if member.label_or_visibility == 0 { "private " } else { "public " })?;
        write_member(nodes, member, f)?;
    }
    f.write_char('}')
}
