//! Annotations that need no declaration, with their parameters and the items on which they are allowed: those
//! of the standard ("Standardized Annotations"), further ones of DDS, and zorb's own.

use super::scope::{ScopeId, with_article};
use super::symbols::Resolver;
use crate::ast::{Annotation, ExprKind, Preamble};
use crate::diagnostic::Diagnostic;
use crate::model::DefKind;
use crate::preprocess::OWN_ANNOTATIONS;

#[derive(Clone, Copy)]
pub(super) enum ArgumentKind {
    Boolean,
    /// An `unsigned long`.
    Unsigned,
    /// A `long long`.
    Signed,
    Text,
    /// A value of the annotated item's type, evaluated later, when the type is resolved.
    Typed,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One or more of these words, joined by `|`.
    Words(&'static [&'static str]),
}

/// A parameter of a known annotation: its name, its kind, and whether an argument is required.
type Parameter = (&'static str, ArgumentKind, bool);

pub(super) struct KnownAnnotation {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// The items on which the annotation has a meaning; empty for all but `Forward` and `Directive`.
    allowed_on: &'static [AnnotatedKind],
    /// Whether the compiler uses the annotation. Then a declaration in the text must have these parameters.
    pub(super) is_used: bool,
}

impl KnownAnnotation {
    /// Returns the names of the parameters, and whether an argument is required.
    pub(super) fn parameter_names(&self) -> Vec<(&'static str, bool)> {
        self.parameters.iter().map(|(name, _, needed)| (*name, *needed)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnnotatedKind {
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
    Const,
    Native,
    Bitset,
    Field,
    Bitmask,
    Flag,
    Discriminator,
    Forward,
    /// `typeid`, `typeprefix`, `import`.
    Directive,
}

use AnnotatedKind::{
    Attribute, Bitmask, Bitset, Case, Discriminator, Enum, Enumerator, Exception, Factory, Field, Flag,
    Interface, Member, Module, Operation, Param, State, Struct, Typedef, Union, Value, ValueBox,
};
use ArgumentKind::{Boolean, Signed, Text, Typed, Unsigned, Word, Words};

const REQUIRED: bool = true;
const OPTIONAL: bool = false;

const TYPED: &[Parameter] = &[("value", Typed, REQUIRED)];
const UNSIGNED: &[Parameter] = &[("value", Unsigned, REQUIRED)];
const OPTIONAL_BOOLEAN: &[Parameter] = &[("value", Boolean, OPTIONAL)];

const EVERYWHERE: &[AnnotatedKind] = &[];
const MEMBERS: &[AnnotatedKind] = &[Member, Case, State];
const TYPES: &[AnnotatedKind] = &[Struct, Exception, Union, Enum, Typedef, Bitset, Bitmask, Value, ValueBox];
const CONSTRUCTED: &[AnnotatedKind] = &[Struct, Exception, Union, Enum, Bitset, Bitmask, Value];
const NUMBERS: &[AnnotatedKind] = &[Member, Case, State, Typedef, Param, Attribute, ValueBox];
const SCOPES: &[AnnotatedKind] = &[Module, Interface, Struct, Exception, Union, Value];

/// An annotation that the compiler uses.
const fn used(
    name: &'static str,
    parameters: &'static [Parameter],
    allowed_on: &'static [AnnotatedKind],
) -> KnownAnnotation {
    KnownAnnotation { name, parameters, allowed_on, is_used: true }
}

/// An annotation that is checked and passed on to users of the model.
const fn recorded(
    name: &'static str,
    parameters: &'static [Parameter],
    allowed_on: &'static [AnnotatedKind],
) -> KnownAnnotation {
    KnownAnnotation { name, parameters, allowed_on, is_used: false }
}

/// All known annotations: first the standard's in its order, then further ones of DDS, then zorb's own.
pub(super) const KNOWN: &[KnownAnnotation] = &[
    recorded("id", UNSIGNED, EVERYWHERE),
    recorded("autoid", &[("value", Word(&["SEQUENTIAL", "HASH"]), OPTIONAL)], SCOPES),
    used("optional", OPTIONAL_BOOLEAN, &[Member]),
    used("position", UNSIGNED, &[Flag]),
    used("value", &[("value", Signed, REQUIRED)], &[Enumerator]),
    recorded("extensibility", &[("value", Word(&["FINAL", "APPENDABLE", "MUTABLE"]), REQUIRED)], CONSTRUCTED),
    recorded("final", &[], CONSTRUCTED),
    recorded("appendable", &[], CONSTRUCTED),
    recorded("mutable", &[], CONSTRUCTED),
    recorded("key", OPTIONAL_BOOLEAN, &[Member, Case, State, Discriminator]),
    recorded("must_understand", OPTIONAL_BOOLEAN, &[Member, Case, State, Discriminator]),
    used("default_literal", &[], &[Enumerator]),
    used("default", TYPED, &[Member, State]),
    used("range", &[("min", Typed, REQUIRED), ("max", Typed, REQUIRED)], NUMBERS),
    used("min", TYPED, NUMBERS),
    used("max", TYPED, NUMBERS),
    recorded("unit", &[("value", Text, REQUIRED)], EVERYWHERE),
    used("bit_bound", UNSIGNED, &[Bitmask, Enum]),
    recorded("external", OPTIONAL_BOOLEAN, MEMBERS),
    recorded("nested", OPTIONAL_BOOLEAN, TYPES),
    recorded(
        "verbatim",
        &[
            ("language", Text, OPTIONAL),
            (
                "placement",
                Word(&[
                    "BEGIN_FILE",
                    "BEFORE_DECLARATION",
                    "BEGIN_DECLARATION",
                    "END_DECLARATION",
                    "AFTER_DECLARATION",
                    "END_FILE",
                ]),
                OPTIONAL,
            ),
            ("text", Text, REQUIRED),
        ],
        EVERYWHERE,
    ),
    recorded("service", &[("platform", Text, OPTIONAL)], &[Interface, Operation, Attribute]),
    used("oneway", OPTIONAL_BOOLEAN, &[Operation]),
    recorded("ami", OPTIONAL_BOOLEAN, &[Interface, Operation, Attribute]),
    recorded("hashid", &[("value", Text, OPTIONAL)], &[Member, Case, State, Param, Operation, Attribute]),
    recorded("default_nested", OPTIONAL_BOOLEAN, &[Module]),
    recorded("ignore_literal_names", OPTIONAL_BOOLEAN, &[Enum]),
    recorded(
        "try_construct",
        &[("value", Word(&["DISCARD", "USE_DEFAULT", "TRIM"]), OPTIONAL)],
        &[Member, Case, State, Typedef],
    ),
    recorded("non_serialized", OPTIONAL_BOOLEAN, MEMBERS),
    recorded("data_representation", &[("allowed_kinds", Words(&["XCDR1", "XML", "XCDR2"]), REQUIRED)], TYPES),
    recorded("topic", &[("name", Text, OPTIONAL), ("platform", Text, OPTIONAL)], TYPES),
    used("rust_name", &[("value", Text, REQUIRED)], EVERYWHERE),
    used("non_nil", &[], &[Member, Case, State, Param, Operation, Attribute, Typedef]),
    used("stream", &[], &[Param, Operation]),
    used("zero_copy", &[], &[Struct]),
    used("interpretive", &[], &[Struct, Exception, Union, Enum, Interface]),
    used("adaptive", &[("uses", Unsigned, REQUIRED)], &[Struct, Exception, Union, Enum]),
];

impl AnnotatedKind {
    pub(super) fn of(kind: &DefKind) -> AnnotatedKind {
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
            DefKind::Const(_) => AnnotatedKind::Const,
            DefKind::Value(_) => Value,
            DefKind::ValueBox(_) => ValueBox,
            DefKind::Native => AnnotatedKind::Native,
            DefKind::Bitset(_) => Bitset,
            DefKind::Bitmask(_) => Bitmask,
        }
    }

    fn description(self) -> &'static str {
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
            AnnotatedKind::Const => "constant",
            AnnotatedKind::Native => "native type",
            Bitset => "bitset",
            Field => "field of a bitset",
            Bitmask => "bitmask",
            Flag => "flag",
            Discriminator => "discriminator",
            AnnotatedKind::Forward => "forward declaration",
            AnnotatedKind::Directive => "declaration that defines nothing",
        }
    }

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
            other => format!("{}s", other.description()),
        }
    }
}

impl Resolver<'_> {
    /// Warns, once for each known annotation, that GIOP does not use the encoding that it requests.
    fn check_encoding(
        &mut self,
        annotation: &Annotation,
        known: &KnownAnnotation,
        place: AnnotatedKind,
        scope: ScopeId,
    ) {
        let argument = annotation.args.first().map(|(_, value)| &value.kind);
        let is_final = || matches!(argument, Some(ExprKind::Name(name)) if name.text() == "FINAL");
        let instead = match (known.name, place) {
            ("appendable" | "mutable", _) => "CORBA has only the encoding of `@final`",
            ("extensibility", _) if !is_final() => "CORBA has only the encoding of `@final`",
            ("non_serialized", _) => "CORBA sends all members",
            ("data_representation", _) => "CORBA has only one encoding, which is the CDR of the GIOP version",
            ("bit_bound", Enum) if !matches!(argument, Some(ExprKind::Integer(32))) => {
                "CORBA sends an enumerator as 32 bits"
            }
            _ => return,
        };
        if self.declared_annotation(known.name, scope).is_none() && self.warned_encodings.insert(known.name) {
            let message = format!("CORBA does not use the encoding that `@{}` requests", known.name);
            self.symbols
                .report(Diagnostic::warning("bad-annotation", annotation.span, message).note(instead));
        }
    }

    /// Reports known annotations that have no meaning on this item.
    pub(super) fn check_allowed(&mut self, preamble: &Preamble, place: AnnotatedKind, scope: ScopeId) {
        for annotation in &preamble.annotations {
            let Some(known) = KNOWN.iter().find(|known| known.name == annotation.name) else { continue };
            // A discriminator has no name in Rust.
            let is_unnamed = place == Discriminator && known.name == "rust_name";
            let everywhere = known.allowed_on.is_empty()
                && !is_unnamed
                && !matches!(place, AnnotatedKind::Forward | AnnotatedKind::Directive);
            if everywhere
                || known.allowed_on.contains(&place)
                || self.declared_annotation(&annotation.name, scope).is_some()
            {
                self.check_encoding(annotation, known, place, scope);
                continue;
            }
            let message =
                format!("`@{}` has no meaning on {}", known.name, with_article(place.description()));
            // Only a warning for annotations of the standard, which may have a meaning for other tools.
            let found = match OWN_ANNOTATIONS.contains(&known.name) {
                true => Diagnostic::error("bad-annotation", annotation.span, message),
                false => Diagnostic::warning("bad-annotation", annotation.span, message),
            };
            let allowed_on: Vec<String> = known.allowed_on.iter().map(|kind| kind.plural()).collect();
            let found = match place {
                _ if allowed_on.is_empty() => found,
                AnnotatedKind::Forward => found,
                _ => found.note(format!("it applies to {}", allowed_on.join(", "))),
            };
            self.symbols.report(match (known.name, place) {
                (_, AnnotatedKind::Forward) => found.help("put it before the definition"),
                ("range" | "min" | "max", Operation | AnnotatedKind::Const) => {
                    found.help(format!("declare a type with it: `@{} ... typedef long Name;`", known.name))
                }
                ("optional", State) => found.help("use a value box, which can be null"),
                _ => found,
            });
        }
    }
}
