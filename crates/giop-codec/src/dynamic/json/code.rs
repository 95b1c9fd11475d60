//! Conversion of type codes to JSON and back. The JSON is a string such as `"long"` or `"string<8>"`, or an
//! object that describes the parts of the type.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json};

use super::super::Value as Tree;
use super::super::build::{discriminator_value, label_of};
use super::key;
use crate::ior::MAX_REPOSITORY_ID_BYTES;
use crate::typecode::{
    Body, Builder, Index, LabelEncoding, MAX_LEVELS, MAX_NODES, Member, NamedType, Node, Nodes, TcKind,
    TypeCode, Union, Value, ValueModifier, is_valid_fixed,
};

impl Serialize for TypeCode {
    /// Uses the mapping of docs/JSON.md.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let remaining = text_size(&self.nodes).saturating_mul(4).saturating_add(MAX_REPEATED_BYTES);
        let (named, remaining_bytes) = (RefCell::default(), Cell::new(remaining));
        let writer = CodeWriter { nodes: &self.nodes, named, remaining_bytes };
        TypePart { writer: &writer, index: self.root, depth: 0 }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for TypeCode {
    /// Accepts at most [`MAX_NODES`] types that are nested at most [`MAX_LEVELS`] deep.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<TypeCode, D::Error> {
        from_json(&Json::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// The approximate maximum of bytes for repetitions of types without an id, which are written at each use.
const MAX_REPEATED_BYTES: usize = 1 << 20;

/// The approximate size of the text of one type in a type code, without names.
const NODE_BYTES: usize = 48;

/// Returns the approximate size in bytes of the text of one type, without the types to which it refers.
fn node_text_size(node: &Node) -> usize {
    let names: usize = match node {
        Node::Named(NamedType { id, name, body, .. }) => {
            let enumerators = if let Body::Enumerators(names) = body { &**names } else { &[] };
            id.len() + name.len() + enumerators.iter().map(|name| name.len() + 3).sum::<usize>()
        }
        _ => 0,
    };
    NODE_BYTES + names + node.members().iter().map(|member| NODE_BYTES + member.name.len()).sum::<usize>()
}

/// Returns the approximate size in bytes of the text of all types if each is written once.
pub(super) fn text_size(nodes: &Nodes) -> usize {
    nodes.all().iter().map(node_text_size).sum()
}

struct CodeWriter<'a> {
    nodes: &'a Nodes,
    /// The last type that was written with each id. A reference by id refers to that type.
    named: RefCell<HashMap<Box<str>, Index>>,
    /// The approximate number of bytes that may still be written.
    remaining_bytes: Cell<usize>,
}

struct TypePart<'a> {
    writer: &'a CodeWriter<'a>,
    index: Index,
    depth: usize,
}

/// Returns the name of a kind in JSON objects: its OMG name without `tk_`.
fn name_of(kind: TcKind) -> &'static str {
    let name = kind.omg_name();
    name.strip_prefix("tk_").unwrap_or(name)
}

const MODIFIERS: [(&str, ValueModifier); 3] = [
    ("custom", ValueModifier::Custom),
    ("abstract", ValueModifier::Abstract),
    ("truncatable", ValueModifier::Truncatable),
];

impl Serialize for TypePart<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let writer = self.writer;
        let node = writer.nodes.at(self.index);
        let Some(remaining) = writer.remaining_bytes.get().checked_sub(node_text_size(node)) else {
            return Err(S::Error::custom("the type repeats types without an id too often"));
        };
        writer.remaining_bytes.set(remaining);
        let part = |index| TypePart { writer, index, depth: self.depth + 1 };
        if self.depth > MAX_LEVELS {
            return Err(S::Error::custom(format_args!("types have more than {MAX_LEVELS} levels")));
        }
        let named = match node {
            Node::Basic(kind) => return to.serialize_str(kind.keyword()),
            Node::Text { wide, bound } => {
                let name = if *wide { "wstring" } else { "string" };
                return match bound {
                    0 => to.serialize_str(name),
                    bound => to.collect_str(&format_args!("{name}<{bound}>")),
                };
            }
            Node::Fixed { digits, scale } => {
                return to.collect_str(&format_args!("fixed<{digits},{scale}>"));
            }
            Node::Sequence { element, bound } => {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("kind", "sequence")?;
                map.serialize_entry("element", &part(*element))?;
                if *bound != 0 {
                    map.serialize_entry("bound", bound)?;
                }
                return map.end();
            }
            Node::Array { element, length } => {
                let mut map = to.serialize_map(Some(3))?;
                map.serialize_entry("kind", "array")?;
                map.serialize_entry("element", &part(*element))?;
                map.serialize_entry("length", length)?;
                return map.end();
            }
            Node::Placeholder(_) => return Err(S::Error::custom("the type is incomplete")),
            Node::Named(named) => named,
        };
        let mut map = to.serialize_map(None)?;
        if !named.id.is_empty()
            && writer.named.borrow_mut().insert((*named.id).into(), self.index) == Some(self.index)
        {
            map.serialize_entry(key::REF, &*named.id)?;
            return map.end();
        }
        map.serialize_entry("kind", name_of(named.kind))?;
        map.serialize_entry("id", &*named.id)?;
        map.serialize_entry("name", &*named.name)?;
        match &named.body {
            Body::Opaque => {}
            Body::Content(content) => map.serialize_entry("type", &part(*content))?,
            Body::Enumerators(names) => map.serialize_entry("members", &**names)?,
            Body::Members(members) => map.serialize_entry("members", &Members { owner: self, members })?,
            Body::Union(union) => {
                map.serialize_entry("discriminator", &part(union.discriminator))?;
                map.serialize_entry("members", &Members { owner: self, members: &union.members })?;
            }
            Body::Value(value) => {
                if let Some((name, _)) = MODIFIERS.iter().find(|(_, modifier)| *modifier == value.modifier) {
                    map.serialize_entry("modifier", name)?;
                }
                if let Some(base) = value.base {
                    map.serialize_entry("base", &part(base))?;
                }
                map.serialize_entry("members", &Members { owner: self, members: &value.members })?;
            }
        }
        map.end()
    }
}

struct Members<'a> {
    owner: &'a TypePart<'a>,
    members: &'a [Member],
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let members = self.members.iter().enumerate();
        to.collect_seq(members.map(|(index, member)| OneMember { owner: self.owner, member, index }))
    }
}

struct OneMember<'a> {
    owner: &'a TypePart<'a>,
    member: &'a Member,
    index: usize,
}

impl Serialize for OneMember<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (writer, member) = (self.owner.writer, self.member);
        let Node::Named(NamedType { body, .. }) = writer.nodes.at(self.owner.index) else {
            return to.serialize_unit();
        };
        let mut map = to.serialize_map(None)?;
        if let Body::Union(union) = body {
            if union.default.is_some_and(|default| default as usize == self.index) {
                map.serialize_entry("default", &true)?;
            } else {
                let label =
                    discriminator_value(writer.nodes, union.discriminator, member.label_or_visibility);
                map.serialize_entry("label", &label_json(writer.nodes, union.discriminator, &label))?;
            }
        }
        map.serialize_entry("name", &*member.name)?;
        map.serialize_entry("type", &TypePart { writer, index: member.ty, depth: self.owner.depth + 1 })?;
        if matches!(body, Body::Value(_)) && member.label_or_visibility == 0 {
            map.serialize_entry("visibility", "private")?;
        }
        map.end()
    }
}

fn label_json(nodes: &Nodes, discriminator: Index, label: &Tree) -> Json {
    match label {
        Tree::Boolean(value) => Json::from(*value),
        Tree::Char(value) => Json::from(char::from(*value).to_string()),
        Tree::WChar(value) => match char::from_u32(value.0.into()) {
            Some(value) => Json::from(value.to_string()),
            None => Json::from(value.0),
        },
        Tree::Enum(ordinal) => match nodes.at(nodes.unaliased(discriminator)) {
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                names.get(*ordinal as usize).map_or(Json::from(*ordinal), |name| Json::from(&**name))
            }
            _ => Json::from(*ordinal),
        },
        Tree::ULongLong(value) => Json::from(*value),
        number => label_of(number).map_or(Json::Null, Json::from),
    }
}

/// Reads a type code from its JSON. The error describes the fault.
pub(super) fn from_json(json: &Json) -> Result<TypeCode, String> {
    let mut reader = Reader { builder: Builder::default(), named: HashMap::new(), open: Vec::new() };
    let root = reader.code(json)?;
    let nodes = reader.builder.finish().ok_or("the type is incomplete")?;
    Ok(TypeCode { nodes, root })
}

struct Reader {
    builder: Builder,
    named: HashMap<String, Index>,
    /// The types that are being read, each with whether a type may contain itself through it.
    open: Vec<(Index, bool)>,
}

fn text<'j>(object: &'j Map<String, Json>, name: &str) -> Result<&'j str, String> {
    match object.get(name) {
        None => Ok(""),
        Some(Json::String(text)) if text.len() <= MAX_REPOSITORY_ID_BYTES => Ok(text),
        Some(_) => {
            Err(format!("`{name}` of a type must be a string of up to {MAX_REPOSITORY_ID_BYTES} bytes"))
        }
    }
}

fn number(object: &Map<String, Json>, name: &str) -> Result<u32, String> {
    let Some(json) = object.get(name) else { return Ok(0) };
    let number = json.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("`{name}` of a type must be a number up to 4294967295"))
}

impl Reader {
    fn code(&mut self, json: &Json) -> Result<Index, String> {
        match json {
            Json::String(word) => self.word(word),
            Json::Object(object) => self.object(object),
            _ => Err("a type must be a string such as \"long\", or an object with a `kind`".to_owned()),
        }
    }

    fn word(&mut self, word: &str) -> Result<Index, String> {
        let basic = TcKind::ALL.iter().find(|kind| kind.is_basic() && kind.keyword() == word);
        if let Some(kind) = basic {
            return Ok(self.builder.basic(*kind));
        }
        let unknown = || format!("`{word}` is not a type: a named type must be an object with a `kind`");
        let (name, arguments) = match word.split_once('<') {
            Some((name, rest)) => (name, Some(rest.strip_suffix('>').ok_or_else(unknown)?)),
            None => (word, None),
        };
        let node = match (name, arguments) {
            ("string" | "wstring", None) => Node::Text { wide: name == "wstring", bound: 0 },
            ("string" | "wstring", Some(bound)) => {
                Node::Text { wide: name == "wstring", bound: bound.trim().parse().map_err(|_| unknown())? }
            }
            ("fixed", Some(arguments)) => {
                let (digits, scale) = arguments.split_once(',').ok_or_else(unknown)?;
                let digits = digits.trim().parse().map_err(|_| unknown())?;
                let scale = scale.trim().parse().map_err(|_| unknown())?;
                if !is_valid_fixed(digits, scale) {
                    return Err("a fixed must have 1 to 31 digits and a scale of -31 to 31".to_owned());
                }
                Node::Fixed { digits, scale }
            }
            _ => return Err(unknown()),
        };
        let index = self.reserve()?;
        self.builder.set(index, node);
        Ok(index)
    }

    fn reserve(&mut self) -> Result<Index, String> {
        if self.builder.len() >= MAX_NODES {
            return Err(format!("a type must not contain more than {MAX_NODES} types"));
        }
        Ok(self.builder.reserve())
    }

    fn reference(&self, id: &str) -> Result<Index, String> {
        let index = *self
            .named
            .get(id)
            .ok_or_else(|| format!("`$ref` names the type `{id}`, which must be defined before it"))?;
        let enclosing = self.open.iter().position(|(open, _)| *open == index);
        match enclosing {
            Some(first) if !self.open.iter().skip(first).any(|(_, allows_recursion)| *allows_recursion) => {
                Err(format!("the type `{id}` contains itself only through aliases, sequences or arrays"))
            }
            _ => Ok(index),
        }
    }

    fn object(&mut self, object: &Map<String, Json>) -> Result<Index, String> {
        if let Some(id) = object.get(key::REF) {
            return self.reference(id.as_str().ok_or("`$ref` must be a repository id")?);
        }
        if self.open.len() >= MAX_LEVELS {
            return Err(format!("types have more than {MAX_LEVELS} levels"));
        }
        let word = text(object, "kind")?;
        let kind = TcKind::ALL.iter().find(|kind| !kind.is_basic() && name_of(**kind) == word);
        let kind = *kind.ok_or_else(|| format!("`{word}` is not a kind of type"))?;
        let index = self.reserve()?;
        self.open.push((index, !matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias)));
        let node = match kind {
            TcKind::Sequence => {
                Node::Sequence { element: self.part(object, "element")?, bound: number(object, "bound")? }
            }
            TcKind::Array => {
                Node::Array { element: self.part(object, "element")?, length: number(object, "length")? }
            }
            TcKind::String | TcKind::WString | TcKind::Fixed => {
                return Err(format!("the type `{word}` must be written as a string, such as \"string<8>\""));
            }
            kind => {
                let (id, name) = (text(object, "id")?, text(object, "name")?);
                if !id.is_empty() {
                    self.named.insert(id.to_owned(), index);
                }
                let body = self.body(kind, object)?;
                Node::Named(NamedType { kind, id: id.to_owned().into(), name: name.to_owned().into(), body })
            }
        };
        self.open.pop();
        self.builder.set(index, node);
        Ok(index)
    }

    fn part(&mut self, object: &Map<String, Json>, name: &str) -> Result<Index, String> {
        self.code(object.get(name).ok_or_else(|| format!("the `{name}` of a type is missing"))?)
    }

    fn body(&mut self, kind: TcKind, object: &Map<String, Json>) -> Result<Body, String> {
        Ok(match kind {
            TcKind::Alias | TcKind::ValueBox => Body::Content(self.part(object, "type")?),
            TcKind::Enum => {
                let name = |json: &Json| json.as_str().map(|name| name.to_owned().into());
                let names = members(object)?.iter().map(name).collect::<Option<Box<[_]>>>();
                Body::Enumerators(names.ok_or("the members of an enum must be strings")?)
            }
            TcKind::Struct | TcKind::Except => {
                let read = |json| self.member(json, 0);
                Body::Members(members(object)?.iter().map(read).collect::<Result<_, _>>()?)
            }
            TcKind::Union => Body::Union(Box::new(self.union(object)?)),
            TcKind::Value | TcKind::Event => {
                let word = text(object, "modifier")?;
                let modifier = match MODIFIERS.iter().find(|(name, _)| *name == word) {
                    Some((_, modifier)) => *modifier,
                    None if word.is_empty() => ValueModifier::None,
                    None => return Err(format!("`{word}` is not a modifier of value types")),
                };
                let base = object.get("base").map(|base| self.code(base)).transpose()?;
                let mut all = Vec::new();
                for json in members(object)? {
                    let private = json.get("visibility").and_then(Json::as_str) == Some("private");
                    all.push(self.member(json, i64::from(!private))?);
                }
                Body::Value(Box::new(Value { modifier, base, members: all.into() }))
            }
            _ => Body::Opaque,
        })
    }

    fn member(&mut self, json: &Json, label: i64) -> Result<Member, String> {
        let object = json.as_object().ok_or("a member must be an object with `name` and `type`")?;
        let name = text(object, "name")?.to_owned();
        let kind = self.part(object, "type").map_err(|error| format!("{name}: {error}"))?;
        Ok(Member { name: name.into(), ty: kind, label_or_visibility: label })
    }

    fn union(&mut self, object: &Map<String, Json>) -> Result<Union, String> {
        let discriminator = self.part(object, "discriminator")?;
        let mut unaliased = discriminator;
        while let Some(Node::Named(NamedType { kind: TcKind::Alias, body: Body::Content(of), .. })) =
            self.builder.get(unaliased)
        {
            unaliased = *of;
        }
        let node = self.builder.get(unaliased).ok_or("a union cannot be its own discriminator")?.clone();
        let nodes = Nodes::from(Box::<[Node]>::from([node]));
        let valid_labels = LabelEncoding::of_node(&nodes, 0)
            .ok_or("the discriminator of a union must be an integer, char, boolean or enum")?;
        let by_name: HashMap<&str, usize> = match nodes.at(0) {
            Node::Named(NamedType { body: Body::Enumerators(names), .. }) => {
                names.iter().enumerate().rev().map(|(at, name)| (&**name, at)).collect()
            }
            _ => HashMap::new(),
        };
        let (mut all, mut default, mut labels) = (Vec::new(), None, HashSet::new());
        for json in members(object)? {
            let at = u32::try_from(all.len()).map_err(|_| "too many members")?;
            let label = if json.get("default") == Some(&Json::Bool(true)) {
                if default.replace(at).is_some() {
                    return Err("a union must have at most one default member".to_owned());
                }
                0
            } else {
                let label =
                    json.get("label").ok_or("a union's member must have a `label` or `\"default\": true`")?;
                let label =
                    label_from(nodes.at(0), &by_name, label).filter(|label| valid_labels.is_valid(*label));
                label.ok_or("a label is not a value of the discriminator's type")?
            };
            let member = self.member(json, label)?;
            if default != Some(at) && !labels.insert(label) {
                return Err(format!("the label of `{}` occurs twice", member.name));
            }
            all.push(member);
        }
        Ok(Union::new(discriminator, default, all.into()))
    }
}

fn members(object: &Map<String, Json>) -> Result<&[Json], String> {
    match object.get("members") {
        None => Ok(&[]),
        Some(Json::Array(members)) => Ok(members),
        Some(_) => Err("the `members` of a type must be an array".to_owned()),
    }
}

fn label_from(discriminator: &Node, enumerators: &HashMap<&str, usize>, json: &Json) -> Option<i64> {
    let single_char = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none()).map(|char| i64::from(u32::from(char)))
    };
    match (discriminator, json) {
        (Node::Basic(TcKind::Boolean), json) => json.as_bool().map(i64::from),
        (Node::Basic(TcKind::Char | TcKind::WChar), Json::String(text)) => single_char(text),
        (Node::Basic(TcKind::ULongLong), json) => json.as_u64().map(u64::cast_signed),
        (Node::Named(_), Json::String(text)) => enumerators.get(&**text).and_then(|at| (*at).try_into().ok()),
        (_, json) => json.as_i64(),
    }
}
