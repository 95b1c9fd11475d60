//! All kinds of findings: the possible values of [`crate::Diagnostic::code`].

use super::Severity;

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name, in kebab case.
    pub code: &'static str,
    /// The highest severity of findings of this kind in files. Some kinds are errors in some contexts and
    /// warnings in others.
    pub worst: Severity,
    /// The stage that finds it.
    pub stage: Stage,
    /// The meaning of such a finding.
    pub meaning: &'static str,
}

/// The stage of the compiler that finds a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Opening files, and the end of a compilation.
    Input,
    /// The preprocessor.
    Preprocessor,
    /// Lexer and parser.
    Syntax,
    /// Names and scopes.
    Names,
    /// Types, interfaces, value types and their bases.
    Types,
    /// Operations and attributes.
    Operations,
    /// Constant expressions.
    Constants,
    /// Annotations, pragmas and repository ids.
    Annotations,
    /// Problems of the Rust code that is generated from the IDL. `idlc check` does not report them.
    Rust,
}

impl Kind {
    /// Returns all kinds, each once.
    pub fn all() -> &'static [Kind] {
        ALL
    }

    /// Returns the kind with this code.
    pub fn of(code: &str) -> Option<&'static Kind> {
        ALL.iter().find(|kind| kind.code == code)
    }
}

const fn error(stage: Stage, code: &'static str, meaning: &'static str) -> Kind {
    Kind { code, worst: Severity::Error, stage, meaning }
}

const fn warning(stage: Stage, code: &'static str, meaning: &'static str) -> Kind {
    Kind { code, worst: Severity::Warning, stage, meaning }
}

use Stage::{Annotations, Constants, Input, Names, Operations, Preprocessor, Rust, Syntax, Types};

const ALL: &[Kind] = &[
    error(Input, "cannot-read", "a file to compile that cannot be read"),
    error(Input, "more-errors", "how many errors are not shown, behind the first 200"),
    error(Input, "too-large", "files, tokens, macros or arrays beyond what is held"),
    error(Preprocessor, "include", "`#include` of a file that is not there, or of nothing"),
    error(Preprocessor, "include-depth", "files that include each other without end"),
    error(Preprocessor, "error-line", "`#error`"),
    warning(Preprocessor, "warning-line", "`#warning`"),
    error(
        Preprocessor,
        "unknown-directive",
        "a line with `#` and a word that is no directive; any directive among Rust tokens",
    ),
    warning(Preprocessor, "extra-tokens", "text behind a directive that takes none"),
    error(Preprocessor, "conditional", "`#if`, `#else` and `#endif` that do not fit together"),
    error(Preprocessor, "bad-condition", "an expression behind `#if` that has no value"),
    error(Preprocessor, "bad-macro", "a malformed `#define`"),
    error(Preprocessor, "bad-paste", "`##` of what is no token together"),
    error(Preprocessor, "macro-arguments", "arguments that a macro does not take"),
    warning(Preprocessor, "macro-redefined", "a macro that is defined again, differently"),
    error(Preprocessor, "bad-line", "a malformed `#line`"),
    error(Syntax, "syntax", "a text that the grammar does not have"),
    error(Syntax, "stray-character", "a character that means nothing in IDL"),
    error(
        Syntax,
        "bad-identifier",
        "an identifier of other than letters, digits and `_`, or with two `_` before it",
    ),
    error(Syntax, "bad-literal", "a number, character or text that is malformed, or too large to be read"),
    warning(Syntax, "unknown-escape", "an escape sequence that IDL does not have"),
    error(Syntax, "unterminated", "a text, character or comment without its end"),
    error(Syntax, "empty", "a module, union, enum or bitmask without contents"),
    error(Syntax, "too-deep", "definitions, types or expressions inside each other beyond the limit"),
    error(Syntax, "anonymous-type", "a type that must have a name to be used there"),
    error(Names, "template-module", "an instance of what is no template module, or of one inside of itself"),
    error(
        Names,
        "template-argument",
        "an argument that a parameter of a template module does not take, or too many or too few",
    ),
    error(Names, "not-found", "a name that is not declared"),
    error(Names, "not-a-scope", "`A::B` where `A` has no names inside"),
    error(Names, "not-a-type", "a type is wanted, the name is none"),
    error(Names, "not-a-constant", "a constant is wanted, the name is none"),
    error(Names, "not-an-exception", "an exception is wanted, the name is none"),
    error(Names, "not-an-interface", "an interface is wanted, the name is none"),
    error(Names, "not-a-value", "a value type is wanted, the name is none"),
    error(Names, "not-a-base", "a base of the same kind is wanted, the name is none"),
    error(Names, "not-a-component", "a component is wanted, the name is none"),
    error(Names, "not-a-connector", "a connector is wanted, the name is none"),
    error(Names, "not-a-home", "a home is wanted, the name is none"),
    error(Names, "not-an-event", "an event type is wanted, the name is none"),
    error(Names, "not-a-port-type", "a port type is wanted, the name is none"),
    error(Names, "unknown-import", "an import of what the text does not have"),
    error(Names, "ambiguous", "a name that several bases have"),
    error(Names, "redefinition", "a name that its scope has already"),
    error(Names, "case-collision", "names of a scope that differ in case only"),
    error(Names, "case-mismatch", "a name that is spelled differently from its definition"),
    error(Names, "keyword-collision", "a name that is a keyword but for case"),
    error(Names, "use-then-define", "a name that was used in a scope, and is defined there after that"),
    error(Names, "enclosing-scope-name", "the name of the scope around, immediately inside"),
    error(Names, "forward-kind", "a forward declaration of another kind than the definition"),
    error(Names, "never-defined", "a forward declaration without a definition in its scope"),
    error(Types, "incomplete", "a type or base that is not defined yet"),
    error(Types, "recursive", "a type that contains itself other than by a sequence or value"),
    error(Types, "bad-bound", "a bound or array size that is not from 1 to 4294967295"),
    error(Types, "bad-fixed", "digits and scale that no `fixed` has"),
    error(Types, "bad-key", "keys of a map that cannot be compared"),
    error(Types, "bad-bits", "a bitset or bitmask of more bits than there are, or with malformed fields"),
    error(Types, "bad-discriminator", "a type that no union switches on"),
    error(Types, "duplicate-label", "a label, or `default`, a second time"),
    error(Types, "default-unreachable", "`default` where all values have a case"),
    error(Types, "duplicate-base", "a base that is listed twice"),
    error(Types, "inheritance-clash", "operations of the same name from two bases"),
    error(Types, "inherited-redefinition", "an inherited operation, attribute or member again"),
    error(Types, "not-abstract", "an abstract interface with a base that is not"),
    error(Types, "local-base", "an interface with a local base that is not local itself"),
    error(Types, "local-type", "a local type where other machines would see it"),
    error(Types, "native-member", "a native type in a type that travels"),
    error(Types, "box-of-value", "a value box that holds a value"),
    error(Types, "abstract-value", "an abstract value type with state or factories"),
    error(Types, "value-inheritance", "several bases with state, or one that is not the first"),
    error(Types, "supports", "supported interfaces that do not go together"),
    error(Types, "truncatable", "`truncatable` where nothing can be cut off"),
    error(Types, "primary-key", "a primary key that is no value type as the component model wants it"),
    error(Types, "home-inheritance", "a home that manages what its base does not"),
    error(Types, "too-many-ports", "port types made of each other to more ports than are held"),
    error(Operations, "oneway", "a oneway operation with an answer"),
    warning(Operations, "duplicate-raises", "an exception that is listed twice"),
    error(Operations, "attribute-raises", "exceptions of an attribute that do not fit it"),
    error(Operations, "bad-context", "a context string that names no property"),
    error(Constants, "out-of-range", "a value that its type does not have"),
    error(Constants, "type-mismatch", "a value of another type than is wanted"),
    error(Constants, "not-a-constant-type", "a type that no constant has"),
    error(Constants, "division-by-zero", "a division by zero"),
    error(Constants, "bad-shift", "a shift by less than 0 or more than 63 bits"),
    warning(Constants, "precision-loss", "digits that a constant does not keep"),
    error(Annotations, "bad-annotation", "an annotation with wrong arguments, or where it means nothing"),
    warning(Annotations, "unknown-annotation", "an annotation that nothing knows"),
    error(Annotations, "zero-copy", "a `@zero_copy` struct that is not laid out as CDR is"),
    error(Annotations, "bad-pragma", "a malformed `#pragma`"),
    warning(
        Annotations,
        "unknown-pragma",
        "a `#pragma` that is one of IDL's but for case; among Rust tokens an error, whatever it is",
    ),
    error(Annotations, "repository-id", "an id, version or prefix that contradicts another"),
    error(Rust, "no-extern", "a definition whose Rust is elsewhere, nothing says where"),
    error(Rust, "unsupported", "what IDL allows and Rust is not made of"),
    error(Rust, "rust-name", "`@rust_name` of what is no identifier"),
    error(
        Rust,
        "rust-name-clash",
        "IDL names that become the same Rust name: an error where both were chosen, else the later one is changed",
    ),
];
