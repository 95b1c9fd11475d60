//! Formatting of values as text for display.

use core::fmt::{self, Write};

use super::Program;
use crate::Printable;
use crate::any::Any;
use crate::cdr::Decoder;
use crate::dynamic::check::value_members;
use crate::dynamic::{DynError, DynErrorKind, Dynamic, Items, UnionValue, Value, ValueGraph};
use crate::program::Index;
use crate::typecode::{Body, NamedType, Node, Nodes, Union};

/// The maximum number of bytes that are shown of each string.
const MAX_TEXT_BYTES: usize = 1024;
/// The maximum number of elements that are shown of each sequence or array.
const MAX_ITEMS: usize = 256;
const MAX_LEVELS: usize = crate::cdr::MAX_DEPTH as usize;

/// The maximum size of the whole text, because many values could repeat a name that a type has once.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Passes text on until its limit, and then writes `...` and fails.
struct LimitedWriter<'a> {
    output: &'a mut dyn Write,
    remaining_bytes: usize,
}

impl Write for LimitedWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Some(remaining) = self.remaining_bytes.checked_sub(text.len()) {
            self.remaining_bytes = remaining;
            return self.output.write_str(text);
        }
        let mut end = std::mem::take(&mut self.remaining_bytes);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        write!(self.output, "{}...", text.get(..end).unwrap_or_default())?;
        Err(fmt::Error)
    }
}

impl Program {
    /// Reads a value and writes it as text, such as `{ name: "x", colour: red, grid: [1, 2] }`. The format is
    /// for display, not for programs. Instances of value types are numbered: `->0 { v: 1, next: ->1 { v: 2,
    /// next: ->0 } }`. The text shows at most 1 KiB of each string, 256 elements of each sequence or array,
    /// and 64 levels. It has at most 1 MiB.
    ///
    /// # Errors
    /// [`Decode`](DynErrorKind::Decode) with the path to the fault. [`Limit`](DynErrorKind::Limit) if `out`
    /// returns an error.
    pub fn print(&self, d: &mut Decoder<'_>, out: &mut dyn Write) -> Result<(), DynError> {
        let value = self.decode(d)?;
        write!(out, "{value}").map_err(|_| DynErrorKind::Limit("the output did not accept the text").into())
    }
}

impl fmt::Display for Dynamic {
    /// Writes the value like [`Program::print`], or with `{:?}` for a part that does not match its type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = LimitedWriter { output: f, remaining_bytes: MAX_OUTPUT_BYTES };
        let mut printer = ValuePrinter::new(&self.graph);
        match printer.value(&mut out, &self.code.nodes, self.code.root, &self.value, 0) {
            Err(_) if out.remaining_bytes == 0 => Ok(()),
            result => result,
        }
    }
}

impl fmt::Display for Any {
    /// Writes the value in the format of [`Program::print`]. If it is invalid, writes the error in angle
    /// brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_dynamic() {
            Ok(value) => value.fmt(f),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

struct ValuePrinter<'a> {
    graph: &'a ValueGraph,
    printed: Vec<bool>,
}

impl ValuePrinter<'_> {
    fn new(graph: &ValueGraph) -> ValuePrinter<'_> {
        ValuePrinter { graph, printed: vec![false; graph.nodes.len()] }
    }

    fn value(
        &mut self,
        f: &mut LimitedWriter<'_>,
        nodes: &Nodes,
        index: Index,
        value: &Value,
        level: usize,
    ) -> fmt::Result {
        if level >= MAX_LEVELS {
            return f.write_str("...");
        }
        let node = nodes.at(nodes.steps().unaliased(index));
        match (node, value) {
            (Node::Named(NamedType { body: Body::Members(members), .. }), Value::Struct(values)) => {
                f.write_str("{")?;
                for (at, (member, value)) in members.iter().zip(values).enumerate() {
                    f.write_str(if at == 0 { " " } else { ", " })?;
                    self.member(f, (&member.name, at), nodes, member.ty, value, level)?;
                }
                f.write_str(if members.is_empty() { "}" } else { " }" })
            }
            (Node::Named(NamedType { body: Body::Enumerators(names), .. }), Value::Enum(ordinal)) => {
                match names.get(*ordinal as usize) {
                    Some(name) if !name.is_empty() => write!(f, "{}", Printable::new(name)),
                    _ => write!(f, "{ordinal}"),
                }
            }
            (Node::Named(NamedType { body: Body::Union(union), .. }), Value::Union(value)) => {
                self.union(f, nodes, union, value, level)
            }
            (Node::Sequence { element, .. } | Node::Array { element, .. }, Value::Items(items)) => {
                self.items(f, nodes, *element, items, level)
            }
            (_, Value::Any(any)) => match any.to_dynamic() {
                Ok(content) => {
                    let mut printer = ValuePrinter::new(&content.graph);
                    printer.value(f, &content.code.nodes, content.code.root, &content.value, level + 1)
                }
                Err(error) => write!(f, "<{error}>"),
            },
            (_, Value::Node(Some(node))) => self.node(f, *node, level),
            (_, value) => print_leaf(f, value),
        }
    }

    /// Writes a member with its name, or its index if it has none.
    fn member(
        &mut self,
        f: &mut LimitedWriter<'_>,
        (name, at): (&str, usize),
        nodes: &Nodes,
        kind: Index,
        value: &Value,
        level: usize,
    ) -> fmt::Result {
        match name {
            "" => write!(f, "{at}: ")?,
            name => write!(f, "{}: ", Printable::new(name))?,
        }
        self.value(f, nodes, kind, value, level + 1)
    }

    fn union(
        &mut self,
        f: &mut LimitedWriter<'_>,
        nodes: &Nodes,
        union: &Union,
        value: &UnionValue,
        level: usize,
    ) -> fmt::Result {
        let label = value.discriminator;
        match nodes.at(nodes.steps().unaliased(union.discriminator)) {
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                let name = usize::try_from(label).ok().and_then(|label| names.get(label));
                write!(f, "({})", Printable::new(name.map_or("", |name| name)))?;
            }
            _ => write!(f, "({label})")?,
        }
        let (Some(member), Some(value)) = (union.selected(label), &value.value) else { return Ok(()) };
        f.write_str(" ")?;
        self.member(f, (&member.name, 0), nodes, member.ty, value, level)
    }

    fn items(
        &mut self,
        f: &mut LimitedWriter<'_>,
        nodes: &Nodes,
        element: Index,
        items: &Items,
        level: usize,
    ) -> fmt::Result {
        f.write_str("[")?;
        let printed = items.len().min(MAX_ITEMS);
        for at in 0..printed {
            if at > 0 {
                f.write_str(", ")?;
            }
            match items {
                Items::Values(values) => {
                    let Some(value) = values.get(at) else { break };
                    self.value(f, nodes, element, value, level + 1)?;
                }
                items => match items.get(at) {
                    Some(value) => print_leaf(f, &value)?,
                    None => break,
                },
            }
        }
        match items.len() - printed {
            0 => f.write_str("]"),
            more => write!(f, ", and {more} more]"),
        }
    }

    /// Writes the number of an instance of a value type, and at its first occurrence also its members.
    fn node(&mut self, f: &mut LimitedWriter<'_>, node: u32, level: usize) -> fmt::Result {
        write!(f, "->{node}")?;
        let graph = self.graph;
        let (Some(printed @ false), Some(found)) =
            (self.printed.get_mut(node as usize), graph.nodes.get(node as usize))
        else {
            return Ok(());
        };
        *printed = true;
        let Ok(members) = value_members(&found.code) else { return Ok(()) };
        f.write_str(" {")?;
        for (at, ((code, name), value)) in members.iter().zip(&found.members).enumerate() {
            f.write_str(if at == 0 { " " } else { ", " })?;
            self.member(f, (name, at), &code.nodes, code.root, value, level)?;
        }
        f.write_str(if members.is_empty() { "}" } else { " }" })
    }
}

fn print_leaf(f: &mut LimitedWriter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Void => f.write_str("null"),
        Value::Boolean(value) => write!(f, "{value}"),
        Value::Octet(value) => write!(f, "{value}"),
        Value::Short(value) => write!(f, "{value}"),
        Value::UShort(value) => write!(f, "{value}"),
        Value::Long(value) => write!(f, "{value}"),
        Value::ULong(value) | Value::Enum(value) => write!(f, "{value}"),
        Value::LongLong(value) => write!(f, "{value}"),
        Value::ULongLong(value) => write!(f, "{value}"),
        Value::Float(value) => write!(f, "{value:?}"),
        Value::Double(value) => write!(f, "{value:?}"),
        Value::LongDouble(value) => write!(f, "{value}"),
        Value::Char(value) => write!(f, "{:?}", char::from(*value)),
        Value::WChar(value) => write!(f, "{:?}", char::from(*value)),
        Value::String(text) => write!(f, "{:?}", Printable::new(text).max_bytes(MAX_TEXT_BYTES)),
        Value::WString(text) => {
            write!(f, "{:?}", Printable::new(&text.to_string_lossy()).max_bytes(MAX_TEXT_BYTES))
        }
        Value::Fixed(number) => write!(f, "{number}"),
        Value::TypeCode(code) => match code.name() {
            Ok(name) if !name.is_empty() => write!(f, "`{}`", Printable::new(name)),
            _ => write!(f, "`{code}`"),
        },
        Value::Object(reference) if reference.profiles.is_empty() => f.write_str("nil"),
        Value::Object(reference) => write!(f, "object {:?}", Printable::new(&reference.type_id)),
        Value::Node(None) => f.write_str("null"),
        Value::Node(Some(node)) => write!(f, "->{node}"),
        Value::Principal(bytes) => write!(f, "{} octets", bytes.len()),
        // These values do not match their types.
        Value::Struct(_) | Value::Union(_) | Value::Items(_) | Value::Any(_) => write!(f, "{value:?}"),
    }
}
