//! Annotations that need no declaration: those of the standard ("Standardized Annotations"), those that DDS
//! adds, and zorb's own. Defines the arguments of each and where it is allowed.

use super::scope::ScopeId;
use super::{Resolver, article};
use crate::ast::{Annotation, ExprKind, Head};
use crate::diagnostic::Diagnostic;
use crate::model::DefKind;

/// The kind of an argument of a known annotation.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Signed,
    Text,
    /// A value of the annotated type, evaluated once that is known.
    Typed,
    Word(&'static [&'static str]),
    /// Words separated by `|`.
    Words(&'static [&'static str]),
}

/// An argument of a known annotation: name, kind, and whether it must be given.
type Parameter = (&'static str, Kind, bool);

/// An annotation that needs no declaration.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// The items on which it is allowed; empty for all.
    places: &'static [Place],
    /// The compiler acts on it. Therefore it is an error where it is not allowed, otherwise a warning.
    pub(super) acted: bool,
}

/// The kind of an annotated item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Module,
    Interface,
    Value,
    ValueBox,
    Operation,
    Attribute,
    Param,
    Factory,
    Struct,
    Exception,
    Union,
    /// A member of a struct or exception.
    Member,
    /// A case of a union.
    Case,
    /// A state member of a value type.
    State,
    Enum,
    Enumerator,
    Typedef,
    Const,
    Native,
    Bitset,
    Field,
    Bitmask,
    Flag,
    /// The discriminator of a union.
    Discriminator,
    /// A forward declaration.
    Forward,
    /// `typeid`, `typeprefix`, `import`.
    Directive,
}

use Place::{
    Attribute, Bitmask, Bitset, Case, Discriminator, Enum, Enumerator, Exception, Factory, Field, Flag,
    Interface, Member, Module, Operation, Param, State, Struct, Typedef, Union, Value, ValueBox,
};

const TYPED: &[Parameter] = &[("value", Kind::Typed, true)];
const INTEGER: &[Parameter] = &[("value", Kind::Integer, true)];
const FLAG: &[Parameter] = &[("value", Kind::Boolean, false)];

const EVERYWHERE: &[Place] = &[];
const MEMBERS: &[Place] = &[Member, Case, State];
const TYPES: &[Place] = &[Struct, Exception, Union, Enum, Typedef, Bitset, Bitmask, Value, ValueBox];
const CONSTRUCTED: &[Place] = &[Struct, Exception, Union, Enum, Bitset, Bitmask, Value];
const NUMBERS: &[Place] = &[Member, Case, State, Typedef, Param, Attribute, ValueBox];
/// Items that have a name in Rust.
const NAMED: &[Place] = &[
    Module,
    Interface,
    Value,
    ValueBox,
    Operation,
    Attribute,
    Param,
    Factory,
    Struct,
    Exception,
    Union,
    Member,
    Case,
    State,
    Enum,
    Enumerator,
    Typedef,
    Place::Const,
    Place::Native,
    Bitset,
    Field,
    Bitmask,
    Flag,
];
const SCOPES: &[Place] = &[Module, Interface, Struct, Exception, Union, Value];

/// An annotation that the compiler acts on.
const fn acted(name: &'static str, parameters: &'static [Parameter], places: &'static [Place]) -> Known {
    Known { name, parameters, places, acted: true }
}

/// An annotation that is checked and kept.
const fn kept(name: &'static str, parameters: &'static [Parameter], places: &'static [Place]) -> Known {
    Known { name, parameters, places, acted: false }
}

/// All known annotations: those of the standard in its order, then those of DDS, then zorb's.
pub(super) const KNOWN: &[Known] = &[
    kept("id", INTEGER, EVERYWHERE),
    kept("autoid", &[("value", Kind::Word(&["SEQUENTIAL", "HASH"]), false)], SCOPES),
    acted("optional", FLAG, &[Member]),
    acted("position", INTEGER, &[Flag]),
    acted("value", &[("value", Kind::Signed, true)], &[Enumerator]),
    kept("extensibility", &[("value", Kind::Word(&["FINAL", "APPENDABLE", "MUTABLE"]), true)], CONSTRUCTED),
    kept("final", &[], CONSTRUCTED),
    kept("appendable", &[], CONSTRUCTED),
    kept("mutable", &[], CONSTRUCTED),
    kept("key", FLAG, &[Member, Case, State, Discriminator]),
    kept("must_understand", FLAG, &[Member, Case, State, Discriminator]),
    acted("default_literal", &[], &[Enumerator]),
    acted("default", TYPED, &[Member, State]),
    acted("range", &[("min", Kind::Typed, true), ("max", Kind::Typed, true)], NUMBERS),
    acted("min", TYPED, NUMBERS),
    acted("max", TYPED, NUMBERS),
    kept("unit", &[("value", Kind::Text, true)], EVERYWHERE),
    acted("bit_bound", INTEGER, &[Bitmask, Enum]),
    kept("external", FLAG, MEMBERS),
    kept("nested", FLAG, TYPES),
    kept(
        "verbatim",
        &[
            ("language", Kind::Text, false),
            (
                "placement",
                Kind::Word(&[
                    "BEGIN_FILE",
                    "BEFORE_DECLARATION",
                    "BEGIN_DECLARATION",
                    "END_DECLARATION",
                    "AFTER_DECLARATION",
                    "END_FILE",
                ]),
                false,
            ),
            ("text", Kind::Text, true),
        ],
        EVERYWHERE,
    ),
    kept("service", &[("platform", Kind::Text, false)], &[Interface, Operation, Attribute]),
    acted("oneway", FLAG, &[Operation]),
    kept("ami", FLAG, &[Interface, Operation, Attribute]),
    kept("hashid", &[("value", Kind::Text, false)], &[Member, Case, State, Param, Operation, Attribute]),
    kept("default_nested", FLAG, &[Module]),
    kept("ignore_literal_names", FLAG, &[Enum]),
    kept(
        "try_construct",
        &[("value", Kind::Word(&["DISCARD", "USE_DEFAULT", "TRIM"]), false)],
        &[Member, Case, State, Typedef],
    ),
    kept("non_serialized", FLAG, MEMBERS),
    kept("data_representation", &[("allowed_kinds", Kind::Words(&["XCDR1", "XML", "XCDR2"]), true)], TYPES),
    kept("topic", &[("name", Kind::Text, false), ("platform", Kind::Text, false)], TYPES),
    acted("rust_name", &[("value", Kind::Text, true)], NAMED),
    acted("non_nil", &[], &[Member, Case, State, Param, Operation, Attribute, Typedef]),
    acted("stream", &[], &[Param, Operation]),
    acted("zero_copy", &[], &[Struct]),
    acted("interpretive", &[], &[Struct, Exception, Union, Enum, Interface]),
    acted("adaptive", &[("uses", Kind::Integer, true)], &[Struct, Exception, Union, Enum]),
];

/// Names of zorb's own annotations.
const OWN: &[&str] = &["rust_name", "non_nil", "stream", "zero_copy", "interpretive", "adaptive"];

impl Place {
    /// Returns the kind of item for the annotations of a definition.
    pub(super) fn of(kind: &DefKind) -> Place {
        match kind {
            DefKind::Module(_) => Module,
            DefKind::Interface(_) => Interface,
            DefKind::Operation(_) => Operation,
            DefKind::Attribute(_) => Attribute,
            DefKind::Struct(_) => Struct,
            DefKind::Exception(_) => Exception,
            DefKind::Union(_) => Union,
            DefKind::Enum(_) => Enum,
            DefKind::Typedef(_) => Typedef,
            DefKind::Const(_) => Place::Const,
            DefKind::Value(_) => Value,
            DefKind::ValueBox(_) => ValueBox,
            DefKind::Native => Place::Native,
            DefKind::Bitset(_) => Bitset,
            DefKind::Bitmask(_) => Bitmask,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Module => "module",
            Interface => "interface",
            Value => "value type",
            ValueBox => "value box",
            Operation => "operation",
            Attribute => "attribute",
            Param => "parameter",
            Factory => "factory",
            Struct => "struct",
            Exception => "exception",
            Union => "union",
            Member => "member",
            Case => "union member",
            State => "state member",
            Enum => "enum",
            Enumerator => "enumerator",
            Typedef => "typedef",
            Place::Const => "constant",
            Place::Native => "native type",
            Bitset => "bitset",
            Field => "field of a bitset",
            Bitmask => "bitmask",
            Flag => "flag",
            Discriminator => "discriminator",
            Place::Forward => "forward declaration",
            Place::Directive => "declaration that defines nothing",
        }
    }

    /// Returns the plural, for messages.
    fn plural(self) -> String {
        match self {
            Bitmask => "bitmasks".to_owned(),
            Field => "fields of bitsets".to_owned(),
            Value => "value types".to_owned(),
            ValueBox => "value boxes".to_owned(),
            Factory => "factories".to_owned(),
            Member => "members of structs and exceptions".to_owned(),
            Case => "members of unions".to_owned(),
            State => "members of value types".to_owned(),
            other => format!("{}s", other.what()),
        }
    }
}

impl Resolver<'_> {
    /// Reports, once for each annotation, that GIOP uses another encoding than the annotation requests.
    fn check_honoured(&mut self, annotation: &Annotation, known: &Known, place: Place, scope: ScopeId) {
        let argument = annotation.args.first().map(|(_, value)| &value.kind);
        let is_final = || matches!(argument, Some(ExprKind::Name(name)) if name.text() == "FINAL");
        let instead = match (known.name, place) {
            ("appendable" | "mutable", _) => "CORBA has one encoding of a type, the final one",
            ("extensibility", _) if !is_final() => "CORBA has one encoding of a type, the final one",
            ("non_serialized", _) => "CORBA sends all members",
            ("data_representation", _) => "CORBA has one encoding, CDR of its GIOP version",
            ("bit_bound", Enum) if !matches!(argument, Some(ExprKind::Integer(32))) => {
                "CORBA sends an enumerator as 32 bits"
            }
            _ => return,
        };
        if self.declared_annotation(known.name, scope).is_none() && self.told.insert(known.name) {
            let message = format!("the encoding is not what `@{}` asks for", known.name);
            self.symbols
                .report(Diagnostic::warning("bad-annotation", annotation.span, message).note(instead));
        }
    }

    /// Reports known annotations that have no meaning on this item.
    pub(super) fn check_places(&mut self, head: &Head, place: Place, scope: ScopeId) {
        for annotation in &head.annotations {
            let Some(known) = KNOWN.iter().find(|known| known.name == annotation.name) else { continue };
            let everywhere = known.places.is_empty() && !matches!(place, Place::Forward | Place::Directive);
            if everywhere
                || known.places.contains(&place)
                || self.declared_annotation(&annotation.name, scope).is_some()
            {
                self.check_honoured(annotation, known, place, scope);
                continue;
            }
            let message = format!("`@{}` on {}", known.name, article(place.what()));
            // Those of the standard may have a meaning for other readers of the IDL.
            let found = match OWN.contains(&known.name) {
                true => Diagnostic::error("bad-annotation", annotation.span, message),
                false => Diagnostic::warning("bad-annotation", annotation.span, message),
            };
            let places: Vec<String> = known.places.iter().map(|place| place.plural()).collect();
            let found = match place {
                _ if places.is_empty() || known.name == "rust_name" => found,
                Place::Forward => found,
                _ => found.note(format!("it is for {}", places.join(", "))),
            };
            self.symbols.report(match (known.name, place) {
                (_, Place::Forward) => found.help("put it before the definition"),
                ("range" | "min" | "max", Operation | Place::Const) => {
                    found.help(format!("declare a type: `@{} ... typedef long Name;`", known.name))
                }
                ("optional", State) => found.help("a value that is missing is null: use a value box"),
                _ => found,
            });
        }
    }
}
